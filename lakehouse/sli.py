"""gold/sli: good and bad time per objective and subject, in every window that bronze tells of.

Time that is neither good nor bad is unknown, and so are windows without any row: the report takes
what was to be expected from gold/subjects. Time is good only where the whole subject was seen:
of a topic all its partitions, of a client or group as much as at best in that window, of a source
all its families. And only while all were read who may have told of it (see ``unread``).

Of a topic it is also told how long it was wholly seen, good or bad: while one partition is bad,
another one may be unseen, and that is unknown of the other.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import claims, edges, exact, sweep, thresholds, topology, unread
from lakehouse.claims import CLIENT_KEYS, TOPIC_KEYS
from lakehouse.metrics import UNAVAILABLE, UNDER_MIN_ISR
from lakehouse.pieces import WINDOW, quoted
from lakehouse.slo import COVERAGE
from lakehouse.tables import SLI

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from lakehouse.bronze import Bronze
    from lakehouse.slo import Objective

SUBJECT: Final = ("objective", "topic", "user", "client_id", "group", "source")
_COUNTED: Final = edges.COUNTS.with_whole()
_PLACE: Final = (*TOPIC_KEYS, "t")
_TIMES: Final = ("good_us", "bad_us", "bad_low_us", "bad_high_us", "seen_us", "spill_us")
_SAYS_SOMETHING: Final = "greatest(good_us, bad_us, bad_low_us, bad_high_us) > 0"
_OF_CLIENT: Final = "user IS NOT NULL OR client_id IS NOT NULL"


def indicators(bronze: Bronze, objectives: Sequence[Objective]) -> DataFrame:
    """Good and bad time at the finest grain."""
    told = bronze.survey.tells
    parts = [bronze.nothing(SLI)]
    for level, function, is_told in (
        ("topic", _topics, told("partition", "topic", counters=False)),
        ("client", _clients, told("client", counters=False)),
        ("group", _groups, told("group", counters=True)),
        ("source", _sources, True),
    ):
        # Events are counted where they are asked for: see ``occurrences``.
        chosen = [one for one in objectives if one.kind == level and one.events is None]
        if level == "topic":
            # Of what nobody tells every topic would get a row that says nothing in each window.
            chosen = [o for o in chosen if bronze.survey.metrics & {*claims.told_as([o.metric])}]
        if chosen and is_told:
            parts.append(function(bronze, chosen))
    # The short cut above depends on what else is rolled up with an hour; its rows must not.
    # But that there was a client of that kind nobody else tells, be nothing known of it.
    rows = reduce(lambda a, b: a.unionByName(b), parts)
    return rows.where(f"{_SAYS_SOMETHING} OR {_OF_CLIENT}")


def _topics(bronze: Bronze, objectives: Sequence[Objective]) -> DataFrame:
    """Topics, by what their objectives' thresholds are: for each another time is bad."""
    parts = (
        _above(bronze, above, [one for one in objectives if one.above == above])
        for above in sorted({objective.above for objective in objectives})
    )
    return reduce(lambda a, b: a.unionByName(b), parts)


def _above(bronze: Bronze, above: float, objectives: Sequence[Objective]) -> DataFrame:
    """Topics: bad while a partition is, or while the brokers' total is above the threshold.

    A topic is seen wholly while every partition is claimed by a leader that is read: a broker that
    is not seen may have something to report, of the topic as of its partitions.
    """
    metrics = sorted({objective.metric for objective in objectives})
    if above:
        carried, events = edges.BOUNDED, thresholds.topic_events(bronze, metrics)
        leaders = claims.topic_pieces(bronze, (UNDER_MIN_ISR,))
        leaders = claims.topic_events(bronze, leaders, edges.COUNTS)
        events = events.unionByName(leaders, allowMissingColumns=True)
        totals = (F.expr(exact.double(edges.lanes_of(name))) for name in ("v", "v_low", "v_high"))
        seen, sure, maybe = (total > above for total in totals)
        # A lead reaches over the cut where the total may have been above it at the cut already.
        at_cut = (F.col("t") == F.expr(WINDOW)) & (F.col("length") > 0)
        spills = F.max(at_cut & maybe & ~seen)
    else:
        carried = edges.COUNTS
        pieces = claims.topic_pieces(bronze, claims.told_as(sorted({*metrics, UNDER_MIN_ISR})))
        events = claims.topic_events(bronze, pieces, carried)
        seen, sure, maybe = (F.col(count) > 0 for count in ("pos", "low", "high"))
        spills = None
    carried = carried.with_whole()
    segments = sweep.sweep(_with_claims(events, metrics, carried), TOPIC_KEYS, carried)
    segments = topology.joined(bronze, segments, objectives)
    whole = (F.col("whole") >= F.col("partitions_told")) & (F.col("obs") > 0)
    segments, read = unread.seen_length(segments, unread.of_topics(bronze, metrics))
    keys, bad = (*TOPIC_KEYS, "attributes"), (seen, sure, maybe)
    times = _times(segments, keys, whole & ~seen, bad, spills, whole, read)
    rows = _told(times, objectives, "attributes")
    return rows.where(topology.asked_for(objectives)).drop("attributes")


def _with_claims(events: DataFrame, metrics: Sequence[str], carried: edges.Carried) -> DataFrame:
    """Events per metric; those of under min ISR count the claimed partitions for every metric.

    What is unavailable counts its own: a partition that is told to have no leader is seen too.
    """

    def role(metric: Column, itself: int) -> Column:
        return F.struct(metric.alias("metric"), F.lit(itself).alias("itself"))

    itself = role(F.col("metric"), 1)
    for_others = [role(F.lit(name), 0) for name in metrics if name != UNAVAILABLE]
    roles = F.when(F.col("metric") == UNDER_MIN_ISR, F.array(itself, *for_others)).otherwise(
        F.array(itself)
    )
    rows = events.withColumn("role", F.explode(roles))
    own = (name for name in events.columns if name not in _PLACE)
    columns = {name: f"IF(role.itself = 1, {name}, NULL)" for name in own}
    columns["whole"] = f"IF(role.itself = 0 OR role.metric = '{UNAVAILABLE}', obs, NULL)"
    rows = rows.select(
        *quoted(("cluster", "topic", "window")),
        F.col("role.metric").alias("metric"),
        F.expr(edges.made("t", columns, carried)).alias("event"),
    )
    return rows.where(F.col("metric").isin(*metrics)).select(*quoted(TOPIC_KEYS), "event.*")


def _clients(bronze: Bronze, objectives: Sequence[Objective]) -> DataFrame:
    """Clients: bad while at least one broker throttles them; any broker may."""
    metrics = sorted({objective.metric for objective in objectives})
    atoms = claims.client_atoms(bronze, metrics)
    segments, keys, good = _at_best(claims.summed(atoms, CLIENT_KEYS), CLIENT_KEYS)
    segments, read = unread.seen_length(segments, unread.of_clients(bronze, metrics))
    return _told(_times(segments, keys, good, read=read), objectives)


def _groups(bronze: Bronze, objectives: Sequence[Objective]) -> DataFrame:
    """Groups: bad while an increase of the offsets lost spans it; the bounds have counters."""
    keys = ("cluster", "metric", "group", "window")
    runs = bronze.runs().where("level = 'group'")
    high = F.col("metric").endswith(".high")
    rows = runs.withColumns(
        {"is_high": high, "metric": F.regexp_replace("metric", r"\.(low|high)$", "")}
    )
    rows = rows.where(_of(objectives))
    lost = "coalesce(CAST(value > 0 AS INT), 0)"
    counts = {
        "obs": "IF(is_high AND value IS NOT NULL, series, 0)",
        "whole": "IF(is_high AND value IS NULL, series, 0)",
        "pos": f"IF(is_high, 0, {lost})",
        "low": f"IF(is_high, 0, {lost})",
        "high": f"IF(is_high, {lost}, 0)",
    }
    events = edges.counted(rows, keys, counts)
    segments = sweep.sweep(events, keys, _COUNTED).withColumn("high", F.greatest("high", "pos"))
    best = _most(F.col("obs") + F.col("whole"), keys)
    good = (F.col("pos") == 0) & (F.col("whole") == 0) & (F.col("obs") >= F.col("best"))
    return _told(_times(segments.withColumn("best", best), keys, good), objectives)


def _sources(bronze: Bronze, objectives: Sequence[Objective]) -> DataFrame:
    """Sources: bad while an attempt to read a family of theirs failed.

    A tick that was skipped is no attempt: the scrape before vouches on, or nobody does.
    """
    keys = ("cluster", "metric", "source", "window")
    failed = "IF(outcome = 'ok', 0, 1)"
    counts = {"obs": f"1 - {failed}", "pos": failed, "low": failed, "high": failed}
    rows = bronze.scrapes().where("outcome != 'skipped'").withColumn("metric", F.lit(COVERAGE))
    events = edges.counted(rows.where(_of(objectives)), keys, counts)
    return _told(_times(*_at_best(sweep.sweep(events, keys, _COUNTED), keys)), objectives)


def _at_best(segments: DataFrame, keys: Sequence[str]) -> tuple[DataFrame, Sequence[str], Column]:
    """Good: none is bad, and as many are seen as ever in the window."""
    best = _most(F.col("obs"), keys)
    good = (F.col("pos") == 0) & (F.col("obs") > 0) & (F.col("obs") >= F.col("best"))
    return segments.withColumn("best", best), keys, good


def _most(count: Column, keys: Sequence[str]) -> Column:
    """The greatest count at any instant of the window."""
    lasting = F.when(F.col("length") > 0, count)
    return F.max(lasting).over(Window.partitionBy(*quoted(keys)))


def _times(
    segments: DataFrame,
    keys: Sequence[str],
    good: Column,
    bad: tuple[Column, ...] | None = None,
    spills: Column | None = None,
    whole: Column | None = None,
    read: Column | None = None,
) -> DataFrame:
    """Good and bad time with bounds, and time wholly seen.

    Args:
        segments: What is summed.
        keys: What rows are made of.
        good: When it is good.
        bad: When it is bad: as seen, surely and possibly; by default while any is above zero.
        spills: Whether what may have held before the window counts; by default where none began
            exactly with it.
        whole: When it is wholly seen, good or bad; by default that is not told.
        read: How much of a segment is good, or wholly seen, at most; by default all of it.
    """
    seen, sure, maybe = bad or tuple(F.col(name) > 0 for name in ("pos", "low", "high"))
    length, nobody_asks = F.col("length"), F.lit(None).cast("bigint")
    read = length if read is None else read
    if spills is None:
        spills = F.coalesce(F.max("opens"), F.lit(0)) != 1
    spill = F.when(spills, F.coalesce(F.max("spill"), F.lit(0))).otherwise(0)

    def total(when: Column, most: Column = length) -> Column:
        return F.sum(F.when(when, most).otherwise(0)).cast("bigint")

    return segments.groupBy(*quoted(keys)).agg(
        total(good, read).alias("good_us"),
        total(seen).alias("bad_us"),
        total(sure).alias("bad_low_us"),
        (total(maybe) + spill).alias("bad_high_us"),
        (nobody_asks if whole is None else total(whole, read)).alias("seen_us"),
        spill.cast("bigint").alias("spill_us"),
    )


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
    columns = rows.withColumns(absent)
    return columns.select("cluster", "window", *quoted(SUBJECT), *_TIMES, *more)
