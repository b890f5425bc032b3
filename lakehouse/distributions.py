"""gold/distributions: for how long a metric had which value, for metrics whose entry asks for it.

The wish comes with the runs, as a flag: the rollup knows no catalogue, and users have their own.

Whose value it is depends on the metric, and is one thing for each, so that all rows of a metric may
be added up. What brokers report per topic: their total at each instant, which is what the topic
lags by. Partitions, and groups in partitions: each of them, told per topic; one that two sources
claim counts once. Clients: on each broker, since each throttles by itself and has its own quota to
keep; told per client. Anything else: per source. Series beyond a family's cap are in no
distribution: their sum is nobody's value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import claims, edges, exact, histograms, sweep, tables
from lakehouse.metrics import flagged, is_counter
from lakehouse.pieces import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakehouse.bronze import Bronze

_SUBJECT: Final = {
    "topic": ("topic", "partition", "group"),
    "user": ("client",),
    "client_id": ("client",),
    "group": ("group",),
    "source": ("source",),
}
"""Columns that name a subject, and at which levels they do."""

_KEYS: Final = ("cluster", "metric", *_SUBJECT, "sign", "bucket", "window")


def distributions(bronze: Bronze) -> DataFrame:
    """Time per bucket of value at the finest grain."""
    if not bronze.survey.distributed:
        return bronze.nothing(tables.DISTRIBUTIONS)
    if bronze.survey.spread:
        bronze = bronze.as_written()
    wanted = _asked_for() & F.col("value").isNotNull() & ~_beyond_cap()
    of_topics = _of_topics(bronze, wanted)
    values = of_topics.unionByName(_of_others(bronze, wanted), allowMissingColumns=True)
    value, us = F.col("value"), F.col("us")
    return (
        values.withColumns({"sign": histograms.sign(value), "bucket": histograms.bucket(value)})
        .groupBy(*quoted(_KEYS))
        .agg(
            F.sum(us).alias("duration_us"),
            exact.total("value * us / 1e6D").alias("value_seconds"),
        )
    )


def _asked_for() -> Column:
    return flagged(tables.FLAG_DISTRIBUTION) & ~is_counter()


def _beyond_cap() -> Column:
    names = (F.coalesce(name, F.lit("")) for name in ("topic", "client_id"))
    topic, client = (name == tables.OTHER for name in names)
    return topic | client


def _of_topics(bronze: Bronze, wanted: Column) -> DataFrame:
    """Values of partitions, and of topics as the total of their brokers."""
    pieces = claims.in_each_window(bronze, claims.topic_pieces(bronze).where(wanted))
    value = F.expr(exact.double(edges.lanes_of("v"))).alias("value")
    whose = quoted(claims.TOPIC_KEYS)
    of_partitions = pieces.where("level = 'partition'")
    length = F.col("e") - F.col("s")
    partitions = claims.with_derived(of_partitions.where("weight > 0")).select(
        *whose, "value", (length * F.col("weight")).alias("us")
    )
    if bronze.survey.overlapping:
        atoms = claims.taken_atoms(bronze, of_partitions).where("obs > 0 AND length > 0")
        partitions = partitions.unionByName(
            atoms.select(*whose, value, F.col("length").alias("us"))
        )
    events = claims.topic_events(bronze, pieces.where("level = 'topic'"), edges.EVERYTHING)
    totals = sweep.sweep(events, claims.TOPIC_KEYS).where("obs > 0 AND length > 0")
    return partitions.unionByName(totals.select(*whose, value, F.col("length").alias("us")))


def _of_others(bronze: Bronze, wanted: Column) -> DataFrame:
    """Values of clients, groups and sources, as each series has them."""
    runs = bronze.runs().where(wanted)
    rows = bronze.with_sets(runs.where("level IN ('client', 'group', 'source')"))
    one = F.array(F.struct(F.col("user"), F.col("client_id")))
    clients = F.when(F.col("level") == "client", F.coalesce("clients", one)).otherwise(one)
    weight = F.when(F.col("level") == "client", 1).otherwise(F.col("series"))
    length = F.unix_micros("end") - F.unix_micros("start")
    rows = rows.withColumn("client", F.explode(clients)).withColumns(
        {"user": F.col("client.user"), "client_id": F.col("client.client_id")}
    )
    subject = (
        F.when(F.col("level").isin(*levels), F.col(name)).alias(name)
        for name, levels in _SUBJECT.items()
    )
    return rows.select(
        "cluster", "metric", "window", *subject, "value", (length * weight).alias("us")
    )
