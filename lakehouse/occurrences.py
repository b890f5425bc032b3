"""Events, counted: of counters in gold/topics and gold/brokers.

A count has no share of time. To be said in the same words as times, so much of the time in which
events were counted is good as events were. What that assumes: unseen time had events at the same
rate as the time that was seen.

Time counts as seen by how much was read in a window, against the window in which most was: a
topic's counters are on several brokers, and what one of them counted is a part only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import tables
from lakehouse.asked import SUBJECT, Living
from lakehouse.gold_rows import GoldRows
from lakehouse.left_out import rest
from lakehouse.maintenance import Maintenance
from lakehouse.periods import Period
from lakehouse.tallied import Counts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakehouse.asked import Named
    from lakehouse.slices import Span
    from lakehouse.slo_objective import Events, Objective

_TABLES: Final = {"topic": tables.TOPICS, "source": tables.BROKERS}


@dataclass(frozen=True, slots=True)
class Counting:
    """Where events are counted, and of whom."""

    gold: GoldRows
    living: Sequence[Living]
    left_out: Sequence[Maintenance] = ()

    def counts(self, objective: Objective, events: Events, span: Span) -> dict[Named, Counts]:
        """Events in a span of every subject that gold tells of."""
        rows = self._windows(objective, events, span)
        rows = rows.groupBy("cluster", "subject").agg(
            *(F.sum(name).alias(name) for name in ("counted", "total", "observed")),
            F.max("observed").alias("best"),
        )
        found: dict[Named, Counts] = {}
        for row in rows.collect():
            key = tuple(row["subject"] if name == objective.level else None for name in SUBJECT)
            seen = row["observed"] * self.gold.window_us // row["best"] if row["best"] else 0
            told = Counts(row["counted"], row["total"], seen, events.are_good)
            found[row["cluster"], objective.name, key] = told
        return found

    def by_slot(self, objective: Objective, events: Events, span: Span, slot: str) -> DataFrame:
        """Good and bad time of each slice, as its events were; where there was none, it is good.

        Args:
            objective: Of what.
            events: What it counts.
            span: Microseconds.
            slot: SQL that gives the slice of a window.

        Returns:
            cluster, objective, the columns of a subject, at, good, bad, low, high.
        """
        rows = self._windows(objective, events, span)
        best = rows.groupBy("cluster", "subject").agg(F.max("observed").alias("best"))
        slots = rows.groupBy("cluster", "subject", F.expr(slot).alias("at")).agg(
            *(F.sum(name).alias(name) for name in ("counted", "total", "observed"))
        )
        of_it = "least(counted, total)" if events.are_good else "total - least(counted, total)"
        seen = f"CAST(floor(observed * {self.gold.window_us}D / nullif(best, 0L)) AS BIGINT)"
        good = f"CAST(round(seen * ({of_it}) / nullif(total, 0D)) AS BIGINT)"
        times = slots.join(best, ["cluster", "subject"]).where("best > 0")
        times = times.withColumn("seen", F.expr(seen))
        times = times.withColumn("good", F.expr(f"IF(total > 0, {good}, seen)"))
        times = times.withColumn("bad", F.expr("seen - good"))
        subject = (
            F.col("subject").alias(name)
            if name == objective.level
            else F.lit(None).cast("string").alias(name)
            for name in SUBJECT
        )
        bounds = (F.col("bad").alias(name) for name in ("low", "high"))
        name = F.lit(objective.name).alias("objective")
        return times.select("cluster", name, *subject, "at", "good", "bad", *bounds)

    def _windows(self, objective: Objective, events: Events, span: Span) -> DataFrame:
        """cluster, subject, window; what was counted in it, and how long that was observed."""
        known = [each.subject for each in self.living]
        rows = self.gold.windows(_TABLES[objective.level], Period.of(span)).where(
            F.col("metric").isin(events.counted, events.total)
            & F.col("cluster").isin(*sorted({one.cluster for one in known}))
        )
        rows = rest(rows, self.left_out, known, self.gold.window_us, (objective.level,))

        def of(metric: str, column: str) -> Column:
            summed = F.sum(F.when(F.col("metric") == metric, F.col(column)))
            return F.coalesce(summed, F.lit(0).cast("double"))

        both = F.least(*(of(one, "observed_us") for one in (events.counted, events.total)))
        return rows.groupBy("cluster", F.col(objective.level).alias("subject"), "window").agg(
            of(events.counted, "increase").alias("counted"),
            of(events.total, "increase").alias("total"),
            both.cast("bigint").alias("observed"),
        )
