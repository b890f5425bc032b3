"""What is bad for whom: the metrics of a story, and how their values are put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from lakehouse.metrics import LEADERLESS, UNAVAILABLE, UNDER_MIN_ISR
from lakehouse.partitions import OF_PARTITIONS
from lakehouse.slo import COVERAGE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.slo import Objective

Worst = Literal["parts", "total", "most", "sum", "between"]


@dataclass(frozen=True, slots=True)
class Watched:
    """A metric that is bad above zero.

    Attributes:
        metric: As bronze has it; without ``.low`` and ``.high`` where its worst lies between them.
        title: What it means that it is above zero.
        families: Families of beans that tell it; empty: not known, so each may be.
        unit: Of its worst value, as UCUM writes it.
        worst: How an interval's worst value is made: ``parts``: how many were bad at one instant;
            ``total``: the greatest sum over brokers; ``most``: the greatest one; ``sum``: of a
            counter; ``between``: of a counter that is told as a low and a high one.
    """

    metric: str
    title: str
    families: frozenset[str]
    unit: str
    worst: Worst

    @property
    def is_counter(self) -> bool:
        """Whether it tells that something happened, and not how long something was."""
        return self.worst in ("sum", "between")

    @property
    def told_as(self) -> tuple[str, ...]:
        """The metrics in bronze."""
        between = self.worst == "between"
        return (f"{self.metric}.low", f"{self.metric}.high") if between else (self.metric,)


UNSEEN: Final = Watched(COVERAGE, "Not seen", frozenset(), "", "most")
"""Of a source: what is bad is that it was not read."""


def _watched(metric: str, title: str, families: str, unit: str, worst: Worst = "most") -> Watched:
    return Watched(metric, title, frozenset(families.split()), unit, worst)


_PARTITIONS: Final = (
    _watched(UNDER_MIN_ISR, "Under its min ISR", "min_isr metadata_log", "partitions", "parts"),
    _watched(LEADERLESS, "Without a leader", "leaders metadata_log", "partitions", "parts"),
)
WATCHED: Final[dict[str, tuple[Watched, ...]]] = {
    "topic": (
        *_PARTITIONS,
        _watched("kafka.topic.remote_copy_lag.bytes", "Waits for upload", "tiered", "By", "total"),
        _watched(
            "kafka.topic.remote_delete_lag.bytes", "Waits for deletion", "tiered", "By", "total"
        ),
    ),
    "partition": (
        *_PARTITIONS,
        _watched(
            "kafka.partition.upload_tier_lag", "Records wait for upload", "tiered", "{offset}"
        ),
        _watched(
            "kafka.partition.delete_tier_lag", "Records wait for deletion", "tiered", "{offset}"
        ),
    ),
    "client": tuple(
        _watched(f"kafka.client.{kind}.throttle_time", f"Throttled ({what})", "quotas", "ms")
        for kind, what in (
            ("produce", "writing"), ("fetch", "reading"), ("request", "request time"),
            ("controller_mutation", "topic changes"),
        )
    ),
    "group": (
        _watched(
            "kafka.group.non_consumed", "Lost before it was read", "offsets", "{offset}", "between"
        ),
    ),
    "source": (
        _watched(
            "kafka.broker.under_min_isr_partitions", "Leads what is under min ISR",
            "min_isr", "partitions",
        ),
        _watched(
            "kafka.broker.produce_errors.not_enough_replicas", "Refused writes, too few replicas",
            "min_isr", "{request}", "sum",
        ),
        _watched(
            "kafka.controller.offline_partitions", "Counts leaderless partitions",
            "controller", "partitions",
        ),
    ),
}  # fmt: skip
"""By kind of subject, what every story looks for."""


_OF_PARTITIONS: Final = {"topic", "partition"}


def watched(kind: str, objectives: Iterable[Objective]) -> tuple[Watched, ...]:
    """What a story of a kind looks for: the usual, and what objectives promise of it at zero."""
    found = {one.metric: one for one in WATCHED[kind]}
    for objective in objectives:
        derived = objective.metric in (UNAVAILABLE, COVERAGE) or objective.above > 0
        kinds: set[str] = {objective.level}
        if kinds < _OF_PARTITIONS and objective.metric.startswith(OF_PARTITIONS):
            kinds = _OF_PARTITIONS  # a topic is bad while one of them is
        if kind in kinds and not derived:
            own = Watched(objective.metric, f"Against: {objective.title}", frozenset(), "", "most")
            found.setdefault(objective.metric, own)
    return tuple(found.values())
