"""Rows of gold of one cluster and period, and their sums by subject and metric.

A start uncertainty that exceeds its window is in that window's upper bound. So the first window
after a period has the part of its upper bound that may be in the period: an incident that was first
observed just after the period may have started in it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, Self

from lakehouse import tables
from lakehouse.core.metrics import Meanings, jvm_families
from lakehouse.core.objective import Objective
from lakehouse.core.periods import FIRST, HOUR_US, LAST, Period, Span, instant, micros, overlap
from lakehouse.core.subjects import Subject, expected_us, with_ends
from lakehouse.engines import gold_reader
from lakehouse.engines.engine import Engine, ask
from lakehouse.engines.gold_reader import GoldRows, Row, before_window, is_same, meanings, summed
from lakehouse.engines.relation import Relation, is_one_of, select
from lakehouse.errors import PeriodError, TableNotFoundError
from lakehouse.rollup.gold_tables import Incomplete, incomplete
from lakehouse.slo import attainment
from lakehouse.slo.sla_statement import Statement
from lakehouse.slo.uncounted import UncountedTime
from lakehouse.tables import Table

_MOST_CHANGES: Final = 10_000
_OF_PARTITIONS: Final = ("leader_change", "reassignment")
_MOST_OF_PARTITIONS: Final = 1_000
_NOT_SHOWN: Final = ("date", "cluster", "agent", "batch")
CHANGE: Final = ", ".join(
    f"r.{name}" for name in tables.EVENTS.column_names if name not in _NOT_SHOWN
)
"""The columns of a change ``r`` that are shown."""


Sums = defaultdict[Any, defaultdict[str, Row]]
"""Rows by subject, then by metric; a missing row is empty."""

_UPPER_BOUNDS: Final = {
    "affected_high_us": ("before_us", "affected_us"),
    "series_affected_high_us": ("series_before_us", "series_affected_us"),
    "behind_high_us": ("before_us", "behind_us"),
}
"""Upper bounds, each with its part before its window, and the observed time."""

SEEN: Final = 0.95
"""Minimum observed share of a window, so that its figure is valid for all of it."""

_EVER: Final = Period(FIRST, LAST)
_ZERO: Final[Row] = {"series_affected_us": 0, "series_affected_low_us": 0}


@dataclass(frozen=True)
class Gold:
    """One cluster's rows of gold in a period.

    Attributes:
        engine: Reads gold.
        period: Whole windows.
        window_seconds: Length of the finest windows.
        subjects: The cluster's subjects, including past subjects.
        now_us: The present; nothing is expected later.
    """

    engine: Engine
    cluster: str
    period: Period
    window_seconds: int
    subjects: Sequence[Subject] = ()
    now_us: int = 0
    _cache: dict[tuple[str, ...], Any] = field(default_factory=dict, compare=False, repr=False)
    _of_lake: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def rows(self) -> GoldRows:
        """Rows of every cluster and period."""
        return GoldRows(self.engine, self.window_seconds * 1_000_000)

    @cached_property
    def incomplete(self) -> list[Incomplete]:
        """The hours of the period in which tables of gold are not complete, by table."""
        if "incomplete" not in self._of_lake:
            self._of_lake["incomplete"] = incomplete(self.engine, _EVER, self.now_us)
        found: list[Incomplete] = self._of_lake["incomplete"]
        return [
            Incomplete(one.table, *common, one.reason)
            for one in found
            if (common := overlap((one.start, one.end), self.period.span))
        ]

    def is_incomplete(self, table: Table) -> bool:
        """Return True if a table lacks rows of hours of the period."""
        return any(one.table == table.name for one in self.incomplete)

    def within(self, period: Period) -> Self:
        """Return the same cluster's rows in another period."""
        return replace(self, period=period, _cache={})

    def window(self, at_us: int, length_us: int) -> Self:
        """Return the same cluster's rows of a window; computed once."""
        key = ("window", str(at_us), str(length_us))
        if key not in self._cache:
            self._cache[key] = self.within(Period.of((at_us, at_us + length_us)))
        return self._cache[key]  # type: ignore[no-any-return]

    @cached_property
    def uncounted_time(self) -> UncountedTime:
        """Time in which counters of sources may have risen by counts that no reading shows."""
        lived = attainment.lifetimes(self.subjects, min(micros(self.period.end), self.now_us))
        return UncountedTime(self.rows, [self.cluster], self.period, lived)

    @cached_property
    def meanings(self) -> Meanings:
        """Families and traits of metrics, from the catalogues of the lake and the shipped one."""
        return meanings(self.engine)

    def families(self, metric: str) -> frozenset[str]:
        """Return the families that read a metric, by the lake's and the shipped catalogue."""
        return self.meanings.families.get(metric, frozenset())

    def read_times(self, families: Collection[str]) -> dict[str, list[Span]]:
        """Return when any of some families was read, by source with any attempt; queried once."""
        key = ("read_times", *sorted(families))
        if key not in self._cache:
            found: dict[str, list[Span]] = {}
            for row in self.ask(
                "SELECT r.source, r.outcome, r.started_at, r.ended_at FROM {rows} r "
                f"WHERE {is_one_of('r.family', key[1:])}",
                rows=self.whole(tables.READINGS),
            ):
                own = found.setdefault(row["source"], [])
                if row["outcome"] == "ok":
                    own.append((row["started_at"], row["ended_at"]))
            self._cache[key] = found
        return dict(self._cache[key])

    @property
    def broker_families(self) -> frozenset[str]:
        """The families read from a broker's own JVM."""
        return jvm_families("broker")

    def expected(self, kind: str) -> list[tuple[Subject, int]]:
        """Return the subjects of a kind, and their expected time in the period, microseconds."""
        return [
            (subject, expected_us(subject, end_us, self.period, self.now_us))
            for subject, end_us in with_ends(self.subjects)
            if subject.kind == kind
        ]

    def concerns(self, row: Row, objectives: Sequence[Objective]) -> bool:
        """Return True if an objective is on the group of a row, or if there are no objectives."""
        names = {"cluster": self.cluster, "group": row["consumer_group"]}
        return not objectives or any(one.matches(names) for one in objectives)

    def statements(self, objectives: Sequence[Objective], **options: Any) -> list[Statement]:
        """Return the statements on the cluster over the period; see ``attainment.Options``."""
        how = attainment.Options(window_seconds=self.window_seconds, **options)
        return attainment.read(
            self.engine, objectives, self.period, self.now_us, self.subjects, how
        )

    def ask(self, sql: str, **relations: Relation) -> list[Row]:
        """Return the rows of a SELECT over relations, which it names in braces."""
        return self.rows.ask(sql, **relations)

    def sums(self, table: Table, metrics: Sequence[str] = ()) -> list[Row]:
        """Return a table summed over the period, in the order of its keys; queried once.

        Args:
            table: The table.
            metrics: The metrics; by default all.
        """
        key = ("sums", table.name, *metrics)
        if key not in self._cache:
            self._cache[key] = self._summed(self.whole(table), table, table.keys[1:], metrics)
        return list(self._cache[key])

    def by_subject(self, table: Table, metrics: Sequence[str] = ()) -> Sums:
        """Return sums of a table by subject (its name, or a tuple of names) and metric."""
        return by_subject(table, self.sums(table, metrics))

    def raised(self, table: Table, metrics: Sequence[str] = ()) -> Sums:
        """Return sums by subject; upper bounds include bad time observed just after the period."""
        return by_subject(table, self.with_later(table, self.sums(table, metrics)))

    def with_later(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        """Return rows of sums; upper bounds include bad time observed just after the period.

        Gold has no row of a partition that was always zero. Here it has a row if it was bad just
        after the period.
        """
        key = itemgetter(*table.keys[1:])
        later, raised = {key(row): row for row in self.seen_later(table)}, []
        for row in rows:
            more = later.pop(key(row), {})
            known = (high for high in _UPPER_BOUNDS if high in more and row[high] is not None)
            raised.append(row | {high: row[high] + more[high] for high in known})
        return raised + [_ZERO | row for row in later.values() if table is tables.PARTITIONS]

    def seen_later(self, table: Table) -> list[Row]:
        """Return the part of upper bounds that was observed just after the period, if not 0."""
        key = ("seen_later", table.name)
        if key not in self._cache:
            self._cache[key] = self._seen_later(table)
        return list(self._cache[key])

    def _seen_later(self, table: Table) -> list[Row]:
        before = {
            high: before_window(part, high, seen)
            for high, (part, seen) in _UPPER_BOUNDS.items()
            if {high, part} <= {*table.column_names}
        }
        if not before:
            return []
        chosen = [f"r.{name}" for name in table.keys]
        chosen += [f"{us} AS {high}" for high, us in before.items()]
        return self.ask(
            f"SELECT {', '.join(chosen)} FROM {{rows}} r "
            f"WHERE greatest(0, {', '.join(before.values())}) > 0",
            rows=self._of_cluster(self.rows.after, table),
        )

    def by_window(
        self,
        table: Table,
        seconds: int,
        metrics: Sequence[str] = (),
        only: str = "true",
        keys: Sequence[str] | None = None,
    ) -> list[Row]:
        """Return a table summed per window of a length and keys; ``window_start`` in microseconds.

        Args:
            table: The table.
            seconds: Length of the windows.
            metrics: The metrics; by default all.
            only: The condition on a row ``r``.
            keys: Columns to group by; by default the keys of the table.
        """
        size = seconds * 1_000_000
        moved = self._moved(
            self.of_length(table, size), table, f"r.window_start - r.window_start % {size}", only
        )
        by = table.keys[1:] if keys is None else keys
        return self._summed(moved, table, ("window_start", *by), metrics)

    def by_week(
        self, table: Table, weeks: Sequence[Period], metrics: Sequence[str] = ()
    ) -> list[list[Row]]:
        """Return a table summed in each of some consecutive weeks, like ``sums`` in the period.

        Args:
            table: The table.
            weeks: Whole hours each, oldest first.
            metrics: The metrics; by default all.
        """
        if not weeks:
            return []
        starts = [micros(week.start) for week in weeks]
        cases = " ".join(f"WHEN r.window_start >= {start} THEN {start}" for start in starts[::-1])
        rows = self.within(Period(weeks[0].start, weeks[-1].end)).hours(table)
        moved = self._moved(rows, table, f"CASE {cases} END")
        found: dict[int, list[Row]] = {start: [] for start in starts}
        for row in self._summed(moved, table, ("window_start", *table.keys[1:]), metrics):
            found[row["window_start"]].append(row)
        return list(found.values())

    def _moved(self, rows: Relation, table: Table, start: str, only: str = "true") -> Relation:
        """Return rows of a table in other windows."""
        names = (f"r.{name} AS {name}" for name in table.column_names if name != table.start)
        return select(
            f"SELECT {start} AS window_start, {', '.join(names)} FROM {{rows}} r WHERE {only}",
            rows=rows,
        )

    def whole(self, table: Table) -> Relation:
        """Return rows of hours if the period is whole hours, otherwise of its finest windows.

        Intervals are cut at the period's ends.
        """
        are_stretches = table in (tables.INCIDENTS, tables.READINGS)
        return self._of_cluster(self._stretches if are_stretches else self.rows.whole, table)

    def hours(self, table: Table) -> Relation:
        """Return rows of the table itself, mostly of hours."""
        return self._of_cluster(self.rows.hours, table)

    def finest(self, table: Table) -> Relation:
        """Return rows of the finest windows."""
        return self._of_cluster(self.rows.windows, table)

    def of_length(self, table: Table, size_us: int) -> Relation:
        """Return the rows that make up windows of a length in microseconds."""
        return self.hours(table) if size_us >= HOUR_US else self.finest(table)

    def _summed(
        self, rows: Relation, table: Table, keys: Sequence[str], metrics: Sequence[str]
    ) -> list[Row]:
        where = is_one_of("r.metric", metrics) if metrics else "true"
        order = ", ".join(f"r.{name} NULLS FIRST" for name in keys)
        return self.ask(f"{summed(table, keys, where)} ORDER BY {order}", rows=rows)

    def _of_cluster(self, read: Callable[[Table, Period], Relation], table: Table) -> Relation:
        key = (read.__name__, table.name)
        if key not in self._cache:
            self._cache[key] = select(
                f"SELECT r.* FROM {{rows}} r WHERE {is_same('r.cluster', self.cluster)}",
                rows=read(table, self.period),
            )
        rows: Relation = self._cache[key]
        return rows

    def _stretches(self, table: Table, period: Period) -> Relation:
        """Return intervals of hours, cut at the ends of a period of windows."""
        start, end = micros(period.start), micros(period.end)
        rows = self.rows.hours(table, Period(instant(start // HOUR_US * HOUR_US), period.end))
        if gold_reader.is_hourly(period):
            return rows
        cut = {
            "started_at": f"greatest(r.started_at, {start})",
            "ended_at": f"least(r.ended_at, {end})",
            "lead_us": f"CASE WHEN r.started_at < {start} THEN 0 ELSE r.lead_us END",
            # The incident had not ended before the end less the tail.
            "tail_us": f"greatest(0, least(r.ended_at, {end}) "
            f"- greatest(r.ended_at - r.tail_us, {start}))",
        }
        names = ", ".join(f"{cut.get(name, f'r.{name}')} AS {name}" for name in table.column_names)
        return select(f"SELECT {names} FROM {{rows}} r WHERE r.ended_at > {start}", rows=rows)

    def check_stretches(self) -> None:
        """Check that gold has the intervals of the period; b88afb5 and older did not write them.

        Raises:
            PeriodError: They are missing in an hour with coverage.
        """
        hours = self.period.aligned(3600)
        known = [one for one in self.incomplete if one.table == tables.READINGS.name]
        lost = " OR ".join(f"c.hour BETWEEN {one.start} AND {one.end}" for one in known)
        ((first,),) = ask(
            self.engine,
            "SELECT min(c.hour) AS first FROM {coverage} c LEFT JOIN {readings} r "
            "ON r.cluster = c.cluster AND r.hour = c.hour "
            f"WHERE {is_same('c.cluster', self.cluster)} AND r.cluster IS NULL "
            f"AND NOT ({lost or 'false'})",
            coverage=self.rows.hours(tables.COVERAGE, hours),
            readings=self.rows.hours(tables.READINGS, hours),
        )
        if first is not None:
            since = f"{instant(first):%Y-%m-%d}"
            raise PeriodError(
                f"{self.engine.lake.root}: an older jmxlake rolled up {since}, without incidents. "
                f"Run jmxlake rollup --since {since}, or choose a later period"
            )

    @cached_property
    def events(self) -> Relation | None:
        """Rows of bronze/events in the period; None: they cannot be read."""
        try:
            return self.hours(tables.EVENTS)
        except TableNotFoundError:  # an older lake, or no access; doctor reports other causes
            return None

    def dropped(self) -> dict[tuple[str, str], int] | None:
        """Return the greatest number of series above the limit in a scrape, by source and family.

        Gold does not have it. None: bronze/scrapes cannot be read, or retention removed days.
        """
        try:
            scrapes = self.hours(tables.SCRAPES)
        except TableNotFoundError:  # as for events
            return None
        ((first, rolled_up),) = ask(
            self.engine,
            "SELECT (SELECT min(r.date) FROM {scrapes} r), (SELECT min(r.date) FROM {coverage} r)",
            scrapes=scrapes,
            coverage=self.whole(tables.COVERAGE),
        )
        if first is None or (rolled_up is not None and first > rolled_up):
            return None
        rows = self.ask(
            "SELECT r.source, r.family, CAST(max(ceil(r.dropped_series / r.scrapes)) AS BIGINT) "
            "AS series FROM {rows} r WHERE r.dropped_series > 0 AND r.scrapes > 0 "
            "GROUP BY r.source, r.family",
            rows=scrapes,
        )
        return {(row["source"], row["family"]): row["series"] for row in rows}

    def changes(self) -> tuple[list[Row], dict[str, int]]:
        """Return changes (rows of bronze/events), oldest first, and the number omitted by kind.

        A rolling restart has an election for each partition, and a rebalance moves thousands.
        Rare changes must stay in the list.
        """
        if (rows := self.events) is None:
            return [], {}
        of_partitions = f"CASE WHEN {is_one_of('r.kind', _OF_PARTITIONS)} THEN r.kind END"
        placed = select(
            f"SELECT r.*, row_number() OVER (PARTITION BY {of_partitions} ORDER BY r.at, {CHANGE}) "
            f"AS place, CASE WHEN {of_partitions} IS NULL THEN {_MOST_CHANGES} "
            f"ELSE {_MOST_OF_PARTITIONS} END AS most FROM {{rows}} r",
            rows=rows,
        )
        listed = self.ask(
            f"SELECT {CHANGE} FROM {{rows}} r WHERE r.place <= r.most ORDER BY r.at, {CHANGE}",
            rows=placed,
        )
        omitted = self.ask(
            "SELECT r.kind, count(*) AS number FROM {rows} r WHERE r.place > r.most "
            "GROUP BY r.kind ORDER BY r.kind",
            rows=placed,
        )
        return listed, {row["kind"]: row["number"] for row in omitted}


def by_subject(table: Table, rows: Sequence[Row]) -> Sums:
    """Return rows by subject (its name, or a tuple of names) and metric."""
    by_subject: Sums = defaultdict(lambda: defaultdict(dict))
    subject = itemgetter(*(key for key in table.keys if key not in {"cluster", "metric"}))
    for row in rows:
        by_subject[subject(row)][row["metric"]] = row
    return by_subject


def attribute(subject: Subject, metric: str) -> int | None:
    """Return a whole number that describes a subject; None: not reported."""
    value = subject.attributes.get(metric)
    return None if value is None else int(value)
