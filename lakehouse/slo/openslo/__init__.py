"""OpenSLO v1 files: values with their places, findings, and the objectives that jmxlake computes."""
