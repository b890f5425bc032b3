"""Tables of a rollup: checks of bronze; creation, daily maintenance and completeness of gold.

Tables note hours in which they can lack rows themselves (``core.table_notes``); ``repair`` writes
the notes. A missing or replaced table is incomplete for all time.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.core import display, table_faults, table_notes
from lakehouse.core.lake import Lake
from lakehouse.core.periods import Period, iso, micros, overlap
from lakehouse.core.table_notes import CHECKED, Gap, Noted
from lakehouse.engines.engine import Detail, Engine, ask, newest_progress
from lakehouse.engines.relation import before_date
from lakehouse.errors import TableSchemaError
from lakehouse.tables import Table

EVERY: Final[tuple[Table, ...]] = (*tables.GOLD, *tables.ROLLUP_STATE)
"""All tables below gold, except an engine's scratch tables."""


def check_bronze(lake: Lake, found: Mapping[Table, Detail | None]) -> None:
    """Check that tables of bronze exist with the columns that this version reads.

    Args:
        lake: The lake.
        found: Metadata of the tables.

    Raises:
        TableNotFoundError: A table does not exist.
        TableSchemaError: A column is missing or has another type.
    """
    for table, detail in found.items():
        if detail is None:
            raise table_faults.no_table(table, lake.name(table))
        every = dict.fromkeys(table.column_names, "missing") | dict(detail.columns)
        table_faults.check_types(table, every, lake.name(table))


def is_outdated(lake: Lake, table: Table, detail: Detail | None) -> bool:
    """Return True if a table of gold does not exist, or lacks columns of this version.

    Undeclared columns are ignored; this version's rows have null there.

    Raises:
        TableSchemaError: A column has another type, or the table is not a table of jmxlake.
    """
    if detail is None:
        return True
    name, found = lake.name(table), detail.columns
    unknown = table.undeclared(found)
    missing = [column for column in table.columns if column.name not in found]
    # A table of an older version has all columns that are required.
    foreign = next((column.name for column in missing if not column.nullable), None)
    if unknown and foreign:
        raise TableSchemaError(
            f"{name}: not a table of jmxlake, because it has the column {display.line(unknown[0])} "
            f"and lacks {foreign}. Use a separate schema for gold"
        )
    table_faults.check_types(table, found, name)
    return bool(missing)


def prepare(engine: Engine, table: Table) -> str:
    """Create a table of gold or add its missing columns, and return a line about it."""
    found = engine.detail(table)
    if found is None:
        engine.create(table)
        return f"new table {table.name}"
    missing = [column for column in table.columns if column.name not in found.columns]
    if missing:
        engine.add_columns(table, missing)
    return f"new columns of {table.name}: {', '.join(column.name for column in missing)}"


def prepare_all(engine: Engine, outdated: Sequence[Table]) -> Iterator[str]:
    """Prepare tables, several at the same time, and yield a line for each."""
    with ThreadPoolExecutor(engine.at_once) as pool:
        yield from pool.map(lambda table: prepare(engine, table), outdated)


KEEP_WINDOWS_DAYS: Final = 100


def horizon(committed: dt.datetime, keep_windows_days: int) -> dt.date:
    """Return the first date whose 5-minute rows gold keeps, from the newest commit to bronze."""
    return (committed - dt.timedelta(days=keep_windows_days)).date()


def tidy(
    engine: Engine, horizon: dt.date, check: Callable[[], None], step: Callable[[str], None]
) -> None:
    """Delete old 5-minute rows, set differing properties, compact, and delete unused files.

    After a kill the table is unchanged, and the next vacuum deletes new files.

    Args:
        engine: The engine.
        horizon: First date whose 5-minute rows are kept.
        check: Called before each commit; raises if the lease is lost.
        step: Receives each completed step.
    """

    def tidy_one(table: tables.Table) -> None:
        found = engine.detail(table)
        if found is None:  # no batch has needed a scratch table
            return
        if table not in engine.scratch and not engine.commits(table, 1)[0].number:
            return  # an empty table
        check()
        if table in tables.EXPIRING:
            engine.write(table, None, before_date(horizon))
        if differing := dict(table.properties.items() - found.properties.items()):
            engine.set_properties(table, differing)
        engine.compact(table)
        step(f"tidied {table.name}")

    with ThreadPoolExecutor(engine.at_once) as pool:
        list(pool.map(tidy_one, (*EVERY, *engine.scratch)))


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
