"""Maintenance of bronze: checkpoints, compaction and clean-up, with delta-rs and without Spark."""
