"""Reader of gold: rows of a period, of hours or of 5-minute windows; subjects and the last week.

It also reads the meaning of metrics in the catalogues of a lake's agents. Readers sum hours to days
and weeks. Rows are relations of an engine; queries use the SQL described in ``engines.relation``,
with instants in microseconds.
"""

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from lakehouse import tables
from lakehouse.core import display, metrics
from lakehouse.core.metrics import Definition, Known, Meanings, Trait
from lakehouse.core.periods import HOUR_US, Period, instant, last_ended, micros
from lakehouse.core.subjects import Subject, subject
from lakehouse.engines.engine import Engine, ask, newest_progress
from lakehouse.engines.relation import Relation, Rows, is_one_of, select, text
from lakehouse.errors import PeriodError, TableNotFoundError, TableSchemaError
from lakehouse.tables.table import HOUR, WINDOW_START

Row = dict[str, Any]

EXACT: Final = "DECIMAL(38,6)"
"""Type for sums of doubles: a sum of doubles depends on their order, and differs after a re-run."""

_COMBINED: Final = {"sum": "sum", "max": "max", "min": "min", "any": "max"}
"""Aggregation of windows by ``Column.over``; ``mean`` and ``first`` are not aggregated here."""


_LABEL: Final = re.compile(r"((?:[^\\,=]|\\.)*+)=((?:[^\\,=]|\\.)*+)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)

_START: Final = WINDOW_START.name
_GOOD_THROUGHOUT: Final = f"good_us = {HOUR_US} AND bad_high_us = 0"


@dataclass(frozen=True, slots=True)
class GoldRows:
    """Rows of gold. Rows of hours also have ``window_start``, so that queries accept both kinds.

    Attributes:
        engine: Engine of the lake.
        window_us: Length of the 5-minute windows (µs).
    """

    engine: Engine
    window_us: int
    _kept: list[dt.date] = field(default_factory=list, compare=False, repr=False)

    def ask(self, sql: str, **given: Rows) -> list[Row]:
        """Return the rows of a SELECT; it names its sources in braces."""
        found: list[Row] = self.engine.collect(select(sql, **given)).to_pylist()
        return found

    def hours(self, table: tables.Table, period: Period) -> Relation:
        """Return the rows of hours that start in a period."""
        rows = self.engine.rows(table, between=period)
        if table.start != HOUR.name:
            return rows
        return select(f"SELECT r.*, r.{HOUR.name} AS {_START} FROM {{rows}} r", rows=rows)

    def windows(self, table: tables.Table, period: Period) -> Relation:
        """Return the rows of 5-minute windows that start in a period.

        Raises:
            PeriodError: Gold has deleted these windows.
        """
        if not self.are_kept(period.start.date()):
            raise PeriodError(
                f"{self.engine.lake.root}: gold has only whole hours for {period.start:%Y-%m-%d}. "
                "Choose a later period, which has 5-minute rows"
            )
        finest = tables.WINDOWS[table.name]
        rows = self.engine.rows(finest, between=period)
        return self._with_good_hours(rows, period) if table is tables.SLI else rows

    def whole(self, table: tables.Table, period: Period) -> Relation:
        """Return rows of hours for a period of whole hours, otherwise rows of 5-minute windows."""
        return self.hours(table, period) if is_hourly(period) else self.windows(table, period)

    def after(self, table: tables.Table, period: Period) -> Relation:
        """Return rows that start at the end of a period; their carry-over can be within it."""
        end_us = micros(period.end)
        if end_us % HOUR_US == 0:  # an hour's row equals its first window's row
            return self.hours(table, Period.of((end_us, end_us + HOUR_US)))
        return self.windows(table, Period.of((end_us, end_us + self.window_us)))

    def finest_us(self, period: Period) -> int:
        """Return the length of the finest rows that gold still has of a period, microseconds."""
        return self.window_us if self.are_kept(period.start.date()) else HOUR_US

    def are_kept(self, since: dt.date) -> bool:
        """Return True if gold has the 5-minute windows of all its hours from a date."""
        if any(since >= known for known in self._kept):
            return True
        try:  # each scrape has a row
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
        """Add the windows of fully good hours, for which gold/sli stores only the hour."""
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
    """Return the length of gold's 5-minute windows (seconds).

    Raises:
        TableNotFoundError: Gold does not exist.
        TableSchemaError: An older version made the last rollup.
        PeriodError: Gold has no rollup.
    """
    found = newest_progress(engine)
    # The previous version did not note the tables.
    if set(tables.PROGRESS.column_names) - {*found.column_names, "tables"}:
        raise TableSchemaError(
            f"{engine.lake.root}: an older jmxlake made the last rollup. Run jmxlake rollup first"
        )
    if not found.num_rows:
        raise PeriodError(f"{engine.lake.root}: gold has no data. Run jmxlake rollup first")
    return int(found["window_seconds"][0].as_py())


def last_week(engine: Engine, now_us: int, zone: dt.tzinfo = dt.UTC) -> Period:
    """Return the last complete ISO week of a time zone, or the first week of a new lake.

    Raises:
        PeriodError: The lake has no subject.
    """
    ends = "SELECT min(r.first_seen), max(r.last_seen) FROM {rows} r"
    ((first, last),) = ask(engine, ends, rows=engine.rows(tables.SUBJECTS))
    if last is None:
        raise PeriodError(f"{engine.lake.root}: gold has no subject. Check that agents deliver")
    return last_ended(instant(first), instant(last), instant(now_us), zone)


def subjects(engine: Engine) -> list[Subject]:
    """Return all rows of gold/subjects, ordered by name."""
    rows = engine.collect(engine.rows(tables.SUBJECTS)).to_pylist(maps_as_pydicts="strict")
    known = [subject(row) for row in rows]
    return sorted(known, key=lambda one: (one.cluster, one.kind, [name or "" for name in one.key]))


def clusters(engine: Engine) -> list[str]:
    """Return the clusters of a lake.

    Raises:
        TableNotFoundError: Gold does not exist.
    """
    return sorted({one.cluster for one in subjects(engine)})


def subjects_of(
    engine: Engine, cluster: str | None, how: str = "choose one by --cluster"
) -> tuple[str, list[Subject]]:
    """Return a cluster of the lake and its subjects, including past subjects.

    Args:
        engine: Engine of gold.
        cluster: The cluster. None means the only cluster of the lake.
        how: Advice on the choice of a cluster, for the error.

    Raises:
        PeriodError: The lake does not have this cluster, or it has several and none is given.
    """
    known = subjects(engine)
    names = sorted({one.cluster for one in known})
    if cluster is None and len(names) == 1:
        cluster = names[0]
    if cluster in names:
        return str(cluster), [one for one in known if one.cluster == cluster]
    root = engine.lake.root
    if not names:
        raise PeriodError(f"{root}: gold has no data. Check that agents deliver")
    listed = ", ".join(display.line(name, display.NAME_LIMIT) for name in names)
    raise PeriodError(f"{root}: clusters of this lake: {listed}; {how}")


def is_hourly(period: Period) -> bool:
    """Return True if a period consists of whole hours."""
    return all(micros(end) % HOUR_US == 0 for end in (period.start, period.end))


def summed(table: tables.Table, keys: Sequence[str], where: str = "true") -> str:
    """Return the SELECT that aggregates rows of a table, ``{rows} r``, by keys.

    Args:
        table: The table.
        keys: Columns to group by.
        where: Condition on ``r``.
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
    """Return the SQL of the part of a row's upper bound before its first window.

    Rows in the layout of b88afb5 lack it; for them it is the maximum.
    """
    return f"coalesce(r.{before}, greatest(0, r.{high} - r.{seen}))"


def labels_in(labels: str) -> dict[str, str]:
    """Return the labels of a series from the text in gold/labelled."""
    found: dict[str, str] = {}
    at = 0
    # A search would restart at each character of a text without labels.
    while label := _LABEL.match(labels, at):
        key, value = (_ESCAPE.sub(r"\1", part) for part in label.groups())
        found[key], at = value, label.end() + 1
    return found


def is_same(column: str, value: str | None) -> str:
    """Return the condition that a column has a value. None means null."""
    return f"{column} IS NULL" if value is None else f"{column} = {text(value)}"


def meanings(engine: Engine) -> Meanings:
    """Return families and traits of each metric, from the lake's catalogues and the shipped one."""
    own = (Trait(*row) for row in catalogue_rows(engine, tables.METRIC_TRAITS, Trait._fields))
    return metrics.meanings_of(definitions(engine), {*metrics.shipped_traits(), *own})


def definitions(engine: Engine) -> set[Definition]:
    """Return the meaning of each metric in the lake's catalogues and in the shipped one."""
    return {*metrics.shipped(), *own_definitions(engine)}


def own_definitions(engine: Engine) -> list[Definition]:
    """Return the meaning of each metric in the lake's catalogues, in order."""
    order = " ORDER BY r.metric, r.family, r.kind, r.unit, r.description"
    rows = catalogue_rows(engine, tables.METRIC_DEFINITIONS, Definition._fields, order)
    return [Definition(*row) for row in rows]


def catalogue_rows(
    engine: Engine, table: tables.Table, columns: Sequence[str], order: str = ""
) -> list[tuple[Any, ...]]:
    """Return the distinct rows of a table of catalogues. Empty if agents did not create it."""
    try:
        rows = engine.rows(table)
    except TableNotFoundError:
        return []
    listed = ", ".join(f"r.{name}" for name in columns)
    return ask(engine, f"SELECT DISTINCT {listed} FROM {{rows}} r{order}", rows=rows)


def known_metrics(engine: Engine, labelled: Collection[str] = ()) -> dict[str, Known]:
    """Return the metrics in the catalogues of a lake's agents, and derived metrics.

    Args:
        engine: Reads the lake.
        labelled: Metrics that get the labels of their series.

    Raises:
        TableNotFoundError: The lake has no catalogue of an agent.
    """
    sql, own = "SELECT DISTINCT r.metric, r.kind, r.family FROM {rows} r", metrics.known()
    found = {name: one for name, one in own.items() if not one.families}
    labels = _labels(engine, labelled) if labelled else {}
    rows = ask(engine, sql, rows=engine.rows(tables.METRIC_DEFINITIONS))
    traits = meanings(engine)
    for metric, kind, family in rows:
        level = own[metric].level if metric in own else ""
        others = found[metric].families if metric in found else frozenset()
        found[metric] = Known(
            kind, others | {family}, level, labels.get(metric, ()), traits.traits_of(metric)
        )
    return found


def _labels(engine: Engine, wanted: Iterable[str]) -> dict[str, set[str]]:
    """Return the labels of the series of some metrics in gold; empty before a rollup."""
    where = is_one_of("r.metric", sorted(wanted))
    sql = f"SELECT DISTINCT r.metric, r.labels FROM {{rows}} r WHERE {where}"
    try:
        rows = engine.rows(tables.LABELLED)
    except TableNotFoundError:
        return {}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for metric, labels in ask(engine, sql, rows=rows):
        found[metric] |= labels_in(labels).keys()
    return found
