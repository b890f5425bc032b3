"""What an agent may still tell once it is known that its spool was restored from an old copy.

The agent that the copy was taken from went on, and told some of what waits here. Which part of it
is not known. So what this agent has not seen for itself is left out: that time is unknown, and no
time is told twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collector.batches import DAY_US, Batch
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from collector.batches import Since

_RUN: Final = tables.RUNS.positions
_ACCOUNT: Final = tables.SCRAPES.positions
_EVENT: Final = tables.EVENTS.positions
_NO_ATTEMPTS: Final = {
    "scrapes": 0, "beans": 0, "dropped_series": 0, "seconds_total": 0.0, "seconds_max": 0.0,
}  # fmt: skip
_ABOUT_THE_SPOOL: Final = (
    "spool_damaged", "spool_tail_lost", "spool_restored", "batch_dropped",
)  # fmt: skip

Row = tuple[Any, ...]


def amended(batch: Batch) -> Batch:
    """The batch without what the agent that sealed it has not seen for itself."""
    bequest = [amended(part) for part in batch.bequest]
    since = batch.since
    if since is None:
        return Batch({**batch.rows}, None, bequest)
    rows = {
        **batch.rows,
        tables.RUNS.name: [*_runs(batch.rows.get(tables.RUNS.name, []), since)],
        tables.SCRAPES.name: [*_accounts(batch.rows.get(tables.SCRAPES.name, []), since)],
        tables.EVENTS.name: [
            row
            for row in batch.rows.get(tables.EVENTS.name, [])
            if row[_EVENT["at"]] >= since.began_us or row[_EVENT["kind"]] in _ABOUT_THE_SPOOL
        ],
    }
    return Batch(rows, since, bequest)


def _runs(rows: Iterable[Row], since: Since) -> Iterator[Row]:
    for row in rows:
        first_us = since.metrics.get(row[_RUN["metric"]], since.began_us)
        if tables.FLAG_INCREASE in (row[_RUN["flags"]] or ()):
            yield from _increase(row, since)
        else:
            lead = {"lead_us": 0}
            if row[_RUN["start"]] < since.began_us:
                lead["scrapes"] = 0
            yield from _from(row, _RUN, first_us, lead)


def _increase(row: Row, since: Since) -> Iterator[Row]:
    """The first increase counts from the copy on, which was told: its amount is not known."""
    first_us = since.metrics.get(row[_RUN["metric"]])
    if row[_RUN["start"]] < since.began_us:
        return
    if first_us is not None and row[_RUN["start"]] <= first_us:
        yield _with(row, _RUN, {"value": None})
    else:
        yield row


def _accounts(rows: Iterable[Row], since: Since) -> Iterator[Row]:
    for row in rows:
        first_us = since.began_us
        if row[_ACCOUNT["outcome"]] == "ok":
            first_us = since.families.get(row[_ACCOUNT["family"]], first_us)
        # What was carried over the start had been asked before it.
        asked_before = row[_ACCOUNT["start"]] < since.began_us
        yield from _from(row, _ACCOUNT, first_us, _NO_ATTEMPTS if asked_before else {})


def _from(row: Row, at: dict[str, int], first_us: int, changes: dict[str, Any]) -> Iterator[Row]:
    """What of a row lies after an instant."""
    if row[at["start"]] >= first_us:
        yield row
    elif row[at["end"]] > first_us:
        yield _with(row, at, {"date": first_us // DAY_US, "start": first_us, **changes})


def _with(row: Row, at: dict[str, int], changes: dict[str, Any]) -> Row:
    values = list(row)
    for name, value in changes.items():
        values[at[name]] = value
    return tuple(values)
