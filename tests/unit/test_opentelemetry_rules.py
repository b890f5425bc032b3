"""OpenTelemetry's rules for a Kafka broker: each is in the catalogue, or it says here why not.

The beans are those of the first 20 rules of ``experimental-kafka-broker.yaml`` in
https://github.com/open-telemetry/opentelemetry-java-instrumentation (commit 090d065).
"""

from __future__ import annotations

import pytest

from collector import catalogue

METRICS = {
    "kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec": ["kafka.topic.messages_in"],
    "kafka.server:type=BrokerTopicMetrics,name=TotalFetchRequestsPerSec": [
        "kafka.topic.fetch.requests"
    ],
    "kafka.server:type=BrokerTopicMetrics,name=TotalProduceRequestsPerSec": [
        "kafka.topic.produce.requests"
    ],
    "kafka.server:type=BrokerTopicMetrics,name=FailedFetchRequestsPerSec": [
        "kafka.topic.fetch.failed"
    ],
    "kafka.server:type=BrokerTopicMetrics,name=FailedProduceRequestsPerSec": [
        "kafka.topic.produce.failed"
    ],
    "kafka.network:type=RequestMetrics,name=TotalTimeMs": [
        "kafka.broker.produce.requests", "kafka.broker.produce.time.p99",
        "kafka.broker.fetch_consumer.requests", "kafka.broker.fetch_consumer.time.p99",
        "kafka.broker.fetch_follower.requests",
    ],
    "kafka.network:type=RequestChannel,name=RequestQueueSize": ["kafka.broker.request_queue.size"],
    "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec": ["kafka.topic.bytes_in"],
    "kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec": ["kafka.topic.bytes_out"],
    "kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize": [
        "kafka.broker.purgatory.produce", "kafka.broker.purgatory.fetch"
    ],
    "kafka.server:type=ReplicaManager,name=PartitionCount": ["kafka.broker.partitions"],
    "kafka.controller:type=KafkaController,name=OfflinePartitionsCount": [
        "kafka.controller.offline_partitions"
    ],
    "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions": [
        "kafka.broker.under_replicated_partitions"
    ],
    "kafka.server:type=ReplicaManager,name=IsrShrinksPerSec": ["kafka.broker.isr_shrinks"],
    "kafka.server:type=ReplicaManager,name=IsrExpandsPerSec": ["kafka.broker.isr_expands"],
    "kafka.server:type=ReplicaFetcherManager,name=MaxLag": ["kafka.broker.fetcher.max_lag"],
    "kafka.controller:type=KafkaController,name=ActiveControllerCount": [
        "kafka.controller.active"
    ],
    "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec": [
        "kafka.controller.unclean_elections"
    ],
}  # fmt: skip
REASONS = {
    "kafka.controller:type=ControllerStats,name=LeaderElectionRateAndTimeMs": (
        "only controllers with ZooKeeper have it; elections are in the metadata log"
    ),
    "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs": (
        "Kafka leaves flushing to the operating system, and no promise rests on it"
    ),
}
"""Rules without a metric, and why."""


def test_of_twenty_rules_all_but_two_are_in_the_catalogue() -> None:
    assert len(METRICS) + len(REASONS) == 20
    assert len(METRICS) >= 16


@pytest.mark.parametrize("bean", METRICS)
def test_a_rule_has_metrics_of_its_bean(bean: str) -> None:
    metrics = catalogue.load().metrics
    for name in METRICS[bean]:
        pattern = metrics[name].object or ""
        assert pattern == bean or pattern.startswith(f"{bean},"), name


@pytest.mark.parametrize("bean", REASONS)
def test_what_has_a_reason_is_not_read(bean: str) -> None:
    patterns = [pattern for one in catalogue.load().metrics.values() for pattern in one.patterns]
    assert not [pattern for pattern in patterns if pattern.startswith(bean)]
