"""Maintenance of bronze: checkpoints, compaction, clean-up; by delta-rs alone, without Spark."""
