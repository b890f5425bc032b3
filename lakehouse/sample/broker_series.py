"""Series of brokers and controllers: partitions, topics, tiered storage, requests and nodes."""

from collections.abc import Callable, Iterator
from functools import partial
from operator import eq, lt
from typing import Final

from lakehouse.core.metrics import COPY_LAG, DELETE_LAG, LEADERLESS, NODE_FENCED, UNDER_MIN_ISR
from lakehouse.core.periods import HOUR_US, MINUTE_US, SECOND_US
from lakehouse.sample import cluster, timeline
from lakehouse.sample.cluster import BROKERS, SOURCES, TOPICS, Subject, Topic
from lakehouse.sample.timeline import ABSENT, History, Increments, Series, Timeline, Value, leader

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
            at_min = _in_sync(of, source, topic, partition, eq)
            yield Series(Subject(cluster.AT_MIN_ISR, topic, partition), at_min)
            led.append(_is_led(of, source, brokers))
            if source in brokers:
                size = _sizes(of, topic, partition)
                yield Series(Subject(cluster.LOG_SIZE, topic, partition), size)
    yield Series(Subject(cluster.UNDER_MIN_ISR_COUNT), timeline.added_up(under))
    yield Series(Subject(cluster.LED), timeline.added_up(led))


def _is_leaderless(brokers: tuple[int, ...], fenced: int | None) -> float:
    return float(brokers == (fenced,))


def refused_writes(of: Timeline, source: int) -> Increments:
    """Return the instants of writes refused because too few replicas are in sync."""
    under = timeline.added_up([
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
    brokers = TOPICS[topic].brokers(partition)
    history = _in_sync(of, source, topic, partition, lt)
    if brokers[0] == source and partition % _SLOW_EACH == 0:
        for from_us, to_us in of.spans("slow", topic):
            history += [(from_us + partition * SECOND_US, 1.0), (to_us, 0.0)]
    return sorted(history)


def _in_sync(
    of: Timeline, source: int, topic: str, partition: int, is_so: Callable[[int, int], bool]
) -> History:
    """Return how the number of replicas in sync compares with the min ISR."""
    declared, brokers = TOPICS[topic], TOPICS[topic].brokers(partition)

    def compared(fenced: int | None) -> Value:
        in_sync = sum(one != fenced for one in brokers)
        return float(is_so(in_sync, declared.min_isr)) if in_sync else ABSENT

    return of.by_epoch(source, brokers, compared)


def _is_led(of: Timeline, source: int, brokers: tuple[int, ...]) -> History:
    return [(at_us, float(leader(brokers, fenced) == source)) for at_us, fenced in of.epochs]


def _sizes(of: Timeline, topic: str, partition: int) -> History:
    """Return sizes that follow the load of a day, in whole megabytes."""
    one = TOPICS[topic]
    kept = one.kept_bytes
    first_us = of.start_us - of.start_us % _SIZED_EVERY_US + partition * MINUTE_US
    changes = range(first_us, of.until_us, _SIZED_EVERY_US)
    return [(at, (kept + kept * of.busy(at) // 600) // 1_000_000 * 1e6) for at in changes]


_SEGMENT: Final = 268_435_456.0
_WAITING: Final = (*range(1, 13), *range(11, -1, -1))
_COPY_EVERY_US: Final = 30 * MINUTE_US
_RECORDS_KEPT: Final = 400_000.0  # only on brokers' disks
_WINDOW_SECONDS: Final = timeline.WINDOW_US // SECOND_US


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


_PER_WINDOW: Final = {"produce": 1_100.0, "fetch": 2_300.0}
"""Answers of a broker in a window at a busy hour, for each percent."""

_P99_EVERY_US: Final = 15 * MINUTE_US
_BUSY_MS: Final = (900.0, 1_400.0)
_REFUSED: Final = "NOT_ENOUGH_REPLICAS"


def of_requests(of: Timeline, source: int) -> Iterator[Series]:
    """Yield the series of a broker's answers."""
    zero: History = [(of.start_us, 0.0)]
    refused = refused_writes(of, source)
    for kind, metric in cluster.ANSWERS.items():
        flow = _PER_WINDOW[kind]
        yield Series(Subject(metric, labels=(("error", "NONE"),)), zero, flow=flow)
        yield Series(Subject(f"{metric}_good"), zero, flow=flow)
    produced = cluster.ANSWERS["produce"]
    yield Series(Subject(produced, labels=(("error", _REFUSED),)), zero, refused)
    yield Series(Subject(cluster.REFUSED_WRITES), zero, refused)
    for metric, flow in zip(cluster.REQUESTS, _PER_WINDOW.values(), strict=True):
        yield Series(Subject(metric), zero, flow=flow // 2)
    for metric, base in zip(cluster.SLOWEST, (18.0, 505.0), strict=True):
        yield Series(Subject(metric), _p99(of, source, base))


def _p99(of: Timeline, source: int, base: float) -> History:
    """Return a time that follows the load and grows during outages and busy times."""
    every = range(of.start_us, of.until_us, _P99_EVERY_US)
    history: History = [(at, base + of.busy(at + source * MINUTE_US) // 10) for at in every]
    away = [(one.from_us, one.to_us + MINUTE_US) for one in of.away if one.broker != source]
    slow = [*((span, _BUSY_MS[0]) for span in away if span[1] - span[0] > 3 * MINUTE_US)]
    slow += [(span, _BUSY_MS[1]) for span in of.spans("busy", SOURCES[source])]
    for (from_us, to_us), most in slow:
        history = [one for one in history if not from_us <= one[0] <= to_us]
        history += [(from_us, most), (to_us, base)]
    return sorted(history)


def of_nodes(of: Timeline, source: int) -> Iterator[Series]:
    """Yield the series of fenced brokers."""
    for broker in BROKERS:
        history = of.by_epoch(source, (), partial(_is, broker))
        labels = ("node", SOURCES[broker]), ("rack", cluster.RACKS[broker])
        yield Series(Subject(NODE_FENCED, labels=labels), history)


def _is(broker: int, fenced: int | None) -> float:
    return float(fenced == broker)


def of_controller(of: Timeline) -> Iterator[Series]:
    """Yield the series of the controller."""
    every = [one.brokers(n) for one in TOPICS.values() for n in range(one.partitions)]
    for number, metric in enumerate(cluster.CONTROLLERS):
        history: History = []
        for at_us, fenced in of.epochs:
            leaderless, away = sum(one == (fenced,) for one in every), int(fenced is not None)
            history.append((at_us, float((leaderless, 1, away, len(BROKERS) - away)[number])))
        yield Series(Subject(metric), history)
