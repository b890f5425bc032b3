"""Figures of the five questions, measured on real brokers: ``make test-seeds``."""
