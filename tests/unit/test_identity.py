"""A JVM without the MBean that identifies a broker: why, in one line."""

from __future__ import annotations

import time

import pytest

from collector.errors import IdentityError
from collector.sources.base.beans import Question
from collector.sources.base.identity import STARTED, Expected

INFO = Question("kafka.server:type=app-info,id=*", "Version")
CLUSTER = Question("kafka.server:type=KafkaServer,name=ClusterId", "Value")
STARTING = {CLUSTER: {"kafka.server:type=KafkaServer,name=ClusterId": "c"}}
BROKERS = {f"kafka.server:type=app-info,id={number}": "4.4.0" for number in (1, 2)}


def started(seconds: float) -> dict[Question, dict[str, object]]:
    return {STARTED: {"java.lang:type=Runtime": round((time.time() - seconds) * 1000)}}


@pytest.mark.parametrize(
    ("seconds", "answers", "text"),
    [
        (3, {}, "the JVM has just started. Wait until the broker has MBeans"),
        (3, STARTING, "the broker is starting or stopping"),
        (86_400, STARTING, "If this lasts, check the filters of its MBeans"),
        (86_400, {}, "does not have the MBeans of one Kafka broker or controller"),
        (86_400, {**STARTING, INFO: BROKERS}, "Correct the address"),
    ],
)
def test_jvm_without_broker_is_one_line(
    seconds: float, answers: dict[Question, dict[str, object]], text: str
) -> None:
    with pytest.raises(IdentityError) as caught:
        Expected("broker", "1").identity("h:9999", {**started(seconds), **answers})
    assert str(caught.value).startswith("h:9999: the ")
    assert text in str(caught.value)
