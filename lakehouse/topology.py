"""What topics are told to be: how many partitions they have, and attributes that are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import grains
from lakehouse.grains import HOUR_SECONDS
from lakehouse.metrics import PARTITIONS_TOLD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from lakehouse.bronze import Bronze
    from lakehouse.slo import Objective


def joined(bronze: Bronze, segments: DataFrame, objectives: Sequence[Objective]) -> DataFrame:
    """Segments with ``partitions_told``, and ``attributes`` that objectives ask for.

    Told by the topology of that window, else of that hour. Where the cluster's agents tell no
    topology at all, the highest partition that is claimed must do.
    """
    keys = ["cluster", "topic", "hour"]
    rows = segments.withColumn("hour", grains.hour("window"))
    rows = rows.join(_told(bronze, objectives), keys, "left")
    found = [F.try_element_at("of_windows", F.col("window")), F.col("of_hour")]
    if not _all_tell(bronze):
        rows = rows.join(_claimed(bronze), keys, "left")
        found.append(F.when(_nobody_tells(bronze), F.col("claimed")))
    return rows.withColumn("partitions_told", F.coalesce(*found))


def _told(bronze: Bronze, objectives: Sequence[Objective]) -> DataFrame:
    """Per topic and hour how many partitions it has, in each window that tells, and attributes."""
    keys = ("cluster", "topic", "hour")
    asked = sorted({key for objective in objectives for key in objective.where})
    rows = bronze.runs().where(
        F.col("metric").isin(PARTITIONS_TOLD, *asked) & (F.col("level") == "topic")
    )
    told = {
        name: F.max(F.when(F.col("metric") == metric, F.col("value"))).alias(name)
        for name, metric in {"of_window": PARTITIONS_TOLD, **{key: key for key in asked}}.items()
    }
    by_window = rows.withColumn("hour", grains.hour()).groupBy(*keys, "window").agg(*told.values())
    one = F.when(F.col("of_window").isNotNull(), F.struct("window", "of_window"))
    pairs = [x for key in asked for x in (F.lit(key), F.max(f"`{key}`"))]
    return by_window.groupBy(*keys).agg(
        F.map_from_entries(F.collect_list(one)).alias("of_windows"),
        F.max("of_window").alias("of_hour"),
        (F.to_json(F.create_map(*pairs)) if pairs else F.lit(None).cast("string")).alias(
            "attributes"
        ),
    )


def _claimed(bronze: Bronze) -> DataFrame:
    """Per topic and hour the number of partitions that the highest claimed one implies."""
    keys = ("cluster", "topic", "hour")
    rows = bronze.runs(by_hour=True).where("level = 'partition'")
    rows = rows.withColumn("hour", grains.hour())
    claims_ = bronze.with_sets(rows.select(*keys, "members", "partition").distinct())
    highest = F.coalesce(F.array_max("partitions"), "partition") + 1
    return claims_.groupBy(*keys).agg(F.max(highest).alias("claimed"))


def _all_tell(bronze: Bronze) -> bool:
    hours = [int(hour.timestamp()) // HOUR_SECONDS for hour in bronze.units.hours]
    wanted = {(cluster, hour) for cluster in bronze.units.clusters for hour in hours}
    return wanted <= bronze.survey.telling


def _nobody_tells(bronze: Bronze) -> Column:
    told = [f"{hour} {cluster}" for cluster, hour in sorted(bronze.survey.telling)]
    return ~F.concat_ws(" ", "hour", "cluster").isin(*told) if told else F.lit(True)  # noqa: FBT003


def asked_for(objectives: Sequence[Objective]) -> Column:
    """Subjects with the attributes that the objective asks for, or that were bad anyhow."""
    keep = F.col("bad_high_us") > 0
    told = F.from_json("attributes", "map<string,double>")
    for objective in objectives:
        has = F.col("objective") == objective.name
        for key, value in objective.where.items():
            has = has & (F.coalesce(F.try_element_at(told, F.lit(key)), F.lit(-1.0)) == value)
        keep = keep | has
    return keep
