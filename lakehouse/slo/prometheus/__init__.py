"""Rules for Prometheus on objectives."""
