"""A subject's bad runs: Spark puts together those that touch, so that few rows leave it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import tables
from lakehouse.bronze_rows import flagged, is_counter
from lakehouse.tables import FLAG_NEXT_POSITIVE, FLAG_PREVIOUS_POSITIVE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from lakehouse.explain.subject import Asked
    from lakehouse.explain.watched import Watched
    from lakehouse.report.gather import Gold


def bad_runs(gold: Gold, asked: Asked, watched: Sequence[Watched]) -> DataFrame:
    """The subject's runs above zero, as stretches (``s`` to ``e``) of each lane and series."""
    metrics = sorted({metric for one in watched for metric in one.told_as})
    rows = gold.bronze(tables.RUNS).where(
        F.col("metric").isin(*metrics) & of_subject(asked) & (F.col("value") > 0)
    )
    start, end = F.unix_micros("start"), F.unix_micros("end")
    tail = F.when(flagged(FLAG_NEXT_POSITIVE), 0).otherwise(F.col("tail_us"))
    lead = F.when(flagged(FLAG_PREVIOUS_POSITIVE), 0).otherwise(F.col("lead_us"))
    lanes = F.array(
        _lane("seen", start, end),
        F.when(~is_counter(), _lane("sure", start, F.greatest(start, end - tail))),
        F.when(~is_counter(), _lane("may", start - lead, end)),
    )
    keys = ("metric", "part", "source", "lane")
    pieces = rows.select("metric", _part(asked), "source", "value", F.explode(lanes).alias("x"))
    pieces = pieces.select("*", "x.*").drop("x").where("s < e")
    return stretches(pieces, keys, worst=F.max("value"), total=F.sum("value"))


def stretches(pieces: DataFrame, keys: tuple[str, ...], **figures: Column) -> DataFrame:
    """Pieces from ``s`` to ``e`` of the same keys that touch, as one.

    Args:
        pieces: With the keys, ``s`` and ``e``.
        keys: What tells series apart.
        figures: What is told of all pieces of a stretch, by name.
    """
    order = Window.partitionBy(*keys).orderBy("s", "e")
    before = F.max("e").over(order.rowsBetween(Window.unboundedPreceding, -1))
    is_new = F.when(before.isNull() | (F.col("s") > before), 1).otherwise(0)
    marked = pieces.withColumn("is_new", is_new)
    numbered = marked.withColumn(
        "number", F.sum("is_new").over(order.rowsBetween(Window.unboundedPreceding, 0))
    )
    named = [column.alias(name) for name, column in figures.items()]
    return numbered.groupBy(*keys, "number").agg(
        F.min("s").alias("s"), F.max("e").alias("e"), *named
    )


def of_subject(asked: Asked) -> Column:
    """Whether a row of bronze is of the subject; pushed down to the files."""
    if asked.kind == "client":
        user, client_id = (
            F.col(name).eqNullSafe(getattr(asked.subject, name)) for name in ("user", "client_id")
        )
        return user & client_id & F.col("topic").isNull()
    name = "topic" if asked.kind == "partition" else asked.kind
    found: Column = F.col(f"`{name}`") == getattr(asked.subject, name)
    return found & (F.col("partition") == asked.partition) if asked.kind == "partition" else found


def _lane(name: str, start: Column, end: Column) -> Column:
    return F.struct(F.lit(name).alias("lane"), start.alias("s"), end.alias("e"))


def _part(asked: Asked) -> Column:
    of = {
        "topic": F.col("partition").cast("string"),
        "partition": F.col("partition").cast("string"),
        "group": F.concat_ws("/", "topic", "partition"),
    }
    return of.get(asked.kind, F.lit(None).cast("string")).alias("part")
