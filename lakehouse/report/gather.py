"""What a report needs from gold, as plain rows; and usable rows of bronze."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import bronze_rows, tables
from lakehouse import lake as lakes
from lakehouse.errors import TableNotFoundError
from lakehouse.gold_rows import GoldRows, summed
from lakehouse.kernel.reasons import BEYOND, IN_THE_FUTURE
from lakehouse.lake import Lake
from lakehouse.periods import HOUR_US, Period, micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from lakehouse.tables import Table

Row = dict[str, Any]

COPY_LAG: Final = "kafka.topic.remote_copy_lag.bytes"
DELETE_LAG: Final = "kafka.topic.remote_delete_lag.bytes"
HEADROOM: Final = "kafka.group.retention_headroom.low"
_MOST_POINTS: Final = 500
_MOST_EVENTS: Final = 10_000
_MOST_ELECTIONS: Final = 1_000
_ELECTION: Final = "leader_change"
_DRAWN: Final = (300, 3600, 86_400)
"""What a point of a chart may stand for beside a finest window, seconds."""

_UNDATED: Final = (IN_THE_FUTURE, BEYOND)
"""Reasons of rows that a report of any period tells: else none would."""


@dataclass(frozen=True)
class Gold:
    """One cluster's rows of gold in a period.

    Attributes:
        period: Whole windows.
        window_seconds: Length of the finest windows.
        committed: When the newest commit of bronze was made that is rolled up, as far as known.
    """

    spark: SparkSession
    lake: Lake
    cluster: str
    period: Period
    window_seconds: int
    committed: dt.datetime | None = None
    _told: dict[tuple[str, ...], list[Row]] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def rows(self) -> GoldRows:
        """Rows of every cluster and period."""
        return GoldRows(self.spark, self.lake, self.window_seconds * 1_000_000)

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
            self._told[asked] = _rows(summed(rows, table, keys))
        return list(self._told[asked])

    def by_window(
        self, table: Table, keys: Sequence[str], seconds: int, metrics: Sequence[str] = ()
    ) -> list[Row]:
        """A metric table summed per window of a length and keys; ``window`` in microseconds."""
        of = self.rows.hours if seconds * 1_000_000 >= HOUR_US else self.rows.windows
        rows = _of(self._mine(of(table, self.period)), metrics)
        at = f"unix_micros(`window`) - pmod(unix_micros(`window`), {seconds * 1_000_000}L)"
        return _rows(summed(rows.withColumn("window", F.expr(at)), table, ("window", *keys)))

    def whole(self, table: Table) -> DataFrame:
        """Rows of the hours that the period is made of, else of its finest windows."""
        return self._mine(self.rows.whole(table, self.period))

    def finest(self, table: Table) -> DataFrame:
        """Rows of the finest windows."""
        return self._mine(self.rows.windows(table, self.period))

    def after(self, table: Table) -> DataFrame:
        """Rows that begin as the period ends."""
        return self._mine(self.rows.after(table, self.period))

    def _mine(self, rows: DataFrame) -> DataFrame:
        return rows.where(F.col("cluster") == self.cluster)

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
        last = _of(self.finest(tables.GROUPS), (HEADROOM,)).groupBy("group", "topic")
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
        within = self._mine(self.rows.hours(tables.REJECTED, self.period)).where(~undated)
        rows = every.select("rows").unionByName(within.select("rows"))
        return int(rows.agg(F.coalesce(F.sum("rows"), F.lit(0))).collect()[0][0])

    def bronze(self, table: Table, within: Period | None = None) -> DataFrame:
        """Usable rows of a table of bronze that begin in the period."""
        rows = self._mine(lakes.read(self.spark, self.lake, table))
        period = within or self.period
        return bronze_rows.usable(rows, table, period, self.rows.window_us, self.committed)


def _of(rows: DataFrame, metrics: Sequence[str]) -> DataFrame:
    return rows.where(F.col("metric").isin(*metrics)) if metrics else rows


def _rows(rows: DataFrame) -> list[Row]:
    return [row.asDict(recursive=True) for row in rows.collect()]
