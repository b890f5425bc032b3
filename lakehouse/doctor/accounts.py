"""What bronze/scrapes, the agents' own account of every attempt, says of the last days."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse import query
from lakehouse.periods import instant, micros

if TYPE_CHECKING:
    from deltalake import DeltaTable

CLOCK_SLACK: Final = dt.timedelta(minutes=1)
"""Who tells of something that much later than now has a clock that is ahead."""


class Source(NamedTuple):
    """Who is read."""

    cluster: str
    source: str


@dataclass(frozen=True, slots=True)
class Account:
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


@dataclass(frozen=True, slots=True)
class Hole:
    """Time between two sights of a family that no scrape vouches for.

    Attributes:
        source: Whose family it is.
        family: A family of the catalogue.
        number: How many holes there are.
        total: Their length together.
        longest: Start and end of the longest.
    """

    source: Source
    family: str
    number: int
    total: dt.timedelta
    longest: tuple[dt.datetime, dt.datetime]


@dataclass(frozen=True, slots=True)
class Failure:
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


def accounts(delta: DeltaTable, since: dt.datetime, now: dt.datetime, where: str) -> list[Account]:
    """The last word of each agent on each family, of rows that begin after an instant.

    Args:
        delta: bronze/scrapes.
        since: From when on.
        now: The instant, UTC.
        where: Where the table lies, for errors.

    Raises:
        MaintenanceError: It could not be read.
    """
    latest = micros(now + CLOCK_SLACK)
    sql = f"""
        SELECT cluster, source, family, agent,
          max(CASE WHEN till <= {latest} THEN till END) AS told,
          max(CASE WHEN till <= {latest} AND outcome = 'ok' THEN till END) AS seen,
          max(CASE WHEN till > {latest} THEN till END) AS ahead,
          last_value(outcome ORDER BY till) AS outcome,
          last_value(error ORDER BY (error IS NOT NULL), till) AS error,
          max(dropped_series) AS dropped_series,
          last_value(kafka_version ORDER BY (kafka_version IS NOT NULL), till) AS kafka_version,
          last_value(catalogue ORDER BY till) AS catalogue
        FROM ({_told(since)}) GROUP BY cluster, source, family, agent"""  # noqa: S608 - no outside text
    return [_account(row) for row in query.rows(delta, sql, where)]


def holes(delta: DeltaTable, since: dt.datetime, where: str) -> list[Hole]:
    """Where families of sources were not seen between two sights, whoever saw them.

    Raises:
        MaintenanceError: The table could not be read.
    """
    sql = f"""
        WITH seen AS (
          SELECT cluster, source, family, at, max(till) OVER (
            PARTITION BY cluster, source, family ORDER BY at, till
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
          FROM ({_told(since)}) WHERE outcome = 'ok')
        SELECT cluster, source, family, count(*) AS number,
          CAST(sum(at - before) AS BIGINT) AS total,
          last_value(before ORDER BY at - before) AS begun,
          last_value(at ORDER BY at - before) AS ended
        FROM seen WHERE at > before GROUP BY cluster, source, family"""  # noqa: S608 - no outside text
    return [
        Hole(
            Source(row["cluster"], row["source"]), row["family"], row["number"],
            dt.timedelta(microseconds=row["total"]),
            (instant(row["begun"]), instant(row["ended"])),
        )
        for row in query.rows(delta, sql, where)
    ]  # fmt: skip


def failures(delta: DeltaTable, since: dt.datetime, where: str) -> list[Failure]:
    """What attempts that did not end well say of themselves; skipped ticks are none.

    Raises:
        MaintenanceError: The table could not be read.
    """
    sql = f"""
        WITH failed AS (
          SELECT cluster, source, family, outcome, sum(till - at) AS length,
            last_value(error ORDER BY (error IS NOT NULL), till) AS error, max(till) AS till
          FROM ({_told(since)}) WHERE outcome NOT IN ('ok', 'skipped')
          GROUP BY cluster, source, family, outcome)
        SELECT cluster, source, outcome, CAST(max(length) AS BIGINT) AS longest,
          last_value(error ORDER BY (error IS NOT NULL), till) AS error
        FROM failed GROUP BY cluster, source, outcome"""  # noqa: S608 - no outside text
    return [
        Failure(
            Source(row["cluster"], row["source"]), row["outcome"],
            dt.timedelta(microseconds=row["longest"]), row["error"],
        )
        for row in query.rows(delta, sql, where)
    ]  # fmt: skip


def _told(since: dt.datetime) -> str:
    """The rows that are to be believed, their instants as microseconds."""
    return f"""
        SELECT *, CAST("start" AS BIGINT) AS at, CAST("end" AS BIGINT) AS till
        FROM {query.TABLE}
        WHERE date >= DATE '{since:%Y-%m-%d}' AND CAST("start" AS BIGINT) >= {micros(since)}
          AND "end" > "start" """  # noqa: S608 - no outside text


def _account(row: dict[str, Any]) -> Account:
    return Account(
        Source(row["cluster"], row["source"]),
        row["family"],
        row["agent"],
        _instant(row["told"]),
        _instant(row["seen"]),
        row["outcome"],
        row["error"],
        _instant(row["ahead"]),
        row["dropped_series"],
        row["kafka_version"],
        row["catalogue"],
    )


def _instant(microseconds: int | None) -> dt.datetime | None:
    return None if microseconds is None else instant(microseconds)
