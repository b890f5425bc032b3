"""Stretches of gold/incidents, and the incidents that a plain reading makes of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakehouse import tables
from lakehouse.core.metrics import LEADERLESS, UNDER_MIN_ISR
from lakehouse.gold.incidents import Incident

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

SECOND: Final = 1_000_000
SERIES: Final = (
    "metric", "level", "topic", "partition_id", "user_name", "client_id", "consumer_group",
)  # fmt: skip
_TYPES: Final = {"string": pa.string(), "int": pa.int32(), "double": pa.float64()}

Row = dict[str, Any]


def stretch(start: int, end: int, source: str = "broker-1", **rest: Any) -> Row:
    """A stretch of a partition; seconds."""
    row = {
        "cluster": "c", "metric": UNDER_MIN_ISR, "level": "partition", "topic": "t",
        "partition_id": 0, "user_name": None, "client_id": None, "consumer_group": None,
        "source": source,
        "started_at": start * SECOND, "ended_at": end * SECOND, "lead_us": 7, "tail_us": 5,
        "worst": 1.0, "total": 1.0,
    }  # fmt: skip
    assert rest.keys() <= row.keys(), "a column that stretches do not have"
    return row | rest


def as_rows(stretches: Sequence[Row]) -> pa.Table:
    names = stretch(0, 1)
    types = {one.name: _TYPES.get(one.type, pa.int64()) for one in tables.INCIDENTS.columns}
    return pa.table({
        name: pa.array([one[name] for one in stretches], types[name]) for name in names
    })  # fmt: skip


def plainly(stretches: Sequence[Row]) -> list[Incident]:
    """The same, one stretch after the other."""
    by_series: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in stretches:
        own = row["source"] if row["level"] == "source" else None
        by_series[*(row[name] for name in SERIES), own].append(row)
    found = []
    for series, rows in by_series.items():
        groups: list[list[Row]] = []
        for row in sorted(rows, key=lambda row: (row["started_at"], row["ended_at"])):
            if groups and row["started_at"] <= max(one["ended_at"] for one in groups[-1]):
                groups[-1].append(row)
            else:
                groups.append([row])
        found += [Incident(*series, *_figures(group)) for group in groups]
    return sorted(found, key=repr)


def _figures(rows: Sequence[Row]) -> tuple[Any, ...]:
    start, end = min(row["started_at"] for row in rows), max(row["ended_at"] for row in rows)
    return (
        start, end, min(row["lead_us"] for row in rows if row["started_at"] == start),
        min(_tail(rows, row) for row in rows if row["ended_at"] == end),
        max(row["worst"] for row in rows), sum(row["total"] for row in rows),
        tuple(sorted({row["source"] for row in rows})),
    )  # fmt: skip


def _tail(rows: Sequence[Row], last: Row) -> int:
    """A stretch that may not have been bad at all leaves the end to the one before it."""
    if last["tail_us"] < last["ended_at"] - last["started_at"]:
        return int(last["tail_us"])
    before = [
        row
        for row in rows
        if row["source"] == last["source"] and row["ended_at"] == last["started_at"]
    ]
    return int(last["tail_us"]) + (_tail(rows, before[0]) if before else 0)


def random_stretches(chance: random.Random) -> list[Row]:
    """Stretches of series of all levels: some touch, some were perhaps not bad at all."""
    alike: list[Row] = [
        *({"metric": metric, "partition_id": part} for part in (0, 1)
          for metric in (UNDER_MIN_ISR, LEADERLESS)),
        {"metric": "m", "level": "client", "topic": None, "partition_id": None, "client_id": "a"},
        {"metric": "m", "level": "client", "topic": None, "partition_id": None, "user_name": "a"},
        {"metric": "m", "level": "source", "topic": None, "partition_id": None},
    ]  # fmt: skip
    found = []
    for series in alike:
        for source in ("broker-1", "broker-2", "broker-3"):
            at = 0
            for _ in range(chance.randint(0, 6)):
                start = at + chance.choice((0, 0, 3, 40))
                at = start + chance.randint(1, 20)
                length = (at - start) * SECOND
                tail = chance.choice((0, length // 2, length))
                lead, worst = chance.randint(0, 2) * SECOND, float(chance.randint(1, 9))
                figures = {"lead_us": lead, "tail_us": tail, "worst": worst, "total": worst + 0.5}
                found.append(stretch(start, at, source, **series, **figures))
    chance.shuffle(found)
    return found
