"""Reads gold: rows over a period, of hours or of the finest windows; its subjects and last weeks.

Days and weeks are sums of hours, computed by readers. Rows are relations of an engine: queries use
the SQL that ``engines.engine`` describes, with instants in microseconds.
"""

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from lakehouse import tables
from lakehouse.core import display
from lakehouse.core.periods import HOUR_US, Period, instant, last_ended, micros
from lakehouse.core.subjects import Subject, subject
from lakehouse.engines.engine import Engine, ask, newest_progress
from lakehouse.engines.relation import Relation, Rows, select
from lakehouse.errors import PeriodError, TableNotFoundError, TableSchemaError
from lakehouse.tables.table import HOUR, WINDOW_START

Row = dict[str, Any]

EXACT: Final = "DECIMAL(38,6)"
"""Sums of doubles depend on their order, and would differ after a re-run; sums of these do not."""

_COMBINED: Final = {"sum": "sum", "max": "max", "min": "min", "any": "max"}
"""How windows are combined; ``mean`` and ``first`` are not combined here."""

_SPECIAL: Final = re.compile(r"([\x00-\x1f{}\\])")
"""Characters that engines read differently."""

_LABEL: Final = re.compile(r"((?:[^\\,=]|\\.)*+)=((?:[^\\,=]|\\.)*+)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)

_START: Final = WINDOW_START.name
_GOOD_THROUGHOUT: Final = f"good_us = {HOUR_US} AND bad_high_us = 0"


@dataclass(frozen=True, slots=True)
class GoldRows:
    """Where gold is. Its rows of hours have ``window_start`` too, so that queries take both kinds.

    Attributes:
        engine: The engine that reads it.
        window_us: Length of its finest windows.
    """

    engine: Engine
    window_us: int
    _kept: list[dt.date] = field(default_factory=list, compare=False, repr=False)

    def ask(self, sql: str, **given: Rows) -> list[Row]:
        """The rows of a SELECT over rows, which it names in braces."""
        found: list[Row] = self.engine.collect(select(sql, **given)).to_pylist()
        return found

    def hours(self, table: tables.Table, period: Period) -> Relation:
        """Rows of the table itself that begin in a period: those of hours."""
        rows = self.engine.rows(table, between=period)
        if table.start != HOUR.name:
            return rows
        return select(f"SELECT r.*, r.{HOUR.name} AS {_START} FROM {{rows}} r", rows=rows)

    def windows(self, table: tables.Table, period: Period) -> Relation:
        """Rows of the finest windows that begin in a period.

        Raises:
            PeriodError: Gold does not keep them any more.
        """
        if not self.are_kept(period.start.date()):
            raise PeriodError(
                f"{self.engine.lake.root}: of {period.start:%Y-%m-%d} gold keeps whole hours "
                "alone, and this needs its finest windows; ask for a later period"
            )
        finest = tables.WINDOWS[table.name]
        rows = self.engine.rows(finest, between=period)
        return self._with_good_hours(rows, period) if table is tables.SLI else rows

    def whole(self, table: tables.Table, period: Period) -> Relation:
        """Rows of hours if the period is made of whole hours, else of finest windows."""
        return self.hours(table, period) if is_hourly(period) else self.windows(table, period)

    def after(self, table: tables.Table, period: Period) -> Relation:
        """Rows that start as a period ends; their spill may lie within the period."""
        end_us = micros(period.end)
        if end_us % HOUR_US == 0:  # an hour's row says what its first window says
            return self.hours(table, Period.of((end_us, end_us + HOUR_US)))
        return self.windows(table, Period.of((end_us, end_us + self.window_us)))

    def are_kept(self, since: dt.date) -> bool:
        """Whether there are finest windows from a date on, as far as there are hours."""
        if any(since >= known for known in self._kept):
            return True
        try:  # every attempt to read has a row
            hours = self.engine.rows(tables.COVERAGE)
            windows = self.engine.rows(tables.WINDOWS[tables.COVERAGE.name])
        except TableNotFoundError:
            return True
        ((first, finest),) = ask(
            self.engine,
            f"SELECT (SELECT min(r.date) FROM {{hours}} r WHERE r.date >= DATE '{since}'), "
            "(SELECT min(r.date) FROM {windows} r)",
            hours=hours,
            windows=windows,
        )
        kept = first is None or (finest is not None and finest <= first)
        self._kept.extend([since] * kept)
        return kept

    def _with_good_hours(self, windows: Relation, period: Period) -> Relation:
        """Add the windows of hours that were good throughout, of which gold/sli keeps the hour."""
        first = instant(micros(period.start) // HOUR_US * HOUR_US)
        offsets = pa.table({"offset_us": pa.array(range(0, HOUR_US, self.window_us), pa.int64())})
        changed = {
            _START: f"r.{_START} + o.offset_us",
            "good_us": f"CAST({self.window_us} AS BIGINT)",
            "seen_us": f"CASE WHEN r.seen_us IS NOT NULL THEN CAST({self.window_us} AS BIGINT) END",
        }
        names = tables.WINDOWS[tables.SLI.name].column_names
        every = ", ".join(f"r.{name} AS {name}" for name in names)
        each = ", ".join(f"{changed.get(name, f'r.{name}')} AS {name}" for name in names)
        return select(
            f"SELECT {every} FROM {{windows}} r UNION ALL SELECT {each} "
            f"FROM {{hours}} r CROSS JOIN {{offsets}} o WHERE {_GOOD_THROUGHOUT} "
            f"AND r.{_START} + o.offset_us >= {micros(period.start)} "
            f"AND r.{_START} + o.offset_us < {micros(period.end)}",
            windows=windows,
            hours=self.hours(tables.SLI, Period(first, period.end)),
            offsets=offsets,
        )


def window_of(engine: Engine) -> int:
    """Length of gold's finest windows, seconds.

    Raises:
        TableNotFoundError: There is no gold yet.
        TableSchemaError: An older version rolled it up.
        PeriodError: Nothing has been rolled up yet.
    """
    found = newest_progress(engine)
    # The version before did not note the tables; all else can be read.
    if set(tables.PROGRESS.column_names) - {*found.column_names, "tables"}:
        raise TableSchemaError(
            f"{engine.lake.root}: an older jmxlake rolled it up last; run jmxlake rollup first"
        )
    if not found.num_rows:
        root = engine.lake.root
        raise PeriodError(f"{root}: nothing is rolled up there; run jmxlake rollup first")
    return int(found["window_seconds"][0].as_py())


def last_week(engine: Engine, now_us: int, zone: dt.tzinfo = dt.UTC) -> Period:
    """The last ISO week of a time zone that has ended; in a lake's first week that one.

    Raises:
        PeriodError: The lake has no subject yet.
    """
    return last_ended(*_seen(engine), instant(now_us), zone)


def _seen(engine: Engine) -> tuple[dt.datetime, dt.datetime]:
    """When any subject was seen first, and when any was seen last."""
    ends = "SELECT min(r.first_seen), max(r.last_seen) FROM {rows} r"
    ((first, last),) = ask(engine, ends, rows=engine.rows(tables.SUBJECTS))
    if last is None:
        root = engine.lake.root
        raise PeriodError(f"{root}: nothing was seen there yet; are the agents delivering?")
    return instant(first), instant(last)


def subjects(engine: Engine) -> list[Subject]:
    """All of gold/subjects, in the order of their names."""
    rows = engine.collect(engine.rows(tables.SUBJECTS)).to_pylist(maps_as_pydicts="strict")
    known = [subject(row) for row in rows]
    return sorted(known, key=lambda one: (one.cluster, one.kind, [name or "" for name in one.key]))


def clusters(engine: Engine) -> list[str]:
    """The clusters of a lake.

    Raises:
        TableNotFoundError: There is no gold yet.
    """
    return sorted({one.cluster for one in subjects(engine)})


def subjects_of(
    engine: Engine, cluster: str | None, how: str = "choose one by --cluster"
) -> tuple[str, list[Subject]]:
    """A cluster of the lake and its subjects, past ones too.

    Args:
        engine: Reads gold.
        cluster: The cluster; None: the only one that there is.
        how: How a reader chooses one, for the error.

    Raises:
        PeriodError: There is no such cluster, or there are several and none is named.
    """
    known = subjects(engine)
    names = sorted({one.cluster for one in known})
    if cluster is None and len(names) == 1:
        cluster = names[0]
    if cluster in names:
        return str(cluster), [one for one in known if one.cluster == cluster]
    root = engine.lake.root
    if not names:
        raise PeriodError(f"{root}: it has no data yet; are the agents delivering?")
    listed = ", ".join(display.line(name, display.NAME_LIMIT) for name in names)
    raise PeriodError(f"{root}: it has these clusters: {listed}; {how}")


def is_hourly(period: Period) -> bool:
    """Whether a period is made of whole hours."""
    return all(micros(end) % HOUR_US == 0 for end in (period.start, period.end))


def summed(table: tables.Table, keys: Sequence[str], where: str = "true") -> str:
    """The SELECT that aggregates rows of a table, ``{rows} r``, per keys.

    Args:
        table: The table.
        keys: Its columns to group by.
        where: Which rows, as a condition on ``r``.
    """
    chosen = [f"r.{name} AS {name}" for name in keys]
    for column in table.measures:
        if combine := _COMBINED.get(column.over):
            is_exact = column.over != "sum" or column.type != "double"
            value = f"r.{column.name}" if is_exact else f"CAST(r.{column.name} AS {EXACT})"
            chosen.append(f"CAST({combine}({value}) AS {column.type}) AS {column.name}")
    by = ", ".join(f"r.{name}" for name in keys)
    return f"SELECT {', '.join(chosen)} FROM {{rows}} r WHERE {where} GROUP BY {by}"


def before_window(before: str, high: str, seen: str) -> str:
    """The part of the upper bound of a row ``r`` before its first window.

    Rows of b88afb5's layout lack that part; for them it is the most that it may be.
    """
    return f"coalesce(r.{before}, greatest(0, r.{high} - r.{seen}))"


def text(value: str) -> str:
    """A text as an expression of SQL; no text can end its literal, or name a relation."""
    parts = (
        f"chr({ord(part)})" if _SPECIAL.fullmatch(part) else "'" + part.replace("'", "''") + "'"
        for part in _SPECIAL.split(value)
        if part
    )
    return f"({joined})" if "||" in (joined := " || ".join(parts)) else joined or "''"


def labels_in(labels: str) -> dict[str, str]:
    """The labels of a series, of which gold/labelled has one text."""
    found: dict[str, str] = {}
    at = 0
    # From one label to the next: a search would begin at each character of a text without labels.
    while label := _LABEL.match(labels, at):
        key, value = (_ESCAPE.sub(r"\1", part) for part in label.groups())
        found[key], at = value, label.end() + 1
    return found


def is_one_of(column: str, values: Iterable[str]) -> str:
    """The condition that a column is one of some texts; false where there are none."""
    listed = ", ".join(map(text, values))
    return f"{column} IN ({listed})" if listed else "false"


def is_same(column: str, value: str | None) -> str:
    """The condition that a column has a value; None: that it is null."""
    return f"{column} IS NULL" if value is None else f"{column} = {text(value)}"
