"""Series of partitions: leaders, in-sync replicas, sizes."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from lakehouse.core.metrics import LEADERLESS, UNDER_MIN_ISR
from lakehouse.core.periods import HOUR_US
from lakehouse.sample import cluster
from lakehouse.sample.cluster import MINUTE_US, SECOND_US, TOPICS, Subject
from lakehouse.sample.timeline import Series, Timeline, added_up, leader
from lakehouse.sample.what_scrapes_see import ABSENT, History, Increments, Value

_SLOW_EACH: Final = 3
"""Every so many partitions of a topic have slow followers."""

_REFUSED_EVERY_US: Final = 20 * SECOND_US
_SIZED_EVERY_US: Final = 4 * HOUR_US


def of_partitions(of: Timeline, source: int) -> Iterator[Series]:
    """Yield the series of all partitions, and the broker's own counts of them."""
    under, led = [], []
    for topic, declared in TOPICS.items():
        for partition in range(declared.partitions):
            brokers = declared.brokers(partition)
            history = of.by_epoch(source, brokers, partial(_is_leaderless, brokers))
            yield Series(Subject(LEADERLESS, topic, partition), history)
            under.append(_under_min_isr(of, source, topic, partition))
            yield Series(Subject(UNDER_MIN_ISR, topic, partition), under[-1])
            at_min = _at_min_isr(of, source, topic, partition)
            yield Series(Subject(cluster.AT_MIN_ISR, topic, partition), at_min)
            led.append(_is_led(of, source, brokers))
            if source in brokers:
                size = _sizes(of, topic, partition)
                yield Series(Subject(cluster.LOG_SIZE, topic, partition), size)
    yield Series(Subject(cluster.UNDER_MIN_ISR_COUNT), added_up(under))
    yield Series(Subject(cluster.LED), added_up(led))


def _is_leaderless(brokers: tuple[int, ...], fenced: int | None) -> float:
    return float(brokers == (fenced,))


def refused_writes(of: Timeline, source: int) -> Increments:
    """Return the instants of writes refused because too few replicas are in sync."""
    under = added_up([
        _under_min_isr(of, source, topic, partition)
        for topic, declared in TOPICS.items() for partition in range(declared.partitions)
    ])  # fmt: skip
    ends = [*[at_us for at_us, _ in under[1:]], of.until_us]
    return [
        (at_us, 12.0 * count)
        for (since_us, count), end_us in zip(under, ends, strict=True) if count
        for at_us in range(since_us + SECOND_US, end_us, _REFUSED_EVERY_US)
    ]  # fmt: skip


def _under_min_isr(of: Timeline, source: int, topic: str, partition: int) -> History:
    declared, brokers = TOPICS[topic], TOPICS[topic].brokers(partition)

    def is_under(fenced: int | None) -> Value:
        in_sync = sum(one != fenced for one in brokers)
        return float(in_sync < declared.min_isr) if in_sync else ABSENT

    history = of.by_epoch(source, brokers, is_under)
    if brokers[0] == source and partition % _SLOW_EACH == 0:
        for from_us, to_us in of.spans("slow", topic):
            history += [(from_us + partition * SECOND_US, 1.0), (to_us, 0.0)]
    return sorted(history)


def _at_min_isr(of: Timeline, source: int, topic: str, partition: int) -> History:
    declared, brokers = TOPICS[topic], TOPICS[topic].brokers(partition)

    def is_at(fenced: int | None) -> Value:
        in_sync = sum(one != fenced for one in brokers)
        return float(in_sync == declared.min_isr) if in_sync else ABSENT

    return of.by_epoch(source, brokers, is_at)


def _is_led(of: Timeline, source: int, brokers: tuple[int, ...]) -> History:
    return [(at_us, float(leader(brokers, fenced) == source)) for at_us, fenced in of.epochs]


def _sizes(of: Timeline, topic: str, partition: int) -> History:
    """Return sizes that follow the load of a day, in whole megabytes."""
    one = TOPICS[topic]
    kept = one.kept_bytes
    first_us = of.start_us - of.start_us % _SIZED_EVERY_US + partition * MINUTE_US
    changes = range(first_us, of.until_us, _SIZED_EVERY_US)
    return [(at, (kept + kept * of.busy(at) // 600) // 1_000_000 * 1e6) for at in changes]
