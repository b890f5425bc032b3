"""Why a bean is not there: each reason that the catalogue and the broker give."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from collector.catalogue import KnownWrong, Metric, load
from collector.cli.check import Facts, Finding, counts, explain, facts
from collector.model import Answer, Identity, Reading, Scrape, Series

PLAIN = Metric(name="kafka.broker.x", unit="1", description="", object="a:b=c")
LATEST = Facts("4.3.1", leads=5)


def reading(metric: str, **values: float | None) -> Reading:
    zeros = frozenset(Series(metric, topic) for topic, value in values.items() if value == 0)
    others = {Series(metric, topic): value for topic, value in values.items() if value != 0}
    return Reading(metric, "gauge", zeros, others)


def scrape(*readings: Reading, version: str | None = "4.3.1") -> Scrape:
    identity = Identity("c", "1", version, 1)
    return Scrape("f", 0, 0, 1, 1, "ok", identity, Answer(readings, len(readings)))


def test_what_is_there_is_found_with_its_number() -> None:
    assert explain(PLAIN, 12, LATEST) == Finding("found", 12, "")


def test_what_this_version_reports_wrongly_is_said() -> None:
    wrong = replace(PLAIN, known_wrong=(KnownWrong("3.7.0", "counts twice", "4.4.0"),))
    assert explain(wrong, 1, LATEST) == Finding("wrong", 1, "counts twice")
    assert explain(wrong, 1, LATEST._replace(version="4.4.0")).state == "found"
    assert explain(wrong, 1, Facts()).state == "found"


def test_what_has_no_excuse_is_missing() -> None:
    found = explain(PLAIN, 0, LATEST)
    assert found.state == "missing"
    assert "metrics.jmx.exclude" in found.why


@pytest.mark.parametrize(
    ("change", "known", "why"),
    [
        ({"first": "4.4.0"}, LATEST, "requires Kafka 4.4.0 or later; the broker has 4.3.1"),
        ({"last": "4.2.0"}, LATEST, "removed after Kafka 4.2.0; the broker has 4.3.1"),
        ({"needs": "quota"}, LATEST,
         "no quota of its kind is set, or no client was subject to it in the last hour"),
        ({"needs": "tiering"}, LATEST,
         "tiered storage is disabled, no topic is tiered, or tiering was not used yet"),
        ({"needs": "draft"}, LATEST,
         "a draft that no Kafka release contains; some patched brokers have it"),
        ({"needs": "traffic"}, LATEST, "no such event since the broker started"),
        ({"needs": "partition"}, LATEST._replace(leads=0),
         "the broker does not hold or lead a partition with this MBean"),
        ({"object": None, "call": "derived from two", "needs": "group", "kind": "counter"}, LATEST,
         "the agent derives it from two scrapes"),
        ({"object": None, "call": "derived from one", "needs": "group"}, LATEST,
         "no consumer group has committed to a partition that this broker leads"),
        ({"object": None, "call": "derived from one", "needs": "group", "above": 10_000.0}, LATEST,
         "no value is above 10,000, or the values are unknown"),
    ],
)  # fmt: skip
def test_what_is_absent_for_a_reason_says_it(
    change: dict[str, object], known: Facts, why: str
) -> None:
    assert explain(replace(PLAIN, **change), 0, known) == Finding("absent", 0, why)  # type: ignore[arg-type]


def test_a_broker_that_leads_partitions_must_tell_of_them() -> None:
    assert explain(replace(PLAIN, needs="partition"), 0, LATEST).state == "missing"


def test_every_need_of_the_catalogue_has_its_words() -> None:
    for metric in load().metrics.values():
        known = Facts("99.0.0", leads=0)
        found = explain(replace(metric, first=None, last=None), 0, known)
        assert found.state == ("absent" if metric.needs else "missing"), metric.name
        assert found.why


def test_facts_come_from_what_the_broker_told() -> None:
    led = "kafka.broker.led_partitions"
    other = scrape(reading("kafka.broker.x", a=1), version=None)
    assert facts([scrape(reading(led, a=7)), other]) == Facts("4.3.1", leads=7)
    assert facts([other, scrape(reading(led, a=0))]) == Facts("4.3.1", leads=0)
    assert facts([scrape(reading(led))]).leads is None
    assert facts([]) == Facts()


def test_idle_and_zero_series_are_there() -> None:
    assert counts(scrape(reading("m", a=0, b=None, c=3))) == {"m": 3}
    assert counts(Scrape("f", 0, 0, 1, 1, "timeout")) == {}


def test_a_metadata_log_of_a_broker_that_leads_nothing_is_no_matter_of_permission() -> None:
    family = load().family("metadata_log")
    for metric in family.metrics:
        nothing = explain(metric, 0, LATEST._replace(leads=0), family.via)
        assert nothing.state == "absent"
        assert nothing.why.startswith("the broker does not hold or lead a partition")
        assert "metadata_log.folder" in explain(metric, 0, LATEST, family.via).why


@pytest.mark.edge(4)
@pytest.mark.parametrize("name", ["kafka.partition.under_min_isr", "kafka.partition.at_min_isr"])
def test_a_missing_led_metric_names_who_tells_leaders(name: str) -> None:
    metric = load().family("min_isr").metric(name)
    found = explain(metric, 0, Facts("4.3.1", leads=3))
    assert found.state == "missing"
    assert "InSyncReplicasCount, which identifies leaders" in found.why
    assert "exporter's rules" in found.why
