"""Rollup from bronze to gold, on any engine (see ``lakehouse.engines``)."""
