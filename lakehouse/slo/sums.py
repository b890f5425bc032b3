"""Sums of gold/sli per objective and subject, and the error budget that bad time leaves.

Sums are over a period, or over lengths before an instant. Ranges of whole hours are summed from
hours, all other ranges from the finest windows.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.core.periods import HOUR_US, Period, Span
from lakehouse.core.subjects import SUBJECT_COLUMNS
from lakehouse.engines.gold_reader import GoldRows, before_window, is_hourly
from lakehouse.engines.relation import Relation, is_one_of, select
from lakehouse.kernel import arrow_types
from lakehouse.slo.burn_rate import BadWindow
from lakehouse.slo.event_counter import EventCounter, lives
from lakehouse.slo.report_calendar import Maintenance
from lakehouse.slo.sla_statement import Counts, Statement, Sums, Times
from lakehouse.slo.sli_query import BEFORE, PERIOD, Exclusions, Lifetime, Query, SliKey, judge

BadTime = tuple[int, int]
"""The last microsecond of a row of gold, or of a slice, and the bad time in it (µs)."""

_KEYS: Final = ("cluster", "objective", *SUBJECT_COLUMNS)
_KEY: Final = ", ".join(f"r.{name} AS {name}" for name in _KEYS)
_GROUP: Final = ", ".join(f"r.{name}" for name in _KEYS)
_KEY_SCHEMA: Final = arrow_types.schema((name, "string") for name in _KEYS)
_IN_OLDER_ROWS: Final = before_window(BEFORE, "bad_high_us", "bad_us")
_BEFORE: Final = (
    f"CASE WHEN r.consumer_group IS NULL AND r.source IS NULL THEN {_IN_OLDER_ROWS} "
    f"ELSE coalesce(r.{BEFORE}, 0) END"
)
"""The part of the upper bound that may be before the window of a row ``r`` of gold/sli.

Records that groups lost and failed attempts of sources have no such part: they have no edges.
"""


class _Part(NamedTuple):
    """Ranges of a query that are summed from the same rows, and the length of these rows."""

    query: Query
    ranges: Mapping[str, Span]
    size_us: int

    @property
    def span(self) -> Span:
        """The span of all its ranges."""
        starts, ends = zip(*self.ranges.values(), strict=True)
        return min(starts), max(ends)


class SliRows(NamedTuple):
    """Rows of gold/sli of some subjects, outside some maintenance."""

    gold: GoldRows
    lifetimes: Sequence[Lifetime]
    excluded: Sequence[Maintenance] = ()
    sources: Sequence[Lifetime] = ()

    def sums(self, queries: Sequence[Query]) -> Sums:
        """Return times and events of all subjects with rows; each objective is in one query.

        If events are counted and there are no slices, times follow from the events.
        """
        times: defaultdict[SliKey, dict[str, Times]] = defaultdict(dict)
        counts: dict[SliKey, Counts] = {}
        spans = {(one.subject.cluster, one.subject.key): one.spans for one in self.lifetimes}
        counter = self.counter
        for query in queries if self.lifetimes else ():
            within = query.period.span
            if query.slices or query.events is None:
                for one, by_range in self.times(query):
                    times[one] |= by_range
            if query.events is not None:
                counted = counter.counts(query.objectives[0], query.events, within)
                counts |= counted
                for (cluster, name, key), events in counted.items() if not query.slices else ():
                    expected = query.expected_us(within, spans.get((cluster, key), ()))
                    times[cluster, name, key] = {PERIOD: events.times(expected)}
        return Sums(times, counts)

    def bad_windows(self, query: Query, keys: Collection[SliKey]) -> dict[SliKey, list[BadWindow]]:
        """Return windows or slices of a few subjects with certainly bad time, in order.

        Args:
            query: The objectives.
            keys: The subjects. The query reads one row per bad window of each.
        """
        found = self._bad(_Part(query, query.ranges, self.gold.window_us), keys, "bad_low_us")
        return {key: [BadWindow(*one) for one in rows] for key, rows in found.items()}

    def bad_times(self, query: Query, keys: Collection[SliKey]) -> dict[SliKey, list[BadTime]]:
        """Return all bad time of a few subjects in the period, in order.

        Args:
            query: The objectives; on events only in slices.
            keys: The subjects. The query reads one row per bad hour, window or slice of each.
        """
        (part,) = self.parts(replace(query, lengths={}))
        last_us = (query.unit_us if query.slices else part.size_us) - 1
        _, end = query.period.span
        return {
            key: [(at + last_us, bad_us) for at, bad_us in rows if at < end]
            for key, rows in self._bad(part, keys, "bad_us").items()
        }

    def _bad(
        self, part: _Part, keys: Collection[SliKey], column: str
    ) -> dict[SliKey, list[tuple[int, int]]]:
        """Return start and bad time of the judged rows of a few subjects that have any."""
        few = arrow_types.rows(_KEY_SCHEMA, [(cluster, name, *key) for cluster, name, key in keys])
        rows = self.gold.ask(
            f"SELECT {_KEY}, r.at, r.{column} AS bad_us FROM {{rows}} r "
            f"JOIN {{few}} f ON {_same('f', _KEYS)} WHERE r.{column} > 0 ORDER BY r.at",
            rows=self.judged(part),
            few=few,
        )
        found: defaultdict[SliKey, list[tuple[int, int]]] = defaultdict(list)
        for row in rows:
            key = (row["cluster"], row["objective"], tuple(row[name] for name in SUBJECT_COLUMNS))
            found[key].append((row["at"], row["bad_us"]))
        return found

    @property
    def counter(self) -> EventCounter:
        """Counts the events of the same subjects."""
        return EventCounter(self.gold, self.lifetimes, self.excluded, self.sources)

    def times(self, query: Query) -> Iterator[tuple[SliKey, dict[str, Times]]]:
        """Yield the times of each subject by the name of a range, without empty ranges."""
        width = len(Times._fields) + 1
        for part in self.parts(query):
            for row in self.gold.ask(_sums_by_range(part), rows=self.judged(part)):
                cluster, objective, *values = row.values()
                key, columns = tuple(values[: len(SUBJECT_COLUMNS)]), values[len(SUBJECT_COLUMNS) :]
                by_range: dict[str, Times] = {}
                for at, name in enumerate(part.ranges):
                    *range_times, row_count = columns[at * width : (at + 1) * width]
                    if row_count:
                        by_range[name] = Times(*range_times)
                yield (cluster, objective, key), by_range

    def parts(self, query: Query) -> list[_Part]:
        """Return the ranges of a query, by the rows that they are summed from."""
        needs_windows = query.slices is not None or bool(self.excluded)
        hourly, others = dict[str, Span](), dict[str, Span]()
        for name, span in query.ranges.items():
            is_whole = not needs_windows and is_hourly(Period.of(span))
            (hourly if is_whole else others)[name] = span
        both = (_Part(query, hourly, HOUR_US), _Part(query, others, self.gold.window_us))
        return [part for part in both if part.ranges]

    def judged(self, part: _Part) -> Relation:
        """Return rows of gold or slices with ``at`` (µs), the columns of ``Times`` and ``BEFORE``.

        Rows of gold include the row after the span, for its ``BEFORE``. Slices have 0.
        """
        query, (start, end) = part.query, part.span
        if query.slices is None:
            columns = f"{_KEY}, r.window_start AS at, {', '.join(Times._fields)}, r.{BEFORE}"
            windows = self._windows(part, (start, end + part.size_us))
            return select(f"SELECT {columns} FROM {{rows}} r", rows=windows)
        size, first = query.unit_us, query.period.span[0]
        slot = f"r.window_start - ((r.window_start - {first}) % {size} + {size}) % {size}"
        judged = zip(judge(query.slices, query.window_us), Times._fields, strict=True)
        columns = ", ".join(f"{sql} AS {name}" for sql, name in judged)
        rows = self._with_expected(self._slots(part, slot), query)
        sql = f"SELECT {_KEY}, r.at, {columns}, 0 AS {BEFORE} FROM {{rows}} r"
        return select(sql, rows=rows)

    def _slots(self, part: _Part, slot: str) -> Relation:
        """Return sums over slices, or over windows of several slices."""
        query = part.query
        if query.events is not None:
            return self.counter.slices(query.objectives[0], query.events, part.span, slot)
        columns = zip(("good", "bad", "low", "high"), Times._fields, strict=True)
        sums = ", ".join(f"CAST(sum(r.{column}) AS BIGINT) AS {name}" for name, column in columns)
        sql = f"SELECT {_KEY}, {slot} AS at, {sums} FROM {{rows}} r GROUP BY {_GROUP}, {slot}"
        return select(sql, rows=self._windows(part, part.span))

    def _windows(self, part: _Part, span: Span) -> Relation:
        subjects = [lifetime.subject for lifetime in self.lifetimes]
        rows_of = self.gold.hours if part.size_us == HOUR_US else self.gold.windows
        rows = select(
            f"SELECT r.window_start, {_KEY}, {', '.join(f'r.{n}' for n in Times._fields)}, "
            f"{_BEFORE} AS {BEFORE} FROM {{rows}} r "
            f"WHERE {is_one_of('r.cluster', sorted({subject.cluster for subject in subjects}))} "
            f"AND {is_one_of('r.objective', [one.name for one in part.query.objectives])}",
            rows=rows_of(tables.SLI, Period.of(span)),
        )
        exclusions = Exclusions(self.excluded, subjects, self.gold.window_us)
        return exclusions.apply(rows, _KEYS, Times._fields, span[0])

    def _with_expected(self, slots: Relation, query: Query) -> Relation:
        """Return slots with ``expected``: the time in them in which the subject existed."""
        kinds = {objective.kind for objective in query.objectives}
        columns = ", ".join(f"r.{name}" for name in ("at", "good", "bad", "low", "high"))
        lived = f"greatest(0, least(k.e, r.at + {query.unit_us}) - greatest(k.s, r.at))"
        same = _same("k", ("cluster", *SUBJECT_COLUMNS))
        return select(
            f"SELECT {_KEY}, {columns}, CAST(coalesce(sum({lived}), 0) AS BIGINT) AS expected "
            f"FROM {{slots}} r LEFT JOIN {{spans}} k ON {same} "
            f"GROUP BY {_GROUP}, {columns}",
            slots=slots,
            spans=lives(self.lifetimes, kinds),
        )


def _same(other: str, names: Iterable[str]) -> str:
    return " AND ".join(f"r.{name} IS NOT DISTINCT FROM {other}.{name}" for name in names)


def _sums_by_range(part: _Part) -> str:
    """Return the SQL of sums over each range, and the number of its rows with content.

    Bad time that was first observed just after a range may have started in it. A client's row of
    zeros shows that it existed (see the kernel's sli/clients.sql).
    """
    has_content = f"greatest({', '.join(f'r.{name}' for name in Times._fields)}) > 0"
    if part.query.slices is None:
        has_content = f"({has_content} OR r.user_name IS NOT NULL OR r.client_id IS NOT NULL)"
    columns = []
    for at, (start, end) in enumerate(part.ranges.values()):
        is_inside = f"r.at >= {start} AND r.at < {end}"
        for name in Times._fields:
            total = f"sum(CASE WHEN {is_inside} THEN r.{name} ELSE 0 END)"
            if name == "bad_high_us":
                total += f" + sum(CASE WHEN r.at = {end} THEN r.{BEFORE} ELSE 0 END)"
            columns.append(f"CAST({total} AS BIGINT) AS {name}_{at}")
        count = f"sum(CASE WHEN {is_inside} AND {has_content} THEN 1 ELSE 0 END)"
        columns.append(f"CAST({count} AS BIGINT) AS rows_{at}")
    return f"SELECT {_KEY}, {', '.join(columns)} FROM {{rows}} r GROUP BY {_GROUP}"


def left_by_hour(
    statement: Statement, bad: Iterable[BadTime], until_us: int
) -> tuple[float, ...] | None:
    """Return the share of the budget of the whole window that is left after each hour so far.

    The last value is 1 less the used share. A negative value is an overspent budget. None: there
    is no budget, or the objective counts unknown time as bad, whose place in time is not stored.

    Args:
        statement: The statement on the window.
        bad: All bad time that the statement has.
        until_us: The present; later hours have no value.
    """
    whole_us, period = statement.budget_of_window_us, statement.period
    if whole_us <= 0 or period is None or statement.objective.unknown == "bad":
        return None
    start, end = period.span
    hours = -(-(min(end, until_us) - start) // HOUR_US)
    by_hour = [0] * max(0, hours)
    for at, bad_us in bad:
        by_hour[min((at - start) // HOUR_US, hours - 1)] += bad_us
    left, found = whole_us, []
    for bad_us in by_hour:
        left -= bad_us
        found.append(round(left / whole_us, 4))
    return tuple(found) or None
