"""How jmx_exporter shows a bean, by its rules: what its own source says, and published files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from collector import catalogue
from collector.errors import ConfigError
from collector.sources.base.beans import Question
from collector.sources.prometheus import exporter_rules

if TYPE_CHECKING:
    from collector.sources.prometheus.sample_names import Shown

RULES = Path(__file__).parents[1] / "exporter_rules"
PARTITION = Question("kafka.cluster:type=Partition,name=UnderMinIsr,topic=*,partition=*", "Value")
BYTES = Question("kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=*", "Count")


def shown(config: dict[str, Any], question: Question, *further: str) -> Shown:
    found = exporter_rules.parse(config).shown(question, further)
    assert found is not None
    (one,) = found
    return one


def test_without_rules_a_bean_has_its_default_name() -> None:
    one = shown({}, PARTITION)
    assert one.names == {"kafka_cluster_Partition_Value"}
    assert one.constants == {"name": "UnderMinIsr"}
    labels = {"name": "UnderMinIsr", "topic": "a.b", "partition": "7"}
    bean = "kafka.cluster:type=Partition,name=UnderMinIsr,topic=a.b,partition=7"
    assert one.named(labels) == bean


def test_names_and_labels_are_made_safe_and_lower_case() -> None:
    config = {"lowercaseOutputName": True, "lowercaseOutputLabelNames": True}
    one = shown(config, Question("kafka.server:type=Produce,client-id=*", "throttle-time"))
    assert one.names == {"kafka_server_produce_throttle_time"}
    assert one.named({"client_id": '"a\\"b"'}) == 'kafka.server:type=Produce,client-id="a\\"b"'


@pytest.mark.parametrize(
    ("kind", "name", "names"),
    [
        ("COUNTER", "bytes_total", {"bytes_total"}),
        ("COUNTER", "bytes", {"bytes_total"}),
        ("GAUGE", "bytes", {"bytes"}),
        ("GAUGE", "bytes_total", {"bytes_total", "bytes"}),  # by its version
    ],
)
def test_a_counter_ends_in_total(kind: str, name: str, names: set[str]) -> None:
    rule = {"pattern": "name=BytesInPerSec, topic=(.+)><>Count", "name": name, "type": kind,
            "labels": {"topic": "$1"}}  # fmt: skip
    assert shown({"rules": [rule]}, BYTES).names == names


def test_labels_may_be_parts_of_a_text_and_a_factor_is_undone() -> None:
    rule = {"pattern": r"kafka.(\w+)<type=(.+), name=(.+)PerSec, (.+)=(.+)><>Count",
            "name": "$1_$3", "labels": {"$4": "of ${5}"[:3] + "$5", "kind": "$2"},
            "valueFactor": 0.001}  # fmt: skip
    one = shown({"rules": [rule]}, BYTES)
    assert one.names == {"server_BytesIn"}
    assert one.factor == 0.001
    assert one.constants == {"kind": "BrokerTopicMetrics"}
    assert one.named({"kind": "BrokerTopicMetrics", "topic": "of x"}) == BYTES.pattern.replace(
        "*", "x"
    )
    assert one.named({"kind": "BrokerTopicMetrics", "topic": "x"}) is None


@pytest.mark.parametrize(
    "config",
    [
        {"rules": []},
        {"rules": [{"pattern": "kafka.log<.*", "name": "x"}]},
        {"rules": [{"pattern": "topic=(.+)><>Count", "name": "bytes_$1"}]},  # the topic is in it
        {"rules": [{"pattern": "BytesIn.*", "name": "bytes"}]},  # all topics have one name
        {"rules": [{"pattern": "BytesIn.*", "value": 1}]},
        {"rules": [{"pattern": "BytesIn.*", "value": 0}]},
        {"rules": [{"pattern": "BytesIn.*", "valueFactor": 0}]},
        {"includeObjectNames": ["kafka.server:type=BrokerTopicMetrics,name=*"]},
        {"whitelistObjectNames": ["kafka.log:*"]},
        {"excludeObjectNames": ["kafka.*:type=Broker*,*"]},
        {"blacklistObjectNames": ["kafka.server:type=*,name=*,topic=*"]},
    ],
)
def test_what_rules_hide_is_known_to_be_hidden(config: dict[str, Any]) -> None:
    assert exporter_rules.parse(config).shown(BYTES) is None


def test_a_pattern_that_allows_further_keys_is_asked_with_each_of_them() -> None:
    found = exporter_rules.parse({}).shown(
        Question("kafka.server:type=Produce,*", "throttle-time"), ("user", "client-id")
    )
    assert found is not None
    assert [sorted(one.variables) for one in found] == [
        ["user"], ["client_id"], ["client_id", "user"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (r"kafka.server<type=(?<type>\w+), name=(?<what>\w+)PerSec, topic=(.+)><>Count", "$2"),
        (r"kafka.server<type=(?<type>\w+), name=(?<what>\w+)PerSec, topic=(.+)><>", "${what}"),
        (r"(?i)KAFKA.server<TYPE=(\w+), name=(\w+)persec, topic=(.+)><>count", "$2"),
        (r"a<b|(?i)SERVER<type=(\w+)(?-i), name=(Bytes\w+)PerSec, topic=(.+)><>", "$2"),
        (r"\Qkafka.server<type=\E(\p{Alpha}++), name=(\p{L}+)PerSec, topic=([^,>]++)><>", "$2"),
        (r"type=([A-Za-z&&[^x]]+),\h(?>name)=(\p{IsAlphabetic}*?)PerSec, topic=([\w.-]+)", "$2"),
        (r"type=(\p{javaUpperCase}.+), name=([\p{Alnum}[-]]+)PerSec, topic=(\p{Graph}+)><>", "$2"),
    ],
)
def test_patterns_mean_what_java_means(pattern: str, name: str) -> None:
    rule = {"pattern": pattern, "name": name, "labels": {"topic": "$3"}}
    assert shown({"rules": [rule]}, BYTES).names == {"BytesIn"}
    assert shown({"rules": [rule]}, BYTES).named({"topic": "x"}) == BYTES.pattern.replace("*", "x")


def test_patterns_that_take_for_ever_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter_rules, "_MOST_SECONDS", 1)
    good, bad = tmp_path / "good.yml", tmp_path / "bad.yml"
    good.write_text((RULES / "kafka.yml").read_text())
    bad.write_text(r"rules: [{pattern: 'kafka.(\w+)<type=((\w+)+)+!', name: x}, {pattern: '.*'}]")
    exporter_rules.check_time(good)
    with pytest.raises(ConfigError, match="more than 1 s to match; remove repetitions"):
        exporter_rules.check_time(bad)


def test_part_of_a_composite_attribute() -> None:
    one = shown({}, Question("java.lang:type=Memory", "HeapMemoryUsage.used"))
    assert one.names == {"java_lang_Memory_HeapMemoryUsage_used"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rules: {", "expected"),
        ("rules: [{pattern: '(', name: x}]", "does not support the pattern"),
        ("metricCustomizers: []", "does not support metricCustomizers"),
        ("rules: 5", "invalid configuration"),
        ("- 1", "invalid configuration"),
        ("rules: [{pattern: 'x(?<=a+)y'}]", "a lookbehind has no fixed length"),
        ("rules: [{pattern: '(?x)a'}]", "the flag x"),
        ("rules: [{pattern: 'a(b', name: x}]", "a bracket is not closed"),
        ("rules: [{pattern: '(?P<a>b)'}]", r"unknown kind of group \(\?P"),
        ("rules: [{pattern: '\\p{Nope}'}]", r"class \\p{Nope} is not supported"),
        ("rules: [{pattern: '" + "(" * 9_999 + "'}]", "nested more than 50 deep"),
        ("rules: [{pattern: '" + "[" * 9_999 + "'}]", "nested more than 50 deep"),
        ("rules: [{pattern: '" + "a" * 10_001 + "'}]", "longer than 10,000 characters"),
        ("rules: [{pattern: '(a)', name: $2}]", "refers to group 2, which the pattern does not"),
        ("rules: [{pattern: '(?<a>a)', name: '${b}'}]", "refers to group b, which"),
        ("rules: [{pattern: a, name: x, labels: {$1: y}}]", "refers to group 1, which"),
        ("rules: [{pattern: a, name: x, labels: {y: a$}}]", r"has a \$ without a group"),
        ("rules: [{pattern: x, valueFactor: y}]", "Expected `float`, got `str` - at .*valueFactor"),
    ],
)
def test_a_file_that_cannot_be_followed_is_one_line(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(text)
    with pytest.raises(ConfigError, match=why) as refused:
        exporter_rules.read(tmp_path / "rules.yml")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "rules: [{pattern: 'topic=(.+)><>Count', name: x, type: GAUGE, type: COUNTER,"
        " labels: {topic: $2, topic: $1}}]",
        "rules: [{pattern: x}]\nrules: [{pattern: 'topic=(.+)><>Count', name: x, type: COUNTER,"
        " labels: {topic: $1}}]",
        "kind: ConfigMap\ndata:\n  a: no\n  a: |\n    rules: 5\n    rules:\n"
        "    - {pattern: 'topic=(.+)><>Count', name: y, name: x, type: COUNTER,"
        " labels: {topic: $1}}",
    ],
    ids=["of a rule", "of the file", "of a ConfigMap"],
)
def test_last_of_two_equal_keys_wins(text: str, tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(text)
    (one,) = exporter_rules.read(tmp_path / "rules.yml").shown(BYTES) or ()
    assert one.names == {"x_total"}
    assert one.variables.keys() == {"topic"}


def test_excluded_jvm_metrics_are_hidden() -> None:
    rules = exporter_rules.parse({"excludeJvmMetrics": True})
    assert rules.shown(Question("java.lang:type=Memory", "HeapMemoryUsage.used")) is None
    assert rules.shown(BYTES)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"rules\.yml: the exporter's rules: No such file"):
        exporter_rules.read(tmp_path / "rules.yml")


def hidden(rules: exporter_rules.Rules) -> set[str]:
    """The families of brokers and controllers of which rules hide something."""
    return {
        family.name
        for family in catalogue.load().families
        if family.via == "jmx" and {*family.roles} - {"client"}
        for metric in family.metrics
        if metric.needs != "plugin"
        if not any(
            rules.shown(Question(pattern, metric.attribute_name), tuple(metric.labels))
            for pattern in metric.patterns
        )
    }


HIDDEN = ("jvm", "log", "quotas", "remote_reads")
SHARE = "share_acknowledgements"


@pytest.mark.parametrize(
    ("file", "families"),
    [
        ("strimzi.yaml", {*HIDDEN, "client_metrics", "client_rates", "network", SHARE}),
        ("confluent.yml", {*HIDDEN, "client_metrics", "client_rates"}),
        ("kafka.yml", {*HIDDEN, "client_metrics", "network", SHARE}),
        ("kafka-kraft.yml", {*HIDDEN, "client_rates", "network", SHARE}),
    ],
)
def test_what_published_rules_hide_and_two_rules_more_show(file: str, families: set[str]) -> None:
    assert hidden(exporter_rules.read(RULES / file)) == families
    (found,) = (
        one for one in exporter_rules.configurations((RULES / file).read_text()) if "rules" in one
    )
    page = (RULES.parents[1] / "docs" / "prometheus.md").read_text()
    (more,) = exporter_rules.configurations(page.split("```yaml\n")[1].split("```")[0])
    more_rules = exporter_rules.parse({**found, "rules": [*more["rules"], *found["rules"]]})
    assert hidden(more_rules) == set()
