"""The CSV tables of trends: week by week, and what changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.report.csv_columns import (
    OWNED,
    SUBJECT,
    TOPIC,
    UNKNOWN,
    Column,
    Table,
    bounded,
    section,
)
from lakehouse.report.subjects import subjects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from lakehouse.report.csv_columns import Facts, Row

_SHARE: Final = "share of the time that was bad, 0 to 1"


def _subjects(facts: Facts) -> Iterator[Row]:
    for one, subject in subjects(facts.get("trends") or {}):
        yield {**subject, "objective": one.get("name")}


def _weeks(facts: Facts) -> Iterable[Row]:
    names = (facts.get("trends") or {}).get("weeks") or ()
    return (
        {**subject, **week, "week": name}
        for subject in _subjects(facts)
        for name, week in zip(names, subject.get("weeks") or (), strict=True)
        if week is not None
    )


def _change(key: str) -> Callable[[Row], Any]:
    return lambda row: (row.get("change") or {}).get(key)


def _next(key: str) -> Callable[[Row], Any]:
    def told(row: Row) -> Any:
        ahead: Sequence[Row] = row.get("forecast") or ({},)
        return ahead[0].get(key)

    return told


TABLES: Final = (
    Table(
        "trends", "objective and subject that was bad in the last weeks", _subjects,
        (
            *SUBJECT,
            Column(
                "change", "this week beside the one before: worse, better, as_usual, within_bounds "
                "or untested", _change("verdict"),
            ),
            Column("p", "how often weeks differ as much by chance, 0 to 1", _change("p")),
            Column("next_share", f"next week's forecast: {_SHARE}", _next("share")),
            Column("next_share_low", "four times in five it is at least this", _next("share_low")),
            Column("next_share_high", "and at most this", _next("share_high")),
            *OWNED,
        ),
    ),
    Table(
        "trends_weeks", "objective, subject and week", _weeks,
        (
            *SUBJECT,
            Column("week", "ISO week"),
            Column("expected_us", "microseconds in which the subject existed"),
            *bounded("bad", "seen bad"),
            UNKNOWN,
            Column("share", f"{_SHARE}; empty: not known"),
            Column("share_low", "what share is at least"),
            Column("share_high", "what share is at most"),
            *OWNED,
        ),
    ),
    Table(
        "trends_lags", "topic and kind of lag that waits at the end", section("trends", "drains"),
        (
            TOPIC,
            Column("kind", "copy: for upload; delete: for deletion"),
            Column("last_bytes", "bytes that wait; empty: a broker that told was read no more"),
            Column("bytes_per_second", "by how much they grow, below 0 shrink"),
            Column("bytes_per_second_low", "what bytes_per_second is at least"),
            Column("bytes_per_second_high", "what bytes_per_second is at most"),
            *bounded("drained", "until they are gone, if it goes on like this"),
            Column("verdict", "draining, growing, standing or unknown"),
            *OWNED,
        ),
    ),
)  # fmt: skip
