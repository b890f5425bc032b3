"""What a batch that is dropped leaves to the next: everything but its runs.

The accounts of the time it covered stay, as ``dropped`` where they were ``ok``; so do its events
and the member sets that others refer to. So the lake itself says what is missing, and why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collector.batches import Batch
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_RUN: Final = {column.name: at for at, column in enumerate(tables.RUNS.columns)}
_OUTCOME: Final = [column.name for column in tables.SCRAPES.columns].index("outcome")
_ERROR: Final = [column.name for column in tables.SCRAPES.columns].index("error")
_WHY: Final = "the spool was full: spool.max_size"
_DAY_US: Final = 86_400_000_000


def inherit(
    heir: Batch, dropped: Sequence[tuple[int, Batch]], needed_sets: Collection[str]
) -> Batch:
    """The next batch with what those before it leave.

    Args:
        heir: The oldest that stays.
        dropped: Those before it, with their numbers, oldest first.
        needed_sets: Sets to which the heir or a later batch refers.
    """
    rows = {name: [*own] for name, own in heir.rows.items()}
    for number, batch in reversed(dropped):
        for name, left in _left(number, batch, needed_sets).items():
            if left:
                rows[name] = [*left, *rows.get(name, [])]
    return Batch(rows, heir.since)


def _left(
    number: int, batch: Batch, needed_sets: Collection[str]
) -> dict[str, list[tuple[Any, ...]]]:
    runs = batch.rows.get(tables.RUNS.name, [])
    members = batch.rows.get(tables.MEMBERS.name, [])
    return {
        tables.MEMBERS.name: [row for row in members if row[0] in needed_sets],
        tables.SCRAPES.name: [_dropped(row) for row in batch.rows.get(tables.SCRAPES.name, [])],
        tables.EVENTS.name: [
            *batch.rows.get(tables.EVENTS.name, []),
            *([_event(number, runs)] if runs else []),
        ],
    }


def _dropped(account: tuple[Any, ...]) -> tuple[Any, ...]:
    if account[_OUTCOME] != "ok":
        return account
    row = list(account)
    row[_OUTCOME], row[_ERROR] = "dropped", _WHY
    return tuple(row)


def _event(number: int, runs: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Said of the source, at the end of what was dropped."""
    at_us = max(row[_RUN["end"]] for row in runs)
    cluster, source = runs[0][_RUN["cluster"]], runs[0][_RUN["source"]]
    subject = (None,) * 5
    return (
        at_us // _DAY_US, cluster, source, at_us, "batch_dropped", *subject, str(number), None,
    )  # fmt: skip
