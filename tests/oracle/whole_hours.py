"""Clusters with a whole hour of scrapes, most of them good, for the rollup by the hour.

A fleet is a function of its seed: a good hour with some random problems.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from tests.lake_builder import BASE, Batch
from tests.oracle.fleets import SUNDAY, WINDOW

if TYPE_CHECKING:
    from collections.abc import Callable

ISR = "kafka.partition.under_min_isr"
LAG = "kafka.topic.remote_copy_lag.bytes"
THROTTLE = "kafka.client.fetch.throttle_time"
FAMILIES = ("min_isr", "topology", "tiered", "quotas")
SOURCES = ("broker-1", "broker-2")
_HOUR = (SUNDAY - BASE).total_seconds() - 50 * 60  # 23 o'clock, so that a date ends with it
_WINDOWS = tuple(_HOUR + WINDOW * number for number in range(12))


class Hour:
    """Rows of one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.batch = Batch(agent=f"agent-{seed}")
        self.where: dict[str, Any] = {"cluster": f"hour-{seed:03}"}

    def lag(self, start: float, end: float, value: float, source: str, **rest: Any) -> None:
        self.batch.run(LAG, start, end, value, topic="t", source=source, **self.where, **rest)

    def forget(self, metric: str, window: float, **of: Any) -> None:
        """Remove the rows of a metric from a window."""
        start = BASE.timestamp() + window
        self.batch.runs = [
            row
            for row in self.batch.runs
            if row["metric"] != metric
            or not start <= row["start"] / 1e6 < start + WINDOW
            or any(row[name] != value for name, value in of.items())
        ]


def fleet(seed: int) -> Batch:
    """Return the rows of an hour; one in four has no problem."""
    made = Hour(seed)
    for window in _WINDOWS:
        _well(made, window)
    made.batch.agent = f"agent-{seed}-of-flaws"  # no agent tells of one instant twice
    for _ in range(seed % 4):
        made.rng.choice(_FLAWS)(made, made.rng.choice((*_WINDOWS, _HOUR)))
    return made.batch


def _well(made: Hour, start: float) -> None:
    """Add a completely scraped and good window."""
    batch, where, end = made.batch, made.where, start + WINDOW
    batch.run("kafka.topic.partitions", start, end, 5.0, topic="t", **where)
    batch.run("kafka.topic.remote_storage_enabled", start, end, 1.0, topic="t", **where)
    for bound in ("low", "high"):
        metric = f"kafka.group.non_consumed.{bound}"
        for topic in ("t", "u"):
            batch.counter(metric, start, end, 0.0, topic=topic, partition=0, group="g", **where)
    for number, source in enumerate(SOURCES):
        partitions = [0, 1, 2] if number else [3, 4]
        batch.zeros(ISR, start, end, "t", partitions, source=source, **where)
        made.lag(start, end, 2.0, source)
        batch.idle(THROTTLE, start, end, [("u", "a"), ("u", "b")], source=source, **where)
        for family in FAMILIES:
            batch.scrape(family, start, end, source=source, **where)


def _bad_partition(made: Hour, window: float) -> None:
    """Add a bad partition from the start, or later with a lead before the window."""
    at = window + made.rng.choice((0, 5, 100))
    more = {"lead": made.rng.choice((0.0, 12.0)), "tail": 4.0}
    made.batch.run(ISR, at, at + 40, 1.0, topic="t", partition=4, **made.where, **more)
    made.batch.zeros(ISR, at, at + 40, "t", [3], **made.where)


def _silent_leader(made: Hour, window: float) -> None:
    made.forget(ISR, window, source="broker-2")


def _failed_attempt(made: Hour, window: float) -> None:
    family = made.rng.choice(FAMILIES)
    made.batch.scrape(family, window + 10, window + 20, "timeout", error="slow", **made.where)


def _throttled(made: Hour, window: float) -> None:
    where = {"user": "u", "client_id": "a", "lead": 30.0, **made.where}
    made.batch.run(THROTTLE, window + 20, window + 80, 50.0, **where)


def _client_not_told(made: Hour, window: float) -> None:
    made.forget(THROTTLE, window, source="broker-1")


def _lost(made: Hour, window: float) -> None:
    where = {"topic": "u", "partition": 0, "group": "g", **made.where}
    made.forget("kafka.group.non_consumed.high", window, topic="u")
    lost = made.rng.choice((3.0, None))
    made.batch.counter("kafka.group.non_consumed.high", window, window + WINDOW, lost, **where)


def _lags_cross(made: Hour, window: float) -> None:
    """Add a falling and a rising lag, whose sum may have been high."""
    made.forget(LAG, window)
    half = window + 150
    falls, rises = {"tail": 10.0}, {"lead": 10.0}
    made.lag(window, half, 5.0, "broker-1", **falls)
    made.lag(half, window + WINDOW, 0.5, "broker-1")
    made.lag(window, half, 0.5, "broker-2")
    made.lag(half, window + WINDOW, 5.0, "broker-2", **rises)


def _lag_rises(made: Hour, window: float) -> None:
    made.forget(LAG, window, source="broker-1")
    made.lag(window, window + 90, 1.0, "broker-1")
    made.lag(window + 90, window + WINDOW, 90.0, "broker-1", lead=20.0)


def _no_topology(made: Hour, window: float) -> None:
    made.forget("kafka.topic.partitions", window)


_FLAWS: tuple[Callable[[Hour, float], None], ...] = (
    _bad_partition, _silent_leader, _failed_attempt, _throttled, _client_not_told, _lost,
    _lags_cross, _lag_rises, _no_topology,
)  # fmt: skip
