"""A broker that is none: what its beans say is a function of a seed and of the time.

Real brokers say too little in a second to be worth killing an agent for. These beans change
several times a second, fold, are idle, fail, come and go, and count from zero again.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from collector.catalogue import Family, Kind
from collector.catalogue.entries import Delays
from collector.errors import SourceDataError, SourceRefusedError, SourceTimeoutError
from collector.model import Answer, Identity, Notice, Reading, Series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MS: Final = 1_000
CLUSTER: Final = "chaos"
ISR: Final = "kafka.partition.under_min_isr"
LAG: Final = "kafka.partition.lag"
THROTTLE: Final = "kafka.client.produce.throttle_time"
BYTES: Final = "kafka.topic.bytes_in"
FETCHES: Final = "kafka.partition.fetches"
WIDE: Final = "kafka.partition.remote_copy_lag"

FAMILIES: Final = {
    name: Family(name=name, via="jmx", cadence_seconds=1, roles=("broker",), metrics=())
    for name in ("min_isr", "clients", "traffic", "partitions")
}
CADENCE_US: Final = {
    "min_isr": 100 * MS,
    "clients": 200 * MS,
    "traffic": 150 * MS,
    "partitions": 250 * MS,
}
DELAYS: Final = {THROTTLE: Delays(300 * MS)}
SOURCE_OF: Final = {"min_isr": "jmx", "clients": "jmx", "traffic": "admin", "partitions": "admin"}

_PARTITIONS: Final = {"orders": 6, "payments": 9, "audit": 24}
_JVM_LIFE_US: Final = 9_000 * MS
_FAILURES: Final = (SourceTimeoutError, SourceRefusedError, SourceDataError)


class FakeBeans:
    """A source whose beans are computed.

    Args:
        seed: Another seed, another broker.
        now_us: The broker's own time, which no step of the agent's clock touches.
        wide: How many more partitions there are, whose lag is another at each answer.
    """

    def __init__(self, seed: int, now_us: Callable[[], int], wide: int = 0) -> None:
        self._seed, self._now_us, self._wide = seed, now_us, wide
        self._at_us = 0
        self._noticed = 0

    def identify(self) -> Identity:
        """Who answers, and the instant for which the next ``read`` answers."""
        self._at_us = self._now_us()
        return Identity(CLUSTER, "1", "4.3.1", self._started_us())

    def read(self, family: Family) -> Answer:
        """All series of a family, or one of the ways in which a broker does not answer."""
        if self._dice("fails", family.name, self._at_us // (300 * MS)) % 20 == 0:
            failure = _FAILURES[self._dice("how", self._at_us // (300 * MS)) % len(_FAILURES)]
            raise failure(f"fake {family.name}: no answer")
        readings = tuple(self._readings(family.name))
        beans = sum(len(one.zeros) + len(one.values) for one in readings)
        return Answer(readings, beans, notices=self._notices(family.name))

    def close(self) -> None:
        """Nothing is open."""

    def _readings(self, family: str) -> Iterator[Reading]:
        if family == "min_isr":
            yield _reading(ISR, "gauge", dict(self._partition_states(ISR, 350 * MS)))
        elif family == "clients":
            yield _reading(THROTTLE, "gauge", dict(self._client_states()))
        elif family == "traffic":
            yield _reading(BYTES, "counter", dict(self._topic_counts()))
        else:
            yield _reading(LAG, "gauge", dict(self._partition_states(LAG, 700 * MS)))
            yield _reading(FETCHES, "counter", dict(self._partition_counts()))
            lag = float(self._at_us // CADENCE_US["partitions"] % 1_000 + 1)
            many = {Series(WIDE, f"t{at % 100}", at): lag + at % 7 for at in range(self._wide)}
            yield _reading(WIDE, "gauge", {**many})

    def _partition_states(self, metric: str, hold_us: int) -> Iterator[tuple[Series, float]]:
        for series, roll in self._rolls(metric, hold_us):
            if series.topic == "audit" and roll % 100 < 98:
                yield series, 0.0  # healthy, so that it folds
            elif roll % 20 < 12:
                yield series, 0.0
            elif roll % 20 < 17:
                yield series, float(roll % 4 + 1)

    def _client_states(self) -> Iterator[tuple[Series, float | None]]:
        for number in range(8):
            series = Series(THROTTLE, user=f"u{number % 3}", client_id=f"c{number}")
            roll = self._dice(*series, self._at_us // ((300 + 40 * number) * MS))
            if roll % 10 < 6:
                yield series, None  # NaN on the bean: idle
            elif roll % 10 < 9:
                yield series, float(roll % 3) * 100.5

    def _topic_counts(self) -> Iterator[tuple[Series, float]]:
        alive_us = self._at_us - self._started_us()
        for number, topic in enumerate((*_PARTITIONS, "quiet", "idle")):
            busy = topic in _PARTITIONS
            step_us = (7 if busy else 900) * MS
            count = 0 if topic == "idle" else alive_us // step_us * (number + 1)
            yield Series(BYTES, topic), float(count)

    def _partition_counts(self) -> Iterator[tuple[Series, float]]:
        """Counters of partitions whose leader comes and goes."""
        hold_us = 1_300 * MS
        for series, roll in self._rolls(FETCHES, hold_us):
            if roll % 10 < 7:
                yield series, float((self._at_us - self._started_us()) // (40 * MS))

    def _rolls(self, metric: str, hold_us: int) -> Iterator[tuple[Series, int]]:
        for topic, count in _PARTITIONS.items():
            for number in range(count):
                series = Series(metric, topic, number)
                own_us = hold_us + 90 * MS * (number % 7)
                yield series, self._dice(metric, topic, number, self._at_us // own_us)

    def _notices(self, family: str) -> tuple[Notice, ...]:
        slot = self._at_us // (800 * MS)
        if family != "min_isr" or slot == self._noticed:
            return ()
        self._noticed = slot
        return (Notice("leader_change", Series("", "orders", slot % 6), None, str(slot % 3)),)

    def _started_us(self) -> int:
        return self._at_us - self._at_us % _JVM_LIFE_US + 1

    def _dice(self, *what: object) -> int:
        return zlib.crc32(repr((self._seed, *what)).encode())


def _reading(metric: str, kind: Kind, found: dict[Series, float | None]) -> Reading:
    zeros = frozenset(series for series, value in found.items() if value == 0)
    return Reading(metric, kind, zeros, {s: v for s, v in found.items() if v != 0})
