"""Read-only checks of a lake, with delta-rs and without Spark."""
