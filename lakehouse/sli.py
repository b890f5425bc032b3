"""gold/sli: good and bad time per objective and subject, in every window that bronze tells of.

Time that is neither good nor bad is unknown, and so are windows without any row: the report takes
what was to be expected from gold/subjects. Time is good only where the whole subject was seen:
of a topic all its partitions, of a client or group as much as at best in that window, of a source
all its families.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import claims, sweep
from lakehouse.claims import CLIENT_KEYS, TOPIC_KEYS
from lakehouse.slo import COVERAGE
from lakehouse.sweep import event, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from lakehouse.bronze import Bronze
    from lakehouse.slo import Objective

SUBJECT: Final = ("objective", "topic", "user", "client_id", "group", "source")
PARTITIONS_TOLD: Final = "kafka.topic.partitions"


def indicators(bronze: Bronze, objectives: Sequence[Objective]) -> DataFrame:
    """Good and bad time at the finest grain."""
    parts: list[DataFrame] = []
    topics = [objective for objective in objectives if objective.level == "topic"]
    of_partitions = [o for o in topics if o.metric.startswith("kafka.partition.")]
    if of_partitions:
        parts.append(_partitions(bronze, of_partitions))
    totals = [o for o in topics if o not in of_partitions]
    for above in sorted({objective.above for objective in totals}):
        parts.append(_totals(bronze, [o for o in totals if o.above == above], above))
    for level, function in (("client", _clients), ("group", _groups), ("source", _sources)):
        chosen = [objective for objective in objectives if objective.level == level]
        if chosen:
            parts.append(function(bronze, chosen))
    return reduce(lambda a, b: a.unionByName(b), parts)


def _partitions(bronze: Bronze, objectives: Sequence[Objective]) -> DataFrame:
    """Topics by their partitions: bad while at least one is."""
    runs = bronze.runs()
    gauge = claims.with_unavailable(claims.gauges(runs, "partition")).where(_of(objectives))
    segments = claims.topic_segments(gauge, claims.partition_segments(gauge))
    seen = segments.join(_expected(runs), ["cluster", "topic", "window"], "left")
    good = (F.col("pos") == 0) & (F.col("obs") >= F.col("partitions_told"))
    return _told(_times(seen, TOPIC_KEYS, good), objectives)


def _totals(bronze: Bronze, objectives: Sequence[Objective], above: float) -> DataFrame:
    """Topics by what brokers report of them: bad while the brokers' total is above the threshold.

    The total is known while every partition is claimed by a leader that is read: a broker that is
    not seen may have something to report.
    """
    runs = bronze.runs()
    gauge = claims.gauges(runs, "topic").where(_of(objectives))
    isr = claims.gauges(runs, "partition").where(F.col("metric") == claims.UNDER_MIN_ISR)
    claimed = claims.topic_segments(isr, claims.partition_segments(isr))
    whole = claimed.join(_expected(runs), ["cluster", "topic", "window"]).where(
        "obs >= partitions_told"
    )
    metrics = F.array(*(F.lit(objective.metric) for objective in objectives))
    covers = whole.withColumn("metric", F.explode(metrics)).select(
        *TOPIC_KEYS,
        F.inline(
            F.array(
                event(F.col("t"), {"whole": F.lit(1)}), event(F.col("until"), {"whole": F.lit(-1)})
            )
        ),
    )
    values = sweep.again(claims.summed_segments(gauge, TOPIC_KEYS, above=above), TOPIC_KEYS)
    segments = sweep.sweep(values.unionByName(covers), TOPIC_KEYS).where("obs > 0 OR high > 0")
    good = (F.col("whole") > 0) & (F.col("obs") > 0) & (F.col("v") <= above)
    bad = tuple(F.col(name) > above for name in ("v", "v_low", "v_high"))
    rows = _told(_times(segments, TOPIC_KEYS, good, bad), objectives)
    return _where(rows, runs, objectives)


def _clients(bronze: Bronze, objectives: Sequence[Objective]) -> DataFrame:
    """Clients: bad while at least one broker throttles them."""
    gauge = claims.gauges(bronze.runs(), "client").where(_of(objectives))
    segments = claims.summed_segments(claims.clients(gauge, all_of_them=True), CLIENT_KEYS)
    return _told(_times(*_at_best(segments, CLIENT_KEYS)), objectives)


def _groups(bronze: Bronze, objectives: Sequence[Objective]) -> DataFrame:
    """Groups: bad while an increase of the offsets lost spans it; the bounds have counters."""
    keys = ("cluster", "metric", "group", "window")
    runs = bronze.runs().where("level = 'group'")
    high = F.col("metric").endswith(".high")
    rows = runs.withColumns({"is_high": high, "metric": F.regexp_replace("metric", r"\.(low|high)$", "")})
    rows = rows.where(_of(objectives))
    known = F.when(F.col("is_high") & F.col("value").isNotNull(), F.col("series")).otherwise(0)
    unknown = F.when(F.col("is_high") & F.col("value").isNull(), F.col("series")).otherwise(0)
    lost = F.coalesce((F.col("value") > 0).cast("int"), F.lit(0))
    sure, maybe = (F.when(F.col("is_high") == is_high, lost).otherwise(0) for is_high in (False, True))
    counts = {"obs": known, "whole": unknown, "pos": sure, "low": sure, "high": maybe}
    events = rows.select(
        *quoted(keys),
        F.inline(
            F.array(
                event(F.unix_micros("start"), counts),
                event(F.unix_micros("end"), {name: -count for name, count in counts.items()}),
            )
        ),
    )
    segments = sweep.sweep(events, keys).withColumn("high", F.greatest("high", "pos"))
    best = F.max(F.col("obs") + F.col("whole")).over(Window.partitionBy(*quoted(keys)))
    good = (F.col("pos") == 0) & (F.col("whole") == 0) & (F.col("obs") >= F.col("best"))
    return _told(_times(segments.withColumn("best", best), keys, good), objectives)


def _sources(bronze: Bronze, objectives: Sequence[Objective]) -> DataFrame:
    """Sources: bad while an attempt to read a family of theirs failed."""
    keys = ("cluster", "metric", "source", "window")
    ok = (F.col("outcome") == "ok").cast("int")
    counts = {"obs": ok, "pos": 1 - ok, "low": 1 - ok, "high": 1 - ok}
    events = bronze.scrapes().withColumn("metric", F.lit(COVERAGE)).where(_of(objectives)).select(
        *quoted(keys),
        F.inline(
            F.array(
                event(F.unix_micros("start"), counts),
                event(F.unix_micros("end"), {name: -count for name, count in counts.items()}),
            )
        ),
    )
    return _told(_times(*_at_best(sweep.sweep(events, keys), keys)), objectives)


def _at_best(
    segments: DataFrame, keys: Sequence[str]
) -> tuple[DataFrame, Sequence[str], Column]:
    """Good: none is bad, and as many are seen as ever in the window."""
    best = F.max("obs").over(Window.partitionBy(*quoted(keys)))
    good = (F.col("pos") == 0) & (F.col("obs") > 0) & (F.col("obs") >= F.col("best"))
    return segments.withColumn("best", best), keys, good


def _times(
    segments: DataFrame,
    keys: Sequence[str],
    good: Column,
    bad: tuple[Column, Column, Column] | None = None,
) -> DataFrame:
    """Good and bad time with bounds; ``bad`` as seen, surely and possibly."""
    seen, sure, maybe = bad or tuple(F.col(name) > 0 for name in ("pos", "low", "high"))
    length = F.col("until") - F.col("t")
    spill = F.when(F.max("opens") == 1, 0).otherwise(F.coalesce(F.max("spill"), F.lit(0)))

    def total(when: Column) -> Column:
        return F.sum(F.when(when, length).otherwise(0)).cast("bigint")

    return segments.groupBy(*quoted(keys)).agg(
        total(good).alias("good_us"),
        total(seen).alias("bad_us"),
        total(sure).alias("bad_low_us"),
        (total(maybe) + spill).alias("bad_high_us"),
    )


def _expected(runs: DataFrame) -> DataFrame:
    """How many partitions a topic has in a window, as ``partitions_told``.

    Told by the topology of that window, else of that hour. Where the cluster's agents tell no
    topology at all, the highest partition that is claimed must do.
    """
    keys = ["cluster", "topic", "window"]
    told = runs.where(F.col("metric") == PARTITIONS_TOLD).groupBy(*keys).agg(
        F.max("value").alias("told")
    )
    claimed = (
        runs.where("level = 'partition'")
        .groupBy(*keys)
        .agg((F.max(F.coalesce(F.array_max("partitions"), "partition")) + 1).alias("claimed"))
    )
    hour = F.date_trunc("hour", "window")
    of_topic = Window.partitionBy("cluster", "topic", hour)
    of_cluster = Window.partitionBy("cluster", hour)
    nobody_tells = F.max("told").over(of_cluster).isNull()
    return told.join(claimed, keys, "full").select(
        *keys,
        F.coalesce(
            F.col("told"),
            F.max("told").over(of_topic),
            F.when(nobody_tells, F.max("claimed").over(of_topic)),
        ).alias("partitions_told"),
    )


def _where(rows: DataFrame, runs: DataFrame, objectives: Sequence[Objective]) -> DataFrame:
    """Rows of subjects that have the attributes an objective asks for, or were bad anyhow."""
    wanted = {(key, value) for o in objectives for key, value in o.where.items()}
    if not wanted:
        return rows
    has = reduce(
        lambda a, b: a | b,
        ((F.col("metric") == key) & (F.col("value") == value) for key, value in wanted),
    )
    having = runs.where(has).select(
        "cluster", "topic", F.date_trunc("hour", "window").alias("hour"), F.lit(1).alias("has")
    )
    asking = [objective.name for objective in objectives if objective.where]
    joined = rows.withColumn("hour", F.date_trunc("hour", "window")).join(
        having.distinct(), ["cluster", "topic", "hour"], "left"
    )
    keep = ~F.col("objective").isin(*asking) | F.col("has").isNotNull() | (F.col("bad_high_us") > 0)
    return joined.where(keep).drop("hour", "has")


def _of(objectives: Sequence[Objective]) -> Column:
    return F.col("metric").isin(*{objective.metric for objective in objectives})


def _told(times: DataFrame, objectives: Sequence[Objective]) -> DataFrame:
    """The rows once per objective of their metric, with all columns of a subject."""
    names = F.lit(None).cast("array<string>")
    for metric in {objective.metric for objective in objectives}:
        of_it = F.array(*(F.lit(o.name) for o in objectives if o.metric == metric))
        names = F.when(F.col("metric") == metric, of_it).otherwise(names)
    rows = times.withColumn("objective", F.explode(names))
    absent = {name: F.lit(None).cast("string") for name in SUBJECT if name not in rows.columns}
    return rows.withColumns(absent).select(
        "cluster", "window", *quoted(SUBJECT), "good_us", "bad_us", "bad_low_us", "bad_high_us"
    )
