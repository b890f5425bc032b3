"""Checks of a lake, by delta-rs alone; nothing is changed."""
