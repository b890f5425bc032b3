"""Attainment per objective and subject over a period, with the interval that is honest.

Expected time is what the calendar and gold/subjects say, not what reported. Unknown time is
neither good nor bad: the upper bound takes it as good, the lower as bad. An objective is met only
if even the lower bound meets it, and missed only if even the upper one does not.

A figure that was published and has changed since (late data) is stated again under the next
number; the old statement stays.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import grains, tables
from lakehouse import lake as lakes
from lakehouse.existence import Subject, expected_us, subject, with_ends
from lakehouse.periods import micros
from lakehouse.slo import Objective

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.lake import Lake
    from lakehouse.periods import Period

VERDICTS: Final = ("missed", "uncertain", "no_data", "met")
"""Worst first."""


class Times(NamedTuple):
    """Good and bad time of one subject, microseconds."""

    good_us: int = 0
    bad_us: int = 0
    bad_low_us: int = 0
    bad_high_us: int = 0


@dataclass(frozen=True, slots=True)
class Statement:
    """What is said of one subject and one objective over a period; times in microseconds."""

    objective: Objective
    subject: Subject
    expected_us: int
    times: Times

    @property
    def unknown_us(self) -> int:
        """Time in which the subject existed and nobody saw it wholly."""
        return max(0, self.expected_us - self.times.good_us - self.times.bad_us)

    @property
    def whole_us(self) -> int:
        """Expected time; never less than what was seen."""
        return max(self.expected_us, self.times.good_us + self.times.bad_us)

    @property
    def attainment(self) -> float | None:
        """Share of the time seen that was good."""
        seen = self.times.good_us + self.times.bad_us
        return self.times.good_us / seen if seen else None

    @property
    def attainment_low(self) -> float | None:
        """With unknown time bad, and bad time at its most."""
        bad = self.times.bad_high_us + self.unknown_us
        return self._share(self.whole_us - bad)

    @property
    def attainment_high(self) -> float | None:
        """With unknown time good, and bad time at its least."""
        return self._share(self.whole_us - self.times.bad_low_us)

    @property
    def budget_us(self) -> int:
        """Time that may be bad."""
        return round((1 - self.objective.target) * self.whole_us)

    @property
    def verdict(self) -> str:
        """``met``, ``missed``, ``uncertain`` or ``no_data``."""
        low, high = self.attainment_low, self.attainment_high
        if self.attainment is None or low is None or high is None:
            return "no_data"
        if low >= self.objective.target:
            return "met"
        return "missed" if high < self.objective.target else "uncertain"

    def _share(self, good_us: int) -> float | None:
        if self.attainment is None:
            return None
        return min(1.0, max(0.0, good_us / self.whole_us))

    def figures(self) -> dict[str, Any]:
        """The figures under their column names."""
        return {
            "expected_us": self.whole_us,
            **self.times._asdict(),
            "unknown_us": self.unknown_us,
            "attainment": self.attainment,
            "attainment_low": self.attainment_low,
            "attainment_high": self.attainment_high,
            "budget_us": self.budget_us,
            "budget_left_us": self.budget_us - self.times.bad_us,
            "verdict": self.verdict,
        }


def statements(
    objectives: Sequence[Objective],
    subjects: Iterable[Subject],
    times: dict[tuple[str, str, tuple[str | None, ...]], Times],
    period: Period,
    now_us: int,
) -> list[Statement]:
    """Statements on every subject that was to be seen in the period.

    Args:
        objectives: What is asked for.
        subjects: All of gold/subjects.
        times: Sums of gold/sli by cluster, objective and subject key.
        period: The period, of whole windows.
        now_us: Nothing is expected later than this.
    """
    by_cluster: defaultdict[str, list[Subject]] = defaultdict(list)
    for one in subjects:
        by_cluster[one.cluster].append(one)
    found = []
    for known in by_cluster.values():
        for one, end_us in with_ends(known):
            expected = expected_us(one, end_us, period, now_us)
            for objective in objectives:
                seen = times.get((one.cluster, objective.name, one.key))
                if one.kind == objective.level and _concerns(objective, one, seen, expected):
                    found.append(Statement(objective, one, expected, seen or Times()))
    return found


def _concerns(objective: Objective, one: Subject, seen: Times | None, expected: int) -> bool:
    if seen is not None:
        return True
    # A client has beans only of those kinds of request that it makes or has a quota for.
    having = all(one.attributes.get(key) == value for key, value in objective.where.items())
    return expected > 0 and having and objective.level != "client"


def read(
    spark: SparkSession,
    lake: Lake,
    objectives: Sequence[Objective],
    period: Period,
    now_us: int,
    known: Sequence[Subject] | None = None,
) -> list[Statement]:
    """Statements from gold over a period of whole windows.

    Args:
        spark: A session with Delta, in UTC.
        lake: Where the tables are.
        objectives: What is asked for.
        period: What the statements are about.
        now_us: Nothing is expected later than this.
        known: All subjects of the clusters that are asked for; by default of every cluster.
    """
    known = subjects(spark, lake) if known is None else known
    if not known:
        return []
    clusters = sorted({one.cluster for one in known})
    sums = (
        in_period(lakes.read(spark, lake, tables.SLI), period)
        .where(F.col("cluster").isin(*clusters))
        .groupBy("cluster", "objective", "topic", "user", "client_id", "group", "source")
        .agg(*(F.sum(name).alias(name) for name in Times._fields))
    )
    times = {
        (row["cluster"], row["objective"], tuple(row)[2:7]): Times(*tuple(row)[7:])
        for row in sums.collect()
    }
    return statements(objectives, known, times, period, now_us)


def subjects(spark: SparkSession, lake: Lake) -> list[Subject]:
    """All of gold/subjects."""
    instants = ("first_seen", "last_seen", "seen_whole_until", "attributes_at")
    rows = lakes.read(spark, lake, tables.SUBJECTS)
    rows = rows.withColumns({name: F.unix_micros(name) for name in instants})
    return [subject(row.asDict()) for row in rows.collect()]


def in_period(rows: DataFrame, period: Period) -> DataFrame:
    """Rows of a table of grains whose window starts in the period."""
    return rows.where(
        (F.col("window") >= F.lit(period.start)) & (F.col("window") < F.lit(period.end))
    )


def publish(
    spark: SparkSession, lake: Lake, found: Sequence[Statement], period: Period
) -> list[Statement]:
    """Append to gold/sla what is new or has changed; returns just that."""
    last = _published(spark, lake, period)
    fresh, rows = [], []
    for one in found:
        figures = one.figures()
        key = (one.subject.cluster, one.objective.name, one.subject.key)
        number, before = last.get(key, (0, None))
        if before == figures:
            continue
        fresh.append(one)
        rows.append(_row(one, figures, period, number + 1))
    if rows:
        schema = ", ".join(f"`{column.name}` {column.type}" for column in tables.SLA.columns)
        ordered = [tuple(row[name] for name in tables.SLA.column_names) for row in rows]
        lakes.append(lake, tables.SLA, spark.createDataFrame(ordered, schema))
    return fresh


def _published(spark: SparkSession, lake: Lake, period: Period) -> dict[Any, tuple[int, Any]]:
    rows = lakes.read(spark, lake, tables.SLA).where(
        (F.col("grain") == period.grain)
        & (F.col("window") == F.lit(period.start))
        & (F.col("window_end") == F.lit(period.end))
    )
    last: dict[Any, tuple[int, Any]] = {}
    for row in rows.orderBy("statement").collect():
        figures = row.asDict()
        key = (row["topic"], row["user"], row["client_id"], row["group"], row["source"])
        wanted = tuple(tables.SLA.column_names)
        names = wanted[wanted.index("expected_us") :]
        last[(row["cluster"], row["objective"], key)] = (
            row["statement"],
            {name: figures[name] for name in names},
        )
    return last


def _row(one: Statement, figures: dict[str, Any], period: Period, number: int) -> dict[str, Any]:
    year = period.start.isocalendar().year if period.grain == grains.WEEK else period.start.year
    return {
        "grain": period.grain,
        "period": str(year),
        "cluster": one.subject.cluster,
        "window": period.start,
        "window_end": period.end,
        "statement": number,
        "stated_at": dt.datetime.now(dt.UTC),
        "objective": one.objective.name,
        "topic": one.subject.topic,
        "user": one.subject.user,
        "client_id": one.subject.client_id,
        "group": one.subject.group,
        "source": one.subject.source,
        "target": one.objective.target,
        **figures,
    }


def now_us() -> int:
    """This instant, microseconds."""
    return micros(dt.datetime.now(dt.UTC))
