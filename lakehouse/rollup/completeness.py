"""Completeness of gold's tables: hours in which a table can lack rows, with reasons.

Tables note such hours themselves (``core.table_notes``); ``repair`` writes the notes. A missing or
replaced table is incomplete for all time.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.core import table_notes
from lakehouse.core.periods import Period, iso, micros
from lakehouse.core.spans import overlap
from lakehouse.core.table_notes import CHECKED, Gap, Noted
from lakehouse.engines.engine import Detail, Engine, ask, newest_progress
from lakehouse.tables import Table

MISSING: Final = "the table was missing"
REPLACED: Final = "the table was replaced"
OLDER: Final = "the table was replaced by an older copy"
COPIED: Final = "the table was replaced by an older copy, which has these hours"
"""Reason for hours that were final in the copy. Other hours are recomputed from bronze."""

FILES_GONE: Final = "data files of the table were gone"
NOT_IN_BRONZE: Final = ", and bronze no longer has these hours"
NOT_COMPUTED: Final = ", and published statements are not computed again"

ALLOWED_LATENESS: Final = dt.timedelta(days=7)
"""Age from which hours rarely change. An older copy of a table is trusted for earlier hours.
Without bronze's log, hours are recomputed from this time before the last rollup."""


class Incomplete(NamedTuple):
    """Hours of a period in which a table of gold is incomplete; microseconds."""

    table: str
    start: int
    end: int
    reason: str

    def to_json(self) -> dict[str, str]:
        """Return the row of report.json."""
        ends = {"from": iso(self.start), "to": iso(self.end)}
        return {"table": self.table, **ends, "reason": self.reason}


def details(engine: Engine, wanted: Iterable[Table]) -> dict[Table, Detail | None]:
    """Return Delta's metadata of tables. None for a table that does not exist."""
    chosen = tuple(wanted)
    with ThreadPoolExecutor(engine.at_once) as pool:
        return dict(zip(chosen, pool.map(engine.detail, chosen), strict=True))


def notes_of(found: Mapping[Table, Detail | None]) -> list[str]:
    """Return IDs and versions of tables, as gold/progress stores them."""
    return table_notes.of_tables(
        {table.name: Noted(one.id, one.version) for table, one in found.items() if one is not None}
    )


def untrusted(
    engine: Engine, table: Table, detail: Detail, known: Mapping[str, Noted], now_us: int
) -> list[Gap]:
    """Return the intervals in which a table differs from the last rollup's table.

    Args:
        engine: Engine of gold.
        table: A table that exists.
        detail: Metadata of the table.
        known: Tables after the last rollup. Empty if it did not note them.
        now_us: End of an open interval (µs).
    """
    before = known.get(table.name)
    if not known or table_notes.is_due(detail.properties):
        return []
    if before is None or before.id != detail.id:
        return [Gap(0, now_us, REPLACED)]
    if before.version is None or detail.version is None or before.version <= detail.version:
        return []
    (newest,) = engine.commits(table, 1)
    final = min(now_us, max(0, micros(newest.committed - ALLOWED_LATENESS)))
    return [Gap(0, final, COPIED), Gap(final, now_us, OLDER)]


def incomplete(engine: Engine, period: Period, now_us: int) -> list[Incomplete]:
    """Return the hours of a period in which tables of gold are incomplete, by table.

    Args:
        engine: Engine of gold.
        period: The period.
        now_us: Current time (µs).
    """
    rows = newest_progress(engine).to_pylist()
    every = details(engine, (*CHECKED, tables.PROGRESS))
    progress = every[tables.PROGRESS]
    notes = rows[0].get("tables") if rows else None
    known = table_notes.known_tables(notes, progress and progress.id)
    return [
        Incomplete(table.name, *common, gap.reason)
        for table in CHECKED
        for gap in _gaps_of(engine, table, every[table], known, now_us)
        if (common := overlap((gap.start, gap.end), period.span))
    ]


def _gaps_of(
    engine: Engine, table: Table, detail: Detail | None, known: Mapping[str, Noted], now_us: int
) -> Iterator[Gap]:
    if detail is None:
        yield Gap(0, now_us, MISSING)
        return
    found = untrusted(engine, table, detail, known, now_us)
    yield from found or table_notes.gaps(detail.properties)


def first_known(engine: Engine, chosen: Iterable[Table]) -> int | None:
    """Return the start (µs) of the first row in tables of gold. None without rows."""
    firsts = []
    for table in chosen:
        name = "first_seen" if table is tables.SUBJECTS else table.start
        ((first,),) = ask(engine, f"SELECT min(r.{name}) FROM {{rows}} r", rows=engine.rows(table))
        firsts.append(first)
    return min((first for first in firsts if first is not None), default=None)
