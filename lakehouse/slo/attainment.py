"""Attainment per objective and subject over a period, with bounds, and its publication in gold/sla.

Expected time follows from the calendar and gold/subjects, not from reports. See ``sla_statement``
for the figures, and docs/objectives.md for their meaning. A changed figure is published again under
the next number. Earlier statements remain.
"""

import datetime as dt
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nlargest
from typing import Any, Final, NamedTuple

import pyarrow as pa

from lakehouse import tables
from lakehouse.core import display, periods
from lakehouse.core.objective import ISO_WEEK, Objective, Slices
from lakehouse.core.periods import Period, instant, micros, without
from lakehouse.core.subjects import SUBJECT_COLUMNS, Subject, with_ends
from lakehouse.engines.engine import Engine, ask
from lakehouse.engines.gold_reader import GoldRows, Row, subjects, window_of
from lakehouse.engines.relation import select, text
from lakehouse.errors import ObjectiveError
from lakehouse.kernel import arrow_types
from lakehouse.rollup import gold_tables, lease
from lakehouse.slo import combined_statements, sli_query
from lakehouse.slo.burn_rate import LENGTHS_US, PAIRS, Pair, burnt_us, least_us
from lakehouse.slo.report_calendar import Correction, Maintenance, excluded_of
from lakehouse.slo.sla_statement import Statement, build, build_all
from lakehouse.slo.sli_query import Key, Lifetime, Query, SliKey
from lakehouse.slo.sums import SliRows, left_by_hour

_MOST_HISTORIES: Final = 20
"""Subjects of each objective with a burn history. A query reads one row per bad window of each."""


class Options(NamedTuple):
    """Contents of statements in addition to plain figures.

    Attributes:
        own_windows: Whether each objective is stated over the window of its own that ends with the
            period (see ``TimeWindow.of``), if the period is a week. Otherwise over the period.
        burns: Whether there are burn rates.
        maintenance: Planned maintenance.
        corrections: Time that was agreed not to count.
        window_seconds: Length of gold's finest windows. Default: the value in gold/progress.
        only: Kind and key of the only subject with statements. Default: all subjects. The others
            still determine whether it has ended.
        left: Whether the worst subjects have the error budget left after each hour.
    """

    own_windows: bool = False
    burns: bool = False
    maintenance: tuple[Maintenance, ...] = ()
    corrections: tuple[Correction, ...] = ()
    window_seconds: int | None = None
    only: tuple[str, Key] | None = None
    left: bool = False


_DEFAULT: Final = Options()


def read(
    engine: Engine,
    objectives: Sequence[Objective],
    period: Period,
    now_us: int,
    known: Sequence[Subject] | None = None,
    options: Options = _DEFAULT,
) -> list[Statement]:
    """Return the statements over a period of whole windows, read from gold.

    Args:
        engine: Reads gold.
        objectives: The objectives.
        period: The period.
        now_us: The present; nothing is expected later.
        known: All subjects of the clusters to state; by default of every cluster.
        options: Further contents of statements.

    Raises:
        ObjectiveError: An objective's slices do not fit gold's windows.
        PeriodError: Gold no longer keeps the finest windows that an objective needs.
    """
    known = subjects(engine) if known is None else known
    if not known:
        return []
    until = min(now_us, micros(period.end))
    gold = GoldRows(engine, (options.window_seconds or window_of(engine)) * 1_000_000)
    only, every = options.only, lifetimes(known, until)
    own = [one for one in every if only in (None, (one.subject.kind, one.subject.key))]
    sources = [one for one in every if one.subject.kind == "source"]
    rows = SliRows(gold, own, sources=sources)
    return _Reader(gold, rows, period, until, options, objectives).statements()


@dataclass(frozen=True)
class _Reader:
    """Reads gold; nothing is expected after ``until_us``."""

    gold: GoldRows
    rows: SliRows
    period: Period
    until_us: int
    options: Options
    objectives: Sequence[Objective]

    def statements(self) -> list[Statement]:
        found = self.rows.sums(self._queries)
        statements = build_all(self._queries, self.rows.lifetimes, found)
        if self.options.burns:
            statements = self._with_burn_history(statements)
        if self.options.left:
            statements = self._with_left(statements)
        planned, agreed = self.options.maintenance, self.options.corrections
        statements = self._with_outside(statements, planned, ("maintenance", "without"))
        statements = self._with_outside(statements, agreed, ("corrections", "agreed"))
        return combined_statements.with_clusters(
            combined_statements.split(self.gold, statements, planned, agreed)
        )

    @cached_property
    def _queries(self) -> list[Query]:
        """Objectives that can be summed together; each on events has a query of its own."""
        groups: defaultdict[tuple[Slices | None, Period, str], list[Objective]] = defaultdict(list)
        ahead_us: dict[str, int] = {}
        for objective in self.objectives:
            self._check_slices(objective)
            period, ahead_us[objective.name] = self._window(objective)
            events_of = objective.name if objective.events else ""
            groups[objective.slices, period, events_of].append(objective)
        until_us, burning = 0, LENGTHS_US if self.options.burns else {}
        if burning:  # until the end of the last window of the period with any data
            rows = self.gold.windows(tables.COVERAGE, self.period)
            ((last,),) = ask(
                self.gold.engine, "SELECT max(r.window_start) FROM {rows} r", rows=rows
            )
            until_us = micros(self.period.end) if last is None else last + self.gold.window_us
        queries = []
        for (cut, period, events_of), group in groups.items():
            lengths = {} if events_of and cut is None else burning
            query = Query(tuple(group), period, self.gold.window_us, lengths, until_us, ahead_us)
            queries.append(query)
        return queries

    def _check_slices(self, objective: Objective) -> None:
        cut, size_us = objective.slices, self.gold.window_us
        is_short = cut and objective.events and cut.length_us < size_us
        if cut and (is_short or not sli_query.fits(cut, size_us)):
            raise ObjectiveError(
                f"objective {objective.name}: slices of {cut.length_us // 1_000_000} s do not fit "
                f"gold's windows of {size_us // 1_000_000} s. Use a multiple"
            )

    def _window(self, objective: Objective) -> tuple[Period, int]:
        """Return the period of an objective up to the present, and the rest of its window."""
        if not self.options.own_windows or self.period.grain != periods.WEEK:
            return self.period, 0
        # A rolling window ends at the present, in whole windows.
        present = instant(-(-self.until_us // self.gold.window_us) * self.gold.window_us)
        end = min(present, self.period.end)
        so_far = replace(self.period, end=end) if end > self.period.start else self.period
        # Without a window of its own it is of the week that is reported, whatever its time zone.
        window = self.period if objective.window == ISO_WEEK else objective.window.of(so_far)
        until = replace(window, end=min(window.end, self.period.end))
        ahead_us = max(0, micros(window.end) - self.until_us)
        return until.aligned(self.gold.window_us // 1_000_000), ahead_us

    def _with_left(self, statements: Sequence[Statement]) -> list[Statement]:
        """Return the statements; the worst of each objective have the budget left by hour."""
        by_key = {statement.key: statement for statement in statements}
        for query in self._queries:
            if query.events is not None and query.slices is None:
                continue  # gold/sli has no rows of these
            worst = _most_missed(statements, query)
            bad = self.rows.bad_times(query, [one.key for one in worst]) if worst else {}
            for one in worst:
                left = left_by_hour(one, bad.get(one.key, ()), self.until_us)
                by_key[one.key] = replace(one, left=left)
        return list(by_key.values())

    def _with_burn_history(self, statements: Sequence[Statement]) -> list[Statement]:
        """Return the statements; where the budget could have burnt, with the time it did."""
        by_key = {statement.key: statement for statement in statements}
        for query in self._queries:
            pairs = [pair for pair in PAIRS if {pair.long, pair.short} <= query.ranges.keys()]
            worst = _worst(statements, query, pairs)
            # A period longer than gold keeps its finest windows has no history.
            if not worst or not self.gold.are_kept(query.period.start.date()):
                continue
            bad = self.rows.bad_windows(query, [statement.key for statement in worst])
            size_us, span = query.unit_us, query.period.span
            for statement in worst:
                windows, target = bad.get(statement.key, []), statement.objective.target
                burnt = {pair: burnt_us(windows, size_us, span, pair, target) for pair in pairs}
                alerts = (one._replace(burnt_us=burnt.get(one.pair)) for one in statement.alerts)
                by_key[statement.key] = replace(statement, alerts=tuple(alerts))
        return list(by_key.values())

    def _with_outside(
        self, statements: list[Statement], excluded: Sequence[Maintenance], fields: tuple[str, str]
    ) -> list[Statement]:
        """Return the statements, with the excluded time of each and the figures outside it.

        Args:
            statements: The statements.
            excluded: Maintenance or corrections.
            fields: Fields of a statement: its excluded time, and the statement outside that time.
        """
        groups: defaultdict[tuple[int, ...], list[Statement]] = defaultdict(list)
        for one in statements:
            groups[tuple(map(id, excluded_of(excluded, one.objective.name)))].append(one)
        changed: dict[SliKey, Statement] = {}
        for group in groups.values():
            for one, *found in self._outside(group, excluded_of(excluded, group[0].objective.name)):
                values: dict[str, Any] = dict(zip(fields, found, strict=True))
                changed[one.key] = replace(one, **values)
        return [changed.get(one.key, one) for one in statements]

    def _outside(
        self, statements: Sequence[Statement], excluded: Sequence[Maintenance]
    ) -> Iterator[tuple[Statement, tuple[Maintenance, ...], Statement]]:
        """Yield each statement with excluded time, that time, and the statement outside it."""
        names = {one.objective.name for one in statements}
        queries = [
            replace(query, objectives=chosen, lengths={})
            for query in self._queries
            if (chosen := tuple(one for one in query.objectives if one.name in names))
        ]
        planned = [one for one in excluded if any(one.overlaps(query.period) for query in queries)]
        lived = {}
        for lifetime in self.rows.lifetimes:
            own = (one for one in planned if one.concerns(lifetime.subject))
            if windows := [one.windows(self.gold.window_us) for one in own]:
                spans = [part for span in lifetime.spans for part in without(span, windows)]
                lived[_identity(lifetime.subject)] = lifetime._replace(spans=spans)
        if not lived:
            return
        rows = SliRows(self.gold, list(lived.values()), planned, self.rows.sources)
        found = rows.sums(queries)
        query_of = {objective.name: query for query in queries for objective in query.objectives}
        for one in statements:
            query = query_of[one.objective.name]
            overlapping = [item for item in planned if item.overlaps(query.period)]
            if concerning := tuple(item for item in overlapping if item.concerns(one.subject)):
                lifetime = lived[_identity(one.subject)]
                yield one, concerning, build(query, one.objective, lifetime, found)


def _most_missed(statements: Sequence[Statement], query: Query) -> list[Statement]:
    """Return the worst subject of each objective, and some more that missed it."""
    found: list[Statement] = []
    for objective in (one for one in query.objectives if one.kind == one.level):
        own = [one for one in statements if one.objective.name == objective.name]
        worst = nlargest(
            _MOST_HISTORIES, own, lambda one: (display.rank(one.verdict), one.times.bad_us)
        )
        found += [one for place, one in enumerate(worst) if not place or one.verdict == "missed"]
    return found


def _worst(statements: Sequence[Statement], query: Query, pairs: Sequence[Pair]) -> list[Statement]:
    """Return the subjects of each objective with the most bad time, if a pair may have burnt."""
    worst: list[Statement] = []
    # Clusters and partitions, which are made of topics, have no burn rates.
    plain = [objective for objective in query.objectives if objective.kind == objective.level]
    for objective in plain if pairs else ():
        own = [one for one in statements if one.objective.name == objective.name]
        bad = [one for one in own if one.times.bad_low_us >= least_us(pairs, objective.target)]
        worst += nlargest(_MOST_HISTORIES, bad, lambda one: one.times.bad_low_us)
    return worst


def lifetimes(known: Sequence[Subject], until_us: int) -> list[Lifetime]:
    """Return the active period of each subject, up to an instant."""
    by_cluster: defaultdict[str, list[Subject]] = defaultdict(list)
    for one in known:
        by_cluster[one.cluster].append(one)
    found = []
    for one, end_us in (pair for group in by_cluster.values() for pair in with_ends(group)):
        last = until_us if end_us is None else min(until_us, end_us)
        spans = [(one.first_us, last)] if one.first_us < last else []
        found.append(Lifetime(one, spans, end_us is not None))
    return found


def _identity(subject: Subject) -> tuple[str, str, Key]:
    return (subject.cluster, subject.kind, subject.key)


_FIGURES: Final = ("corrections", *tables.SLA_FIGURES, *tables.SLA_AGREED)
_KEY: Final = (
    "period_kind", "period_start", "period_end", "cluster", "objective", *SUBJECT_COLUMNS,
    "partition_id",
)  # fmt: skip


def publish(
    engine: Engine, statements: Sequence[Statement], period: periods.Period,
    restated: list[Statement] | None = None, time_zone: str | None = None,
) -> list[Statement]:  # fmt: skip
    """Append new and changed statements to gold/sla, and return them.

    Args:
        engine: Writes gold.
        statements: Statements, each on its own period, or on ``period`` if it lacks one.
        period: The period of the report.
        restated: Receives the statements that were published with other figures before.
        time_zone: Name of the time zone of the period.

    Raises:
        LeaseHeldError: A rollup or another publication is running.
    """
    with lease.hold(engine, lease.USUAL) as held:
        last = _last_published(engine, {one.period or period for one in statements})
        changed, rows = [], []
        for statement in statements:
            row = _row(statement, statement.period or period) | {"time_zone": time_zone}
            before, figures = last.get(_values(row, _KEY)), _values(row, _FIGURES)
            if before is None or _values(before, _FIGURES) != figures:
                changed.append(statement)
                if before is not None and restated is not None:
                    restated.append(statement)
                rows.append(row | {"statement": before["statement"] + 1 if before else 1})
        if rows:
            held.check()
            detail = engine.detail(tables.SLA)
            if gold_tables.is_outdated(engine.lake, tables.SLA, detail):  # an earlier version's
                gold_tables.prepare(engine, tables.SLA)
            table = pa.Table.from_pylist(rows, arrow_types.of_table(tables.SLA))
            engine.write(tables.SLA, table)
    return changed


def _last_published(engine: Engine, wanted: Iterable[periods.Period]) -> dict[tuple[Any, ...], Row]:
    """Return the last row of each key."""
    conditions = (
        f"(r.period_kind = {text(period.grain)} "
        f"AND r.period_start = {periods.micros(period.start)} "
        f"AND r.period_end = {periods.micros(period.end)})"
        for period in wanted
    )
    where = " OR ".join(conditions) or "false"
    sql = f"SELECT r.* FROM {{rows}} r WHERE {where} ORDER BY r.statement"
    rows = engine.collect(select(sql, rows=engine.rows(tables.SLA))).to_pylist()
    return {_values(row, _KEY): row for row in rows}


def _values(row: Row, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in names)  # older tables lack some columns


def _row(statement: Statement, period: periods.Period) -> Row:
    policy, corrections = statement.objective.unknown, statement.corrections
    agreed = statement.agreed  # none without a correction
    middle = period.start + (period.end - period.start) / 2  # its Monday may start on a Sunday, UTC
    year = middle.isocalendar().year if period.grain == periods.WEEK else period.start.year
    return {
        "period_kind": period.grain,
        "period_year": str(year),
        "cluster": statement.subject.cluster,
        "period_start": periods.micros(period.start),
        "period_end": periods.micros(period.end),
        "stated_at": periods.micros(dt.datetime.now(dt.UTC)),
        "objective": statement.objective.name,
        **dict(zip(SUBJECT_COLUMNS, statement.subject.key, strict=True)),
        "partition_id": statement.subject.partition,
        "target": statement.objective.target,
        "unknown_as": None if policy == "interval" else policy,
        "corrections": json.dumps([one.to_json() for one in corrections]) if corrections else None,
        **statement.figures(),
        **{name: getattr(agreed, name.removeprefix("agreed_"), None) for name in tables.SLA_AGREED},
    }
