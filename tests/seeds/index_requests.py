"""Requests to the store for the indexes of a segment, with and without jmxlake (KIP-1002).

Each broker rebuilds a replica of some segments, becomes their leader, and reads them. It needs all
five indexes of each segment, one after another. The store's own record is the truth. Indexes are in
one object per segment, as in Aiven's plugin. Registries do not have the jars of that plugin. If the
variable JMXLAKE_AIVEN_JARS names a folder with them (of the archives core and s3 of a release), it
runs over the S3 server as well.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector import catalogue
from collector.sources.java import jvm
from demo.clients import consumer, producer, send
from demo.cluster import Cluster
from demo.errors import DemoError
from demo.index_fetches import FAMILY
from demo.jars import kafka_libs
from demo.java import compile_jar
from demo.java_admin import reassign
from demo.tier_plugin import AIVEN_SOURCES, SOURCES
from demo.topics import create_assigned
from tests.jmx_sources import jmx_source
from tests.rig.s3.proxy import FaultyProxy
from tests.rig.s3.server import REGION, S3Server
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from demo.node import Node
    from demo.properties import NodePlan

STORES: Final = sorted((Path(__file__).parent / "java").glob("*.java"))
TOPIC: Final = "old"
SEGMENTS: Final = 3
"""Segments in remote storage that each broker reads, one per partition."""
RECORDS: Final = 60  # of a transaction, 10 kB each: two of them fill more than a segment
TIERED: Final = {
    "remote_storage_enable": "true",
    "segment_bytes": "1048576",
    "local_retention_bytes": "1",
}
INDEXES: Final = ".indexes"
TIER: Final = "tier"


def measured(folder: Path) -> dict[str, float]:
    """Return requests per segment, and how many times fewer they are.

    Raises:
        DemoError: A broker did not start, or did not read what it should.
    """
    figures = own_store(folder / "own-store")
    if jars := os.environ.get("JMXLAKE_AIVEN_JARS"):
        figures |= aiven(folder / "aiven", Path(jars))
    return figures


def own_store(folder: Path) -> dict[str, float]:
    """Compare a plugin of our own that has the KIP's method, over Aiven's interface of a store.

    Broker 1 fetches one by one, broker 2 with ``all``, and broker 3 over the storage backend.
    """
    folder.mkdir(parents=True)
    jar = folder / "plugins.jar"
    compile_jar([*SOURCES, *AIVEN_SOURCES, *STORES], [kafka_libs()], jar)
    with Cluster.start(folder / "kafka", 3, extra=lambda plan: _own(plan, jar)) as cluster:
        rebuild_and_read(cluster)
        asked = [_noted(node.plan) for node in cluster.brokers]
        counted = [_beans(node) for node in cluster.brokers[1:]]
    one_by_one, at_once, whole = [per_segment(one) for one in asked]
    wrong = [
        abs(counted[0]["index_fetch.requests"] - asked[1].total()),
        abs(counted[1]["index_object.requests"] - asked[2].total()),
    ]
    return {
        "index_requests_per_segment": one_by_one,
        "index_requests_before_vs_after": one_by_one / at_once,
        "index_requests_aiven_interface_own_store_before_vs_after": one_by_one / whole,
        "index_requests_miscounted": sum(wrong),
    }


def aiven(folder: Path, jars: Path) -> dict[str, float]:
    """Compare Aiven's plugin, unchanged, with and without the storage backend, on an S3 server."""
    folder.mkdir(parents=True)
    jar = folder / "backend.jar"
    ours = [one for one in AIVEN_SOURCES if "io.aiven" not in ".".join(one.parts)]
    compile_jar(ours, [kafka_libs(), jars], jar)
    with ExitStack() as stack:
        server = stack.enter_context(S3Server.start(folder / "s3", (TIER,)))
        proxies = [stack.enter_context(FaultyProxy(server.endpoint)) for _ in range(2)]

        def settings(plan: NodePlan) -> Mapping[str, str]:
            options = server.options_through(proxies[plan.id - 1].endpoint)
            return _aiven(plan, f"{jar}:{jars}/*", options)

        cluster = stack.enter_context(Cluster.start(folder / "kafka", 2, extra=settings))
        rebuild_and_read(cluster)
        asked = [
            Counter(one.key for one in proxy.seen if one.method == "GET" and INDEXES in one.key)
            for proxy in proxies
        ]
        counted = _beans(cluster.brokers[1])
    before, after = map(per_segment, asked)
    return {
        "index_requests_per_segment_aiven": before,
        "index_requests_aiven_before_vs_after": before / after,
        "index_requests_miscounted_aiven": abs(counted["index_object.requests"] - asked[1].total()),
    }


def rebuild_and_read(cluster: Cluster) -> None:
    """Move replicas of tiered segments to other brokers, and read the segments from there.

    The transactions that are aborted give each segment a transaction index.
    """
    brokers = [node.plan.id for node in cluster.brokers]
    first, then = brokers * SEGMENTS, (brokers[1:] + brokers[:1]) * SEGMENTS
    create_assigned(cluster, TOPIC, [[one] for one in first], **TIERED)
    _write(cluster.bootstrap, len(first))
    _wait_for_logs(cluster, first)
    reassign(cluster, TOPIC, [[one] for one in then])
    _wait_for_logs(cluster, then)
    left = RECORDS * len(first)
    reader = consumer(cluster.bootstrap, "reader", "readers", isolation_level="read_committed")
    reader.subscribe([TOPIC])
    found = 0

    def has_read() -> bool:
        nonlocal found
        found += len([one for one in reader.consume(left, timeout=1) if one.error() is None])
        return found >= left

    wait_for(has_read, 60, lambda: f"{found} of {left} records")
    reader.close()
    if found != left:
        raise DemoError(f"{TOPIC}: {found} records were read, but {left} were committed")


def per_segment(asked: Counter[str]) -> float:
    """Return the mean number of requests for the indexes of a segment."""
    if len(asked) != SEGMENTS:
        raise DemoError(f"a broker read the indexes of {len(asked)} segments, not of {SEGMENTS}")
    return asked.total() / len(asked)


def _write(bootstrap: str, partitions: int) -> None:
    writer = producer(bootstrap, "writer", transactional_id="writer", compression_type="none")
    writer.init_transactions(60)
    for end in (writer.abort_transaction, writer.commit_transaction):
        writer.begin_transaction()
        for _ in range(RECORDS):
            for partition in range(partitions):
                send(writer, TOPIC, partition, 10_000)
        writer.flush(60)
        end(60)


def _wait_for_logs(cluster: Cluster, leaders: list[int]) -> None:
    """Wait until each leader, and no other broker, has the active segment only."""
    folders = {f"broker-{leader}/{TOPIC}-{number}" for number, leader in enumerate(leaders)}

    def logs() -> dict[str, int]:
        files = cluster.folder.glob(f"broker-?/data/{TOPIC}-*/*.log")
        return Counter(f"{one.parents[2].name}/{one.parent.name}" for one in files)

    wait_for(lambda: logs() == dict.fromkeys(folders, 1), 120, logs)


def _own(plan: NodePlan, jar: Path) -> Mapping[str, str]:
    store = {
        "rsm.config.storage.folder": str(plan.folder.parent / TIER),
        "rsm.config.storage.notes.file": str(_notes(plan)),
    }
    if plan.id == 3:
        store |= _backend("NotedStore")
    else:
        store["rsm.config.storage.backend.class"] = "NotedStore"
    if plan.id == 2:
        store |= {
            "rsm.config.wrapped.class.name": "BundledTier",
            "rsm.config.fetch.indexes.at.once": "all",
        }
    wrapper = "jmxlake.kafka.CountingRemoteStorageManager"
    return store | _plugin(str(jar), wrapper if plan.id == 2 else "BundledTier")


def _aiven(plan: NodePlan, path: str, options: Mapping[str, str]) -> Mapping[str, str]:
    s3 = "io.aiven.kafka.tieredstorage.storage.s3.S3Storage"
    backend = _backend(s3) if plan.id == 2 else {"rsm.config.storage.backend.class": s3}
    return {
        **_plugin(path, "io.aiven.kafka.tieredstorage.RemoteStorageManager"),
        **backend,
        "rsm.config.chunk.size": "1048576",
        "rsm.config.storage.s3.bucket.name": TIER,
        "rsm.config.storage.s3.region": REGION,
        "rsm.config.storage.s3.endpoint.url": options["aws_endpoint"],
        "rsm.config.storage.s3.path.style.access.enabled": "true",
        "rsm.config.storage.aws.access.key.id": options["aws_access_key_id"],
        "rsm.config.storage.aws.secret.access.key": options["aws_secret_access_key"],
    }


def _plugin(path: str, name: str) -> dict[str, str]:
    return {
        "remote.log.storage.manager.class.path": path,
        "remote.log.storage.manager.class.name": name,
    }


def _backend(store: str) -> dict[str, str]:
    return {
        "rsm.config.storage.backend.class": "jmxlake.kafka.aiven.WholeIndexes",
        "rsm.config.storage.jmxlake.wrapped.class.name": store,
    }


def _notes(plan: NodePlan) -> Path:
    return plan.folder / "gets.txt"


def _noted(plan: NodePlan) -> Counter[str]:
    return Counter(key for key in _notes(plan).read_text().split() if key.endswith(INDEXES))


def _beans(node: Node) -> dict[str, float]:
    """Return the sums of the counters over the types of indexes, as the agent reads them."""
    jvm.start(kafka_libs(), timeout_seconds=30)
    source = jmx_source(node)
    readings = source.read(catalogue.load().family(FAMILY)).readings
    source.close()
    return {
        one.metric.removeprefix("kafka.rsm."): sum(value or 0 for value in one.values.values())
        for one in readings
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(measured(Path(place))), flush=True)
    os._exit(0)  # threads of the JVM would keep the process alive
