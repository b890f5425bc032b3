"""Identity of a JVM: the reason if it is missing, in one line, and a combined node."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

import pytest

from collector.cli.scrape import Read, _other_role
from collector.errors import IdentityError
from collector.model import Identity, Scrape
from collector.sources.base.beans import Question
from collector.sources.base.identity import STARTED, Expected
from collector.sources.source_settings import SourceSettings

if TYPE_CHECKING:
    from collector.catalogue.entries import Role

INFO = Question("kafka.server:type=app-info,id=*", "Version")
CLUSTER = Question("kafka.server:type=KafkaServer,name=ClusterId", "Value")
STARTING = {CLUSTER: {"kafka.server:type=KafkaServer,name=ClusterId": "c"}}
BROKERS = {f"kafka.server:type=app-info,id={number}": "4.4.0" for number in (1, 2)}
CONTROLLER = Question("kafka.server:type=ControllerServer,name=ClusterId", "Value")


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


@pytest.mark.parametrize("role", ["broker", "controller"])
def test_combined_node_is_recognised(role: Role) -> None:
    broker = {**started(86_400), INFO: dict([*BROKERS.items()][:1]), **STARTING}
    assert not Expected(role, "1").identity("h:9999", broker).is_combined
    both = {**broker, CONTROLLER: {"kafka.server:type=ControllerServer,name=ClusterId": "c"}}
    assert Expected(role, "1").identity("h:9999", both).is_combined


@pytest.mark.parametrize(
    ("source", "names", "other"),
    [
        ({"role": "broker"}, ["broker-1"], "controller"),
        ({"role": "controller"}, ["controller-1", "broker-2"], "broker"),
        ({"role": "broker"}, ["broker-1", "controller-1"], None),
        ({"role": "client"}, ["client-1"], None),
    ],
)
def test_role_of_a_combined_node_without_a_source(
    source: dict[str, Any], names: list[str], other: str | None
) -> None:
    settings = SourceSettings(1, **source)

    def read(*, is_combined: bool) -> list[Read]:
        identity = Identity("c", "1", "4.4.0", 1, is_combined)
        return [Read(cast("Any", None), Scrape("f", 0, 0, 1, 1, "ok", identity), None)]

    assert _other_role(settings, read(is_combined=True), names) == other
    assert _other_role(settings, read(is_combined=False), names) is None
