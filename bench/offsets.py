"""Log start and end offsets: one batched Admin request for each, against a call for each bean."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.rounds import Times
from collector.model import Partition
from collector.sources.admin.admin_connection import java_admin
from collector.sources.admin.client import KafkaAdmin

if TYPE_CHECKING:
    from bench.broker import LoadedBroker
    from bench.rmi import BareRmi

_TIMEOUT_SECONDS = 30.0
_NAMES = ("LogStartOffset", "LogEndOffset")


@dataclass(frozen=True)
class OffsetTimes:
    """Seconds for both offsets of all partitions."""

    partitions: int
    admin: float
    bean_by_bean: float

    def figures(self) -> dict[str, float]:
        """As the last line of the benchmark has them."""
        return {
            "partitions": self.partitions,
            "admin_ms": round(self.admin * 1e3, 3),
            "bean_by_bean_ms": round(self.bean_by_bean * 1e3, 3),
        }


def compare(broker: LoadedBroker, beans: BareRmi, rounds: int) -> OffsetTimes:
    """Read the same offsets both ways, turn and turn about, after one of each to warm up."""
    client = java_admin(broker.cluster.bootstrap, None, _TIMEOUT_SECONDS)
    admin = KafkaAdmin(client, _TIMEOUT_SECONDS)
    led = [Partition(topic, number) for topic, count in broker.topics for number in range(count)]
    names = [
        (name, attribute)
        for attribute in _NAMES
        for name in beans.names(f"kafka.log:type=Log,name={attribute},topic=orders.*,partition=*")
    ]
    batched, single = Times(), Times()
    for _ in range(rounds + 1):
        began = time.perf_counter()
        starts, ends = admin.offsets(led, "earliest"), admin.offsets(led, "latest")
        asked = time.perf_counter()
        values = [beans.attribute(name, "Value") for name, _ in names]
        batched.seconds.append(asked - began)
        single.seconds.append(time.perf_counter() - asked)
        if not len(starts) + len(ends) == len(values) == 2 * len(led):
            raise RuntimeError(f"{len(values)} beans, {len(starts)} starts, {len(ends)} ends")
    client.close()
    return OffsetTimes(
        len(led), Times(batched.seconds[1:]).median, Times(single.seconds[1:]).median
    )
