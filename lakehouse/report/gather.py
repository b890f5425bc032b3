"""What a report needs from gold, as plain rows; and the agents' events."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from lakehouse import tables
from lakehouse.errors import PeriodError, TableNotFoundError
from lakehouse.gold_rows import GoldRows, Row, is_hourly, is_one_of, is_same, summed, text
from lakehouse.kernel.reasons import BEYOND, IN_THE_FUTURE
from lakehouse.periods import HOUR_US, Period, instant, micros
from lakehouse.rollup.engine import Engine, Relation, ask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse.tables import Table


COPY_LAG: Final = "kafka.topic.remote_copy_lag.bytes"
DELETE_LAG: Final = "kafka.topic.remote_delete_lag.bytes"
HEADROOM: Final = "kafka.group.retention_headroom.low"
_MOST_POINTS: Final = 500
_MOST_EVENTS: Final = 10_000
_MOST_ELECTIONS: Final = 1_000
_ELECTION: Final = "leader_change"
EVENT: Final = ", ".join(
    f"r.{name}"
    for name in tables.EVENTS.column_names
    if name not in {"date", "cluster", "agent", "batch"}
)
"""The columns of an event ``r`` that are shown."""

_DRAWN: Final = (300, 3600, 86_400)
"""What a point of a chart may stand for beside a finest window, seconds."""

_UNDATED: Final = (IN_THE_FUTURE, BEYOND)
"""Reasons of rows that a report of any period tells: else none would."""


@dataclass(frozen=True)
class Gold:
    """One cluster's rows of gold in a period.

    Attributes:
        engine: Reads gold.
        period: Whole windows.
        window_seconds: Length of the finest windows.
    """

    engine: Engine
    cluster: str
    period: Period
    window_seconds: int
    _kept: dict[tuple[str, ...], Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def rows(self) -> GoldRows:
        """Rows of every cluster and period."""
        return GoldRows(self.engine, self.window_seconds * 1_000_000)

    def within(self, period: Period) -> Gold:
        """The same cluster's rows in another period."""
        return Gold(self.engine, self.cluster, period, self.window_seconds)

    def ask(self, sql: str, **relations: Relation) -> list[Row]:
        """The rows of a SELECT over relations, which it names in braces."""
        return self.rows.ask(sql, **relations)

    def sums(self, table: Table, metrics: Sequence[str] = ()) -> list[Row]:
        """A table summed over the period, in the order of its keys; asked once.

        Args:
            table: The table.
            metrics: What is wanted, else every metric.
        """
        key = ("sums", table.name, *metrics)
        if key not in self._kept:
            self._kept[key] = self._summed(self.whole(table), table, table.keys[1:], metrics)
        return list(self._kept[key])

    def by_window(self, table: Table, seconds: int, metrics: Sequence[str] = ()) -> list[Row]:
        """A table summed per window of a length and its keys; ``window`` in microseconds."""
        size = seconds * 1_000_000
        names = (f"r.{name} AS {name}" for name in table.column_names if name != "window")
        rows = self.engine.query(
            f"SELECT r.window - r.window % {size} AS window, {', '.join(names)} FROM {{rows}} r",
            rows=self.hours(table) if size >= HOUR_US else self.finest(table),
        )
        return self._summed(rows, table, ("window", *table.keys[1:]), metrics)

    def whole(self, table: Table) -> Relation:
        """Rows of the hours that the period is made of, else of its finest windows.

        Of stretches what of them lies in the period.
        """
        if table in (tables.INCIDENTS, tables.READINGS):
            return self._mine(self._stretches, table)
        return self._mine(self.rows.whole, table)

    def hours(self, table: Table) -> Relation:
        """Rows of the table itself, which mostly are of hours."""
        return self._mine(self.rows.hours, table)

    def finest(self, table: Table) -> Relation:
        """Rows of the finest windows."""
        return self._mine(self.rows.windows, table)

    def after(self, table: Table) -> Relation:
        """Rows that begin as the period ends."""
        return self._mine(self.rows.after, table)

    def _summed(
        self, rows: Relation, table: Table, keys: Sequence[str], metrics: Sequence[str]
    ) -> list[Row]:
        where = is_one_of("r.metric", metrics) if metrics else "true"
        order = ", ".join(f"r.{name} NULLS FIRST" for name in keys)
        return self.ask(f"{summed(table, keys, where)} ORDER BY {order}", rows=rows)

    def _mine(self, of: Callable[[Table, Period], Relation], table: Table) -> Relation:
        key = (of.__name__, table.name)
        if key not in self._kept:
            self._kept[key] = self.engine.query(
                f"SELECT r.* FROM {{rows}} r WHERE {is_same('r.cluster', self.cluster)}",
                rows=of(table, self.period),
            )
        return self._kept[key]

    def _stretches(self, table: Table, period: Period) -> Relation:
        """Stretches of hours, cut off at the ends of a period that is made of windows."""
        start, end = micros(period.start), micros(period.end)
        rows = self.rows.hours(table, Period(instant(start // HOUR_US * HOUR_US), period.end))
        if is_hourly(period):
            return rows
        cut = {
            "start": f"greatest(r.start, {start})",
            "end": f"least(r.end, {end})",
            "lead_us": f"CASE WHEN r.start < {start} THEN 0 ELSE r.lead_us END",
            # It was not over before the end less the tail.
            "tail_us": f"greatest(0, least(r.end, {end}) - greatest(r.end - r.tail_us, {start}))",
        }
        names = ", ".join(f"{cut.get(name, f'r.{name}')} AS {name}" for name in table.column_names)
        return self.engine.query(f"SELECT {names} FROM {{rows}} r WHERE r.end > {start}", rows=rows)

    def check_stretches(self) -> None:
        """See that gold has the stretches of the period: an older jmxlake did not write them.

        Raises:
            PeriodError: It lacks those of an hour in which anything was to be read.
        """
        missing = (
            "SELECT min(c.window) AS first FROM {coverage} c LEFT JOIN {readings} r "
            "ON r.cluster = c.cluster AND r.window = c.window "
            f"WHERE {is_same('c.cluster', self.cluster)} AND r.cluster IS NULL"
        )
        begin = instant(micros(self.period.start) // HOUR_US * HOUR_US)
        hours = Period(begin, self.period.end)
        both = {"coverage": tables.COVERAGE, "readings": tables.READINGS}
        relations = {name: self.rows.hours(one, hours) for name, one in both.items()}
        ((first,),) = ask(self.engine, missing, **relations)
        if first is not None:
            since = f"{instant(first):%Y-%m-%d}"
            raise PeriodError(
                f"{self.engine.lake.root}: an older jmxlake rolled {since} up, without incidents; "
                f"run jmxlake rollup --since {since}, or choose a later period"
            )

    @property
    def chart_seconds(self) -> int:
        """The shortest of a chart's windows that make no more points than it can show.

        A period of months in another time zone than UTC is not made of days, and gets more.
        """
        ends = [micros(end) for end in (self.period.start, self.period.end)]
        # Windows that reach over an end of the period would be drawn as not known there.
        fitting = [
            seconds
            for seconds in (self.window_seconds, *_DRAWN)
            if seconds % self.window_seconds == 0
            and not any(end % (seconds * 1_000_000) for end in ends)
        ]
        length = self.period.microseconds / 1e6
        return next((one for one in fitting if length / one <= _MOST_POINTS), fitting[-1])

    def headroom(self) -> list[Row]:
        """Per group and topic for how long, at least, retention left what it had not read.

        ``last`` is that of the last window that tells, in seconds, None where there was no danger;
        ``window`` its start in microseconds. Who is not among them: it is not known.
        """
        return self.ask(
            "SELECT r.group, r.topic, r.min AS last, r.window FROM (SELECT r.*, row_number() OVER "
            "(PARTITION BY r.group, r.topic ORDER BY r.window DESC) AS place FROM {rows} r "
            f"WHERE r.metric = {text(HEADROOM)}) r WHERE r.place = 1",
            rows=self.finest(tables.GROUPS),
        )

    def events(self) -> tuple[list[Row], dict[str, int]]:
        """What the agents noticed, oldest first; and how many of which kind are left out.

        A rolling restart has an election for each partition: they must not crowd out what is rare.
        """
        try:
            rows = self.hours(tables.EVENTS)
        except TableNotFoundError:
            return [], {}
        is_election = f"r.kind = {text(_ELECTION)}"
        placed = self.engine.query(
            f"SELECT r.*, row_number() OVER (PARTITION BY {is_election} ORDER BY r.at, {EVENT}) "
            f"AS place, CASE WHEN {is_election} THEN {_MOST_ELECTIONS} ELSE {_MOST_EVENTS} END "
            "AS most FROM {rows} r",
            rows=rows,
        )
        told = self.ask(
            f"SELECT {EVENT} FROM {{rows}} r WHERE r.place <= r.most ORDER BY r.at, {EVENT}",
            rows=placed,
        )
        left = self.ask(
            "SELECT r.kind, count(*) AS number FROM {rows} r WHERE r.place > r.most "
            "GROUP BY r.kind ORDER BY r.kind",
            rows=placed,
        )
        return told, {row["kind"]: row["number"] for row in left}

    def rejected(self) -> int:
        """How many rows of bronze could not be used.

        Those count too that lie in the future, or in no year of ours: else no report would tell.
        """
        start, end = micros(self.period.start), micros(self.period.end)
        (found,) = self.ask(
            "SELECT coalesce(sum(r.rows), 0) AS number FROM {rows} r "
            f"WHERE {is_same('r.cluster', self.cluster)} AND ({is_one_of('r.reason', _UNDATED)} "
            f"OR (r.window >= {start} AND r.window < {end}))",
            rows=self.engine.rows(tables.REJECTED),
        )
        return int(found["number"])
