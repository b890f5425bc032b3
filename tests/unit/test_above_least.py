"""Which beans above zero count: those of the census, and those that show who leads."""

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
def test_a_bean_that_the_census_does_not_know_counts_only_where_it_shows_who_leads(
    condition: Literal["binary", "positive"], *, led: bool, counts: set[str]
) -> None:
    metric = Metric(
        name="m", unit="1", description="", object=PATTERN, filter=condition, led=led,
        labels={"topic": "topic", "partition": "partition"},
    )  # fmt: skip
    family = Family(name="f", via="jmx", cadence_seconds=10, roles=("broker",), metrics=(metric,))
    census = {Series("m", topic, 0): bean(topic) for topic in ("known", "quiet", "calm")}
    asking = AboveLeast(FakeServer(bean("known"), bean("new")))  # type: ignore[arg-type]
    asking.begin(family)
    assert {series.topic for series in asking.beans(metric, census)} == counts
