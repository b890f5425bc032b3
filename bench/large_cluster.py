"""What it costs an agent to describe a large cluster: ``python -m bench.large_cluster``.

Synthetic: there is no broker and no network. The answers are made of Kafka's own classes in the
agent's JVM, with replicas as a broker would list them, and go through the agent's own code twice:
as of a cluster that it meets, and again with nothing changed. The JVM holds two answers then, the
one that is remembered and the one that has just come, as an agent's does.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING, Any, Final

import psutil

from collector.sources.admin.client import KafkaAdmin
from collector.sources.java import jvm
from demo.jars import kafka_libs
from tests.rig.teller import Teller

if TYPE_CHECKING:
    from collections.abc import Iterable

_OF_A_TOPIC: Final = 50
_BROKERS: Final = 12
_REPLICAS: Final = 3
_KAFKA: Final = "org.apache.kafka"


class FakeFuture:
    """An answer that is there."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def get(self) -> Any:
        return self._value


class FakeAdmin:
    """An Admin client whose cluster is made up, and made anew for every question."""

    def __init__(self, topics: int) -> None:
        self._names = [f"a-topic-of-usual-length-{number:05}" for number in range(topics)]
        node = jvm.java(f"{_KAFKA}.common.Node")
        self._nodes = [node(number, f"broker-{number}", 9092) for number in range(_BROKERS)]
        ids = jvm.java(f"{_KAFKA}.common.Uuid")
        self._ids = [ids.randomUuid() for _ in self._names]
        self._kept: Any = None

    def prepare(self) -> None:
        """Make the next answer."""
        self._kept = jvm.java("java.util.HashMap")()
        for number, name in enumerate(self._names):
            self._kept.put(name, self._description(number, name))

    def listTopics(self, _: Any) -> FakeAdmin:  # noqa: N802 - as Java's
        return self

    def names(self) -> FakeFuture:
        return FakeFuture(self._names)

    def describeTopics(self, _: Any) -> FakeAdmin:  # noqa: N802
        return self

    def topicNameValues(self) -> FakeAdmin:  # noqa: N802
        return self

    def entrySet(self) -> Iterable[Any]:  # noqa: N802
        kept, self._kept = self._kept, None
        for entry in kept.entrySet():
            yield FakeEntry(entry.getKey(), FakeFuture(entry.getValue()))

    def _description(self, number: int, name: str) -> Any:
        partitions = jvm.java("java.util.ArrayList")()
        info = jvm.java(f"{_KAFKA}.common.TopicPartitionInfo")
        for partition in range(_OF_A_TOPIC):
            first = number + partition
            nodes = [self._nodes[(first + one) % _BROKERS] for one in range(_REPLICAS)]
            replicas, in_sync = (jvm.java("java.util.ArrayList")(nodes) for _ in range(2))
            partitions.add(info(partition, nodes[0], replicas, in_sync))
        described = jvm.java(f"{_KAFKA}.clients.admin.TopicDescription")
        return described(name, False, partitions, None, self._ids[number])  # noqa: FBT003 - Java's


class FakeEntry:
    """An entry of the map of answers."""

    def __init__(self, key: Any, value: FakeFuture) -> None:
        self._key, self._value = key, value

    def getKey(self) -> Any:  # noqa: N802
        return self._key

    def getValue(self) -> FakeFuture:  # noqa: N802
        return self._value


def main() -> None:
    """Measure, and print the one line that machines read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=50_000)
    partitions: int = parser.parse_args().partitions
    teller = Teller()
    jvm.start(kafka_libs())
    fake = FakeAdmin(partitions // _OF_A_TOPIC)
    client = KafkaAdmin(fake, 5)
    figures: dict[str, float] = {"partitions": partitions, "heap_mb_before": _heap_mb()}
    for name in ("first", "again"):
        fake.prepare()
        figures[f"heap_mb_{name}"] = _heap_mb()
        began = time.process_time()
        client.topics()
        figures[f"seconds_{name}"] = round(time.process_time() - began, 3)
        teller.say(f"{name}: {figures[f'seconds_{name}']} s of processor")
    figures["heap_mb_kept"] = _heap_mb()
    figures["rss_mb"] = round(psutil.Process().memory_info().rss / 1e6, 1)
    print(json.dumps({"claim": "50,000 partitions fit into the default heap", "figures": figures}))


def _heap_mb() -> float:
    """What the JVM's heap holds that is in use."""
    jvm.java("java.lang.System").gc()
    runtime = jvm.java("java.lang.Runtime").getRuntime()
    return round(float(runtime.totalMemory() - runtime.freeMemory()) / 1e6, 1)


if __name__ == "__main__":
    main()
