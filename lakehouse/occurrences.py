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

from lakehouse import tables
from lakehouse.existence import SUBJECT
from lakehouse.gold_rows import EXACT, GoldRows, is_one_of, text
from lakehouse.maintenance import LeftOut, Maintenance
from lakehouse.periods import Period
from lakehouse.statement import Counts, Living

if TYPE_CHECKING:
    from lakehouse.rollup.engine import Relation
    from lakehouse.slo_objective import Events, Objective
    from lakehouse.spans import Span
    from lakehouse.statement import Named

_TABLES: Final = {"topic": tables.TOPICS, "source": tables.BROKERS}
_SUMS: Final = (
    *(f"CAST(sum(CAST(r.{name} AS {EXACT})) AS DOUBLE) AS {name}" for name in ("counted", "total")),
    "sum(r.observed) AS observed",
)


@dataclass(frozen=True, slots=True)
class Counting:
    """Where events are counted, and of whom."""

    gold: GoldRows
    living: Sequence[Living]
    left_out: Sequence[Maintenance] = ()

    def counts(self, objective: Objective, events: Events, span: Span) -> dict[Named, Counts]:
        """Events in a span of every subject that gold tells of."""
        rows = self.gold.ask(
            f"SELECT r.cluster, r.subject, {', '.join(_SUMS)}, max(r.observed) AS best "
            "FROM {rows} r GROUP BY r.cluster, r.subject",
            rows=self._windows(objective, events, span),
        )
        found: dict[Named, Counts] = {}
        for row in rows:
            key = tuple(row["subject"] if name == objective.level else None for name in SUBJECT)
            seen = row["observed"] * self.gold.window_us // row["best"] if row["best"] else 0
            counted = Counts(row["counted"], row["total"], seen, events.are_good)
            found[row["cluster"], objective.name, key] = counted
        return found

    def by_slot(self, objective: Objective, events: Events, span: Span, slot: str) -> Relation:
        """Good and bad time of each slice, as its events were; where there was none, it is good.

        Args:
            objective: Of what.
            events: What it counts.
            span: Microseconds.
            slot: SQL that gives the slice of a row's window.

        Returns:
            cluster, objective, the columns of a subject, at, good, bad, low, high.
        """
        subject = ", ".join(
            f"s.subject AS {name}" if name == objective.level else f"CAST(NULL AS STRING) AS {name}"
            for name in SUBJECT
        )
        of_it = "least(s.counted, s.total)"
        good = of_it if events.are_good else f"s.total - {of_it}"
        seen = f"floor(s.observed * CAST({self.gold.window_us} AS DOUBLE) / s.best)"
        return self.gold.engine.query(
            f"""
            WITH windows AS (SELECT r.*, {slot} AS at FROM {{rows}} r),
            best AS (
                SELECT r.cluster, r.subject, max(r.observed) AS best
                FROM windows r GROUP BY r.cluster, r.subject),
            slots AS (
                SELECT r.cluster, r.subject, r.at, {", ".join(_SUMS)}
                FROM windows r GROUP BY r.cluster, r.subject, r.at),
            seen AS (
                SELECT s.*, CAST({seen} AS BIGINT) AS seen FROM (
                    SELECT r.*, b.best FROM slots r JOIN best b
                    ON b.cluster = r.cluster AND b.subject IS NOT DISTINCT FROM r.subject) s
                WHERE s.best > 0),
            judged AS (
                SELECT s.*, CASE WHEN s.total > 0
                    THEN CAST(round(s.seen * ({good}) / s.total) AS BIGINT) ELSE s.seen END AS good
                FROM seen s)
            SELECT s.cluster, {text(objective.name)} AS objective, {subject}, s.at, s.good,
                s.seen - s.good AS bad, s.seen - s.good AS low, s.seen - s.good AS high
            FROM judged s
            """,
            rows=self._windows(objective, events, span),
        )

    def _windows(self, objective: Objective, events: Events, span: Span) -> Relation:
        """cluster, subject, window; what was counted in it, and how long that was observed."""
        known = [each.subject for each in self.living]
        level, metrics = objective.level, (events.counted, events.total)
        holes = LeftOut(self.left_out, known, self.gold.window_us, (level,))

        def of(metric: str, column: str) -> str:
            value = f"CASE WHEN r.metric = {text(metric)} THEN CAST(r.{column} AS {EXACT}) END"
            return f"coalesce(CAST(sum({value}) AS DOUBLE), 0)"

        observed = (of(one, "observed_us") for one in metrics)
        return self.gold.engine.query(
            f"SELECT r.cluster, r.{level} AS subject, r.window AS window, "
            f"{of(events.counted, 'increase')} AS counted, {of(events.total, 'increase')} AS total,"
            f" CAST(least({', '.join(observed)}) AS BIGINT) AS observed FROM {{rows}} r "
            f"WHERE {is_one_of('r.metric', metrics)} AND NOT ({holes.holds()}) "
            f"AND {is_one_of('r.cluster', sorted({one.cluster for one in known}))} "
            f"GROUP BY r.cluster, r.{level}, r.window",
            rows=self.gold.windows(_TABLES[level], Period.of(span)),
        )
