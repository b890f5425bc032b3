"""Kafka metrics in /metrics: the known problems of now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from collector.catalogue import load
from collector.cli.symptoms import SYMPTOMS
from collector.encoding.expired_offsets import HIGH, LOW, add_up
from collector.model import Answer, Identity, Reading, Scrape, Series
from collector.telemetry.live_metrics import Live
from lakehouse.core.metrics import known
from lakehouse.tables import OTHER
from lakehouse.tables.agent_names import LOST, SHOWN, live_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prometheus_client.samples import Sample

S = 1_000_000
UNDER = "kafka.partition.under_min_isr"
THROTTLE = "kafka.client.produce.throttle_time"
LED = "kafka.broker.led_partitions"
FAMILIES = ("min_isr", "quotas", "network", "offsets")
ODD = 'c"\\\n\r\0\u2028\u202e\ud800{{ $labels }}' + "x" * 900


class Stage:
    """Responses of a test, and the metrics shown for them."""

    def __init__(self, most: int = 5) -> None:
        self.at, self.lost = 100.0, dict[Series, float]()
        self.live = Live(lambda: {"broker-1": self.lost}, lambda: self.at)
        self.live.most = most
        self.live.expect({("broker-1", n): (load().family(n), 10 * S) for n in FAMILIES})
        self.registry = CollectorRegistry()
        self.registry.register(self.live)

    def answer(self, family: str, *readings: Reading) -> None:
        identity = Identity("abc", "1", "4.3.1", 1)
        self.live.scraped(
            Scrape(
                family,
                0,
                0,
                1,
                10 * S,
                "ok",
                identity,
                Answer(readings, len(readings)),
                source="broker-1",
            )
        )

    def fail(self, family: str) -> None:
        self.live.scraped(
            Scrape(family, 0, 0, 1, 10 * S, "timeout", error="no answer", source="broker-1")
        )

    def samples(self) -> dict[str, list[Sample]]:
        text = generate_latest(self.registry).decode()
        openmetrics.generate_latest(self.registry)
        found: dict[str, list[Sample]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found.setdefault(sample.name, []).append(sample)
        return found

    def values(self, metric: str) -> Mapping[str | None, float]:
        shown = self.samples().get(live_name(metric), [])
        return {one.labels.get("topic", one.labels.get("client_id")): one.value for one in shown}

    def flag(self, name: str, **labels: str) -> float | None:
        for one in self.samples().get(f"jmxlake_agent_{name}", ()):
            if labels.items() <= one.labels.items():
                return one.value
        return None


def gauge(*series: Series, value: float | None = 1.0, zeros: tuple[Series, ...] = ()) -> Reading:
    metric = (*series, *zeros)[0].metric
    return Reading(metric, "gauge", frozenset(zeros), dict.fromkeys(series, value))


def test_only_what_is_above_zero_is_shown_of_topics_and_all_of_the_source() -> None:
    stage = Stage()
    stage.answer(
        "min_isr",
        gauge(Series(UNDER, "bad", 3), zeros=(Series(UNDER, "good", 0),)),
        gauge(Series(LED), value=7.0),
        gauge(zeros=(Series("kafka.broker.under_min_isr_partitions"),)),
        Reading("kafka.broker.isr_shrinks", "counter", values={Series("x"): 5.0}),
        gauge(Series("kafka.partition.at_min_isr", "bad", 1)),
    )
    stage.answer("quotas", gauge(Series(THROTTLE, client_id="idle"), value=None))
    found = stage.samples()
    (bad,) = found["jmxlake_kafka_partition_under_min_isr"]
    assert bad.labels == {"source": "broker-1", "cluster": "abc", "topic": "bad", "partition": "3"}
    assert stage.values(LED) == {None: 7}
    assert stage.values("kafka.broker.under_min_isr_partitions") == {None: 0}
    assert {name for name in found if "kafka" in name} == {
        live_name(one) for one in (UNDER, LED, "kafka.broker.under_min_isr_partitions")
    }


@pytest.mark.parametrize("gap", ["a failure", "silence", "reload"])
def test_what_is_unknown_is_absent_and_said_to_be(gap: str) -> None:
    stage = Stage()
    assert stage.flag("metric_known", metric=UNDER) == 0, "not read yet"
    stage.answer("min_isr", gauge(Series(UNDER, "bad", 0)))
    stage.at += 25
    assert stage.values(UNDER) == {"bad": 1}
    assert (
        stage.flag("metric_known", metric=UNDER)
        == stage.flag("family_known", family="min_isr")
        == 1
    )
    if gap == "a failure":
        stage.fail("min_isr")
    elif gap == "silence":
        stage.at += 0.1
    else:
        stage.live.expect({("broker-1", "quotas"): (load().family("quotas"), 10 * S)})
    assert stage.values(UNDER) == {}
    wanted = None if gap == "reload" else 0
    assert stage.flag("metric_known", metric=UNDER) == wanted
    assert stage.flag("family_known", family="min_isr") == wanted


def test_the_worst_are_shown_and_the_rest_is_counted() -> None:
    stage = Stage(most=3)
    clients = {Series(THROTTLE, client_id=f"c{n}"): float(n) for n in range(1000)}
    stage.answer("quotas", Reading(THROTTLE, "gauge", values=clients))
    assert stage.values(THROTTLE) == {"c999": 999, "c998": 998, "c997": 997}
    assert stage.flag("unshown_series", metric=THROTTLE) == 996, "all but those shown and the zero"
    assert stage.flag("unshown_series", metric="kafka.client.fetch.throttle_time") == 0


def test_hostile_names_are_escaped_and_stay_apart() -> None:
    stage = Stage()
    odd = (
        Series(THROTTLE, client_id=ODD),
        Series(THROTTLE, client_id=""),
        Series(THROTTLE, user=""),
    )
    own = Series("agent.commits")
    also = Series("kafka.network.x", labels=(("a\n", 'b"'),)), Series("kafka.network_x")
    stage.answer("quotas", gauge(*odd))
    stage.answer("network", gauge(own), *map(gauge, also))
    shown = stage.samples()["jmxlake_kafka_client_produce_throttle_time"]
    assert len({tuple(sorted(one.labels.items())) for one in shown}) == 3
    assert shown[0].labels["client_id"] == ODD.replace("\0", "\u2400").replace("\ud800", "\\ud800")
    assert "jmxlake_agent_commits" not in stage.samples(), "the agent has one of its own"
    assert stage.flag("unshown_series", metric="agent.commits") == 1
    (first,) = stage.samples()["jmxlake_kafka_network_x"]
    assert first.labels["labels"] == 'a\n=b"'
    assert stage.flag("unshown_series", metric="kafka.network_x") == 1


def test_losses_are_totals_by_group_and_topic() -> None:
    stage = Stage()
    for metric, rise in ((LOW, 5.0), (HIGH, 9.0), (HIGH, None), (LOW, 0.0)):
        add_up(stage.lost, {Series(metric, "orders", n, group="g"): rise for n in (0, 1)})
    stage.answer("offsets")
    (low,) = stage.samples()["jmxlake_kafka_group_non_consumed_low_total"]
    (high,) = stage.samples()["jmxlake_kafka_group_non_consumed_high_total"]
    assert (low.value, high.value) == (10, 18)
    single = stage.samples()["jmxlake_kafka_group_partition_non_consumed_high_total"]
    assert {one.labels["partition"]: one.value for one in single} == {"0": 9, "1": 9}
    assert low.labels == {"source": "broker-1", "cluster": "abc", "topic": "orders", "group": "g"}


def test_totals_are_bounded_whatever_groups_there_are() -> None:
    totals: dict[Series, float] = {}
    add_up(totals, {Series(LOW, "t", 0, group=f"g{n}"): 1.0 for n in range(10_005)})
    by_topic = [series for series in totals if series.partition is None]
    assert (len(by_topic), len(totals) - len(by_topic)) == (10_001, 1_000)
    assert totals[Series(LOW, OTHER, group=OTHER)] == 5


def test_both_sides_and_top_speak_of_metrics_that_there_are() -> None:
    named = known()
    assert {name for name in (*SHOWN, *LOST) if name not in named} == set()
    assert (LOW, HIGH) == LOST
    bad = {one for one in SYMPTOMS if named[one].level != "source"} - set(LOST)
    assert bad <= SHOWN


def test_a_source_that_is_silent_hides_no_other_nor_is_it_hidden_by_one() -> None:
    stage = Stage()
    families = {(f"broker-{n}", "min_isr"): (load().family("min_isr"), 10 * S) for n in (1, 2)}
    stage.live.expect(families)
    bad = gauge(Series(UNDER, "bad", 3))
    identity = Identity("abc", "1", "4.3.1", 1)
    for name in ("broker-1", "broker-2"):
        answer = Answer((bad,), 1)
        ok = Scrape("min_isr", 0, 0, 1, 10 * S, "ok", identity, answer, source=name)
        stage.live.scraped(ok)
    found = stage.samples()["jmxlake_kafka_partition_under_min_isr"]
    assert [one.labels["source"] for one in found] == ["broker-1", "broker-2"]
    stage.fail("min_isr")
    found = stage.samples()["jmxlake_kafka_partition_under_min_isr"]
    assert [one.labels["source"] for one in found] == ["broker-2"]
    known = stage.samples()["jmxlake_agent_family_known"]
    assert {one.labels["source"]: one.value for one in known} == {"broker-1": 0, "broker-2": 1}
