"""What waits for tiered storage, by topic: the facts' ``tier_lag``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse import tables
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
    last = last_lags(gold)
    unknown = {metric: unknown_of(stated, metric) for metric in (COPY_LAG, DELETE_LAG)}
    found = []
    for one in subjects:
        topic, metrics = str(one.topic), rows[one.topic]
        lags = [metrics[metric] for metric in (COPY_LAG, DELETE_LAG)]
        bad = any(lag.get("positive_high_us") for lag in lags)
        if one.kind != "topic" or not (bad or one.attributes.get(_TIERED) == 1):
            continue
        wrong = any(lag.get("known_wrong") for lag in lags)
        seen = _seen(stated, one)
        unseen = {metric: known.get(one.key) for metric, known in unknown.items()}
        found.append(
            {
                "topic": topic,
                "copy": {
                    **_lag(metrics, COPY_LAG, seen, last.get((COPY_LAG, topic))),
                    "unknown_us": unseen[COPY_LAG],
                },
                "delete": {
                    **_lag(metrics, DELETE_LAG, seen, last.get((DELETE_LAG, topic))),
                    "unknown_us": unseen[DELETE_LAG],
                },
                "unknown_us": _longest(unseen.values()),
                "flags": [tables.FLAG_KNOWN_WRONG] if wrong else [],
            }
        )
    return {"topics": found}


def _longest(times: Iterable[int | None]) -> int | None:
    """The longest time; None: one of them is not known."""
    known = list(times)
    return None if None in known else max(us for us in known if us is not None)


def _lag(metrics: Any, metric: str, seen: dict[str, int], last: float | None) -> Row:
    lag, segments = metrics[metric], metrics[metric.removesuffix("bytes") + "segments"]
    seconds = seen.get(metric, 0) / 1e6
    return {
        **bounded(lag, "any", "lagging"),
        "max_bytes": lag.get("max_total"),
        "max_segments": segments.get("max_total"),
        "mean_bytes": lag["value_seconds"] / seconds if lag and seconds else None,
        "last_bytes": last,
    }


def _seen(stated: Sequence[Statement], one: Subject) -> dict[str, int]:
    return {
        s.objective.metric: s.times.good_us + s.times.bad_us
        for s in stated
        if s.subject.kind == "topic" and s.subject.key == one.key
    }
