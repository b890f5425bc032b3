"""What a report asks of bronze: what was bad or failed, run by run, and what gold does not keep.

Bronze has millions of rows for each that is wanted, so these queries are compiled, and are of as
few hours as gold allows.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import tables
from lakehouse.metrics import LEADERLESS, NODE_FENCED, UNDER_MIN_ISR, family
from lakehouse.periods import Period, instant, micros
from lakehouse.report.gather import COPY_LAG, DELETE_LAG
from lakehouse.session import compiled

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from lakehouse.report.gather import Gold, Row

_STILL_US: Final = 30_000_000  # brokers are read at different instants


def bad_runs(gold: Gold) -> list[Row]:
    """Runs of partitions that were under min ISR or had no leader; instants in microseconds.

    Gold tells in which hours there were any: of a cluster that was well bronze is not read.
    """
    hours = _bad_hours(gold)
    if not hours:
        return []
    first, last = hours[0], hours[-1] + dt.timedelta(hours=1)
    rows = gold.bronze(tables.RUNS).where(
        F.col("metric").isin(UNDER_MIN_ISR, LEADERLESS)
        & (F.col("value") > 0)
        & F.col("date").isin(sorted({hour.date() for hour in hours}))
        & (F.col("start") >= F.lit(first))
        & (F.col("start") < F.lit(last))
        & _hour("start").isin(hours)
    )
    rows = rows.dropna(subset=["topic", "partition"])
    names = ("metric", "topic", "partition", "source", "start", "end", "lead_us", "tail_us")
    return _rows(gold, _in_micros(rows).select(*names, "flags"))


def _bad_hours(gold: Gold) -> list[dt.datetime]:
    """Hours in which a partition may have been bad, in order."""
    rows = gold.whole(tables.PARTITIONS)
    rows = rows.where(F.col("metric").isin(UNDER_MIN_ISR, LEADERLESS))
    rows = rows.where(F.col("positive_high_us") > 0)
    found = rows.select(F.unix_micros(_hour("window")).alias("at")).distinct().collect()
    return sorted(instant(row["at"]) for row in found)


def _hour(name: str) -> Column:
    return F.date_trunc("hour", name)


class LastLag(NamedTuple):
    """What waits of a topic at the end of a period, bytes.

    Attributes:
        known: The sum over its brokers; None: one of them was read no more that may lead it still.
        told: The sum of what each of these told last, if that was earlier than the others.
    """

    known: float | None
    told: float


def last_lags(gold: Gold) -> dict[tuple[str, str], LastLag]:
    """Lag at the end of the period, per metric and topic.

    A broker that stopped telling of a topic while it was read on leads it no more.
    """
    tail = instant(micros(gold.period.end) - 2 * gold.window_seconds * 1_000_000)
    # A run ends with its window at the latest: none of them begins earlier.
    first = max(gold.period.start, tail - dt.timedelta(seconds=gold.window_seconds))
    within = Period(first, gold.period.end)
    rows = gold.bronze(tables.RUNS, within).where(
        F.col("metric").isin(COPY_LAG, DELETE_LAG) & (F.col("end") > F.lit(tail))
    )
    last = rows.groupBy("metric", "topic", "source").agg(
        F.max("end").alias("end"), F.max_by("value", "end").alias("value")
    )
    found: dict[tuple[str, str], list[_Told]] = {}
    for row in _rows(gold, _in_micros(last)):
        one = _Told(row["source"], row["end"], row["value"] or 0.0)
        found.setdefault((row["metric"], row["topic"]), []).append(one)
    read_until = _read_until(gold, within) if found else {}
    return {key: last_of(told, read_until) for key, told in found.items()}


class _Told(NamedTuple):
    source: str
    end_us: int
    value: float


def last_of(told: Sequence[_Told], read_until: Mapping[str, int]) -> LastLag:
    """What waits of one topic.

    Args:
        told: What each source told last, and until when it did, microseconds.
        read_until: Until when each source was read; who is not in it was not.
    """
    newest = max(one.end_us for one in told)
    late = [one for one in told if one.end_us >= newest - _STILL_US]
    silent = [
        one for one in told if one not in late and read_until.get(one.source, 0) <= one.end_us
    ]
    known = None if silent else sum(one.value for one in late)
    return LastLag(known, sum(one.value for one in (*late, *silent)))


def _read_until(gold: Gold, within: Period) -> dict[str, int]:
    """Until when each source's lags were read, microseconds."""
    read = gold.bronze(tables.SCRAPES, within).where(
        (F.col("family") == family(COPY_LAG)) & (F.col("outcome") == "ok")
    )
    last = read.groupBy("source").agg(F.max("end").alias("end"))
    return {row["source"]: row["end"] for row in _rows(gold, _in_micros(last))}


def failures(gold: Gold) -> list[Row]:
    """The agents' account of what was not seen; instants in microseconds."""
    rows = gold.bronze(tables.SCRAPES).where("outcome NOT IN ('ok', 'skipped')")
    names = ("source", "family", "start", "end", "outcome", "error")
    return _rows(gold, _in_micros(rows).select(*names))


def racks(gold: Gold, sources: Collection[str]) -> list[Row]:
    """The rack of each broker that has one, as it was told last: ``source`` and ``rack``.

    Gold keeps no labels. Who is named on the last day is not looked for in the days before.

    Args:
        gold: The cluster's gold.
        sources: All that there were in the period, brokers among them.
    """
    brokers = {one for one in sources if one.startswith("broker-")}
    start, end = gold.period.start, gold.period.end
    last_day = max(start, end - dt.timedelta(days=1))
    told = _racks(gold, Period(last_day, end))
    if start < last_day and not told.keys() >= brokers:
        told = _racks(gold, Period(start, last_day)) | told
    return [{"source": one, "rack": rack} for one, rack in sorted(told.items()) if rack]


def _racks(gold: Gold, within: Period) -> dict[str, str | None]:
    told = gold.bronze(tables.RUNS, within).where(F.col("metric") == NODE_FENCED)
    node, rack = (F.col("labels")[name] for name in ("node", "rack"))
    last = told.groupBy(node.alias("node")).agg(F.max_by(rack, "end").alias("rack"))
    return {row["node"]: row["rack"] for row in _rows(gold, last) if row["node"] is not None}


def _in_micros(rows: DataFrame) -> DataFrame:
    instants = [name for name in ("start", "end") if name in rows.columns]
    return rows.withColumns({name: F.unix_micros(name) for name in instants})


def _rows(gold: Gold, rows: DataFrame) -> list[Row]:
    with compiled(gold.spark):
        return [row.asDict(recursive=True) for row in rows.collect()]
