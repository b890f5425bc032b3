"""The values that each source of a sample reports over time, computed from its incidents."""

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from lakehouse.core.metrics import COPY_LAG, DELETE_LAG, LEADERLESS, NODE_FENCED, UNDER_MIN_ISR
from lakehouse.core.periods import DAY_US, HOUR_US, micros
from lakehouse.sample import cluster
from lakehouse.sample.cluster import BROKERS, SECOND_US, SOURCES, TOPICS, Client, Incident, Subject
from lakehouse.sample.what_scrapes_see import (
    ABSENT,
    WINDOW_US,
    Attempts,
    History,
    Increments,
    Value,
)
from lakehouse.tables.exposed_metrics import LOST

_DETECTED_US: Final = 9 * SECOND_US  # a broker that is killed is fenced when its session ends
_LEAVES_US: Final = 2 * SECOND_US  # one that is shut down hands over its partitions first
_BACK_US: Final = 12 * SECOND_US
_BUSY_HOURS: Final = {8: 0.5, 10: 1.0, 14: 0.7, 18: 0.0}
"""From which hour of a day on clients use which part of their share."""

_THROTTLES_MS: Final = (120.0, 260.0, 410.0, 260.0)
_SEGMENT: Final = 268_435_456.0
_WAITING: Final = (*range(1, 13), *range(11, -1, -1))


class Series(NamedTuple):
    """One series of a source; ``increments`` are a counter's."""

    subject: Subject
    history: History
    increments: Increments = []  # noqa: RUF012 - never changed


class Event(NamedTuple):
    """An event that an agent records."""

    source: int
    at: int
    kind: str
    topic: str | None = None
    partition: int | None = None
    old: str | None = None
    new: str | None = None


@dataclass(frozen=True)
class SampleValues:
    """The incidents and values in a span of whole windows.

    Attributes:
        start_us: When the agents start.
        until_us: Until when they have delivered.
        incidents: No two of one kind and name overlap, and brokers are away one at a time.
    """

    start_us: int
    until_us: int
    incidents: tuple[Incident, ...]

    def families(self, source: int) -> list[str]:
        """Families that an agent reads from its source."""
        by_controller = source == cluster.CONTROLLER
        return [one for one in cluster.FAMILIES if (one == "controller") == by_controller]

    def attempts(self, source: int, family: str) -> Attempts:
        """When it reads a family."""
        one, place = cluster.FAMILIES[family], list(cluster.FAMILIES).index(family)
        offset_us = 41_000 * source + 67_000 * place + 1_300
        took_us = 2_000 + 700 * place + 300 * source
        outages = tuple((a.from_us, a.to_us) for a in self.away if a.name == SOURCES[source])
        return Attempts(
            one.seconds * SECOND_US, offset_us, took_us, self.start_us, self.until_us,
            outages if one.via_jmx else (),
        )  # fmt: skip

    def series(self, source: int) -> Iterator[Series]:
        """All series of a source."""
        if source == cluster.CONTROLLER:
            yield from self._of_controller()
            return
        for topic, declared in TOPICS.items():
            for partition in range(declared.partitions):
                yield from self._of_partition(source, topic, partition)
            yield from self._of_tiered(source, topic)
            described = (declared.partitions, declared.replicas, declared.min_isr, declared.tiered)
            for metric, value in zip(cluster.TOPOLOGY, described, strict=True):
                history = self._by_epoch(source, declared.brokers(0), value)
                yield Series(Subject(metric, topic), history)
        for client in cluster.CLIENTS:
            yield from self._of_client(source, client)
        yield from (self._of_node(source, broker) for broker in BROKERS)
        limit = self._by_epoch(source, (), cluster.QUOTA)
        for metric in cluster.QUOTAS:
            yield Series(Subject(metric, labels=(("default", "user"),)), limit)

    def events(self) -> Iterator[Event]:
        """The events that agents record."""
        for source in SOURCES:
            yield Event(source, self.start_us, "agent_start")
        for one in self.away:
            reads = [self.attempts(one.broker, family) for family in self.families(one.broker)]
            at_us = min(each.answered(each.number(one.to_us)) for each in reads if each.outages)
            old, new = str(self.started(one.broker, one.from_us)), str(one.to_us)
            yield Event(one.broker, at_us, "source_restart", old=old, new=new)
        every = ((name, n) for name, one in TOPICS.items() for n in range(one.partitions))
        for topic, partition in every:
            brokers = TOPICS[topic].brokers(partition)
            for (_, before), (at_us, fenced) in pairwise(self.epochs):
                old_one, new_one = leader(brokers, before), leader(brokers, fenced)
                names = [SOURCES[one] if one else "none" for one in (old_one, new_one)]
                for source in _reporters(brokers, fenced) if old_one != new_one else ():
                    read = self.attempts(source, "leaders")
                    noticed_us = read.answered(read.number(at_us))
                    yield Event(source, noticed_us, "leader_change", topic, partition, *names)

    def started(self, source: int, at_us: int) -> int:
        """When the JVM was started that answers at an instant."""
        ends = [one.to_us for one in self.away if one.broker == source and one.to_us <= at_us]
        return max([self.start_us - DAY_US * source, *ends])

    @cached_property
    def away(self) -> list[Incident]:
        """When brokers are away."""
        away = [one for one in self.incidents if one.kind in ("killed", "restarted")]
        return sorted(away, key=lambda one: one.from_us)

    @cached_property
    def epochs(self) -> list[tuple[int, int | None]]:
        """From when on which broker is fenced; None: none is."""
        found: list[tuple[int, int | None]] = [(self.start_us, None)]
        for one in self.away:
            fenced_us = one.from_us + (_DETECTED_US if one.kind == "killed" else -_LEAVES_US)
            found += [(fenced_us, one.broker), (one.to_us + _BACK_US, None)]
        return found

    def expired(self, group: str, partition: int) -> Increments:
        """When retention takes how many offsets that a group has not read."""
        times = self._times("stuck", group, every_us=5 * cluster.MINUTE_US)
        return [(at_us, 180.0 + 40 * partition) for at_us in times]

    def _spans(self, kind: str, name: str) -> list[tuple[int, int]]:
        return [(a.from_us, a.to_us) for a in self.incidents if (a.kind, a.name) == (kind, name)]

    def _times(self, kind: str, name: str, every_us: int, after_us: int = 0) -> list[int]:
        spans = self._spans(kind, name)
        return [at for start, end in spans for at in range(start + after_us, end, every_us)]

    def _by_epoch(
        self, source: int, brokers: Sequence[int], value: Callable[[int | None], Value] | float
    ) -> History:
        """A value, or one that depends on the fenced broker, at the sources that report it then."""
        history: History = []
        for at_us, fenced in self.epochs:
            reported = value(fenced) if callable(value) else float(value)
            history.append((at_us, reported if source in _reporters(brokers, fenced) else ABSENT))
        return history

    def _of_node(self, source: int, broker: int) -> Series:
        history = self._by_epoch(source, (), lambda fenced: float(fenced == broker))
        return Series(Subject(NODE_FENCED, labels=(("node", SOURCES[broker]),)), history)

    def _of_partition(self, source: int, topic: str, partition: int) -> Iterator[Series]:
        declared, brokers = TOPICS[topic], TOPICS[topic].brokers(partition)
        leaderless = self._by_epoch(source, brokers, lambda fenced: float(brokers == (fenced,)))
        yield Series(Subject(LEADERLESS, topic, partition), leaderless)

        def is_under(fenced: int | None) -> Value:
            in_sync = sum(one != fenced for one in brokers)
            return float(in_sync < declared.min_isr) if in_sync else ABSENT

        under = self._by_epoch(source, brokers, is_under)
        for from_us, to_us in self._spans("slow", topic):
            if brokers[0] == source and partition % 5 == 0:
                under += [(from_us + partition * SECOND_US, 1.0), (to_us, 0.0)]
        yield Series(Subject(UNDER_MIN_ISR, topic, partition), sorted(under))
        for group in (group for group, of in cluster.GROUPS.items() if of == topic):
            # Expired records are counted from a leader's second answer on.
            history: History = []
            for at_us, fenced in self.epochs:
                leads = leader(brokers, fenced) == source
                if not history or leads != (history[-1][1] == 0):
                    since_us = at_us + 30 * SECOND_US
                    history.append((since_us, 0.0) if leads else (at_us, ABSENT))
            expired = self.expired(group, partition) if brokers[0] == source else []
            for metric in LOST:
                yield Series(Subject(metric, topic, partition, group=group), history, expired)

    def _of_tiered(self, source: int, topic: str) -> Iterator[Series]:
        if not TOPICS[topic].tiered:
            return
        zero: History = [(self.start_us, 0.0)]
        lag = list(zero)  # more and more segments wait for half of the time, then fewer
        for from_us, to_us in self._spans("behind", topic):
            step_us = (to_us - from_us) // len(_WAITING)
            first_us = from_us + source * SECOND_US
            lag += [(first_us + n * step_us, m * _SEGMENT) for n, m in enumerate(_WAITING, 1)]
        yield Series(Subject(COPY_LAG, topic), lag)
        for metric in (DELETE_LAG, cluster.DELETE_LAG_SEGMENTS):
            yield Series(Subject(metric, topic), zero)
        times = self._times("remote", topic, 20 * SECOND_US, source * SECOND_US)
        for metric, amount in cluster.REMOTE.items() if times else ():
            subject = Subject(metric, None if metric == cluster.REMOTE_READS else topic)
            yield Series(subject, zero, [(at_us, amount) for at_us in times])

    def _of_client(self, source: int, client: Client) -> Iterator[Series]:
        for metric in (*cluster.THROTTLES, *cluster.RATES):
            history: History = [(self.start_us, None)]
            if client.broker == source and metric.split(".")[2] == client.kind:
                values = self._throttled if metric in cluster.THROTTLES else self._rate
                history += values(client)
            yield Series(Subject(metric, user=client.user, client_id=client.client_id), history)

    def _throttled(self, client: Client) -> History:
        history: History = []
        for from_us, to_us in self._spans("throttled", client.client_id):
            times = range(from_us, to_us, 2 * cluster.MINUTE_US)
            history += [(at_us, _THROTTLES_MS[n % 4]) for n, at_us in enumerate(times)]
            history.append((to_us, None))
        return history

    def _rate(self, client: Client) -> History:
        """A few rates a day."""
        first_us = self.start_us // DAY_US * DAY_US
        changes = [
            (day_us + hour * HOUR_US + 40 * SECOND_US, cluster.QUOTA * client.share * part or None)
            for day_us in range(first_us, self.until_us, DAY_US)
            for hour, part in _BUSY_HOURS.items()
        ]
        low, high = self.start_us + cluster.MARGIN_US, self.until_us - cluster.MARGIN_US
        return [one for one in changes if low <= one[0] <= high]

    def _of_controller(self) -> Iterator[Series]:
        every = [one.brokers(n) for one in TOPICS.values() for n in range(one.partitions)]
        for number, metric in enumerate(cluster.CONTROLLERS):
            history: History = []
            for at_us, fenced in self.epochs:
                leaderless, away = sum(one == (fenced,) for one in every), int(fenced is not None)
                history.append((at_us, float((leaderless, 1, away, len(BROKERS) - away)[number])))
            yield Series(Subject(metric), history)


def sampled(until: dt.datetime, weeks: int, seed: int) -> SampleValues:
    """Whole ISO weeks of UTC before an instant, and the time since then."""
    monday = (until - dt.timedelta(days=until.weekday())).date() - dt.timedelta(weeks=weeks)
    start_us = micros(dt.datetime.combine(monday, dt.time(), dt.UTC))
    until_us = micros(until) // WINDOW_US * WINDOW_US
    return SampleValues(start_us, until_us, cluster.usual(seed, start_us, until_us))


def leader(brokers: Sequence[int], fenced: int | None) -> int | None:
    """The leader of a partition; None: it has none."""
    return next((one for one in brokers if one != fenced), None)


def _reporters(brokers: Sequence[int], fenced: int | None) -> tuple[int, ...]:
    """The reporters of a partition: its leader, else the two live brokers with the lowest ids."""
    found = leader(brokers, fenced)
    return (found,) if found else tuple(one for one in BROKERS if one != fenced)[:2]
