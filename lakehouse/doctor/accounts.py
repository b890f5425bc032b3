"""What agents told in bronze of the last days: each attempt (scrapes), and what befell (events)."""

from __future__ import annotations

import datetime as dt
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from lakehouse.maintain.place import ASKED, Row
from lakehouse.periods import micros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Ask = Callable[[str], Iterable[Row]]
    """Gives the rows of a query of one table; see ``place.rows``."""

CLOCK_SLACK: Final = dt.timedelta(minutes=1)
"""Who tells of something that much later than now has a clock that is ahead."""

T = TypeVar("T")


class Source(NamedTuple):
    """Who is read."""

    cluster: str
    source: str


class Account(NamedTuple):
    """What one agent told of one family of a source.

    Attributes:
        source: Whose family it is.
        family: A family of the catalogue.
        agent: The agent's id.
        told: Until when it told anything; None where all that it told is in the future.
        seen: Until when it saw something; None where it never did, or in the future only.
        outcome: Of its newest row.
        error: Why the newest row that has a reason is not ok.
        ahead: Latest instant it told of, if that is in the future.
        dropped_series: Most series beyond the cap in one row.
        kafka_version: As told last.
        catalogue: Hash of the catalogue, as told last.
    """

    source: Source
    family: str
    agent: str
    told: dt.datetime | None
    seen: dt.datetime | None
    outcome: str = "ok"
    error: str | None = None
    ahead: dt.datetime | None = None
    dropped_series: int = 0
    kafka_version: str | None = None
    catalogue: str | None = None


class Hole(NamedTuple):
    """Time between two sights of a family that no scrape vouches for.

    Attributes:
        source: Whose family it is.
        family: A family of the catalogue.
        total: Length of all such holes.
        start: Of the longest.
        end: Of the longest.
    """

    source: Source
    family: str
    total: dt.timedelta
    start: dt.datetime
    end: dt.datetime

    @property
    def length(self) -> dt.timedelta:
        """Of the longest."""
        return self.end - self.start


class Failure(NamedTuple):
    """How long attempts of a source ended otherwise than well.

    Attributes:
        source: Who was read.
        outcome: How they ended.
        longest: Time of the family for which it was longest.
        error: The newest reason that was told.
    """

    source: Source
    outcome: str
    longest: dt.timedelta
    error: str | None


class Happening(NamedTuple):
    """Events of one kind at one source.

    Attributes:
        source: Where.
        kind: As bronze/events has it.
        number: How many.
        last: When the newest was noticed.
        old: Of the newest: what it was.
        new: Of the newest: what it became.
    """

    source: Source
    kind: str
    number: int
    last: dt.datetime
    old: str | None = None
    new: str | None = None


S = TypeVar("S", Account, Hole)


def accounts(ask: Ask, since: dt.datetime, now: dt.datetime) -> list[Account]:
    """The last word of each agent on each family, of rows that begin after an instant."""
    is_past = f'CAST("end" AS BIGINT) <= {micros(now + CLOCK_SLACK)}'
    sql = f"""
        SELECT cluster, source, family, agent,
          max(CASE WHEN {is_past} THEN "end" END) AS told,
          max(CASE WHEN {is_past} AND outcome = 'ok' THEN "end" END) AS seen,
          max(CASE WHEN NOT {is_past} THEN "end" END) AS ahead,
          last_value(outcome ORDER BY "end") AS outcome,
          last_value(error ORDER BY (error IS NOT NULL), "end") AS error,
          max(dropped_series) AS dropped_series,
          last_value(kafka_version ORDER BY (kafka_version IS NOT NULL), "end") AS kafka_version,
          last_value(catalogue ORDER BY "end") AS catalogue
        FROM ({_believed(since)}) GROUP BY cluster, source, family, agent"""
    return _told(Account, ask, sql)


def holes(ask: Ask, since: dt.datetime) -> list[Hole]:
    """Where families of sources were not seen between two sights, whoever saw them."""
    sql = f"""
        WITH seen AS (
          SELECT cluster, source, family, "start" AS at, max("end") OVER (
            PARTITION BY cluster, source, family ORDER BY "start", "end"
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
          FROM ({_believed(since)}) WHERE outcome = 'ok')
        SELECT cluster, source, family, sum(at - before) AS total,
          last_value(before ORDER BY at - before) AS "start",
          last_value(at ORDER BY at - before) AS "end"
        FROM seen WHERE at > before GROUP BY cluster, source, family"""
    return _told(Hole, ask, sql)


def failures(ask: Ask, since: dt.datetime) -> list[Failure]:
    """What attempts that did not end well say of themselves; skipped ticks are none."""
    sql = f"""
        WITH failed AS (
          SELECT cluster, source, family, outcome, sum("end" - "start") AS length,
            last_value(error ORDER BY (error IS NOT NULL), "end") AS error, max("end") AS till
          FROM ({_believed(since)}) WHERE outcome NOT IN ('ok', 'skipped')
          GROUP BY cluster, source, family, outcome)
        SELECT cluster, source, outcome, max(length) AS longest,
          last_value(error ORDER BY (error IS NOT NULL), till) AS error
        FROM failed GROUP BY cluster, source, outcome"""
    return _told(Failure, ask, sql)


def happenings(ask: Ask, since: dt.datetime) -> list[Happening]:
    """Events since an instant."""
    sql = f"""
        SELECT cluster, source, kind, count(*) AS number, max(at) AS last,
          last_value(old ORDER BY at) AS old, last_value(new ORDER BY at) AS new
        FROM {ASKED} WHERE {_since(since, "at")} GROUP BY cluster, source, kind"""
    return _told(Happening, ask, sql)


def by_source(several: Iterable[S]) -> Iterator[tuple[Source, list[S]]]:
    """What is of each source."""
    of = attrgetter("source")
    return ((source, list(group)) for source, group in groupby(sorted(several, key=of), of))


def latest(instants: Iterable[dt.datetime | None]) -> dt.datetime | None:
    """The latest of those that are known."""
    return max((one for one in instants if one), default=None)


def _believed(since: dt.datetime) -> str:
    """The rows of scrapes that are to be believed."""
    return f'SELECT * FROM {ASKED} WHERE {_since(since, "start")} AND "end" > "start"'


def _since(since: dt.datetime, column: str) -> str:
    day = f"date >= DATE '{since:%Y-%m-%d}'"
    return f'{day} AND CAST("{column}" AS BIGINT) >= {micros(since)}'


def _told(shape: Callable[..., T], ask: Ask, sql: str) -> list[T]:
    """Rows with a cluster, a source and what else a shape has."""
    return [shape(Source(row.pop("cluster"), row.pop("source")), **row) for row in ask(sql)]
