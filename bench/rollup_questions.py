"""The questions put to the plain samples, for every engine the same.

Per metric, topic and partition, and per topic, in windows of 5 minutes and in hours:
how long it was observed, how long it was above zero, value times time; of topics also for how long
at least one partition was above zero, and how many at most at once. That is a part of what a rollup
tells: no bounds, no derived metrics, no objectives, no sources.

A reading holds until the next one of its series, as in a run. Where none comes nobody can tell from
samples when the source ceased to answer; then it holds for one interval.
"""

from __future__ import annotations

from typing import Final

SOURCES: Final = {"partitions": "fine", "topics": "topics"}
"""Answers, and the table of each in windows of 5 minutes."""

LENGTHS: Final = {"windows": 300, "hours": 3600}
KEYS: Final = ("metric", "topic", "partition")
INTERVAL_US: Final = 10_000_000
LONGEST_US: Final = INTERVAL_US * 3 // 2
WINDOW_US: Final = 300_000_000
