"""Figures on real brokers for the questions of the five documents."""
