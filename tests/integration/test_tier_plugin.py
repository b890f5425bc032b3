"""The demo's storage plugin on a real broker: its account equals its folder despite faults."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from demo.clients import fill
from demo.cluster import Cluster
from demo.remote_tier import RemoteTier
from demo.tier_plugin import Fault, account, fault
from demo.topics import configure, create_assigned
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.nightly]

TOPIC = "orders"
SEGMENT = 1_048_576


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster.start(tmp_path_factory.mktemp("tier") / "kafka", 1) as running:
        yield running


def stored(cluster: Cluster) -> dict[str, int]:
    """Return the sizes of the segments in the folder, by first offset and id."""
    logs = cluster.remote_folder.glob(f"{TOPIC}-0/*/*.log")
    return {log.stem: log.stat().st_size for log in logs}


def accounted(cluster: Cluster) -> dict[str, int]:
    """Return the sizes by the account."""
    sizes: dict[str, int] = {}
    for event in account(cluster.brokers):
        key = f"{event.first:020}-{event.segment}"
        if event.event == "copy_finished":
            sizes[key] = event.size
        elif event.event == "delete_finished":
            sizes.pop(key, None)  # Kafka also deletes what it failed to copy
    return sizes


def test_account_equals_the_folder_over_faults(cluster: Cluster) -> None:
    def events() -> Counter[str]:
        return Counter(event.event for event in account(cluster.brokers))

    settings = {"segment_bytes": str(SEGMENT), "local_retention_bytes": "1"}
    create_assigned(cluster, TOPIC, [[1]], remote_storage_enable="true", **settings)
    tier = RemoteTier(cluster, TOPIC, [1])
    with fault(cluster, Fault.HANG_COPY):
        fill(cluster.bootstrap, TOPIC, 1, 3)
        wait_for(lambda: events()["copy_started"] == 1, 60)
        assert tier.copy_lag() > SEGMENT
        assert stored(cluster) == accounted(cluster) == {}
    wait_for(lambda: tier.copy_lag() == 0, 60)
    with fault(cluster, Fault.FAIL_COPY):
        fill(cluster.bootstrap, TOPIC, 1, 3)
        wait_for(lambda: events()["copy_failed"] >= 1, 60)
        assert stored(cluster) == accounted(cluster)
    wait_for(lambda: tier.copy_lag() == 0, 60)
    before = stored(cluster)
    with fault(cluster, Fault.FAIL_DELETE):
        configure(cluster, TOPIC, {"retention.bytes": str(2 * SEGMENT)})
        wait_for(lambda: events()["delete_failed"] >= 1, 60)
        assert stored(cluster) == accounted(cluster) == before
    wait_for(lambda: 0 < len(stored(cluster)) < len(before), 60)
    wait_for(lambda: stored(cluster) == accounted(cluster), 60)
