"""gold/distributions and KIP-490 in gold: one lake, one rollup of the tables that tell of them."""

from __future__ import annotations

import random
from collections import defaultdict
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.core.periods import HOUR_US
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.relation import select
from tests import rollups
from tests.exponential_histogram import bucket_of, percentile
from tests.lake_builder import Batch, micros

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.exponential_histogram import Timed

pytestmark = pytest.mark.spark

WANTED = (tables.FLAG_DISTRIBUTION,)
THROTTLE = "kafka.client.produce.throttle_time"
LAG = "kafka.topic.remote_copy_lag.bytes"
DEPTH = "custom.partition.depth"
TEMPERATURE = "custom.source.temperature"
HEADROOM = "kafka.group.retention_headroom"
LOST = "kafka.group.non_consumed"
SECOND = 1_000_000
HOURS = (-20, 0, 5, 30)
"""From 10 o'clock on a Monday: of the week before, of one day and of the next."""
SHARES = (0.0, 0.5, 0.9, 0.99, 1.0)


def amounts(seed: int) -> Timed:
    """Values of all sizes and how long they held, 5 minutes in all."""
    rng = random.Random(seed)
    edges = sorted(rng.sample(range(1, 300), 19))
    lengths = [end - start for start, end in zip([0, *edges], [*edges, 300], strict=True)]
    some = [0.0, -2.5, 1e-9, 1e18, 1024.0, *(10 ** rng.uniform(-6, 15) for _ in range(15))]
    return [(value, length * SECOND) for value, length in zip(some, lengths, strict=True)]


def batch() -> Batch:
    """A window of each kind of metric, and some hours of one."""
    made = Batch()
    for hour in HOURS:
        at = 3600.0 * hour
        for value, us in amounts(hour):
            end = at + us / SECOND
            made.run(TEMPERATURE, at, end, value, flags=WANTED)
            at = end
    # A topic's lag is the total of its brokers; one of them is silent at the end.
    made.run(LAG, 0, 300, 500.0, topic="t", flags=WANTED)
    made.run(LAG, 0, 100, 500.0, source="broker-2", topic="t", flags=WANTED)
    made.run(LAG, 0, 300, 9e9, topic=tables.OTHER, flags=WANTED)
    # A throttled client has the time of both brokers; idle time is no value.
    made.run(THROTTLE, 0, 60, 100.0, user="u", flags=WANTED)
    made.run(THROTTLE, 30, 90, 300.0, source="broker-2", user="u", flags=WANTED)
    made.idle(THROTTLE, 0, 300, [("v", None), (None, "c")], flags=WANTED)
    # Partitions count each, folded zeros too; one that two sources claim counts once.
    made.zeros(DEPTH, 0, 300, "t", [0, 1, 2], flags=WANTED)
    made.run(DEPTH, 0, 300, 7.0, topic="t", partition=3, flags=WANTED)
    made.run(DEPTH, 100, 200, 0.0, source="broker-2", topic="t", partition=3, flags=WANTED)
    # Nobody asked for these.
    made.run("kafka.controller.active", 0, 300, 1.0)
    counter = (tables.FLAG_INCREASE, *WANTED)
    made.run("kafka.topic.remote_fetch.bytes", 0, 300, 9.0, topic="t", flags=counter)
    lose(made)
    return made


def lose(made: Batch) -> None:
    """Group late loses in partition 0; the headroom of each of its partitions, and of another."""
    for end, value in ((".low", 5.0), (".high", 15.0)):
        subject = {"group": "late", "topic": "t"}
        made.counter(LOST + end, 0, 300, value, partition=0, **subject)
        made.counter(LOST + end, 0, 300, 0.0, partition=1, **subject)
        made.zeros(LOST + end, 300, 600, "t", [0, 1], flags=(tables.FLAG_INCREASE,), group="late")
        made.counter(LOST + end, 300, 600, None, partition=2, **subject)
        made.zeros(LOST + end, 0, 300, "t", [0, 1], flags=(tables.FLAG_INCREASE,), group="fine")
    made.run(f"{HEADROOM}.low", 0, 200, 3600.0, topic="t", partition=0, group="late")
    made.run(f"{HEADROOM}.low", 200, 300, 1800.0, topic="t", partition=0, group="late")
    made.run(f"{HEADROOM}.low", 0, 300, 14400.0, topic="t", partition=1, group="late")
    made.run(f"{HEADROOM}.low", 300, 600, 0.0, topic="t", partition=1, group="late")
    made.run(f"{HEADROOM}.low", 0, 300, None, topic="t", partition=1, group="fine")


PLAIN_SQL = """
WITH sums AS (
  SELECT metric, sign, bucket, sum(series_us) AS us
  FROM {distributions}
  WHERE metric = 'custom.source.temperature'
  GROUP BY metric, sign, bucket
), ordered AS (
  SELECT *, sum(us) OVER (PARTITION BY metric ORDER BY sign, sign * bucket) AS so_far,
         sum(us) OVER (PARTITION BY metric) AS total
  FROM sums
)
SELECT metric, share,
       min(sign * 2 / (1 + pow(2, 1 / 64D)) * pow(2, (bucket + 1) / 64D)) AS percentile
FROM ordered CROSS JOIN (VALUES {shares}) AS chosen(share)
WHERE so_far >= share * total
GROUP BY metric, share
"""
"""For those who have nothing but SQL."""


@pytest.fixture(scope="module")
def gold(tmp_path_factory: pytest.TempPathFactory) -> lakes.Lake:
    root: Path = tmp_path_factory.mktemp("distributions")
    batch().commit(root)
    rollups.local(root)
    return lakes.at(str(root))


def rows(gold: lakes.Lake, table: tables.Table, where: str) -> list[Any]:
    engine = LocalEngine(gold)
    found = select(f"SELECT * FROM {{rows}} r WHERE {where}", rows=engine.rows(table))  # noqa: S608
    return [SimpleNamespace(**row) for row in engine.collect(found).to_pylist()]


def buckets(found: list[Any]) -> dict[tuple[int, int], int]:
    """Microseconds per sign and bucket."""
    summed: defaultdict[tuple[int, int], int] = defaultdict(int)
    for row in found:
        summed[row.sign, row.bucket] += row.series_us
    return dict(summed)


def expected(*timed: tuple[float, float]) -> dict[tuple[int, int], int]:
    summed: defaultdict[tuple[int, int], int] = defaultdict(int)
    for value, seconds in timed:
        summed[bucket_of(value)] += round(seconds * SECOND)
    return dict(summed)


def test_an_hour_is_in_the_buckets_of_its_values(gold: lakes.Lake):
    for hour in HOURS:
        where = (
            f"metric = '{TEMPERATURE}' AND source = 'broker-1' AND hour = {micros(3600.0 * hour)}"
        )
        found = rows(gold, tables.DISTRIBUTIONS, where)
        wanted = expected(*((value, us / SECOND) for value, us in amounts(hour)))
        assert buckets(found) == wanted
        assert len(found) == len(wanted), "a row where there was time, and no other"
        seconds = sum(value * us / SECOND for value, us in amounts(hour))
        assert sum(row.value_seconds for row in found) == pytest.approx(seconds, rel=1e-9)


def test_percentiles_of_any_span_are_those_of_all_its_time(spark: SparkSession, gold: lakes.Lake):
    all_time = [pair for hour in HOURS for pair in amounts(hour)]
    plain = PLAIN_SQL.format(
        distributions=gold.name(tables.DISTRIBUTIONS),
        shares=", ".join(f"({share})" for share in SHARES),
    )
    found = {(row.metric, float(row.share)): row.percentile for row in spark.sql(plain).collect()}
    assert found == {
        (TEMPERATURE, share): pytest.approx(percentile(all_time, share), rel=1e-12)
        for share in SHARES
    }


def test_topic_sums_brokers_and_client_has_time_of_each(gold: lakes.Lake):
    lag = rows(gold, tables.DISTRIBUTIONS, f"metric = '{LAG}'")
    assert buckets(lag) == expected((1000.0, 100), (500.0, 200))
    assert {(row.topic, row.source) for row in lag} == {("t", None)}, "what is over the cap is out"
    throttle = rows(gold, tables.DISTRIBUTIONS, f"metric = '{THROTTLE}'")
    assert buckets(throttle) == expected((100.0, 60), (300.0, 60))
    assert {(row.user_name, row.client_id) for row in throttle} == {("u", None)}, "idle is no value"


def test_partitions_count_each_and_a_contested_one_once(gold: lakes.Lake):
    depth = rows(gold, tables.DISTRIBUTIONS, f"metric = '{DEPTH}'")
    assert buckets(depth) == expected((0.0, 900), (7.0, 300))


def test_distributions_are_of_configured_metrics_only(gold: lakes.Lake):
    told = rows(gold, tables.DISTRIBUTIONS, "true")
    assert {row.metric for row in told} == {TEMPERATURE, LAG, THROTTLE, DEPTH}


def test_lost_offsets_are_summed_and_healthy_groups_are_left_out(gold: lakes.Lake):
    found = rows(gold, tables.LOST_OFFSETS, "true")
    told = {
        (row.consumer_group, row.partition_id): (
            row.offsets_low,
            row.offsets_high,
            row.series_unknown_us,
        )
        for row in found
    }
    assert told == {("late", 0): (5.0, 15.0, 0), ("late", 2): (0.0, 0.0, 300 * SECOND)}


def test_the_least_headroom_of_a_group_is_in_windows_and_hours(gold: lakes.Lake):
    where = f"metric = '{HEADROOM}.low' AND topic = 't'"

    def least(table: tables.Table) -> dict[tuple[str, int], float | None]:
        found = rows(gold, table, where)
        at = attrgetter(table.start)
        return {(row.consumer_group, at(row) % HOUR_US): row.value_min for row in found}

    assert least(tables.WINDOWS["groups"]) == {
        ("late", 0): 1800.0,
        ("late", 300 * SECOND): 0.0,
        ("fine", 0): None,
    }
    assert least(tables.GROUPS) == {("late", 0): 0.0, ("fine", 0): None}
