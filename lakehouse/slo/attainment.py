"""Attainment per objective and subject over a period, with bounds.

Expected time follows from the calendar and gold/subjects, not from what was reported. See
``statement`` for the figures, and docs/objectives.md for their meaning.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nlargest
from typing import Any, Final

from lakehouse import tables
from lakehouse.core.lifetimes import Subject, subject, with_ends
from lakehouse.core.objective import ISO_WEEK, Objective, Slices
from lakehouse.core.periods import Period, instant, micros, without
from lakehouse.engines.engine import Engine, ask
from lakehouse.engines.gold_reader import GoldRows, window_of
from lakehouse.errors import ObjectiveError
from lakehouse.slo import partitions, slices, sums
from lakehouse.slo.aggregate import with_clusters
from lakehouse.slo.burn_rate import LENGTHS_US, PAIRS, Pair, burnt_us, least_us
from lakehouse.slo.calendar.corrections import Correction
from lakehouse.slo.calendar.maintenance import Maintenance, of
from lakehouse.slo.events import EventCounter
from lakehouse.slo.statement import (
    PERIOD,
    Counts,
    Key,
    Lifetime,
    Query,
    SliKey,
    Statement,
    Sums,
    build,
    build_all,
)

_MOST_HISTORIES: Final = 20
"""Subjects of each objective with a burn history: each brings as many rows as it was bad in."""


@dataclass(frozen=True, slots=True)
class Options:
    """Contents of statements beside plain figures.

    Attributes:
        own_windows: Whether each objective is stated over the window of its own that ends with the
            period (see ``TimeWindow.of``), and not over the period.
        burns: Whether there are burn rates.
        maintenance: Planned maintenance.
        corrections: Time that was agreed not to count.
        window_seconds: Length of gold's finest windows; by default that of gold/progress.
        only: Kind and key of the only subject that is stated; by default all are. The others still
            determine whether it has ended.
    """

    own_windows: bool = False
    burns: bool = False
    maintenance: tuple[Maintenance, ...] = ()
    corrections: tuple[Correction, ...] = ()
    window_seconds: int | None = None
    only: tuple[str, Key] | None = None


_DEFAULT: Final = Options()


def read(
    engine: Engine,
    objectives: Sequence[Objective],
    period: Period,
    now_us: int,
    known: Sequence[Subject] | None = None,
    options: Options = _DEFAULT,
) -> list[Statement]:
    """Statements from gold over a period of whole windows.

    Args:
        engine: Reads gold.
        objectives: The objectives.
        period: The period.
        now_us: The present; nothing is expected later.
        known: All subjects of the clusters to state; by default of every cluster.
        options: Further contents of statements.

    Raises:
        ObjectiveError: An objective's slices do not fit gold's windows.
        PeriodError: The finest windows that it takes are kept no more.
    """
    known = subjects(engine) if known is None else known
    if not known:
        return []
    seconds = options.window_seconds or window_of(engine)
    until = min(now_us, micros(period.end))
    gold = GoldRows(engine, seconds * 1_000_000)
    return _Reader(gold, period, until, options, objectives, known).statements()


def on_time_of(
    period: Period, statements: Sequence[Statement], objectives: Sequence[Objective]
) -> tuple[list[Statement], list[Objective]]:
    """Statements on the time of all subjects in exactly one period, and objectives without one.

    The objectives are those over other windows, in slices, or on some subjects only, as objectives
    on time. Objectives on events have no time and are in neither list.
    """
    elsewhere = {statement.objective.name for statement in statements if statement.period != period}
    plain = {
        objective.name
        for objective in objectives
        if objective.kind == objective.level
        and not (objective.slices or objective.events or objective.match)
    } - elsewhere
    missing = [
        replace(objective, level=objective.kind, slices=None, match={})
        for objective in objectives
        if objective.name not in plain and objective.events is None
    ]
    return [statement for statement in statements if statement.objective.name in plain], missing


def subjects(engine: Engine) -> list[Subject]:
    """All of gold/subjects, in the order of their names."""
    rows = engine.collect(engine.rows(tables.SUBJECTS)).to_pylist(maps_as_pydicts="strict")
    known = [subject(row) for row in rows]
    return sorted(known, key=lambda one: (one.cluster, one.kind, [name or "" for name in one.key]))


def now_us() -> int:
    """This instant, microseconds."""
    return micros(dt.datetime.now(dt.UTC))


@dataclass(frozen=True)
class _Reader:
    """Reads gold; nothing is expected after ``until_us``."""

    gold: GoldRows
    period: Period
    until_us: int
    options: Options
    objectives: Sequence[Objective]
    known: Sequence[Subject]

    def statements(self) -> list[Statement]:
        found = self._sums(self._queries, self._lifetimes, ())
        statements = build_all(self._queries, self._lifetimes, found)
        if self.options.burns:
            statements = self._with_burn_history(statements)
        planned, agreed = self.options.maintenance, self.options.corrections
        statements = self._with_outside(statements, planned, ("maintenance", "without"))
        statements = self._with_outside(statements, agreed, ("corrections", "agreed"))
        return with_clusters(partitions.split(self.gold, statements, planned, agreed))

    @cached_property
    def _lifetimes(self) -> list[Lifetime]:
        only, lifetimes = self.options.only, _lifetimes(self.known, self.until_us)
        return [one for one in lifetimes if only in (None, (one.subject.kind, one.subject.key))]

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
            ((last,),) = ask(self.gold.engine, "SELECT max(r.window) FROM {rows} r", rows=rows)
            until_us = micros(self.period.end) if last is None else last + self.gold.window_us
        queries = []
        for (cut, period, events_of), group in groups.items():
            lengths = {} if events_of and cut is None else burning
            query = Query(tuple(group), period, self.gold.window_us, lengths, until_us, ahead_us)
            queries.append(query)
        return queries

    def _check_slices(self, objective: Objective) -> None:
        cut = objective.slices
        if cut is None:
            return
        is_short = objective.events is not None and cut.length_us < self.gold.window_us
        if is_short or not slices.fits(cut, self.gold.window_us):
            raise ObjectiveError(
                f"objective {objective.name}: slices of {cut.length_us // 1_000_000} s do not fit "
                f"gold's windows of {self.gold.window_us // 1_000_000} s; write a multiple"
            )

    def _window(self, objective: Objective) -> tuple[Period, int]:
        """The period of an objective up to the present, and the rest of its window after that."""
        if not self.options.own_windows:
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

    def _sums(
        self, queries: Sequence[Query], lifetimes: Sequence[Lifetime],
        excluded: Sequence[Maintenance],
    ) -> Sums:  # fmt: skip
        """Times and events of all subjects; times of events follow from these."""
        timed = [query for query in queries if query.slices or query.events is None]
        times = sums.times(self.gold, timed, lifetimes, excluded)
        counter = EventCounter(self.gold, lifetimes, excluded)
        spans = {(one.subject.cluster, one.subject.key): one.spans for one in lifetimes}
        counts: dict[SliKey, Counts] = {}
        for query in queries:
            if query.events is None:
                continue
            counted = counter.counts(query.objectives[0], query.events, query.span)
            counts |= counted
            if query.slices is None:
                for (cluster, name, key), events in counted.items():
                    expected = query.expected_us(query.span, spans.get((cluster, key), ()))
                    times[cluster, name, key] = {PERIOD: events.times(expected)}
        return Sums(times, counts)

    def _with_burn_history(self, statements: Sequence[Statement]) -> list[Statement]:
        """Statements; those whose budget could have burnt with the time for which it did."""
        by_key = {statement.key: statement for statement in statements}
        for query in self._queries:
            pairs = [pair for pair in PAIRS if {pair.long, pair.short} <= query.ranges.keys()]
            worst = _worst(statements, query, pairs)
            # A period longer than gold keeps its finest windows has no history.
            if not worst or not self.gold.are_kept(query.period.start.date()):
                continue
            keys = [statement.key for statement in worst]
            bad = sums.bad_windows(self.gold, query, self._lifetimes, keys)
            for statement in worst:
                windows, target = bad.get(statement.key, []), statement.objective.target
                alerts = list(statement.alerts)
                for at, alert in enumerate(alerts):
                    if alert.pair in pairs:
                        burnt = burnt_us(windows, query.unit_us, query.span, alert.pair, target)
                        alerts[at] = replace(alert, burnt_us=burnt)
                by_key[statement.key] = replace(statement, alerts=tuple(alerts))
        return list(by_key.values())

    def _with_outside(
        self, statements: list[Statement], excluded: Sequence[Maintenance], fields: tuple[str, str]
    ) -> list[Statement]:
        """Statements; those that excluded time concerns with it and the figures outside of it.

        Args:
            statements: The statements.
            excluded: Maintenance, or corrections.
            fields: Of a statement: what concerns it, and the statement outside of that.
        """
        if not excluded:
            return statements
        groups: defaultdict[tuple[int, ...], set[str]] = defaultdict(set)
        for name in {one.objective.name for one in statements}:
            groups[tuple(map(id, of(excluded, name)))].add(name)
        outside: dict[SliKey, tuple[tuple[Maintenance, ...], Statement]] = {}
        for names in groups.values():
            part = [
                replace(query, objectives=chosen)
                for query in self._queries
                if (chosen := tuple(one for one in query.objectives if one.name in names))
            ]
            own = [one for one in statements if one.objective.name in names]
            outside |= self._outside(own, part, of(excluded, min(names)))
        changed: dict[SliKey, dict[str, Any]] = {
            key: dict(zip(fields, found, strict=True)) for key, found in outside.items()
        }
        return [replace(one, **changed.get(one.key, {})) for one in statements]

    def _outside(
        self,
        statements: Sequence[Statement],
        queries: Sequence[Query],
        excluded: Sequence[Maintenance],
    ) -> dict[SliKey, tuple[tuple[Maintenance, ...], Statement]]:
        """What concerns each statement of some excluded time, and the statement outside of it."""
        planned = [
            item for item in excluded if any(item.overlaps(query.period) for query in queries)
        ]
        outside = {}
        for lifetime in self._lifetimes:
            subject = lifetime.subject
            windows = [
                item.windows(self.gold.window_us) for item in planned if item.concerns(subject)
            ]
            if windows:
                spans = [part for span in lifetime.spans for part in without(span, windows)]
                outside[_identity(subject)] = lifetime._replace(spans=spans)
        if not outside:
            return {}
        plain = [replace(query, lengths={}) for query in queries]
        sums_outside = self._sums(plain, list(outside.values()), planned)
        by_objective = {objective.name: query for query in plain for objective in query.objectives}
        found = {}
        for one in statements:
            query = by_objective[one.objective.name]
            concerned = tuple(
                item
                for item in planned
                if item.concerns(one.subject) and item.overlaps(query.period)
            )
            if concerned:
                lifetime = outside[_identity(one.subject)]
                other = build(query, one.objective, lifetime, sums_outside)
                found[one.key] = concerned, other
        return found


def _worst(statements: Sequence[Statement], query: Query, pairs: Sequence[Pair]) -> list[Statement]:
    """The subjects of each objective with the most bad time, if a pair can have burnt in it."""
    worst: list[Statement] = []
    # Clusters and partitions, which are made of topics, have no burn rates.
    plain = [objective for objective in query.objectives if objective.kind == objective.level]
    for objective in plain if pairs else ():
        least = least_us(pairs, objective.target)
        candidates = [
            statement
            for statement in statements
            if statement.objective.name == objective.name and statement.times.bad_low_us >= least
        ]
        worst += nlargest(_MOST_HISTORIES, candidates, lambda worse: worse.times.bad_low_us)
    return worst


def _lifetimes(known: Sequence[Subject], until_us: int) -> list[Lifetime]:
    """When subjects existed, up to an instant."""
    by_cluster: defaultdict[str, list[Subject]] = defaultdict(list)
    for subject_ in known:
        by_cluster[subject_.cluster].append(subject_)
    lifetimes = []
    for group in by_cluster.values():
        for subject_, end_us in with_ends(group):
            last = until_us if end_us is None else min(until_us, end_us)
            spans = [(subject_.first_us, last)] if subject_.first_us < last else []
            lifetimes.append(Lifetime(subject_, spans, end_us is not None))
    return lifetimes


def _identity(subject: Subject) -> tuple[str, str, Key]:
    return (subject.cluster, subject.kind, subject.key)
