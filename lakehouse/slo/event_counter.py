"""Good and bad events, from counters in gold/topics and gold/sources.

A count has no share of time. So that statements can treat it like time, the time in which events
were counted is divided into good and bad in the ratio of the events. This assumes that unobserved
time had events at the same rate as observed time.

The observed part of a window is its observed time relative to the window with the most. The
counters of a topic are on several brokers, and each broker has only a part of the events.

Kafka creates most counters with their first event, and removes a topic's counters from brokers that
no longer lead it. With ``absent: zero`` in the catalogue, the number of events is 0 while the
counter does not exist, and the scrapes of its family determine the observed time.

The counts between a process's last scrape and its end are in no reading. That time counts as not
observed, so unknown events bound a share both ways as unknown time does.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa

from lakehouse import tables
from lakehouse.core.metrics import Definition, families_by_metric
from lakehouse.core.objective import Events, Objective
from lakehouse.core.periods import Period, Span, union
from lakehouse.core.subjects import SUBJECT, SUBJECT_COLUMNS
from lakehouse.engines.gold_reader import EXACT, GoldRows, definitions, labels_in
from lakehouse.engines.relation import Relation, is_one_of, select, text
from lakehouse.kernel import arrow_types
from lakehouse.slo.report_calendar import Maintenance
from lakehouse.slo.sla_statement import Counts
from lakehouse.slo.sli_query import Exclusions, Lifetime, SliKey
from lakehouse.slo.uncounted import Source, UncountedTime

_TABLES: Final = {"topic": tables.TOPICS, "source": tables.SOURCES}
_SUMS: Final = (
    *(f"CAST(sum(CAST(r.{name} AS {EXACT})) AS DOUBLE) AS {name}" for name in ("counted", "total")),
    "sum(r.observed) AS observed",
)
_OF_SUBJECT: Final = dict.fromkeys(("cluster", *SUBJECT_COLUMNS), "string")
_LIFE: Final = {**_OF_SUBJECT, "s": "bigint", "e": "bigint"}
_LIFE_SCHEMA: Final = arrow_types.schema(_LIFE.items())
_HIDDEN: Final = arrow_types.schema(
    [("cluster", "string"), ("source", "string"), ("window_start", "bigint"), ("share", "double")]
)
_LABELS: Final = arrow_types.schema([("labels", "string")])


def lives(lifetimes: Iterable[Lifetime], kinds: Collection[str]) -> pa.Table:
    """Return the active periods of subjects of some kinds: their columns, ``s`` and ``e`` (µs)."""
    own = [one for one in lifetimes if one.subject.kind in kinds]
    rows = [(one.subject.cluster, *one.subject.key, *span) for one in own for span in one.spans]
    return arrow_types.rows(_LIFE_SCHEMA, rows)


@dataclass(frozen=True)
class EventCounter:
    """Counts the events of some subjects, outside some maintenance.

    Attributes:
        gold: Rows of gold.
        lifetimes: Active periods of the subjects.
        excluded: Maintenance.
        sources: Active periods of the sources that may count their events.
    """

    gold: GoldRows
    lifetimes: Sequence[Lifetime]
    excluded: Sequence[Maintenance] = ()
    sources: Sequence[Lifetime] = ()

    @cached_property
    def _definitions(self) -> set[Definition]:
        return definitions(self.gold.engine)

    def counts(self, objective: Objective, events: Events, span: Span) -> dict[SliKey, Counts]:
        """Return the events in a span by subject, for every subject with rows in gold."""
        columns = ", ".join(("r.cluster", "r.subject", *_SUMS, "max(r.observed) AS best"))
        sql = f"SELECT {columns} FROM {{rows}} r GROUP BY r.cluster, r.subject"
        rows = self.gold.ask(sql, rows=self._windows(objective, events, span))
        counts: dict[SliKey, Counts] = {}
        for cluster, subject, counted, total, observed, best in map(dict.values, rows):
            key = tuple(subject if name == objective.level else None for name in SUBJECT)
            seen = observed * self.gold.window_us // best if best else 0
            part = min(counted, total)  # the two counters are not read at one instant
            good = part if events.are_good else total - part
            counts[cluster, objective.name, key] = Counts(good, total, seen)
        return counts

    def slices(self, objective: Objective, events: Events, span: Span, slot: str) -> Relation:
        """Return good and bad time of each slice; an observed slice without events is good.

        Args:
            objective: The objective.
            events: Its events.
            span: Microseconds.
            slot: SQL that gives the slice of a row's window.

        Returns:
            cluster, objective, the columns of a subject, at, good, bad, low, high.
        """
        subject = ", ".join(
            f"s.subject AS {name}" if name == objective.level else f"CAST(NULL AS STRING) AS {name}"
            for name in SUBJECT_COLUMNS
        )
        counted = "least(s.counted, s.total)"
        good = counted if events.are_good else f"s.total - {counted}"
        seen = f"floor(s.observed * CAST({self.gold.window_us} AS DOUBLE) / s.best)"
        return select(
            f"""
            WITH slots AS (
                SELECT r.cluster, r.subject, {slot} AS at, {", ".join(_SUMS)},
                    max(max(r.observed)) OVER (PARTITION BY r.cluster, r.subject) AS best
                FROM {{rows}} r GROUP BY r.cluster, r.subject, {slot}),
            seen AS (
                SELECT s.*, CAST({seen} AS BIGINT) AS seen FROM slots s WHERE s.best > 0),
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
        """Return cluster, subject, window, the counted events and the observed time."""
        level, metrics = objective.level, (events.counted, events.total)
        subjects = [one.subject for one in self.lifetimes if one.subject.kind == level]
        exclusions = Exclusions(self.excluded, subjects, self.gold.window_us)

        def sum_of(metric: str, column: str) -> str:
            value = f"CASE WHEN r.metric = {text(metric)} THEN CAST(r.{column} AS {EXACT}) END"
            return f"coalesce(CAST(sum({value}) AS DOUBLE), 0)"

        observed = ", ".join(sum_of(metric, "series_seen_us") for metric in metrics)
        counted = select(
            f"SELECT r.cluster, r.{level} AS subject, r.window_start, "
            f"{sum_of(events.counted, 'increase')} AS counted, "
            f"{sum_of(events.total, 'increase')} AS total, "
            f"CAST(least({observed}) AS BIGINT) AS observed FROM {{rows}} r "
            f"WHERE {is_one_of('r.metric', metrics)} AND NOT ({exclusions.condition()}) "
            f"AND {is_one_of('r.cluster', sorted({subject.cluster for subject in subjects}))} "
            f"GROUP BY r.cluster, r.{level}, r.window_start",
            rows=self._rows(objective, metrics, Period.of(span)),
        )
        meanings = [one for one in self._definitions if one.metric in metrics]
        if {one.metric for one in meanings if one.absent == "zero"} == set(metrics):
            families = sorted({one.family for one in meanings})
            counted = self._while_read(level, counted, families, span, exclusions)
        return self._without_hidden(level, counted, meanings, span)

    def _without_hidden(
        self, level: str, counted: Relation, meanings: Sequence[Definition], span: Span
    ) -> Relation:
        """Return the rows without the time that scrapes cover and in which counts may be lost.

        After the last scrape of a process the time until the next attempt is covered, but no
        reading has the counts of the process until its end.
        """
        shares = self._hidden_shares(level, meanings, span)
        if not shares:
            return counted
        observed = "floor(r.observed * (1e0 - least(1e0, coalesce(h.share, 0e0))))"
        return select(
            "SELECT r.cluster, r.subject, r.window_start, r.counted, r.total, "
            f"CAST({observed} AS BIGINT) AS observed "
            "FROM {counted} r LEFT JOIN {hidden} h ON h.cluster = r.cluster "
            "AND h.window_start = r.window_start AND coalesce(h.source, r.subject) = r.subject",
            counted=counted,
            hidden=arrow_types.rows(_HIDDEN, shares),
        )

    def _hidden_shares(
        self, level: str, meanings: Sequence[Definition], span: Span
    ) -> list[tuple[str, str | None, int, float]]:
        """Return cluster, source (null: the mean of all), window, and its hidden share."""
        clusters = {one.subject.cluster for one in self.lifetimes}
        time = UncountedTime(self.gold, clusters, Period.of(span), self.sources)
        hidden: defaultdict[Source, list[Span]] = defaultdict(list)
        for metric, families in families_by_metric(meanings).items():
            for source, own in time.of(metric, families).items():
                hidden[source] += own.covered
        size, number = self.gold.window_us, Counter(cluster for cluster, _ in hidden)
        shares: defaultdict[tuple[str, str | None, int], float] = defaultdict(float)
        for (cluster, name), spans in hidden.items():
            of, parts = (name, size) if level == "source" else (None, size * number[cluster])
            for start, end in union(spans):
                for at in range(start // size * size, end, size):
                    shares[cluster, of, at] += (min(end, at + size) - max(start, at)) / parts
        return [(*key, share) for key, share in shares.items()]

    def _rows(self, objective: Objective, metrics: Sequence[str], period: Period) -> Relation:
        """Return the rows of gold in a span, of the series that an objective chooses by labels."""
        if not objective.series:
            return self.gold.windows(_TABLES[objective.level], period)
        rows, of_them = self.gold.windows(tables.LABELLED, period), is_one_of("r.metric", metrics)
        sql = f"SELECT DISTINCT r.labels FROM {{rows}} r WHERE {of_them}"
        known = (row["labels"] for row in self.gold.ask(sql, rows=rows))
        own = ([labels] for labels in known if objective.has_series(labels_in(labels)))
        return select(
            "SELECT r.* FROM {rows} r WHERE r.labels IN (SELECT o.labels FROM {own} o)",
            rows=rows,
            own=arrow_types.rows(_LABELS, own),
        )

    def _while_read(
        self, level: str, counted: Relation, families: Sequence[str], span: Span,
        exclusions: Exclusions,
    ) -> Relation:  # fmt: skip
        """Return the rows of all windows of the subjects' lives in which the families were read."""
        of_source = "r.source" if level == "source" else "CAST(NULL AS STRING)"
        size = self.gold.window_us
        part = f"least(l.e, r.window_start + {size}) - greatest(l.s, r.window_start)"
        return select(
            f"""
            WITH families AS (
                SELECT r.cluster, {of_source} AS source, r.window_start, r.family,
                    sum(r.outcome_us) AS us
                FROM {{coverage}} r
                WHERE r.outcome = 'ok' AND {is_one_of("r.family", families)}
                GROUP BY r.cluster, {of_source}, r.window_start, r.family),
            seen AS (
                SELECT r.cluster, r.source, r.window_start, min(r.us) AS us FROM families r
                GROUP BY r.cluster, r.source, r.window_start HAVING count(*) = {len(families)}),
            lives AS (
                SELECT r.cluster, l.{level} AS {level}, r.window_start,
                    sum(CAST(round(CAST(r.us AS DOUBLE) * ({part}) / {size}) AS BIGINT)) AS us
                FROM seen r JOIN {{lives}} l ON l.cluster = r.cluster
                    AND coalesce(r.source, l.{level}) = l.{level}
                    AND l.s < r.window_start + {size} AND l.e > r.window_start
                GROUP BY r.cluster, l.{level}, r.window_start),
            counting AS (SELECT DISTINCT r.cluster, r.subject FROM {{counted}} r)
            SELECT r.cluster, r.{level} AS subject, r.window_start,
                coalesce(c.counted, 0) AS counted, coalesce(c.total, 0) AS total,
                CAST(r.us AS BIGINT) AS observed
            FROM lives r JOIN counting k ON k.cluster = r.cluster AND k.subject = r.{level}
            LEFT JOIN {{counted}} c
                ON c.cluster = r.cluster AND c.subject = r.{level}
                AND c.window_start = r.window_start
            WHERE NOT ({exclusions.condition()})
            """,
            coverage=self.gold.windows(tables.COVERAGE, Period.of(span)),
            lives=lives(self.lifetimes, {level}),
            counted=counted,
        )
