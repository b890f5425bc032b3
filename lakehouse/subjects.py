"""gold/subjects: what exists and existed, from anything that ever told of it.

Every figure is a least, a greatest or a latest one, so that merging the recomputed hours once or
again into what is known gives the same rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import standing
from lakehouse.metrics import DESCRIBING, NODE_FENCED, QUOTAS, REPLICAS
from lakehouse.pieces import quoted
from lakehouse.tables import SUBJECTS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakehouse.bronze import Bronze

TOPOLOGY: Final = "topology"
"""Family whose scrapes tell which topics exist."""

DEFAULT_ENTITY: Final = "<default>"
"""How Kafka spells the default user or client id of a quota."""

_IDENTITY: Final = ("cluster", "kind", "topic", "user", "client_id", "group", "source")
_LABEL: Final = "default"


def subjects(bronze: Bronze) -> DataFrame:
    """All subjects of the touched clusters: those known before, and what the new hours tell."""
    known = lakes.read(bronze.spark, bronze.lake, SUBJECTS).where(
        F.col("cluster").isin(*bronze.units.clusters)
    )
    told = _told_by_runs(bronze).unionByName(_told_by_scrapes(bronze), allowMissingColumns=True)
    before = known.select(
        *quoted(_IDENTITY), "first_seen", "last_seen", "seen_whole_until",
        F.explode_outer(F.map_entries("attributes")).alias("told"), "attributes_at",
    ).select(
        *quoted(_IDENTITY), "first_seen", "last_seen", "seen_whole_until", "attributes_at",
        F.col("told.key").alias("metric"), F.col("told.value").alias("value"),
    )  # fmt: skip
    return _merged(told.unionByName(before))


def _merged(told: DataFrame) -> DataFrame:
    """One row per subject; an attribute is what the run that ended last told."""
    latest = told.groupBy(*quoted(_IDENTITY), "metric").agg(
        F.min("first_seen").alias("first_seen"),
        F.max("last_seen").alias("last_seen"),
        F.max("seen_whole_until").alias("seen_whole_until"),
        F.max("attributes_at").alias("attributes_at"),
        F.max(F.struct("attributes_at", "value")).alias("last"),
    )
    pair = F.when(F.col("metric").isNotNull(), F.struct("metric", F.col("last.value")))
    return latest.groupBy(*quoted(_IDENTITY)).agg(
        F.min("first_seen").alias("first_seen"),
        F.max("last_seen").alias("last_seen"),
        F.max("seen_whole_until").alias("seen_whole_until"),
        F.max("attributes_at").alias("attributes_at"),
        F.map_from_entries(F.array_sort(F.collect_list(pair))).alias("attributes"),
    )


def _told_by_runs(bronze: Bronze) -> DataFrame:
    """What runs tell: they name topics, groups and clients, and their values describe some."""
    describing = F.col("metric").isin(*DESCRIBING)
    runs = bronze.runs(by_hour=True)
    runs = runs.withColumn("end", standing.until(bronze.window_seconds))
    told = _naming(runs.where(~describing)).unionByName(
        _describing(runs.where(describing)), allowMissingColumns=True
    )
    # Folded clients are taken out of their sets once, not once a run.
    one = F.array(F.struct(F.col("user"), F.col("client_id")))
    each = bronze.with_sets(told).withColumn("client", F.explode(F.coalesce("clients", one)))
    client = {name: F.col(f"client.{name}") for name in ("user", "client_id")}
    return each.withColumns(client).drop("client", "clients", "partitions", "members")


def _naming(runs: DataFrame) -> DataFrame:
    """Of most runs it matters only that, and when, they name somebody."""
    found = _with_identity(runs).groupBy(*quoted(_IDENTITY), "members")
    return found.agg(F.min("start").alias("first_seen"), F.max("end").alias("last_seen"))


def _describing(runs: DataFrame) -> DataFrame:
    """Of a run that describes somebody its last value as well."""
    found = _with_identity(runs).groupBy(*quoted(_IDENTITY), "members", "metric")
    return found.agg(
        F.min("start").alias("first_seen"),
        F.max("end").alias("last_seen"),
        F.max("end").alias("attributes_at"),
        F.max(F.struct("end", "value"))["value"].alias("value"),
    )


def _with_identity(runs: DataFrame) -> DataFrame:
    of_client = F.col("level") == "client"
    return runs.select(
        "cluster",
        _kind().alias("kind"),
        F.when(F.col("level") != "group", F.col("topic")).alias("topic"),
        _entity("user").alias("user"),
        _entity("client_id").alias("client_id"),
        "group",
        F.when(F.col("metric") == NODE_FENCED, F.col("labels")["node"]).alias("source"),
        F.when(of_client, F.col("members")).alias("members"),
        "metric",
        "value",
        "start",
        "end",
    ).where("kind IS NOT NULL")


def _kind() -> Column:
    return (
        F.when(F.col("metric").startswith(QUOTAS), "quota")
        .when(F.col("metric") == NODE_FENCED, "source")
        # Logs are also of the controllers' own __cluster_metadata, which is no topic.
        .when(F.col("metric").startswith(REPLICAS), None)
        .when(F.col("level").isin("partition", "topic"), "topic")
        .when(F.col("level").isin("group", "client"), F.col("level"))
    )


def _entity(name: str) -> Column:
    """A client's user or client id; of a default quota the name that Kafka gives it."""
    other = name.replace("_", "-")
    default = F.array_contains(F.split(F.coalesce(F.col("labels")[_LABEL], F.lit("")), ","), other)
    client = F.col("level").isin("client") | F.col("metric").startswith(QUOTAS)
    return F.when(client, F.when(default, DEFAULT_ENTITY).otherwise(F.col(name)))


def _told_by_scrapes(bronze: Bronze) -> DataFrame:
    """The sources themselves, and until when each of them told which topics exist."""
    whole = (F.col("family") == TOPOLOGY) & (F.col("outcome") == "ok")
    return (
        bronze.scrapes()
        .groupBy("cluster", "source")
        .agg(
            F.min("start").alias("first_seen"),
            F.max("end").alias("last_seen"),
            F.max(F.when(whole, F.col("end"))).alias("seen_whole_until"),
        )
        .withColumn("kind", F.lit("source"))
    )
