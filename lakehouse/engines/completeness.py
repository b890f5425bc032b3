"""Completeness of gold's tables: the hours in which a table may lack rows, and why.

Each table notes these hours in its own Delta properties, so the note is lost only with the table.
gold/progress notes the id and version of every table, so a replaced table is noticed. Both are
written by ``rollup.repair``.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.core.periods import Period, iso, micros
from lakehouse.core.spans import Span, overlap, union
from lakehouse.engines.engine import Detail, Engine, ask
from lakehouse.tables import Table

COMPUTED: Final = (tables.SUBJECTS, *tables.OF_HOURS)
"""Tables that are recomputed from bronze, as far as it goes back."""

CHECKED: Final = (*COMPUTED, tables.SLA)
"""Tables with a note of their completeness."""

NOTE: Final = "jmxlake.incomplete"
"""Property of a table: the intervals in which it is incomplete."""

DUE: Final = "jmxlake.recompute"
"""Property of a table: ``true`` until a rollup has recomputed what it can of these intervals."""

MISSING: Final = "the table was missing"
REPLACED: Final = "the table was replaced"
OLDER: Final = "the table was replaced by an older copy"
FILES_GONE: Final = "data files of the table were gone"
NOT_IN_BRONZE: Final = ", and bronze no longer has these hours"
NOT_COMPUTED: Final = ", and published statements are not computed again"

ALLOWED_LATENESS: Final = dt.timedelta(days=7)
"""Rows of hours that are older hardly change: an older copy of a table is trusted before that, and
without bronze's log hours are recomputed from that long before the last rollup on."""


class Gap(NamedTuple):
    """An interval in which a table may lack rows; microseconds."""

    start: int
    end: int
    reason: str


class Noted(NamedTuple):
    """A table as gold/progress notes it; the version is None where the engine has none."""

    id: str
    version: int | None


class Incomplete(NamedTuple):
    """Hours of a period in which a table of gold is not complete; microseconds."""

    table: str
    start: int
    end: int
    reason: str

    def to_json(self) -> dict[str, str]:
        """The row of report.json."""
        ends = {"from": iso(self.start), "to": iso(self.end)}
        return {"table": self.table, **ends, "reason": self.reason}


def details(engine: Engine, wanted: Iterable[Table]) -> dict[Table, Detail | None]:
    """Delta's metadata of tables; None for one that does not exist."""
    chosen = tuple(wanted)
    with ThreadPoolExecutor(engine.at_once) as pool:
        return dict(zip(chosen, pool.map(engine.found, chosen), strict=True))


def gaps(detail: Detail) -> list[Gap]:
    """The intervals that a table's own note names."""
    found = []
    for part in filter(None, detail.properties.get(NOTE, "").split("; ")):
        span, _, reason = part.partition(" ")
        start, _, end = span.partition("/")
        found.append(Gap(_us(start), _us(end), reason))
    return found


def note(found: Iterable[Gap], *, due: bool) -> dict[str, str]:
    """The properties that note intervals in a table; touching ones of a reason are joined."""
    by_reason: dict[str, list[Span]] = {}
    for gap in found:
        by_reason.setdefault(gap.reason, []).append((gap.start, gap.end))
    parts = (
        f"{iso(start)}/{iso(end)} {reason}"
        for reason, spans in by_reason.items()
        for start, end in union(spans)
    )
    return {NOTE: "; ".join(parts), DUE: "true" if due else "false"}


def is_due(detail: Detail) -> bool:
    """Whether a rollup has yet to recompute what it can of a table's intervals."""
    return detail.properties.get(DUE) == "true"


def notes_of(found: Mapping[Table, Detail | None]) -> list[str]:
    """Ids and versions of tables, as gold/progress keeps them."""
    return sorted(
        f"{table.name} {detail.id} {'' if detail.version is None else detail.version}".rstrip()
        for table, detail in found.items()
        if detail is not None
    )


def known_tables(notes: Sequence[str] | None, progress: Detail | None) -> dict[str, Noted]:
    """Tables as a row of gold/progress notes them, by name.

    Empty in rows of an older version, and where gold/progress itself is another table: all of gold
    was cloned to another place.

    Args:
        notes: The column ``tables`` of the row.
        progress: The table gold/progress.
    """
    found = {}
    for text in notes or ():
        name, id_, *version = text.split(" ")
        found[name] = Noted(id_, int(version[0]) if version else None)
    own = found.get(tables.PROGRESS.name)
    return found if own and progress and own.id == progress.id else {}


def untrusted(
    engine: Engine, table: Table, detail: Detail, known: Mapping[str, Noted], now_us: int
) -> Gap | None:
    """The interval in which a table is not the one that the last rollup wrote; None: it is.

    Args:
        engine: Reads gold.
        table: A table that exists.
        detail: Its metadata.
        known: The tables as the last rollup left them; empty: it did not note them.
        now_us: End of an interval that has not ended.
    """
    before = known.get(table.name)
    if not known or is_due(detail):
        return None
    if before is None or before.id != detail.id:
        return Gap(0, now_us, REPLACED)
    if None in (before.version, detail.version) or before.version <= detail.version:  # type: ignore[operator]
        return None
    (newest,) = engine.commits(table, 1)
    return Gap(max(0, micros(newest.committed - ALLOWED_LATENESS)), now_us, OLDER)


def incomplete(engine: Engine, period: Period, now_us: int) -> list[Incomplete]:
    """The hours of a period in which tables of gold are not complete, by table.

    Args:
        engine: Reads gold.
        period: The period.
        now_us: This instant, microseconds.
    """
    newest = "SELECT * FROM {rows} r ORDER BY r.at DESC LIMIT 1"
    rows = engine.collect(engine.query(newest, rows=engine.rows(tables.PROGRESS))).to_pylist()
    every = details(engine, (*CHECKED, tables.PROGRESS))
    known = known_tables(rows[0].get("tables") if rows else None, every[tables.PROGRESS])
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
    gap = untrusted(engine, table, detail, known, now_us)
    covers_all = gap is not None and gap.start == 0
    if not covers_all:
        yield from gaps(detail)
    if gap is not None:
        yield gap


def first_known(engine: Engine, chosen: Iterable[Table]) -> int | None:
    """The first instant (microseconds) of which tables of gold have a row; None: they have none."""
    firsts = []
    for table in chosen:
        name = "first_seen" if table is tables.SUBJECTS else "window"
        ((first,),) = ask(engine, f"SELECT min(r.{name}) FROM {{rows}} r", rows=engine.rows(table))
        firsts.append(first)
    return min((first for first in firsts if first is not None), default=None)


def _us(text: str) -> int:
    return micros(dt.datetime.fromisoformat(text))
