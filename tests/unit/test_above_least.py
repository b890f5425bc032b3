"""MBeans above zero count if they are in the MBean cache or show a new leader."""

from __future__ import annotations

from typing import Literal

import pytest

from collector.catalogue import Family, Metric
from collector.model import Series
from collector.sources.jmx.reader import AboveLeast

PATTERN = "kafka.cluster:type=Partition,name=UnderMinIsr,topic=*,partition=*"


class FakeServer:
    """Tells these names whatever is asked: of a real one, beans would have to come meanwhile."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def names(self, *_: object) -> tuple[str, ...]:
        return self._names


def bean(topic: str) -> str:
    return PATTERN.replace("topic=*", f"topic={topic}").replace("partition=*", "partition=0")


@pytest.mark.parametrize(
    ("condition", "led", "counts"),
    [
        ("binary", True, {"known", "new"}),
        ("binary", False, {"known"}),
        ("positive", True, {"known"}),
        ("positive", False, {"known"}),
    ],
)
def test_uncached_bean_counts_only_if_it_shows_a_leader(
    condition: Literal["binary", "positive"], *, led: bool, counts: set[str]
) -> None:
    metric = Metric(
        name="m", unit="1", description="", object=PATTERN, filter=condition, led=led,
        labels={"topic": "topic", "partition": "partition"},
    )  # fmt: skip
    family = Family(name="f", via="jmx", cadence_seconds=10, roles=("broker",), metrics=(metric,))
    cached = {Series("m", topic, 0): bean(topic) for topic in ("known", "quiet", "calm")}
    asking = AboveLeast(FakeServer(bean("known"), bean("new")))  # type: ignore[arg-type]
    asking.start(family)
    assert {series.topic for series in asking.beans(metric, cached)} == counts
