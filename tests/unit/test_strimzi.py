"""Names and labels of Strimzi's metrics reporter, by which beans are found again."""

from __future__ import annotations

import re

import pytest

from collector.sources.base.beans import Question
from collector.sources.prometheus.sample_names import Reporter

ISR = "kafka.cluster:type=Partition,name=UnderMinIsr,topic=*,partition=*"
TIME = "kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Produce"


def test_a_gauge_has_the_labels_of_its_bean() -> None:
    (shown,) = Reporter().shown(Question(ISR, "Value")) or ()
    assert shown.names == {"kafka_cluster_partition_underminisr"}
    labels = {"topic": "a.b", "partition": "0"}
    assert shown.variables.keys() == labels.keys()
    bean = "kafka.cluster:type=Partition,name=UnderMinIsr,topic=a.b,partition=0"
    assert shown.named(labels) == bean


def test_a_count_is_that_of_a_meter_or_of_a_histogram() -> None:
    (shown,) = Reporter().shown(Question(TIME, "Count")) or ()
    base = "kafka_network_requestmetrics_totaltimems"
    assert shown.names == {f"{base}_total", f"{base}_count"}
    assert shown.constants == {"request": "Produce"}
    (shown,) = Reporter().shown(Question(TIME, "99thPercentile")) or ()
    assert (shown.names, shown.constants) == ({base}, {"request": "Produce", "quantile": "0.99"})


@pytest.mark.parametrize(
    ("client", "value"),
    [
        ("app-1.x", "app-1.x"), ("app:1,x", '"app:1,x"'), ('q"o\\t*?', r'"q\"o\\t\*\?"'),
        ("two\nlines", '"two\\nlines"'), ("é", '"é"'), ("a b%20", "a b%20"),
    ],
)  # fmt: skip
def test_a_name_is_quoted_as_kafka_quotes_it_in_a_bean(client: str, value: str) -> None:
    produce = Question("kafka.server:type=Produce,*", "throttle-time")
    by_client, by_user, by_both = Reporter().shown(produce, ("client-id", "user")) or ()
    assert by_client.names == by_both.names == {"kafka_server_produce_throttle_time"}
    assert by_client.named({"client_id": client}) == f"kafka.server:type=Produce,client-id={value}"
    assert by_user.variables.keys() == {"user"}
    assert by_both.variables.keys() == {"client_id", "user"}


@pytest.mark.parametrize(
    ("pattern", "attribute"),
    [
        ("java.lang:type=Memory", "HeapMemoryUsage.used"), (TIME, "Mean"), (TIME, "Max"),
        ("kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec", "OneMinuteRate"),
        ("io.aiven.kafka:type=metrics", "rate"),
    ],
)  # fmt: skip
def test_other_beans_and_attributes_are_hidden(pattern: str, attribute: str) -> None:
    assert Reporter().shown(Question(pattern, attribute)) is None


def test_so_is_what_its_allowlist_leaves_out() -> None:
    allowed = Reporter((re.compile("kafka_cluster_.*"), re.compile("kafka_log")))
    assert allowed.shown(Question(ISR, "Value"))
    assert allowed.shown(Question(TIME, "Count")) is None
