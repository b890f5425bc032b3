"""Answers made of all values at once: the rules that hold over RMI hold here."""

from __future__ import annotations

import math
from typing import Any

import pytest

from collector.catalogue import Family, KnownWrong, Metric
from collector.errors import SourceError
from collector.model import Series
from collector.sources.base.beans import Failed, Question, all_asked
from collector.sources.base.mbean_source import SnapshotReader, is_pattern
from lakehouse.tables import FLAG_KNOWN_WRONG, OTHER

UNDER = "kafka.cluster:type=Partition,name=UnderMinIsr,topic=*,partition=*"
IN_SYNC = Question(UNDER.replace("UnderMinIsr", "InSyncReplicasCount"), "Value")
PARTITION = {"topic": "topic", "partition": "partition"}
QUOTAS = "kafka.server:type=Produce,*"


def metric(pattern: str, **changed: Any) -> Metric:
    return Metric(name="m", unit="1", description="", object=pattern, **changed)


def family(*metrics: Metric, cap: int = 100) -> Family:
    return Family(
        name="f", via="jmx", cadence_seconds=10, roles=("broker",), metrics=metrics, cap=cap
    )


def bean(topic: str, partition: int, name: str = "UnderMinIsr") -> str:
    return f"kafka.cluster:type=Partition,partition={partition},topic={topic},name={name}"


def values(one: Metric, told: dict[str, object]) -> dict[Series, float | None]:
    (reading,) = (
        SnapshotReader("here").answer(
            family(one), {Question(one.patterns[0], one.attribute_name): told}
        )
    ).readings
    return {**dict.fromkeys(reading.zeros, 0.0), **reading.values}


def test_each_thing_is_asked_once_and_who_is_in_sync_where_it_counts() -> None:
    led = metric(UNDER, labels=PARTITION, led=True)
    plain = metric(QUOTAS, also=("a:b=c",), attribute="x")
    assert all_asked(family(led, led, plain)) == (
        Question(UNDER, "Value"),
        Question(QUOTAS, "x"),
        Question("a:b=c", "x"),
        IN_SYNC,
    )
    assert all_asked(family(plain)) == (Question(QUOTAS, "x"), Question("a:b=c", "x"))


def test_only_led_partitions_count_and_a_binary_value_is_1() -> None:
    reader = SnapshotReader("here", "4.3.1")
    wrong = KnownWrong(since="4.0.0", reason="r")
    led = metric(UNDER, labels=PARTITION, led=True, filter="binary", known_wrong=(wrong,))
    counts: dict[str, object] = {
        bean("a", 0, "InSyncReplicasCount"): 3,
        bean("a", 1, "InSyncReplicasCount"): 1,
        bean("a", 2, "InSyncReplicasCount"): 0,
        bean("a", 3, "InSyncReplicasCount"): None,
    }
    under: dict[str, object] = {bean("a", at): float(at * 2) for at in range(5)}
    told = {Question(UNDER, "Value"): under, IN_SYNC: counts}
    (reading,) = reader.answer(family(led), told).readings
    assert reading.zeros == {Series("m", "a", 0)}
    assert reading.values == {Series("m", "a", 1): 1.0}
    assert reading.flags == (FLAG_KNOWN_WRONG,)
    (again,) = reader.answer(family(led), told).readings
    assert again.zeros is reading.zeros
    (nobody,) = reader.answer(family(led), {Question(UNDER, "Value"): under}).readings
    assert not nobody.zeros
    assert not nobody.values


def test_nan_is_observed_and_a_brokers_own_bean_of_the_pattern_is_not_meant() -> None:
    one = metric(QUOTAS, labels={"user": "user", "client-id": "client_id"}, url_encoded=("user",))
    found = values(
        one,
        {
            'kafka.server:type=Produce,client-id="a,b\\"c"': math.nan,
            "kafka.server:user=a%20b,type=Produce": None,
            "kafka.server:type=Produce": 5,
            "kafka.server:type=Produce,tenant=x": 5,
            "kafka.server:type=Produce,client-id=minus": -1,
        },
    )
    assert found == {
        Series("m", client_id='a,b"c'): None,
        Series("m", user="a b"): None,
        Series("m", client_id="minus"): -1.0,
        Series("m", client_id="tenant=x", labels=(("tenant", "x"),)): 5.0,
    }


def test_of_two_names_of_one_bean_the_first_counts() -> None:
    one = metric("a:type=X,t=*", also=("b:type=X,t=*",), labels={"t": "topic"})
    told: dict[Question, dict[str, object]] = {
        Question("a:type=X,t=*", "Value"): {"a:type=X,t=1": 1},
        Question("b:type=X,t=*", "Value"): {"b:type=X,t=1": 2, "b:type=X,t=2": 0},
    }
    answer = SnapshotReader("here").answer(family(one), told)
    assert answer.readings[0].values == {Series("m", "1"): 1.0}
    assert answer.readings[0].zeros == {Series("m", "2")}
    assert answer.beans == 2


def test_beyond_the_cap_series_are_folded_and_counted() -> None:
    one = metric("a:type=X,t=*", labels={"t": "topic"})
    beans: dict[str, object] = {f"a:type=X,t=t{at}": at for at in range(10)}
    told = {Question("a:type=X,t=*", "Value"): beans}
    answer = SnapshotReader("here").answer(family(one, cap=4), told)
    assert (answer.beans, answer.dropped_series) == (10, 6)
    assert answer.readings[0].values[Series("m", OTHER)] == 5 + 6 + 7 + 8 + 9
    assert len(answer.readings[0].values) == 5


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("7", "here: a:b=c Value is 7, not a number; correct or remove m in the catalogue"),
        ("x\n" * 99, "is x x x"),
        (math.inf, "is inf, not a number"),
        (-math.inf, "is -inf, not a number"),
        (10**400, "not a number"),
        ([1], "not a number"),
        (Failed("why"), "here: a:b=c Value failed in the broker: why"),
    ],
)
def test_what_is_no_number_is_refused_by_name(value: object, reason: str) -> None:
    with pytest.raises(SourceError, match=reason) as refused:
        values(metric("a:b=c"), {"a:b=c": value})
    assert "\n" not in str(refused.value)


def test_wildcards_are_known_from_what_is_quoted() -> None:
    patterns = ["a:b=*", "a:b=c,*", "a*:b=c", "a:b=?", 'a:b="x\\\\*"']
    names = ["a:b=c", 'a:b="x\\*y\\?"', "a:b=c\\", 'a:b="x\\\\\\*"', "\\" * 40_000]
    assert [is_pattern(one) for one in patterns] == [True] * 5
    assert [is_pattern(one) for one in names] == [False] * 5
