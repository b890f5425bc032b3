"""OpenSLO v1 files: where each value stands, what is wrong with it, what jmxlake makes of it."""
