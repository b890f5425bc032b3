"""Kinds of events: the metrics of each, in Python and in SQL."""

import functools
import re
from typing import Final, NamedTuple

from lakehouse.core.metrics import COVERAGE, LEADERLESS, UNAVAILABLE, UNDER_MIN_ISR

AVAILABILITY: Final = "availability"
SYMPTOM: Final = "symptom"
"""Counts by brokers and controllers; they belong to the event that they overlap."""

OTHER: Final = "other"
_METRIC: Final = "(metric)"


class Rule(NamedTuple):
    """Metrics of a kind of events; in patterns ``%`` is any text.

    Attributes:
        kind: The kind.
        of: The kind of request, or copy or delete; ``(metric)``: the metric itself.
        patterns: Patterns of metrics.
    """

    kind: str
    of: str | None
    patterns: tuple[str, ...]


RULES: Final = (
    Rule(AVAILABILITY, None, (UNDER_MIN_ISR, LEADERLESS, UNAVAILABLE)),
    Rule(SYMPTOM, _METRIC, (
        "kafka.broker.under_min_isr_partitions", "kafka.controller.offline_partitions",
        "kafka.broker.produce_errors.not_enough_replicas%",
    )),
    *(
        Rule("throttling", request, (f"kafka.client.{request}.throttle_time",))
        for request in ("produce", "fetch", "request", "controller_mutation")
    ),
    Rule("loss", None, ("kafka.group.non_consumed%",)),
    Rule("tiered", "copy", ("kafka.topic.remote_copy_lag.%", "kafka.partition.upload_tier_lag")),
    Rule("tiered", "delete", (
        "kafka.topic.remote_delete_lag.%", "kafka.partition.delete_tier_lag",
    )),
    Rule("consumer_lag", None, (
        "kafka.group.lag", "kafka.group.time_lag%", "kafka.group.partition_lag",
    )),
    Rule("latency", _METRIC, ("%.time.p%", "%.time.max")),
    Rule("errors", _METRIC, ("%.answers%", "%.errors", "%_errors.%", "%.failed")),
    Rule("replication", _METRIC, (
        "kafka.partition.under_replicated", "kafka.partition.without_spare",
        "kafka.partition.unclean_leader",
    )),
)  # fmt: skip
"""The first that has a metric counts; all others are ``other``."""

NEVER: Final = frozenset({COVERAGE})
"""Metrics without events: unobserved time is not an event of the cluster."""


@functools.cache
def kind_of(metric: str) -> tuple[str, str | None]:
    """Return the kind of a metric, and what of it."""
    for rule in RULES:
        if any(re.fullmatch(_regex(pattern), metric) for pattern in rule.patterns):
            return rule.kind, metric if rule.of == _METRIC else rule.of
    return OTHER, metric


def _regex(pattern: str) -> str:
    return ".*".join(map(re.escape, pattern.split("%")))


def sql() -> tuple[str, str]:
    """Return the same as two expressions of SQL on the column ``metric``."""
    kinds, ofs = [], []
    for rule in RULES:
        is_one = " OR ".join(
            f"metric LIKE '{one}'" if "%" in one else f"metric = '{one}'" for one in rule.patterns
        )
        of = "metric" if rule.of == _METRIC else f"'{rule.of}'" if rule.of else "NULL"
        kinds.append(f"WHEN {is_one} THEN '{rule.kind}'")
        ofs.append(f"WHEN {is_one} THEN {of}")
    return f"CASE {' '.join(kinds)} ELSE '{OTHER}' END", f"CASE {' '.join(ofs)} ELSE metric END"
