"""Recent agent records in bronze: scrapes and agent events."""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar

from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.core.delta_rs import TABLE, query
from lakehouse.core.periods import micros
from lakehouse.ops.doctor.finding import named
from lakehouse.tables.table import identifier, standard_text

CLOCK_SLACK: Final = dt.timedelta(minutes=1)
"""A row that ends later than this after now has a clock that is ahead."""

T = TypeVar("T")


class SourceName(NamedTuple):
    """A source of a cluster. Its text is safe to print."""

    cluster: str
    source: str

    def __str__(self) -> str:
        return f"{named(self.cluster)} {named(self.source)}"


class FamilyRecord(NamedTuple):
    """Summary of one agent's scrapes of one family of a source.

    Attributes:
        source: The source.
        family: A family of the catalogue.
        agent: Agent ID.
        reported_until: End of its newest row. None if all rows are in the future.
        read_until: End of its newest successful row in the past, if any.
        outcome: Outcome of its newest row.
        error: Newest error.
        future_until: End of its newest row in the future.
        dropped_series: Maximum number of series above the cap in a scrape, mean of a row.
        kafka_version: Newest known version.
        catalogue: Hash of the catalogue in its newest row.
    """

    source: SourceName
    family: str
    agent: str
    reported_until: dt.datetime | None
    read_until: dt.datetime | None
    outcome: str = "ok"
    error: str | None = None
    future_until: dt.datetime | None = None
    dropped_series: int = 0
    kafka_version: str | None = None
    catalogue: str | None = None


class Agent(NamedTuple):
    """An agent with recent records.

    Attributes:
        agent: Agent ID.
        sources: Its sources, each as ``cluster/source``.
        reported_until: End of its newest row. None if all rows are in the future.
        version: Its version. None if no recent commit contains it.
    """

    agent: str
    sources: tuple[str, ...]
    reported_until: dt.datetime | None
    version: str | None


class Gap(NamedTuple):
    """Time between two scrapes of a family that no scrape covers.

    Attributes:
        source: The source.
        family: A family of the catalogue.
        total: Length of all its gaps.
        start: Start of the longest gap.
        longest: Its length.
    """

    source: SourceName
    family: str
    total: dt.timedelta
    start: dt.datetime
    longest: dt.timedelta


class Overlap(NamedTuple):
    """An interval of a source that is in the lake twice.

    Attributes:
        source: The source.
        what: A family of scrapes, or the metrics of runs.
        agent: The agent with the smaller ID.
        other: The other agent, or the same agent if it recorded the interval twice.
        first: Start of the interval.
        last: End of the interval.
        total: Lower bound of the duplicate time.
        copies: Number of exact copies of rows.
    """

    source: SourceName
    what: str
    agent: str
    other: str
    first: dt.datetime
    last: dt.datetime
    total: dt.timedelta
    copies: int = 0


class Failure(NamedTuple):
    """Failed scrapes of a source with one outcome.

    Attributes:
        source: The source.
        outcome: The outcome.
        longest: Longest total time of a family.
        error: Newest known reason.
    """

    source: SourceName
    outcome: str
    longest: dt.timedelta
    error: str | None


class EventCount(NamedTuple):
    """Events of one kind at one source.

    Attributes:
        source: The source.
        kind: As in bronze/events.
        number: Number of events.
        last: Time of the newest event.
        old: Value before the newest event.
        new: Value after the newest event.
    """

    source: SourceName
    kind: str
    number: int
    last: dt.datetime
    old: str | None = None
    new: str | None = None


class MetricTraits(NamedTuple):
    """The traits of a metric in one catalogue.

    Attributes:
        metric: The metric.
        traits: Names and values in bronze/metric_traits; none: it has no row there.
    """

    metric: str
    traits: frozenset[str]


S = TypeVar("S", FamilyRecord, Gap, Overlap)


def family_records(scrapes: DeltaTable, since: dt.datetime, now: dt.datetime) -> list[FamilyRecord]:
    """Return a summary of recent scrapes by family and agent."""
    is_past = f'CAST("end" AS BIGINT) <= {micros(now + CLOCK_SLACK)}'
    sql = f"""
        SELECT cluster, source, family, agent,
          max(CASE WHEN {is_past} THEN "end" END) AS reported_until,
          max(CASE WHEN {is_past} AND outcome = 'ok' THEN "end" END) AS read_until,
          max(CASE WHEN NOT {is_past} THEN "end" END) AS future_until,
          last_value(outcome ORDER BY "end") AS outcome,
          last_value(error ORDER BY (error IS NOT NULL), "end") AS error,
          coalesce(max((dropped_series + scrapes - 1) / nullif(scrapes, 0)), 0) AS dropped_series,
          last_value(kafka_version ORDER BY (kafka_version IS NOT NULL), "end") AS kafka_version,
          last_value(catalogue ORDER BY "end") AS catalogue
        FROM ({_scrapes(since)}) GROUP BY cluster, source, family, agent"""
    return _records(FamilyRecord, scrapes, sql)


def gaps(scrapes: DeltaTable, since: dt.datetime) -> list[Gap]:
    """Return the gaps of each family between scrapes of any agent."""
    sql = f"""
        WITH good AS (
          SELECT cluster, source, family, "start" AS at, max("end") OVER (
            PARTITION BY cluster, source, family ORDER BY "start", "end"
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
          FROM ({_scrapes(since)}) WHERE outcome = 'ok')
        SELECT cluster, source, family, sum(at - before) AS total,
          last_value(before ORDER BY at - before) AS "start", max(at - before) AS longest
        FROM good WHERE at > before GROUP BY cluster, source, family"""
    return _records(Gap, scrapes, sql)


def overlaps(scrapes: DeltaTable, since: dt.datetime) -> list[Overlap]:
    """Return simultaneous successful scrapes of one family, by pairs of agents."""
    return _overlaps(scrapes, f"{_scrapes(since)} AND outcome = 'ok'", "family")


def copied_runs(runs: DeltaTable, since: dt.datetime) -> list[Overlap]:
    """Return copies among the runs of metrics without a subject, which are in every batch."""
    alone = " AND ".join(f"{identifier(name)} IS NULL" for name in _SUBJECT)
    rows = f"{_rows(tables.RUNS)} WHERE {_since(since, 'start')} AND {alone}"
    found = _overlaps(runs, rows, "metric")
    return [overlap for overlap in found if overlap.copies]


_SUBJECT: Final = ("topic", "partition", "user", "client_id", "group", "members", "labels")


def _overlaps(delta: DeltaTable, rows: str, what: str) -> list[Overlap]:
    """Return overlaps of each row with the previous row of the same ``what``."""
    along = f'OVER (PARTITION BY cluster, source, {what} ORDER BY "start", "end", agent, batch)'
    sql = f"""
        WITH ordered AS (
          SELECT cluster, source, {what} AS what, agent, batch, "start", "end",
            lag(agent) {along} AS before, lag(batch) {along} AS batch_before,
            lag("start") {along} AS start_before, lag("end") {along} AS until
          FROM ({rows})),
        pairs AS (
          SELECT *, least("end", until) AS reach,
            CASE WHEN agent = before AND batch = batch_before AND "start" = start_before
              AND "end" = until THEN 1 ELSE 0 END AS copy
          FROM ordered WHERE "start" < until)
        SELECT cluster, source, what, least(agent, before) AS agent,
          greatest(agent, before) AS other, min("start") AS first, max(reach) AS last,
          sum(reach - "start") AS total, sum(copy) AS copies
        FROM pairs GROUP BY cluster, source, what, least(agent, before), greatest(agent, before)"""
    return _records(Overlap, delta, sql)


def failures(scrapes: DeltaTable, since: dt.datetime) -> list[Failure]:
    """Failed attempts by source and outcome, without skipped ticks."""
    sql = f"""
        WITH failed AS (
          SELECT cluster, source, family, outcome, sum("end" - "start") AS length,
            last_value(error ORDER BY (error IS NOT NULL), "end") AS error, max("end") AS until
          FROM ({_scrapes(since)}) WHERE outcome NOT IN ('ok', 'skipped')
          GROUP BY cluster, source, family, outcome)
        SELECT cluster, source, outcome, max(length) AS longest,
          last_value(error ORDER BY (error IS NOT NULL), until) AS error
        FROM failed GROUP BY cluster, source, outcome"""
    return _records(Failure, scrapes, sql)


def event_counts(events: DeltaTable, since: dt.datetime) -> list[EventCount]:
    """Return recent events by source and kind."""
    sql = f"""
        SELECT cluster, source, kind, count(*) AS number, max(at) AS last,
          last_value(old ORDER BY at) AS old, last_value(new ORDER BY at) AS new
        FROM {TABLE} WHERE {_since(since, "at")} GROUP BY cluster, source, kind"""
    return _records(EventCount, events, sql)


def metric_traits(
    definitions: DeltaTable, traits: DeltaTable, catalogues: Collection[str]
) -> list[MetricTraits]:
    """Return the traits of each metric in each of some catalogues."""
    if not catalogues:
        return []
    names = ", ".join(map(standard_text, catalogues))
    found: dict[tuple[str, str], set[str]] = {}
    where = f"FROM {TABLE} WHERE catalogue IN ({names})"
    for row in query(definitions, f"SELECT DISTINCT catalogue, metric {where}"):
        found[row["catalogue"], row["metric"]] = set()
    for row in query(traits, f"SELECT catalogue, metric, trait, value {where}"):
        own = found.setdefault((row["catalogue"], row["metric"]), set())
        own.add(f"{row['trait']}={row['value']}")
    return [MetricTraits(metric, frozenset(own)) for (_, metric), own in found.items()]


def by_source(records: Iterable[S]) -> Iterator[tuple[SourceName, list[S]]]:
    """Return records grouped by source."""
    source = attrgetter("source")
    return ((key, list(group)) for key, group in groupby(sorted(records, key=source), source))


def latest(instants: Iterable[dt.datetime | None]) -> dt.datetime | None:
    """Return the latest time that is not None."""
    return max((at for at in instants if at), default=None)


def _scrapes(since: dt.datetime) -> str:
    """Return SQL for the recent valid rows of scrapes."""
    return f'{_rows(tables.SCRAPES)} WHERE {_since(since, "start")} AND "end" > "start"'


def _rows(table: tables.Table) -> str:
    """Return SQL for a table's rows with the declared columns."""
    return f"SELECT {', '.join(map(identifier, table.column_names))} FROM {TABLE}"


def _since(since: dt.datetime, column: str) -> str:
    day = f"date >= DATE '{since:%Y-%m-%d}'"
    return f"{day} AND CAST({identifier(column)} AS BIGINT) >= {micros(since)}"


def _records(shape: Callable[..., T], delta: DeltaTable, sql: str) -> list[T]:
    """Return the rows of a query with cluster, source and the other fields of a shape."""
    rows = query(delta, sql)
    return [shape(SourceName(row.pop("cluster"), row.pop("source")), **row) for row in rows]
