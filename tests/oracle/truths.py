"""Clusters that are known at every microsecond, read by agents: schedules of bench/truth.py."""

from __future__ import annotations

TRUTHS = (0, 1, 2, 9, 12)
"""Their seeds."""
