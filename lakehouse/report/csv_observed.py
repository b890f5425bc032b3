"""The CSV tables of what was seen: sources, their gaps, timelines and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse.report import incidents
from lakehouse.report.csv_columns import (
    CLIENT,
    GROUP,
    OWNED,
    PARTITION,
    SOURCE,
    TOPIC,
    UNKNOWN,
    USER,
    Column,
    Table,
    section,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.report.csv_columns import Facts, Row


def _points(facts: Facts) -> Iterable[Row]:
    names = ("at", "value", "low", "high")
    return (
        {
            **{key: line.get(key) for key in ("name", "unit", "subject")},
            **dict(zip(names, point, strict=True)),
        }
        for line in facts.get("timelines") or ()
        for point in line.get("points") or ()
    )


def _outcomes(row: Row) -> str:
    return " ".join(f"{name}={count}" for name, count in (row.get("outcomes") or {}).items())


TABLES: Final = (
    Table(
        "coverage_sources", "source and family of metrics", section("coverage", "sources"),
        (
            SOURCE,
            Column("family", "family; any: nobody ever read the source"),
            Column("expected_us", "microseconds that should have been seen"),
            Column("observed_us", "microseconds that were seen"),
            UNKNOWN,
            Column("percent", "observed_us of expected_us, per cent"),
            Column("outcomes", "attempts by outcome, such as ok=120 refused=22", _outcomes),
            Column("interval_us", "longest interval between two attempts, microseconds"),
            Column("first_error", "the first error"),
        ),
    ),
    Table(
        "coverage_gaps", "gap of a source and family", incidents.gaps,
        (
            SOURCE,
            Column("family", "family of metrics"),
            Column("start", "start of the gap, UTC"),
            Column("end", "its end, UTC"),
            Column("outcome", "how the attempts went"),
            Column("error", "what was told"),
        ),
    ),
    Table(
        "timelines", "timeline and window", _points,
        (
            Column("name", "what is counted"),
            Column("unit", "unit of the values (UCUM)"),
            Column("subject", "topic, client or group; empty: the whole cluster"),
            Column("at", "start of the window, UTC"),
            Column("value", "the figure; empty: nobody looked"),
            Column("low", "what it is at least"),
            Column("high", "what it is at most; empty: not all was seen"),
        ),
    ),
    Table(
        "events", "event, in the order it was noticed", lambda facts: facts.get("events") or (),
        (
            Column("at", "when it was noticed, UTC"),
            SOURCE,
            Column("kind", "what happened"),
            TOPIC, PARTITION, USER, CLIENT, GROUP,
            Column("old", "before"),
            Column("new", "after"),
            *OWNED,
        ),
    ),
)  # fmt: skip
