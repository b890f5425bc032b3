"""Time in which somebody was not asked who may have had something bad to tell.

That a metric is not above zero on those who told of it says nothing of those who were not read. Who
has something to tell, besides who did: of a topic every source that claims a partition of it; of a
client every broker that there is: that was read in that hour, or is named as not fenced. What was
read, the agents' own account says, per family. Where nobody accounts for a source at all, what it
claims must do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import claims, edges, grains, sweep
from lakehouse.grains import HOUR_SECONDS
from lakehouse.metrics import CONTROLLERS_TELL, NODE_FENCED, UNDER_MIN_ISR, family
from lakehouse.pieces import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from lakehouse.bronze import Bronze

_OF_SOURCE: Final = ("cluster", "metric", "source", "window")
_OF_CLUSTER: Final = ("cluster", "metric", "window")
_CARRIED: Final = edges.COUNTS.with_whole()


def of_topics(bronze: Bronze, metrics: Sequence[str]) -> DataFrame | None:
    """When a source claimed a partition of a topic, and a metric's family was not read there.

    Args:
        bronze: What is read.
        metrics: Metrics of topics.

    Returns:
        cluster, metric, topic, window, ``unread``: spans in order, apart from one another, in
        microseconds. None: of none of these metrics it is known in which family they are.
    """
    named = [metric for metric in metrics if family(metric)]
    if not named:
        return None
    accounted = bronze.scrapes().withColumn("family", F.lit(None).cast("string"))
    gaps = _of_sources(bronze, named, _hours(accounted))
    hours = gaps.select("cluster", "source", grains.hour("window").alias("hour")).distinct()
    pieces = claims.topic_pieces(bronze, (UNDER_MIN_ISR,)).withColumn("hour", grains.hour("window"))
    pieces = pieces.join(F.broadcast(hours), ["cluster", "source", "hour"], "left_semi")
    pieces = claims.in_each_window(bronze, pieces).select(
        "cluster", "source", "topic", "window", "s", "e"
    )
    both = pieces.distinct().join(gaps, ["cluster", "source", "window"])
    cut = both.withColumns({"s": F.greatest("s", "ended"), "e": F.least("e", "begun")})
    return _spans(cut.where("s < e"), claims.TOPIC_KEYS)


def of_clients(bronze: Bronze, metrics: Sequence[str]) -> DataFrame | None:
    """When a broker was not read that may have told of any client.

    Args:
        bronze: What is read.
        metrics: Metrics of clients.

    Returns:
        cluster, metric, window, ``unread`` as of topics; None likewise.
    """
    named = [metric for metric in metrics if family(metric)]
    if not named:
        return None
    gaps = _of_sources(bronze, named, _live(bronze, named))
    controllers = F.col("metric").startswith(CONTROLLERS_TELL)
    source = F.col("source")
    tells = source.startswith("broker-") | (controllers & source.startswith("controller-"))
    gaps = gaps.where(tells)
    return _spans(gaps.selectExpr(*quoted(_OF_CLUSTER), "ended AS s", "begun AS e"), _OF_CLUSTER)


def seen_length(segments: DataFrame, unread: DataFrame | None) -> tuple[DataFrame, Column]:
    """Segments, and how much of each lies in no span of ``unread``.

    Args:
        segments: With ``t`` and ``length``, microseconds.
        unread: Of some of them; few.
    """
    if unread is None:
        return segments, F.col("length")
    keys = [name for name in unread.columns if name != "unread"]
    rows = segments.join(F.broadcast(unread), keys, "left")
    within = (
        "aggregate(unread, 0L, (total, one) -> total + "
        "greatest(0L, least(one.e, t + length) - greatest(one.s, t)))"
    )
    return rows, F.expr(f"length - coalesce({within}, 0L)")


def _of_sources(bronze: Bronze, metrics: Sequence[str], hours: DataFrame) -> DataFrame:
    """Per source and window that was to be read: when reading a metric's family was interrupted.

    Args:
        bronze: What is read.
        metrics: Of which the family is known.
        hours: cluster, source, hour, and the family that was to be read; null: each.

    Returns:
        cluster, metric, source, window; ``ended``, ``begun``: microseconds.
    """
    pairs = (F.struct(F.lit(m).alias("metric"), F.lit(family(m)).alias("told_by")) for m in metrics)
    frames = _windows(bronze, hours).select("*", F.inline(F.array(*pairs)))
    frames = frames.where("family IS NULL OR family = told_by")
    told = _read(bronze, metrics)
    same = [F.col("told.family") == F.col("frames.told_by")]
    same += [F.col(f"told.{n}") == F.col(f"frames.{n}") for n in ("cluster", "source", "window")]
    names = quoted((*_OF_SOURCE, "start", "end"))
    ours = told.alias("told").join(frames.alias("frames"), same)
    told_of = ("told.cluster", "metric", "told.source", "told.window", "told.start", "told.end")
    read = ours.select(*told_of)
    rows = frames.select(*names, F.lit(1).alias("frame")).unionByName(
        read.distinct().select(*names, F.lit(0).alias("frame"))
    )
    counts = {"obs": "1 - frame", "high": "frame"}
    segments = sweep.sweep(edges.counted(rows, _OF_SOURCE, counts), _OF_SOURCE, _CARRIED)
    unread = segments.where("high > 0 AND obs <= 0 AND length > 0")
    return unread.selectExpr(*quoted(_OF_SOURCE), "t AS ended", "t + length AS begun")


def _read(bronze: Bronze, metrics: Sequence[str]) -> DataFrame:
    """What of the agents' account vouches for these metrics."""
    families = {family(one) for one in metrics}
    return bronze.scrapes().where((F.col("outcome") == "ok") & F.col("family").isin(*families))


def _live(bronze: Bronze, metrics: Sequence[str]) -> DataFrame:
    """In which hours a source was read for some of the metrics, or named as not fenced."""
    fenced = bronze.runs(by_hour=True).where(
        (F.col("metric") == NODE_FENCED) & (F.col("value") == 0)
    )
    nobody = F.lit(None).cast("string")
    named = fenced.withColumns({"source": F.col("labels")["node"], "family": nobody})
    read = _hours(_read(bronze, metrics))
    return read.unionByName(_hours(named.where("source IS NOT NULL")))


def _hours(rows: DataFrame) -> DataFrame:
    """In which hours there are rows, by source and family."""
    return rows.select(
        "cluster", "source", "family", grains.hour("window").alias("hour")
    ).distinct()


def _windows(bronze: Bronze, hours: DataFrame) -> DataFrame:
    """Every window of some hours, with its start and end."""
    length, hour = bronze.window_seconds * 1_000_000, HOUR_SECONDS * 1_000_000
    starts = f"sequence(hour * {hour}L, (hour + 1) * {hour}L - {length}L, {length}L)"
    return hours.selectExpr("cluster", "source", "family", f"explode({starts}) AS at").selectExpr(
        "cluster",
        "source",
        "family",
        "timestamp_micros(at) AS `window`",
        "timestamp_micros(at) AS start",
        f"timestamp_micros(at + {length}L) AS `end`",
    )


def _spans(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Spans ``s`` to ``e`` per keys, those that overlap as one."""
    timed = rows.selectExpr(
        *quoted(keys), "timestamp_micros(s) AS start", "timestamp_micros(e) AS `end`"
    )
    segments = sweep.sweep(edges.counted(timed, keys, {"pos": "1"}), keys, _CARRIED)
    span = F.struct(F.col("t").alias("s"), (F.col("t") + F.col("length")).alias("e"))
    return (
        segments.where("pos > 0 AND length > 0")
        .groupBy(*quoted(keys))
        .agg(F.array_sort(F.collect_list(span)).alias("unread"))
    )
