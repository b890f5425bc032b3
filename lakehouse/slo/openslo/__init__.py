"""OpenSLO v1 files: values with their places, findings, and computed objectives."""
