"""What a simulated agent seals: rows of a window, as many and as varied as a broker's agent has."""

from __future__ import annotations

from typing import Any

from collector.encoding.bronze_rows import Batch

RUNS, SCRAPES, SETS = 300, 15, 40
"""Rows of a window, and the member sets that an agent sends with its first."""
_DAY_US = 86_400_000_000
_NOBODY = (None, None, None)
_METRICS = (
    "kafka.partition.under_min_isr",
    "kafka.partition.at_min_isr",
    "kafka.topic.remote_copy_lag.bytes",
    "kafka.topic.remote_copy.bytes",
    "kafka.topic.remote_fetch.requests",
    "kafka.partition.untiered_records",
)


def window(source: str, start_us: int, end_us: int, *, first: bool) -> Batch:
    """One window's rows; every row of it can be told from the others by its topic and metric."""
    whose = (start_us // _DAY_US, "cluster", source)
    return Batch(
        {
            "members": [_set(source, number) for number in range(SETS)] if first else [],
            "runs": [_run(whose, source, number, start_us, end_us) for number in range(RUNS)],
            "scrapes": [_scrape(whose, number, start_us, end_us) for number in range(SCRAPES)],
            "events": [],
        }
    )


def _set(source: str, number: int) -> tuple[Any, ...]:
    partitions = tuple(range(number % 7, 100, 3))
    return (_hash(source, number), "cluster", "partitions", f"topic-{number}", partitions, None)


def _run(
    whose: tuple[Any, ...], source: str, number: int, start_us: int, end_us: int
) -> tuple[Any, ...]:
    topic, metric = number // len(_METRICS), _METRICS[number % len(_METRICS)]
    folded = topic < SETS
    members = (34, _hash(source, topic)) if folded else (1, None)
    value = 0.0 if folded else float((start_us // 1_000_000 + 7_919 * number) % 100_003)
    return (
        *whose, metric, f"topic-{topic}", None if folded else 0, *_NOBODY, None,
        start_us, end_us, 0, 0, value, 30, *members, None,
    )  # fmt: skip


def _scrape(whose: tuple[Any, ...], number: int, start_us: int, end_us: int) -> tuple[Any, ...]:
    return (
        *whose, f"family-{number}", start_us, end_us, "ok", 30, 1_000, 0, 0.3, 0.02,
        10_000_000, 25_000_000, "catalogue", "4.3.1", None,
    )  # fmt: skip


def _hash(source: str, number: int) -> str:
    return f"{source}/{number:027}"
