"""The five KIPs on real brokers: ``make test-seeds``."""
