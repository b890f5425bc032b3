"""What waits for tiered storage, by topic: the facts' ``tier_lag``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import tables
from lakehouse.gold_rows import EXACT
from lakehouse.report.from_bronze import last_lags
from lakehouse.report.gather import COPY_LAG, DELETE_LAG
from lakehouse.report.sums import bounded, of_topics, unknown_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakehouse.existence import Subject
    from lakehouse.report.begun import Begun
    from lakehouse.report.gather import Gold, Row
    from lakehouse.sla import Statement

_TIERED: Final = "kafka.topic.remote_storage_enabled"


def tier_lag(
    gold: Gold, subjects: Sequence[Subject], stated: Sequence[Statement], begun: Begun
) -> Row:
    """KIP-963: what waits for upload and for deletion, per topic."""
    rows = of_topics(gold, begun)
    last = {key: lag.known for key, lag in last_lags(gold).items()}
    means = _means(gold)
    unknown = {metric: unknown_of(stated, metric) for metric in (COPY_LAG, DELETE_LAG)}
    found = []
    for one in subjects:
        topic, metrics = str(one.topic), rows[one.topic]
        lags = [metrics[metric] for metric in (COPY_LAG, DELETE_LAG)]
        bad = any(lag.get("positive_high_us") for lag in lags)
        if one.kind != "topic" or not (bad or one.attributes.get(_TIERED) == 1):
            continue
        wrong = any(lag.get("known_wrong") for lag in lags)
        told = {
            metric: _lag(metrics, metric)
            | {
                "mean_bytes": means.get((metric, topic)),
                "last_bytes": last.get((metric, topic)),
                "unknown_us": known.get(one.key),
            }
            for metric, known in unknown.items()
        }
        found.append(
            {
                "topic": topic,
                "copy": told[COPY_LAG],
                "delete": told[DELETE_LAG],
                "unknown_us": _longest(lag["unknown_us"] for lag in told.values()),
                "flags": [tables.FLAG_KNOWN_WRONG] if wrong else [],
            }
        )
    return {"topics": found}


def _longest(times: Iterable[int | None]) -> int | None:
    """The longest time; None: one of them is not known."""
    known = list(times)
    return None if None in known else max(us for us in known if us is not None)


def _lag(metrics: Any, metric: str) -> Row:
    lag, segments = metrics[metric], metrics[metric.removesuffix("bytes") + "segments"]
    return {
        **bounded(lag, "any", "lagging"),
        "max_bytes": lag.get("max_total"),
        "max_segments": segments.get("max_total"),
    }


def _means(gold: Gold) -> dict[tuple[str, str], float]:
    """Lag on the mean over the time in which anybody told of it, bytes, per metric and topic."""
    rows = gold.finest(tables.TOPICS).where(F.col("metric").isin(COPY_LAG, DELETE_LAG))
    # Brokers that tell in turns are several series in the time of one. As no total was above the
    # greatest, it took at least so long to add up to what there is.
    most = F.when(F.col("max_total") > 0, F.col("max_total"))
    seconds = F.greatest(
        F.col("observed_us") / F.col("series") / 1e6, F.col("value_seconds") / most
    )
    sums = rows.groupBy("metric", "topic").agg(
        F.sum(F.col("value_seconds").cast(EXACT)).cast("double").alias("value_seconds"),
        F.sum(seconds.cast(EXACT)).cast("double").alias("seconds"),
    )
    return {
        (row["metric"], row["topic"]): row["value_seconds"] / row["seconds"]
        for row in sums.where("seconds > 0").collect()
    }
