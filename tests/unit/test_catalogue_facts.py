"""The catalogue against the list of beans that the design rests on, and the traps of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector import catalogue
from collector.sources.base.beans import series_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.catalogue import Metric

CATALOGUE = catalogue.load()
BROKER = "kafka.server:type=BrokerTopicMetrics"
PARTITION = "kafka.cluster:type=Partition"
READER = "type=RemoteStorageThreadPool,name=RemoteLogReader"
OLD_DOMAIN = "org.apache.kafka.storage.internals.log"
RSM = "aiven.kafka.server.tieredstorage:type=remote-storage-manager-metrics"
INDEXES = "aiven.kafka.server.tieredstorage.cache:type=segment-indexes-cache-metrics"
OF_PARTITION = "topic=*,partition=*"


def _wanted() -> Iterator[tuple[str, str]]:
    for count in ("Under", "At"):
        yield f"kafka.server:type=ReplicaManager,name={count}MinIsrPartitionCount", "Value"
        yield f"{PARTITION},name={count}MinIsr,{OF_PARTITION}", "Value"
    for kind in ("Produce", "Fetch", "Request", "ControllerMutation"):
        yield f"kafka.server:type={kind},*", "throttle-time"
        yield f"kafka.server:type={kind}", "queue-size"
    for kind in ("Produce", "Fetch"):
        yield f"kafka.server:type={kind},*", "byte-rate"
    yield "kafka.server:type=Request,*", "request-time"
    yield "kafka.server:type=Request", "exempt-request-time"
    yield "kafka.server:type=ControllerMutation,*", "tokens"
    yield "kafka.server:type=ControllerMutation,*", "mutation-rate"
    for kind in ("Leader", "Follower", "AlterLogDirs"):
        yield f"kafka.server:type={kind}Replication", "byte-rate"
    yield from _of_topics()
    yield from _of_remote_storage()
    for name in ("LogStartOffset", "LogEndOffset", "Size", "NumLogSegments"):
        yield f"kafka.log:type=Log,name={name},{OF_PARTITION}", "Value"
    yield f"kafka.log:type=Log,name=RetentionSizeInPercent,{OF_PARTITION}", "Value"
    for name in ("RetentionSizeInPercent", "LocalRetentionSizeInPercent"):
        yield f"kafka.log.remote:type=RemoteLogManager,name={name},{OF_PARTITION}", "Value"
    for which in ("avg", "max"):
        yield "kafka.producer:type=producer-metrics,client-id=*", f"produce-throttle-time-{which}"
        fetches = "kafka.consumer:type=consumer-fetch-manager-metrics,client-id=*"
        yield fetches, f"fetch-throttle-time-{which}"
    yield from _of_aiven()
    produce = "kafka.network:type=RequestMetrics,name=ErrorsPerSec,request=Produce"
    yield f"{produce},error=NOT_ENOUGH_REPLICAS", "Count"
    yield "kafka.controller:type=KafkaController,name=OfflinePartitionsCount", "Value"


def _of_topics() -> Iterator[tuple[str, str]]:
    # The form without a topic is the sum of these.
    for lag in ("CopyLagBytes", "CopyLagSegments", "DeleteLagBytes", "DeleteLagSegments"):
        yield f"{BROKER},name=Remote{lag},topic=*", "Value"
    for name in ("MetadataCount", "SizeBytes", "SizeComputationTime"):
        yield f"{BROKER},name=RemoteLog{name},topic=*", "Value"
    for kind in ("RemoteCopy", "RemoteFetch"):
        for unit in ("Bytes", "Requests", "Errors"):
            yield f"{BROKER},name={kind}{unit}PerSec,topic=*", "Count"
    for kind in ("RemoteDelete", "BuildRemoteLogAuxState"):
        for unit in ("Requests", "Errors"):
            yield f"{BROKER},name={kind}{unit}PerSec,topic=*", "Count"


def _of_remote_storage() -> Iterator[tuple[str, str]]:
    manager = "kafka.log.remote:type=RemoteLogManager"
    yield f"{manager},name=RemoteLogManagerTasksAvgIdlePercent", "Value"
    yield f"{manager},name=RemoteLogReaderFetchRateAndTimeMs", "Count"
    yield f"{manager},name=RemoteLogReaderFetchRateAndTimeMs", "Mean"
    for domain in ("kafka.log.remote", OLD_DOMAIN):
        for name in ("TaskQueueSize", "AvgIdlePercent"):
            yield f"{domain}:{READER}{name}", "Value"
    for kind in ("Copy", "Fetch"):
        yield f"kafka.server:type=RLM{kind}", "byte-rate"
        for which in ("avg", "max"):
            attribute = f"remote-{kind.lower()}-throttle-time-{which}"
            yield "kafka.server:type=RemoteLogManager", attribute
    yield "kafka.server:type=DelayedRemoteFetchMetrics,name=ExpiresPerSec", "Count"
    expired = "kafka.server:type=DelayedRemoteListOffsetsMetrics,name=ExpiresPerSec"
    yield expired, "Count"
    yield f"{expired},{OF_PARTITION}", "Count"


def _of_aiven() -> Iterator[tuple[str, str]]:
    for total in ("object-upload", "object-upload-bytes", "segment-fetch-requested-bytes",
                  "segment-delete", "segment-delete-bytes", "segment-delete-errors"):  # fmt: skip
        yield f"{RSM},{OF_PARTITION}", f"{total}-total"
    for kind in ("copy", "delete"):
        for which in ("avg", "max"):
            yield f"{RSM},{OF_PARTITION}", f"segment-{kind}-time-{which}"
    for total in ("object-upload", "object-upload-bytes"):
        yield f"{RSM},object-type=*", f"{total}-total"
    for total in ("hits", "misses", "eviction", "load-success", "load-failure", "size"):
        yield INDEXES, f"cache-{total}-total"


def _read() -> dict[tuple[str, str], Metric]:
    return {
        (pattern, metric.attribute_name): metric
        for metric in CATALOGUE.metrics.values()
        for pattern in metric.patterns
    }


@pytest.mark.parametrize(("name", "attribute"), list(_wanted()))
def test_every_bean_of_the_design_is_read(name: str, attribute: str) -> None:
    assert (name, attribute) in _read()


def test_one_bean_under_two_domains_is_one_metric() -> None:
    read = _read()
    for name in ("TaskQueueSize", "AvgIdlePercent"):
        old = read[f"{OLD_DOMAIN}:{READER}{name}", "Value"]
        assert old is read[f"kafka.log.remote:{READER}{name}", "Value"]
        assert old.also  # the newer domain is preferred


def test_what_followers_report_as_zero_counts_only_where_led() -> None:
    for metric in CATALOGUE.metrics.values():
        if any(pattern.startswith(PARTITION) for pattern in metric.patterns):
            assert metric.led, metric.name


def test_counters_that_have_a_count_are_never_read_as_decaying_rates() -> None:
    idle = "kafka.broker.request_handler.idle"  # a meter of time: its rate is a share
    for metric in CATALOGUE.metrics.values():
        assert "Rate" not in (metric.attribute or "") or metric.name == idle, metric.name
        if any("PerSec" in pattern for pattern in metric.patterns):
            assert (metric.kind, metric.attribute_name) == ("counter", "Count"), metric.name


def test_a_brokers_own_queue_is_told_from_its_clients() -> None:
    client = CATALOGUE.metrics["kafka.client.fetch.throttle_time"]
    queue = CATALOGUE.metrics["kafka.broker.fetch.queue_size"]
    assert series_of(client, client.patterns[0], "kafka.server:type=Fetch") is None
    assert series_of(queue, queue.patterns[0], "kafka.server:type=Fetch") is not None


def test_users_are_url_decoded_and_client_ids_are_not() -> None:
    for metric in CATALOGUE.metrics.values():
        if "user" in metric.labels:
            assert metric.url_encoded == ("user",), metric.name
        else:
            assert metric.url_encoded == (), metric.name


def test_a_log_that_moves_between_folders_is_not_taken_for_the_log() -> None:
    size = CATALOGUE.metrics["kafka.log.size"]
    name = "kafka.log:type=Log,name=Size,topic=t,partition=0"
    assert series_of(size, size.patterns[0], name) is not None
    assert series_of(size, size.patterns[0], f"{name},is-future=true") is None


def test_draft_and_released_names_of_a_proposal_are_metrics_of_their_own() -> None:
    drafts = {m.name for m in CATALOGUE.metrics.values() if m.needs == "draft"}
    assert drafts == {"kafka.partition.upload_tier_lag", "kafka.partition.delete_tier_lag"}


@pytest.mark.parametrize(
    ("metric", "wrong", "right"),
    [
        ("kafka.topic.remote_copy_lag.segments", ("3.7.0", "3.9.1", "4.1.0", "4.3.1"), ()),
        ("kafka.topic.remote_copy_lag.bytes", ("3.7.0", "4.3.1"), ("3.6.2",)),
        ("kafka.topic.remote_delete_lag.bytes", ("3.9.1", "4.3.1"), ("3.6.2",)),
        ("kafka.topic.remote_log_size.bytes", (), ("3.7.0", "4.3.1")),
    ],
)
def test_versions_whose_lag_is_wrong_are_flagged(
    metric: str, wrong: tuple[str, ...], right: tuple[str, ...]
) -> None:
    entry = CATALOGUE.metrics[metric]
    assert all(entry.wrong_in(version) for version in wrong)
    assert not any(entry.wrong_in(version) for version in right)


def test_what_may_be_absent_says_so() -> None:
    for metric in CATALOGUE.metrics.values():
        if metric.object and metric.needs in ("quota", "traffic"):
            assert metric.absent in ("idle", "zero"), metric.name
