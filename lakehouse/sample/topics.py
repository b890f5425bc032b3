"""Series of topics: settings, traffic and tiered storage."""

from collections.abc import Iterator
from typing import Final

from lakehouse.core.metrics import COPY_LAG, DELETE_LAG
from lakehouse.core.periods import HOUR_US
from lakehouse.sample import cluster
from lakehouse.sample.cluster import MINUTE_US, SECOND_US, TOPICS, Subject, Topic
from lakehouse.sample.timeline import Series, Timeline
from lakehouse.sample.what_scrapes_see import WINDOW_US, History

_SEGMENT: Final = 268_435_456.0
_WAITING: Final = (*range(1, 13), *range(11, -1, -1))
_COPY_EVERY_US: Final = 30 * MINUTE_US
_RECORDS_KEPT: Final = 400_000.0  # on brokers' disks alone
_WINDOW_SECONDS: Final = WINDOW_US // SECOND_US


def of_topic(of: Timeline, source: int, topic: str, declared: Topic) -> Iterator[Series]:
    """Yield the series of a topic."""
    described = (
        declared.partitions, declared.replicas, declared.min_isr, declared.tiered,
        declared.hours * 3_600_000, declared.limit_bytes,
    )  # fmt: skip
    for metric, value in zip(cluster.TOPOLOGY, described, strict=True):
        yield Series(Subject(metric, topic), of.by_epoch(source, declared.brokers(0), value))
    if led := len(declared.led_by(source)):
        yield from _of_traffic(of, topic, declared, led)
    if declared.tiered:
        yield from _of_tiered(of, source, topic, declared)


def _of_traffic(of: Timeline, topic: str, declared: Topic, led: int) -> Iterator[Series]:
    zero: History = [(of.start_us, 0.0)]
    records = declared.rate * led * _WINDOW_SECONDS // 100
    readers = 1 + (topic in cluster.GROUPS.values())
    each = (records * declared.record, records * declared.record * readers, records)
    for metric, flow in zip(cluster.TRAFFIC, each, strict=True):
        yield Series(Subject(metric, topic), zero, flow=float(flow))


def _of_tiered(of: Timeline, source: int, topic: str, declared: Topic) -> Iterator[Series]:
    zero: History = [(of.start_us, 0.0)]
    segments = list(zero)  # more and more segments wait for half of the time, then fewer
    failures: list[int] = []
    for from_us, to_us in of.spans("behind", topic):
        step_us, first_us = (to_us - from_us) // len(_WAITING), from_us + source * SECOND_US
        segments += [(first_us + n * step_us, float(m)) for n, m in enumerate(_WAITING, 1)]
        failures += range(first_us, first_us + 12 * step_us, 30 * SECOND_US)
    yield Series(Subject(cluster.COPY_LAG_SEGMENTS, topic), segments)
    yield Series(Subject(COPY_LAG, topic), [(at, (n or 0.0) * _SEGMENT) for at, n in segments])
    for metric in (DELETE_LAG, cluster.DELETE_LAG_SEGMENTS):
        yield Series(Subject(metric, topic), zero)
    copied, requests, errors = cluster.COPIES
    late = of.spans("behind", topic)
    copies = [
        at for at in of.counted(source, _COPY_EVERY_US)
        if not any(start <= at < end for start, end in late)
    ]  # fmt: skip
    each = [(at, _SEGMENT) for at in copies]
    yield Series(Subject(copied, topic), zero, each)
    attempted = sorted([*copies, *failures])
    yield Series(Subject(requests, topic), zero, [(at, 1.0) for at in attempted])
    yield Series(Subject(errors, topic), zero, [(at, 1.0) for at in failures])
    yield Series(Subject(cluster.REMOTE_SIZE, topic), _remote_sizes(of))
    for partition in range(declared.partitions):
        kept = of.by_epoch(source, declared.brokers(partition), _RECORDS_KEPT)
        yield Series(Subject(cluster.UNTIERED, topic, partition), kept)
    for metric, amount in cluster.REMOTE.items():
        times = of.times("remote", topic, 20 * SECOND_US, source * SECOND_US)
        if times and metric != cluster.REMOTE_READS:
            yield Series(Subject(metric, topic), zero, [(at, amount) for at in times])


def _remote_sizes(of: Timeline) -> History:
    """Return a size that grows by an eighth in four weeks."""
    first, step_us = 900 * _SEGMENT, 6 * HOUR_US
    return [
        (at_us, first + _SEGMENT * number)
        for number, at_us in enumerate(range(of.start_us, of.until_us, step_us))
    ]


def of_remote_reads(of: Timeline, source: int) -> Iterator[Series]:
    """Yield the series of a broker's threads that read from the remote tier, and copy to it."""
    zero: History = [(of.start_us, 0.0)]
    amount = cluster.REMOTE[cluster.REMOTE_READS]
    tiered = [topic for topic, declared in TOPICS.items() if declared.tiered]
    times = [of.times("remote", one, 20 * SECOND_US, source * SECOND_US) for one in tiered]
    yield Series(
        Subject(cluster.REMOTE_READS), zero, [(at, amount) for each in times for at in each]
    )
    yield Series(Subject(cluster.REMOTE_IDLE), [(of.start_us, 0.97)])
    yield Series(Subject(cluster.REMOTE_TIME), [(of.start_us, 41.0)])
