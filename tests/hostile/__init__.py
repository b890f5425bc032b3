"""Hostile inputs, each given to real commands of the product: ``make test-hostile``."""
