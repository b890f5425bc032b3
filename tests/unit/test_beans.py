"""Object names: quoted, URL-encoded, in any order of keys."""

from __future__ import annotations

import pytest

from collector import catalogue
from collector.catalogue import Metric
from collector.model import Series
from collector.sources.base.beans import keys_of, series_of

PRODUCE = catalogue.load().metrics["kafka.client.produce.throttle_time"]
PARTITION = catalogue.load().metrics["kafka.partition.under_min_isr"]


def tagged(*labels: tuple[str, str]) -> Series:
    name = ",".join(map("=".join, labels))
    return Series(PRODUCE.name, client_id=name, labels=labels)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("d:type=T,name=N", {"type": "T", "name": "N"}),
        ('d:c="app:one,x",type=T', {"c": "app:one,x", "type": "T"}),
        (r'd:c="a\"b\\c\*d\?e\nf"', {"c": 'a"b\\c*d?e\nf'}),
        ('d:c="",type=T', {"c": "", "type": "T"}),
        ("d:c=a=b", {"c": "a=b"}),
    ],
)
def test_keys_are_read_as_the_jvm_writes_them(name: str, keys: dict[str, str]) -> None:
    assert keys_of(name) == keys


@pytest.mark.parametrize(
    ("name", "series"),
    [
        ("client-id=app", Series(PRODUCE.name, client_id="app")),
        ("user=a%20b%2Fc", Series(PRODUCE.name, user="a b/c")),
        ('user=bob,client-id="x,y"', Series(PRODUCE.name, user="bob", client_id="x,y")),
        ("client-id=100%25", Series(PRODUCE.name, client_id="100%25")),
        ("quota.type=PRODUCE", tagged(("quota.type", "PRODUCE"))),
        ("tenant=a,client-id=app", tagged(("client-id", "app"), ("tenant", "a"))),
        ("client-id=app,tenant=a", tagged(("client-id", "app"), ("tenant", "a"))),
    ],
)
def test_a_client_is_told_from_its_tags(name: str, series: Series | None) -> None:
    assert (
        series_of(PRODUCE, "kafka.server:type=Produce,*", f"kafka.server:type=Produce,{name}")
        == series
    )


def test_a_bean_without_tags_is_the_brokers_own() -> None:
    assert series_of(PRODUCE, "kafka.server:type=Produce,*", "kafka.server:type=Produce") is None


def test_a_bean_with_further_keys_is_of_another_metric_unless_it_is_a_clients() -> None:
    pattern = "kafka.cluster:type=Partition,name=UnderMinIsr,topic=*,partition=*"
    name = "kafka.cluster:type=Partition,name=UnderMinIsr,topic=t,partition=3,broker=1"
    assert series_of(PARTITION, pattern, name) is None


@pytest.mark.parametrize("order", ["topic=t.x,partition=3", "partition=3,topic=t.x"])
def test_the_order_of_keys_does_not_matter(order: str) -> None:
    pattern = "kafka.cluster:type=Partition,name=UnderMinIsr,topic=*,partition=*"
    name = f"kafka.cluster:type=Partition,name=UnderMinIsr,{order}"
    assert series_of(PARTITION, pattern, name) == Series(PARTITION.name, "t.x", 3)


def test_a_key_without_a_column_becomes_a_label() -> None:
    metric = Metric(
        name="own.rate", unit="1", description="", object="d:a=*,b=*", labels={"a": "x", "b": "c"}
    )
    found = series_of(metric, "d:a=*,b=*", "d:b=2,a=1")
    assert found == Series("own.rate", labels=(("c", "2"), ("x", "1")))
