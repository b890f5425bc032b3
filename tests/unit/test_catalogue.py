"""The catalogue: what the proposals ask for is in it, and a wrong file is refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector import catalogue
from collector.catalogue.entries import KnownWrong, version_key
from collector.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

TOPIC = "kafka.server:type=BrokerTopicMetrics,name={},topic=*"
WANTED = {
    "KIP-164": [
        "kafka.cluster:type=Partition,name=UnderMinIsr,topic=*,partition=*",
        "kafka.server:type=ReplicaManager,name=UnderMinIsrPartitionCount",
    ],
    "KIP-13": [
        *(f"kafka.server:type={kind},*" for kind in ("Produce", "Fetch", "Request")),
        *(
            f"jmxlake.kafka:type=ClientThrottle,name={kind}ThrottleTime{which},user=*,client-id=*"
            for kind in ("Produce", "Fetch")
            for which in ("Avg", "Max")
        ),
        "kafka.producer:type=producer-metrics,client-id=*",
        "kafka.consumer:type=consumer-fetch-manager-metrics,client-id=*",
    ],
    "KIP-963": [
        *(
            TOPIC.format(name)
            for name in (
                "RemoteCopyLagBytes",
                "RemoteCopyLagSegments",
                "RemoteDeleteLagBytes",
                "RemoteDeleteLagSegments",
                "RemoteLogMetadataCount",
                "RemoteLogSizeBytes",
                "RemoteLogSizeComputationTime",
                "RemoteDeleteRequestsPerSec",
                "RemoteDeleteErrorsPerSec",
                "BuildRemoteLogAuxStateRequestsPerSec",
                "BuildRemoteLogAuxStateErrorsPerSec",
            )
        ),
        *(TOPIC.format(name) + ",partition=*" for name in ("UploadTierLag", "DeleteTierLag")),
    ],
    "KIP-490": [
        "kafka.log:type=Log,name=LogStartOffset,topic=*,partition=*",
        "kafka.log:type=Log,name=LogEndOffset,topic=*,partition=*",
    ],
    "KIP-1002": [
        "kafka.log.remote:type=RemoteLogManager,name=RemoteLogReaderFetchRateAndTimeMs",
        "org.apache.kafka.storage.internals.log:type=RemoteStorageThreadPool,name=RemoteLogReaderTaskQueueSize",
        "aiven.kafka.server.tieredstorage.cache:type=segment-indexes-cache-metrics",
        "jmxlake.kafka:type=IndexFetches,name=RoundTrips,index=*",
    ],
}
OWN = """
family: own
via: jmx
cadence_seconds: 30
roles: [broker]
metrics:
  own.threads:
    object: java.lang:type=Threading
    attribute: ThreadCount
    unit: "{thread}"
    description: Threads of the JVM.
"""


FAST = (
    "client", "client_statistics", "controller", "kraft", "leaders", "metadata_log", "min_isr",
    "partitions", "quotas", "replication", "tiered",
)  # fmt: skip
"""Families of incidents: their bounds are as wide as the time between two scrapes."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own.yaml").write_text(OWN)
    return tmp_path


@pytest.mark.parametrize("proposal", WANTED)
def test_every_bean_that_a_proposal_rests_on_is_read(proposal: str) -> None:
    families = catalogue.load().families
    read = {pattern for one in families for metric in one.metrics for pattern in metric.patterns}
    assert not set(WANTED[proposal]) - read


@pytest.mark.parametrize("family", FAST)
def test_fast_family_is_scraped_every_10_s_at_most(family: str) -> None:
    assert catalogue.load().family(family).cadence_seconds <= 10


def test_where_the_metadata_log_is_read_it_takes_the_names_and_the_rest_are_cross_checks() -> None:
    plain = catalogue.load()
    preferring = plain.preferring("metadata_log")
    names = {
        family: {metric.name for metric in preferring.family(family).metrics}
        for family in ("metadata_log", "min_isr", "leaders")
    }
    assert names["metadata_log"] == {
        f"kafka.partition.{name}"
        for name in (
            *("under_min_isr", "at_min_isr", "leaderless", "under_replicated"),
            *("without_spare", "reassigning", "unclean_leader"),
        )
    }
    assert {"kafka.partition.under_min_isr.jmx", "kafka.partition.at_min_isr.jmx"} < names[
        "min_isr"
    ]
    assert names["leaders"] == {"kafka.partition.leaderless.admin"}
    assert names["min_isr"].isdisjoint(names["metadata_log"])
    assert preferring.hash != plain.hash


def test_a_throttle_time_has_a_memory_and_a_distribution() -> None:
    metric = catalogue.load().metrics["kafka.client.produce.throttle_time"]
    assert (metric.delays.memory_us, metric.percentiles, metric.absent) == (
        60_000_000,
        True,
        "idle",
    )
    assert metric.attribute_name == "throttle-time"


def test_a_counter_reads_the_count_and_a_gauge_the_value() -> None:
    loaded = catalogue.load()
    assert loaded.metrics["kafka.topic.remote_copy.bytes"].attribute_name == "Count"
    assert loaded.metrics["kafka.topic.remote_copy_lag.bytes"].attribute_name == "Value"


def test_versions_compare_as_numbers() -> None:
    assert version_key("3.10.0") > version_key("3.9.1")
    assert version_key("3.9.0-rc3") == version_key("3.9.0")
    assert version_key("7.9.5-ccs") == version_key("3.9.0")
    assert version_key("8.1.2-ce") == version_key("4.1.0")


@pytest.mark.parametrize(
    ("version", "wrong"),
    [
        ("3.6.2", False), ("3.7.0", True), ("3.8.1", True), ("3.10.0", False), (None, False),
        ("7.6.9-ccs", False), ("7.8.4-ccs", True), ("7.9.0-ccs", False), ("8.0.0-ce", False),
    ],
)  # fmt: skip
def test_a_known_wrong_version_is_known(version: str | None, *, wrong: bool) -> None:
    metric = catalogue.Metric(
        name="a.b",
        unit="1",
        description="",
        known_wrong=(KnownWrong("3.7.0", "why", before="3.9.0"),),
    )
    assert metric.wrong_in(version) == ("why" if wrong else None)


def test_a_folder_adds_a_family(folder: Path) -> None:
    loaded = catalogue.load(folder)
    assert loaded.metrics["own.threads"].attribute_name == "ThreadCount"
    assert len(loaded.families) == len(catalogue.load().families) + 1
    assert loaded.hash != catalogue.load().hash


@pytest.mark.parametrize(
    ("role", "unit", "told"),
    [
        ("controller", "ms", None),
        ("controller", '"{thread}"', "is in family"),
        ("client", "ms", "is in family"),
    ],
)
def test_families_of_different_roles_share_an_equal_metric(
    folder: Path, role: str, unit: str, told: str | None
) -> None:
    shared = OWN.replace("own.threads", "kafka.producer.produce_throttle_time.max")
    shared = shared.replace('"{thread}"', unit)
    (folder / "own.yaml").write_text(shared.replace("[broker]", f"[{role}]"))
    if told is None:
        assert catalogue.load(folder).family("own").roles == (role,)
        return
    with pytest.raises(ConfigError, match=told):
        catalogue.load(folder)


def test_the_same_content_has_the_same_hash(folder: Path) -> None:
    assert catalogue.load(folder).hash == catalogue.load(folder).hash


def test_a_folder_changes_a_cadence_and_one_metric_of_a_family(folder: Path) -> None:
    (folder / "own.yaml").write_text(
        "family: min_isr\ncadence_seconds: 2\nmetrics:\n  kafka.broker.led_partitions:\n"
        "    {object: 'a:type=b', unit: '1', description: mine}\n"
    )
    family = catalogue.load(folder).family("min_isr")
    shipped = catalogue.load().family("min_isr")
    assert (family.cadence_us, shipped.cadence_us) == (2_000_000, 10_000_000)
    assert len(family.metrics) == len(shipped.metrics)
    assert catalogue.load(folder).metrics["kafka.broker.led_partitions"].description == "mine"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            "attribute:",
            "atribute:",
            "own.threads: atribute: unknown key; did you mean 'attribute'?",
        ),
        ("cadence_seconds:", "cadence:", "cadence: unknown key; did you mean 'cadence_seconds'?"),
        ("unit:", "name: x\n    unit:", "own.yaml: own.threads: unknown key 'name'"),
        ("cadence_seconds: 30", "cadence_seconds: often", "cadence_seconds: Expected `int`, got"),
        ("cadence_seconds: 30", "cadence_seconds: 0", "cadence_seconds: Expected `int` >= 1"),
        ("own.threads", "Threads", "own.yaml: Threads: a metric's name is lower case"),
        ("unit:", "led: perhaps\n    unit:", "own.threads: led: Expected `bool`, got `str`"),
        ("unit:", "filter: negative\n    unit:", "filter: expected one of binary, positive"),
        (
            "type=Threading",
            "type=Threading,x=*",
            "key 'x' of 'java.lang:type=Threading,x=*' has no label",
        ),
        ("java.lang:type=Threading", "Threading", "'Threading' is not an object name"),
        ("unit:", "first: new\n    unit:", "own.threads: first: Expected `str` matching regex"),
        ("unit:", "call: describeTopics\n    unit:", "has an object and no call"),
        (
            "unit:",
            "kind: counter\n    percentiles: true\n    unit:",
            "own.threads: a counter has no percentiles",
        ),
        ("unit:", "above: -1\n    unit:", "own.threads: above: Expected `float` >= 0.0"),
        ("own.threads", "kafka.log.size", "metric kafka.log.size is in family"),
        ("family: own", "family: [own]", "own.yaml: the key 'family' must name the family"),
        ("metrics:", "metrics: {", "own.yaml:8:11: not YAML: expected ',' or '}', but got ':'"),
        ("family:", "name: other\nfamily:", "own.yaml: name: unknown key"),
        ("cadence_seconds: 30", "cadence_seconds: 2026-13-45", "own.yaml:4:18: not a valid time"),
        (
            "unit:",
            "known_wrong: [{sinc: 3.7.0}]\n    unit:",
            "own.threads: known_wrong[0].sinc: unknown key; did you mean 'since'?",
        ),
        (
            "unit:",
            "kind: counter\n    position: true\n    unit:",
            "own.threads: a counter is not a position: remove 'position'",
        ),
        (
            "unit:",
            "describes: topic\n    unit:",
            "own.threads: it describes a topic that no label names: add it to labels",
        ),
        (
            "unit:",
            "bound: {of: own.work, side: low}\n    unit:",
            "own.threads: own.work needs one bound of side low and one of side high",
        ),
        ("unit:", "bound: {of: own, side: low}\n    unit:", "bound.of: Expected `str` matching"),
        ("unit:", "bound: {of: own.work, side: up}\n    unit:", "bound.side: expected one of"),
        ("unit:", "reported_by: all\n    unit:", "reported_by: expected one of controllers, rep"),
        ("unit:", "known_wrong: 5\n    unit:", "known_wrong: Expected `array`, got `int`"),
    ],
)
def test_a_wrong_file_is_refused_by_name(folder: Path, before: str, after: str, told: str) -> None:
    assert before in OWN
    (folder / "own.yaml").write_text(OWN.replace(before, after, 1))
    with pytest.raises(ConfigError) as refused:
        catalogue.load(folder)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_no_text_is_refused_by_name(folder: Path) -> None:
    (folder / "own.yaml").write_bytes(OWN.encode() + "# für mich\n".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"own\.yaml:12: not UTF-8 text"):
        catalogue.load(folder)


@pytest.mark.parametrize("via", ["admin", "metadata_log"])
def test_a_new_family_is_not_read_where_each_has_code_of_its_own(folder: Path, via: str) -> None:
    (folder / "own.yaml").write_text(
        f"family: own\nvia: {via}\nroles: [broker]\nmetrics:\n  own.topics:"
        " {call: describeTopics, unit: '1', description: mine}\n"
    )
    with pytest.raises(ConfigError, match=f"the new family own cannot be read via {via}"):
        catalogue.load(folder)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        catalogue.load(tmp_path / "nowhere")


def test_a_family_that_is_not_there_is_said() -> None:
    with pytest.raises(ConfigError, match="the catalogue has no family 'nobody'"):
        catalogue.load().family("nobody")
