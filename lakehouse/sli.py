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
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from lakehouse.bronze import Bronze
    from lakehouse.slo import Objective

SUBJECT: Final = ("objective", "topic", "user", "client_id", "group", "source")
PARTITIONS_TOLD: Final = "kafka.topic.partitions"


def indicators(bronze: Bronze, objectives: Sequence[Objective]) -> DataFrame:
    """Good and bad time at the finest grain."""
    parts: list[DataFrame] = []
    for level, function in (
        ("topic", _topics), ("client", _clients), ("group", _groups), ("source", _sources)
    ):  # fmt: skip
        chosen = [objective for objective in objectives if objective.level == level]
        if chosen:
            parts.append(function(bronze, chosen))
    return reduce(lambda a, b: a.unionByName(b), parts)


def _topics(bronze: Bronze, objectives: Sequence[Objective]) -> DataFrame:
    """Topics: bad while a partition is, or while the brokers' total is above the threshold.

    A topic is seen wholly while every partition is claimed by a leader that is read: a broker that
    is not seen may have something to report, of the topic as of its partitions.
    """
    runs = bronze.runs()
    metrics = {objective.metric for objective in objectives}
    atoms = claims.topic_atoms(runs, sorted({*metrics, claims.UNDER_MIN_ISR}))
    segments = sweep.sweep(_with_claims(atoms, sorted(metrics)), TOPIC_KEYS)
    seen = segments.join(_topology(runs, objectives), ["cluster", "topic", "window"], "left")
    above = _literal({objective.metric: objective.above for objective in objectives})
    values = {name: F.col(f"total_{name}") for name in ("v", "v_low", "v_high")}
    seen = seen.withColumns({f"total_{name}": F.col(name).cast("double") for name in values})
    counts = {"v": "pos", "v_low": "low", "v_high": "high"}
    bad = tuple(
        F.when(above > 0, value > above).otherwise(F.col(counts[name]) > 0)
        for name, value in values.items()
    )
    told = F.col("whole") >= F.col("partitions_told")
    good = told & (F.col("obs") > 0) & ~bad[0]
    rows = _told(_times(seen, (*TOPIC_KEYS, "attributes"), good, bad), objectives, "attributes")
    return rows.where(_asked_for(objectives)).drop("attributes")


def _with_claims(atoms: DataFrame, metrics: Sequence[str]) -> DataFrame:
    """Events per metric; those of under min ISR count the claimed partitions for every metric."""

    def role(metric: Column, itself: int) -> Column:
        return F.struct(metric.alias("metric"), F.lit(itself).alias("itself"))

    itself = role(F.col("metric"), 1)
    for_others = [role(F.lit(name), 0) for name in metrics]
    roles = F.when(F.col("metric") == claims.UNDER_MIN_ISR, F.array(itself, *for_others)).otherwise(
        F.array(itself)
    )
    rows = atoms.withColumn("role", F.explode(roles))
    claim = F.col("role.itself") == 0
    rows = rows.withColumn("whole", F.when(claim, F.col("obs")).otherwise(0))
    for name in ("obs", "pos", "low", "high", "v", "v_low", "v_high", "spill_sum"):
        rows = rows.withColumn(name, F.when(claim, F.lit(0)).otherwise(F.col(name)))
    for name in ("spill", "opens", "hi", "lo", "wrong"):
        rows = rows.withColumn(name, F.when(~claim, F.col(name)))
    rows = rows.withColumn("metric", F.col("role.metric"))
    return sweep.again(rows.where(F.col("metric").isin(*metrics)), TOPIC_KEYS)


def _clients(bronze: Bronze, objectives: Sequence[Objective]) -> DataFrame:
    """Clients: bad while at least one broker throttles them."""
    metrics = sorted({objective.metric for objective in objectives})
    atoms = claims.client_atoms(bronze.runs(), metrics)
    return _told(_times(*_at_best(claims.summed(atoms, CLIENT_KEYS), CLIENT_KEYS)), objectives)


def _groups(bronze: Bronze, objectives: Sequence[Objective]) -> DataFrame:
    """Groups: bad while an increase of the offsets lost spans it; the bounds have counters."""
    keys = ("cluster", "metric", "group", "window")
    runs = bronze.runs().where("level = 'group'")
    high = F.col("metric").endswith(".high")
    rows = runs.withColumns(
        {"is_high": high, "metric": F.regexp_replace("metric", r"\.(low|high)$", "")}
    )
    rows = rows.where(_of(objectives))
    known = F.when(F.col("is_high") & F.col("value").isNotNull(), F.col("series")).otherwise(0)
    unknown = F.when(F.col("is_high") & F.col("value").isNull(), F.col("series")).otherwise(0)
    lost = F.coalesce((F.col("value") > 0).cast("int"), F.lit(0))
    sure, maybe = (
        F.when(F.col("is_high") == is_high, lost).otherwise(0) for is_high in (False, True)
    )
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
    """Sources: bad while an attempt to read a family of theirs failed.

    A tick that was skipped is no attempt: the scrape before vouches on, or nobody does.
    """
    keys = ("cluster", "metric", "source", "window")
    ok = (F.col("outcome") == "ok").cast("int")
    counts = {"obs": ok, "pos": 1 - ok, "low": 1 - ok, "high": 1 - ok}
    events = (
        bronze.scrapes()
        .where("outcome != 'skipped'")
        .withColumn("metric", F.lit(COVERAGE))
        .where(_of(objectives))
        .select(
            *quoted(keys),
            F.inline(
                F.array(
                    event(F.unix_micros("start"), counts),
                    event(F.unix_micros("end"), {name: -count for name, count in counts.items()}),
                )
            ),
        )
    )
    return _told(_times(*_at_best(sweep.sweep(events, keys), keys)), objectives)


def _at_best(segments: DataFrame, keys: Sequence[str]) -> tuple[DataFrame, Sequence[str], Column]:
    """Good: none is bad, and as many are seen as ever in the window."""
    best = F.max("obs").over(Window.partitionBy(*quoted(keys)))
    good = (F.col("pos") == 0) & (F.col("obs") > 0) & (F.col("obs") >= F.col("best"))
    return segments.withColumn("best", best), keys, good


def _times(
    segments: DataFrame,
    keys: Sequence[str],
    good: Column,
    bad: tuple[Column, ...] | None = None,
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


def _topology(runs: DataFrame, objectives: Sequence[Objective]) -> DataFrame:
    """Per topic and window how many partitions it has, and attributes that objectives ask for.

    Told by the topology of that window, else of that hour. Where the cluster's agents tell no
    topology at all, the highest partition that is claimed must do.
    """
    keys = ["cluster", "topic", "window"]
    asked = sorted({key for objective in objectives for key in objective.where})
    highest = F.coalesce(F.array_max("partitions"), "partition") + 1
    rows = (
        runs.where(F.col("topic").isNotNull() & (F.col("level").isin("partition", "topic")))
        .groupBy(*keys)
        .agg(
            F.max(F.when(F.col("metric") == PARTITIONS_TOLD, F.col("value"))).alias("told"),
            F.max(F.when(F.col("level") == "partition", highest)).alias("claimed"),
            *(F.max(F.when(F.col("metric") == key, F.col("value"))).alias(key) for key in asked),
        )
    )
    hour = F.date_trunc("hour", "window")
    of_topic = Window.partitionBy("cluster", "topic", hour)
    nobody_tells = F.max("told").over(Window.partitionBy("cluster", hour)).isNull()
    pairs = [x for key in asked for x in (F.lit(key), F.max(f"`{key}`").over(of_topic))]
    attributes = F.to_json(F.create_map(*pairs)) if pairs else F.lit(None).cast("string")
    return rows.select(
        *keys,
        F.coalesce(
            F.col("told"),
            F.max("told").over(of_topic),
            F.when(nobody_tells, F.max("claimed").over(of_topic)),
        ).alias("partitions_told"),
        attributes.alias("attributes"),
    )


def _asked_for(objectives: Sequence[Objective]) -> Column:
    """Subjects with the attributes that the objective asks for, or that were bad anyhow."""
    keep = F.col("bad_high_us") > 0
    told = F.from_json("attributes", "map<string,double>")
    for objective in objectives:
        has = F.col("objective") == objective.name
        for key, value in objective.where.items():
            has = has & (F.coalesce(F.try_element_at(told, F.lit(key)), F.lit(-1.0)) == value)
        keep = keep | has
    return keep


def _literal(values: Mapping[str, float]) -> Column:
    """The value of a row's metric."""
    chosen = F.lit(0.0)
    for metric, value in values.items():
        chosen = F.when(F.col("metric") == metric, F.lit(value)).otherwise(chosen)
    return chosen


def _of(objectives: Sequence[Objective]) -> Column:
    return F.col("metric").isin(*{objective.metric for objective in objectives})


def _told(times: DataFrame, objectives: Sequence[Objective], *more: str) -> DataFrame:
    """The rows once per objective of their metric, with all columns of a subject."""
    names = F.lit(None).cast("array<string>")
    for metric in {objective.metric for objective in objectives}:
        of_it = F.array(*(F.lit(o.name) for o in objectives if o.metric == metric))
        names = F.when(F.col("metric") == metric, of_it).otherwise(names)
    rows = times.withColumn("objective", F.explode(names))
    absent = {name: F.lit(None).cast("string") for name in SUBJECT if name not in rows.columns}
    return rows.withColumns(absent).select(
        "cluster", "window", *quoted(SUBJECT), "good_us", "bad_us", "bad_low_us", "bad_high_us",
        *more,
    )  # fmt: skip
