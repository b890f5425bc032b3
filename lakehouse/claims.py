"""Who claims which partition or client in a window, as events and pieces of a subject's atoms.

Zeros come folded: a row, a set, no partition. As long as no run of a partition overlaps another of
the same partition, nobody needs to know which partitions a row stands for: it counts as ``series``
times its time. Only partitions that the survey doubts are *taken* out of their rows and swept by
themselves. So the cost follows what is wrong, and nothing is counted twice.

Rows that fill their window need no sweep either: all of a subject's make two events. What is left
are runs that begin or end inside of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import doubts, edges, grains, standing, survey, sweep
from lakehouse import pieces as pieces_
from lakehouse.metrics import (
    LEADERLESS,
    UNAVAILABLE,
    UNDER_MIN_ISR,
    is_counter,
    is_measure,
    is_shared,
)
from lakehouse.pieces import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from lakehouse.bronze import Bronze
    from lakehouse.edges import Carried

TOPIC_KEYS: Final = ("cluster", "metric", "topic", "window")
CLIENT_KEYS: Final = ("cluster", "metric", "user", "client_id", "window")
ATOM: Final = ("partition", "atom")
"""What names an atom of a topic: a partition, or what one source reports of the topic itself."""


def topic_pieces(bronze: Bronze, metrics: Sequence[str] = ()) -> DataFrame:
    """Gauges of partitions and topics as pieces, with ``taken``: partitions that may overlap.

    What is derived of under min ISR is not there yet: see ``with_derived``.

    Args:
        bronze: What is read.
        metrics: What is wanted, else everything; as bronze has it (see ``told_as``).

    Returns:
        Pieces (see ``pieces``) with ``weight``: how many series are not taken. Rows that stand for
        several windows are one: see ``in_each_window``.
    """
    rows = bronze.runs(loose=True, by_hour=True).where(
        F.col("level").isin("partition", "topic") & ~is_counter() & is_shared()
    )
    if metrics:
        rows = rows.where(F.col("metric").isin(*metrics))
    if bronze.survey.leaderless and (not metrics or LEADERLESS in metrics):
        gone = rows.where((F.col("metric") == LEADERLESS) & (F.col("value") > 0))
        rows = rows.unionByName(gone.withColumn("metric", F.lit(UNAVAILABLE)))
    rows = _with_taken(bronze, rows)
    if bronze.condensed_at is not None:
        # Of what is taken, the runs themselves; of all else, what they were put together to.
        rows = rows.where("IF(taken IS NULL, NOT loose, rows IS NULL)")
    pieces = pieces_.pieces(rows)
    taken = F.coalesce(F.array_size("taken"), F.lit(0))
    return pieces.withColumn("weight", (F.col("series") - taken).cast("bigint"))


def in_each_window(bronze: Bronze, pieces: DataFrame) -> DataFrame:
    """Pieces, those that stand for several windows once in each."""
    micros = ("s", "e", "sure_end", "may_start")
    return standing.in_each_window(pieces, bronze.window_seconds, ("window",), micros)


def told_as(metrics: Sequence[str]) -> tuple[str, ...]:
    """The metrics as bronze has them."""
    derived = (UNDER_MIN_ISR, LEADERLESS) if UNAVAILABLE in metrics else ()
    return tuple(dict.fromkeys((*metrics, *derived)))


def with_derived(rows: DataFrame) -> DataFrame:
    """What is told of under min ISR, told of unavailable as well.

    Late, when rows are few: to explode all pieces costs as much as all else that is done to them.
    """
    both = F.array(F.col("metric"), F.lit(UNAVAILABLE))
    names = F.when(F.col("metric") == UNDER_MIN_ISR, both).otherwise(F.array("metric"))
    return rows.withColumn("metric", F.explode(names))


def topic_events(bronze: Bronze, pieces: DataFrame, carried: Carried) -> DataFrame:
    """Events of topics of what ``topic_pieces`` gives, for a sweep over TOPIC_KEYS.

    Where no values are carried, pieces of the same time are put together first.
    """
    summed = pieces.where("weight > 0")
    if carried.is_valued:
        summed = in_each_window(bronze, summed)
        fills = _fills_window(bronze) & ((F.col("p") == 0) | (F.col("sure_end") == F.col("e")))
        window_us = bronze.window_seconds * 1_000_000
        filling = edges.filling(summed.where(fills), TOPIC_KEYS, window_us, carried)
        passing = edges.events(summed.where(~fills), TOPIC_KEYS, carried)
        events = with_derived(filling.unionByName(passing))
    else:
        shapes = in_each_window(bronze, pieces_.shapes(summed, (*TOPIC_KEYS, "standing")))
        shapes = with_derived(shapes)
        events = edges.events(shapes, TOPIC_KEYS, carried)
    if bronze.survey.overlapping:
        taken = sweep.again(taken_atoms(bronze, pieces), TOPIC_KEYS, carried)
        events = events.unionByName(taken)
    return events


def taken_atoms(bronze: Bronze, pieces: DataFrame) -> DataFrame:
    """Segments of the atoms that are taken out of their rows, derived ones too."""
    one = F.when(F.col("one") != doubts.WHOLE_SOURCE, F.col("one"))
    source = F.concat_ws(" ", "source", F.to_json("labels"))
    taken = with_derived(in_each_window(bronze, pieces.where("taken IS NOT NULL")))
    rows = taken.withColumn("one", F.explode("taken")).withColumns(
        {
            "partition": one,
            "atom": F.when(one.isNull(), source),
            "weight": F.lit(1).cast("bigint"),
        }
    )
    keys = (*TOPIC_KEYS, *ATOM)
    return sweep.atoms(sweep.sweep(edges.events(rows, keys), keys), keys)


def partition_pieces(bronze: Bronze, pieces: DataFrame) -> DataFrame:
    """Pieces of single partitions: of rows of their own, and of rows that fold part of a window.

    Whoever is folded in all of a window has no other run in it, and was zero.
    """
    single = pieces.where("partition IS NOT NULL AND weight > 0")
    folded = pieces.where(
        F.col("members").isNotNull() & (F.col("weight") > 0) & ~_fills_window(bronze)
    )
    none = F.array().cast("array<int>")
    others = F.array_except("partitions", F.coalesce("taken", none))
    each = bronze.with_sets(folded).withColumns(
        {"partition": F.explode(others), "weight": F.lit(1).cast("bigint")}
    )
    columns = single.columns
    return single.select(*quoted(columns)).unionByName(each.select(*quoted(columns)))


def client_atoms(bronze: Bronze, metrics: Sequence[str] = ()) -> DataFrame:
    """Segments of every client on every source; ``value`` null: observed and idle."""
    rows = bronze.runs().where((F.col("level") == "client") & ~is_counter() & is_measure())
    if metrics:
        rows = rows.where(F.col("metric").isin(*metrics))
    one = F.array(F.struct(F.col("user"), F.col("client_id")))
    rows = bronze.with_sets(rows)
    rows = rows.withColumn("client", F.explode(F.coalesce("clients", one))).withColumns(
        {
            "user": F.col("client.user"),
            "client_id": F.col("client.client_id"),
            "atom": F.concat_ws(" ", "source", F.to_json("labels")),
            "weight": F.lit(1).cast("bigint"),
        }
    )
    keys = (*CLIENT_KEYS, "atom")
    return sweep.atoms(sweep.sweep(edges.events(pieces_.pieces(rows), keys), keys), keys)


def summed(atoms: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Segments of subjects, with the sums over their atoms."""
    return sweep.sweep(sweep.again(atoms, keys), keys)


def _with_taken(bronze: Bronze, rows: DataFrame) -> DataFrame:
    """Rows with ``taken``: which of their partitions may overlap other rows, else null."""
    if not bronze.survey.overlapping:
        return rows.withColumn("taken", F.lit(None).cast("array<int>"))
    doubted = survey.overlapping(bronze.spark, bronze.survey).alias("doubted")
    under = F.when(F.col("metric") == UNDER_MIN_ISR, UNAVAILABLE).otherwise(F.col("metric"))
    keys = {"doubted_as": under, "hour": grains.hour()}
    same = [
        F.col(f"runs.{ours}").eqNullSafe(F.col(f"doubted.{theirs}"))
        for ours, theirs in (
            ("cluster", "cluster"), ("doubted_as", "metric"), ("topic", "topic"), ("hour", "hour"),
            ("members", "members"), ("partition", "partition"),
        )
    ]  # fmt: skip
    joined = rows.withColumns(keys).alias("runs").join(doubted, same, "left")
    return joined.select("runs.*", "taken").drop(*keys)


def _fills_window(bronze: Bronze) -> Column:
    """Whether a piece lasts from its window's start to its end."""
    return F.col("opening") & (F.col("e") - F.col("s") == bronze.window_seconds * 1_000_000)
