"""What a report needs from gold, as plain rows; and usable rows of bronze."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import grains, judgement, sla, tables
from lakehouse import lake as lakes
from lakehouse.aside import BEYOND
from lakehouse.changes import is_misdated
from lakehouse.errors import TableNotFoundError
from lakehouse.lake import Lake
from lakehouse.periods import Period, micros
from lakehouse.pieces import quoted
from lakehouse.sweep import EXACT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from lakehouse.tables import Table

Row = dict[str, Any]

COPY_LAG: Final = "kafka.topic.remote_copy_lag.bytes"
DELETE_LAG: Final = "kafka.topic.remote_delete_lag.bytes"
HEADROOM: Final = "kafka.group.retention_headroom.low"
_LARGEST: Final = ("max", "max_concurrent", "max_total", "series", "interval_us", "seconds_max")
_MOST_POINTS: Final = 500
_MOST_EVENTS: Final = 10_000
_MOST_ELECTIONS: Final = 1_000
_ELECTION: Final = "leader_change"


@dataclass(frozen=True, slots=True)
class Gold:
    """One cluster's rows of gold in a period.

    Attributes:
        period: Whole windows.
        window_seconds: Finest grain.
        committed: When the newest commit of bronze was made that is rolled up, as far as known.
    """

    spark: SparkSession
    lake: Lake
    cluster: str
    period: Period
    window_seconds: int
    committed: dt.datetime | None = None
    _told: dict[tuple[str, ...], list[Row]] = field(default_factory=dict, compare=False, repr=False)

    def sums(self, table: Table, keys: Sequence[str], metrics: Sequence[str] = ()) -> list[Row]:
        """A metric table summed over the period, per keys; asked of Spark once.

        Args:
            table: The table.
            keys: What tells its subjects apart.
            metrics: What is wanted, else every metric.
        """
        asked = (table.name, *keys, *metrics)
        if asked not in self._told:
            rows = _of(self.whole(table), metrics)
            self._told[asked] = _rows(_summed(rows, table, keys))
        return list(self._told[asked])

    def by_window(
        self, table: Table, keys: Sequence[str], grain: str, metrics: Sequence[str] = ()
    ) -> list[Row]:
        """A metric table summed per window of a grain and keys; ``window`` in microseconds."""
        rows = _of(self.at(table, grain), metrics)
        rows = rows.withColumn("window", F.unix_micros("window"))
        return _rows(_summed(rows, table, ("window", *keys)))

    def whole(self, table: Table) -> DataFrame:
        """Rows of a table at the coarsest grain of whose windows the period is made."""
        return self.at(table, self.whole_grain)

    def finest(self, table: Table) -> DataFrame:
        """Rows of a table at the finest grain."""
        return self.at(table, grains.name(self.window_seconds))

    def at(self, table: Table, grain: str) -> DataFrame:
        """Rows of a table at a grain."""
        rows = lakes.read(self.spark, self.lake, table)
        rows = sla.in_period(rows, self.period)
        return rows.where((F.col("cluster") == self.cluster) & (F.col("grain") == grain))

    @property
    def whole_grain(self) -> str:
        """The coarsest grain of whose windows the period is made: every grain has the same sums."""
        ends = (self.period.start, self.period.end)
        if all(end.time() == dt.time() for end in ends):
            return grains.DAY if any(end.weekday() for end in ends) else grains.WEEK
        if any(end.minute or end.second or end.microsecond for end in ends):
            return grains.name(self.window_seconds)
        return grains.HOUR

    @property
    def chart_grain(self) -> str:
        """The finest grain of whole windows that gives no more points than a chart can show.

        A period of months in another time zone than UTC is not made of days, and gets more.
        """
        fitting = [
            name
            for name in grains.within_hour(self.window_seconds)
            if all(
                micros(end) % (grains.parse_window(name) * 1_000_000) == 0
                for end in (self.period.start, self.period.end)
            )
        ]
        for name in fitting:
            if self.period.microseconds / 1e6 / grains.parse_window(name) <= _MOST_POINTS:
                return name
        # Windows that reach over an end of the period would be drawn as not known there.
        whole_days = all(end.time() == dt.time() for end in (self.period.start, self.period.end))
        return grains.DAY if whole_days else fitting[-1]

    def headroom(self) -> list[Row]:
        """Per group and topic for how long, at least, retention left what it had not read.

        ``last`` is that of the last window that tells, in seconds, None where there was no danger;
        ``window`` its start in microseconds. Who is not among them: it is not known.
        """
        rows = self.at(tables.GROUPS, grains.name(self.window_seconds))
        last = _of(rows, (HEADROOM,)).groupBy("group", "topic")
        return _rows(
            last.agg(
                F.max_by("min", "window").alias("last"),
                F.unix_micros(F.max("window")).alias("window"),
            )
        )

    def events(self) -> tuple[list[Row], dict[str, int]]:
        """What the agents noticed, oldest first; and how many of which kind are left out.

        A rolling restart has an election for each partition: they must not crowd out what is rare.
        """
        try:
            rows = lakes.read(self.spark, self.lake, tables.EVENTS)
        except TableNotFoundError:
            return [], {}
        first, last = F.lit(self.period.start), F.lit(self.period.end)
        rows = rows.where(
            (F.col("cluster") == self.cluster) & (F.col("at") >= first) & (F.col("at") < last)
        )
        rows = rows.drop("date", "cluster", "agent", "batch")
        is_election = F.col("kind") == _ELECTION
        elections = rows.where(is_election).orderBy("at").limit(_MOST_ELECTIONS)
        kept = rows.where(~is_election).orderBy("at").limit(_MOST_EVENTS).unionByName(elections)
        told = _rows(kept.orderBy("at").withColumn("at", F.unix_micros("at")))
        listed = Counter(row["kind"] for row in told)
        every = {row["kind"]: row["count"] for row in rows.groupBy("kind").count().collect()}
        omitted = {kind: count - listed[kind] for kind, count in sorted(every.items())}
        return told, {kind: count for kind, count in omitted.items() if count > 0}

    def rejected(self) -> int:
        """How many rows of bronze could not be used.

        Those count too that lie in the future, or in no year of ours: else no report would tell.
        """
        undated = F.col("reason").isin(*_UNDATED)
        every = lakes.read(self.spark, self.lake, tables.REJECTED)
        every = every.where((F.col("cluster") == self.cluster) & undated)
        within = self.finest(tables.REJECTED).where(~undated)
        rows = every.select("rows").unionByName(within.select("rows"))
        return int(rows.agg(F.coalesce(F.sum("rows"), F.lit(0))).collect()[0][0])

    def bronze(self, table: Table, within: Period | None = None) -> DataFrame:
        """Usable rows of a table of bronze that begin in the period, with ``window``."""
        window = grains.start(F.col("start"), grains.name(self.window_seconds))
        rows = lakes.read(self.spark, self.lake, table).withColumn("window", window)
        period = within or self.period
        first, last = period.start, period.end
        committed = min(last, self.committed or last)
        faults = [judgement.misplaced(committed, self.window_seconds)]
        if table is tables.RUNS:
            faults += [judgement.of_value((), ()), judgement.of_fold()]
        return rows.where(
            F.col("date").between(F.lit(first.date()), F.lit(last.date()))
            & (F.col("cluster") == self.cluster)
            & (F.col("start") >= F.lit(first))
            & (F.col("start") < F.lit(last))
            & ~is_misdated()
            & F.coalesce(*faults).isNull()
        )


_UNDATED: Final = (judgement.IN_THE_FUTURE, BEYOND)


def _of(rows: DataFrame, metrics: Sequence[str]) -> DataFrame:
    return rows.where(F.col("metric").isin(*metrics)) if metrics else rows


def _summed(rows: DataFrame, table: Table, keys: Sequence[str]) -> DataFrame:
    names = {column.name: column.type for column in table.columns}
    chosen = [name for name in names if name in _LARGEST or _is_sum(name, names[name])]
    combined = []
    for name in chosen:
        if name in _LARGEST:
            combined.append(F.max(name).alias(name))
        elif names[name] == "double":
            combined.append(F.sum(F.col(name).cast(EXACT)).cast("double").alias(name))
        else:
            combined.append(F.sum(name).alias(name))
    if "known_wrong" in names:
        combined.append(F.max("known_wrong").alias("known_wrong"))
    return rows.groupBy(*quoted(keys)).agg(*combined)


def _is_sum(name: str, type_: str) -> bool:
    return (
        name.endswith("_us")
        or name == "scrapes"
        or (type_ == "double" and name not in ("mean", "min", "target"))
    )


def _rows(rows: DataFrame) -> list[Row]:
    return [row.asDict(recursive=True) for row in rows.collect()]
