"""All values that each source of a sample reports over time, computed from its incidents.

Series of clients and consumer groups are computed here: throttling, rates, quotas, lag and lost
records. Other series come from ``broker_series``.
"""

import datetime as dt
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Final, NamedTuple

from lakehouse.core.metrics import GROUP_LAG, PARTITION_LAG
from lakehouse.core.periods import DAY_US, HOUR_US, MINUTE_US, SECOND_US, micros
from lakehouse.sample import broker_series, cluster, timeline
from lakehouse.sample.cluster import MARGIN_US, Subject
from lakehouse.sample.timeline import ABSENT, History, Increments, Series, Timeline, Value, leader
from lakehouse.tables.agent_names import LOST

_BUSY_HOURS: Final = {8: 0.5, 10: 1.0, 14: 0.7, 18: 0.0}
"""Part of their share that clients use, by the hour of a day from which they use it."""

_OVER: Final = 1.004
"""Share of its quota that a throttled client uses."""

_THROTTLES_MS: Final = (120.0, 260.0, 410.0, 260.0)


def of_client(of: Timeline, source: int, client: cluster.Client) -> Iterator[Series]:
    """Yield the series of a client."""
    for metric in (*cluster.THROTTLES, *cluster.RATES):
        history: History = [(of.start_us, None)]
        if client.broker == source and metric.split(".")[2] == client.kind:
            history += (_throttled if metric in cluster.THROTTLES else _rate)(of, client)
        yield Series(Subject(metric, user=client.user, client_id=client.client_id), history)


def of_quotas(of: Timeline, source: int) -> Iterator[Series]:
    """Yield the series of the quotas in force."""
    limit = of.by_epoch(source, (), cluster.QUOTA)
    for metric in cluster.QUOTAS:
        yield Series(Subject(metric, labels=(("default", "user,client-id"),)), limit)
        for user, client_id in cluster.OWN_QUOTAS.get(metric.split(".")[2], ()):
            yield Series(Subject(metric, user=user, client_id=client_id), limit)


def _throttled(of: Timeline, client: cluster.Client) -> History:
    history: History = []
    for from_us, to_us in of.spans("throttled", client.client_id):
        times = range(from_us, to_us, 2 * MINUTE_US)
        history += [(at_us, _THROTTLES_MS[n % 4]) for n, at_us in enumerate(times)]
        history.append((to_us, None))
    return history


def _rate(of: Timeline, client: cluster.Client) -> History:
    """Return a few rates a day."""
    first_us = of.start_us // DAY_US * DAY_US
    changes: History = [
        (day_us + hour * HOUR_US + 40 * SECOND_US, cluster.QUOTA * client.share * part or None)
        for day_us in range(first_us, of.until_us, DAY_US)
        for hour, part in _BUSY_HOURS.items()
    ]
    for from_us, to_us in of.spans("throttled", client.client_id):
        usual = next(value for at_us, value in reversed(changes) if at_us <= from_us)
        changes += [(from_us, cluster.QUOTA * _OVER), (to_us, usual)]
        changes.sort(key=itemgetter(0))
    low, high = of.start_us + MARGIN_US, of.until_us - MARGIN_US
    return [one for one in changes if low <= one[0] <= high]


_STEP_US: Final = 5 * MINUTE_US
_LISTED_ABOVE: Final = 10_000
_LEFT_S: Final = (0, 300, 900, 1800, 3600, 7200, 14_400)
_KEEPS_UP_S: Final = 75.0
_LADDER_S: Final = (
    0, 60, 120, 240,
    *(60 * minutes for minutes in (5, 10, 15, 20, 30, 45)),
    *(3600 * hours for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12)),
)  # fmt: skip
"""Some of the steps to which agents round a group's delay."""


def of_group(of: Timeline, source: int, group: str) -> Iterator[Series]:
    """Yield the series of a group in the topic that it reads."""
    topic = cluster.GROUPS[group]
    declared = cluster.TOPICS[topic]
    for partition in range(declared.partitions):
        yield from _lost(of, source, group, topic, partition)
    led, parts = declared.led_by(source), [*map(declared.brokers, range(declared.partitions))]
    behind = _behind(of, group)
    per_second = declared.rate // 2
    sums: History = [
        (at, _bucket_end(len(led) * per_second * seconds)) for at, seconds, _ in behind
    ]
    lows: History = [(at, float(_LADDER_S[bisect_right(_LADDER_S, s) - 1])) for at, s, _ in behind]
    highs: History = [
        (at, max(_KEEPS_UP_S, float(_LADDER_S[bisect_left(_LADDER_S, most)])))
        for at, _, most in behind
    ]
    low, high = cluster.TIME_LAG
    for metric, quiet, changes in (
        (GROUP_LAG, 0.0, sums), (low, 0.0, lows), (high, _KEEPS_UP_S, highs)
    ):  # fmt: skip
        history = _where_led(of, source, parts, quiet, changes if led else [])
        yield Series(Subject(metric, topic, group=group), history)
    for partition in range(declared.partitions):
        yield from _of_headroom(of, source, group, topic, partition)
    each = [(at, _bucket_end(per_second * seconds)) for at, seconds, _ in behind]
    listed: History = [(of.start_us, ABSENT)]
    listed += [(at, records if records > _LISTED_ABOVE else ABSENT) for at, records in each]
    for partition in led if behind else ():
        yield Series(Subject(PARTITION_LAG, topic, partition, group=group), listed)


def expired(of: Timeline, group: str, partition: int) -> Increments:
    """Return the instants of losses to retention, with the number of offsets."""
    times = of.times("stuck", group, every_us=_STEP_US)
    return [(at_us, 1_800.0 + 400 * partition) for at_us in times]


def _lost(of: Timeline, source: int, group: str, topic: str, partition: int) -> Iterator[Series]:
    # Expired records are counted from a leader's second answer on.
    brokers = cluster.TOPICS[topic].brokers(partition)
    interval_us = of.attempts(source, "offsets").interval_us
    history: History = []
    for at_us, fenced in of.epochs:
        leads = leader(brokers, fenced) == source
        if not history or leads != (history[-1][1] == 0):
            history.append((at_us + interval_us, 0.0) if leads else (at_us, ABSENT))
    rises = expired(of, group, partition) if brokers[0] == source else []
    for metric in LOST:
        yield Series(Subject(metric, topic, partition, group=group), history, rises)


def _behind(of: Timeline, group: str) -> list[tuple[int, int, int]]:
    """Return instants with the least and the greatest delay of a group, in seconds."""
    found, kept_s = [], cluster.TOPICS[cluster.GROUPS[group]].hours * 3600
    for from_us, to_us in of.spans("late", group):
        turn_us = from_us + (to_us - from_us) * 7 // 8
        for at_us in range(from_us + _STEP_US, to_us, _STEP_US):
            grown = min(at_us, turn_us) - from_us
            left = max(0, to_us - max(at_us, turn_us)) / (to_us - turn_us)
            seconds = int(min(grown // SECOND_US, kept_s) * left)
            found.append((at_us, seconds, seconds + 400))
        found.append((to_us, 0, 0))
    return found


def _of_headroom(
    of: Timeline, source: int, group: str, topic: str, partition: int
) -> Iterator[Series]:
    """Yield the time until retention reaches a group; no value: more than half is left."""
    brokers = cluster.TOPICS[topic].brokers(partition)
    kept_s = cluster.TOPICS[topic].hours * 3600
    lows: History = []
    highs: History = []
    for at_us, seconds, _ in _behind(of, group) if brokers[0] == source else ():
        left, in_danger = kept_s - seconds, 2 * seconds > kept_s
        low = float(_LEFT_S[bisect_right(_LEFT_S, left) - 1]) if in_danger else None
        lows.append((at_us, low))
        highs.append((at_us, float(_LEFT_S[bisect_left(_LEFT_S, left)]) if in_danger else ABSENT))
    usual: tuple[Value, Value] = None, ABSENT
    for metric, value, changes in zip(cluster.HEADROOM, usual, (lows, highs), strict=True):
        history = _where_led(of, source, [brokers], value, changes)
        yield Series(Subject(metric, topic, partition, group=group), history)


def _where_led(
    of: Timeline, source: int, parts: Sequence[tuple[int, ...]], value: Value, changes: History
) -> History:
    """Return a value while the source leads a partition of these brokers, and its changes."""
    leads: History = [
        (at_us, value if any(leader(one, fenced) == source for one in parts) else ABSENT)
        for at_us, fenced in of.epochs
    ]
    return sorted(leads + changes, key=itemgetter(0))


def _bucket_end(value: int) -> float:
    """Round a number of records up, by less than a fifth, as agents do."""
    if value <= 0:
        return 0.0
    bucket = math.ceil(math.log2(value) * 4 - 1e-7)
    return float(max(value, math.floor(2 ** (bucket / 4))))


WHOLE_WEEKS: Final = 3
"""The last weeks, in which the agents read everything."""


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
class SampleValues(Timeline):
    """All series and events in a span of whole windows."""

    def series(self, source: int) -> Iterator[Series]:
        """Yield all series of a source that agents read."""
        return (one for one in self._series(source) if self.reads(one.subject.metric))

    def _series(self, source: int) -> Iterator[Series]:
        if source == cluster.CONTROLLER:
            yield from broker_series.of_controller(self)
            return
        yield from broker_series.of_partitions(self, source)
        for topic, declared in cluster.TOPICS.items():
            yield from broker_series.of_topic(self, source, topic, declared)
        for group in cluster.GROUPS:
            yield from of_group(self, source, group)
        for client in cluster.CLIENTS:
            yield from of_client(self, source, client)
        yield from of_quotas(self, source)
        yield from broker_series.of_nodes(self, source)
        yield from broker_series.of_requests(self, source)
        yield from broker_series.of_remote_reads(self, source)

    def events(self) -> Iterator[Event]:
        """Yield the events that agents record."""
        for source in cluster.SOURCES:
            if self.families(source):
                yield Event(source, self.start_us, "agent_start")
        for one in self.away:
            reads = [self.attempts(one.broker, family) for family in self.families(one.broker)]
            at_us = min(each.answered(each.number(one.to_us)) for each in reads if each.outages)
            old, new = str(self.started(one.broker, one.from_us)), str(one.to_us)
            yield Event(one.broker, at_us, "source_restart", old=old, new=new)
        every = ((name, n) for name, one in cluster.TOPICS.items() for n in range(one.partitions))
        for topic, partition in every:
            yield from self._leader_changes(topic, partition)

    def _leader_changes(self, topic: str, partition: int) -> Iterator[Event]:
        brokers = cluster.TOPICS[topic].brokers(partition)
        for (_, before), (at_us, fenced) in pairwise(self.epochs):
            old_one, new_one = leader(brokers, before), leader(brokers, fenced)
            names = [cluster.SOURCES[one] if one else "none" for one in (old_one, new_one)]
            for source in timeline.reporters(brokers, fenced) if old_one != new_one else ():
                read = self.attempts(source, "leaders")
                noticed_us = read.answered(read.number(at_us))
                yield Event(source, noticed_us, "leader_change", topic, partition, *names)


def sampled(until: dt.datetime, weeks: int, seed: int) -> tuple[SampleValues, ...]:
    """Return ISO weeks (UTC) before an instant and the time since then, older weeks first."""
    day = (until - dt.timedelta(days=until.weekday())).date()
    monday_us = micros(dt.datetime.combine(day, dt.time(), dt.UTC))
    until_us = micros(until) // timeline.WINDOW_US * timeline.WINDOW_US
    start_us, whole_us = (
        monday_us - 7 * count * DAY_US for count in (weeks, min(weeks, WHOLE_WEEKS))
    )
    every = cluster.of_weeks(seed, monday_us, weeks)
    spans = [(start_us, whole_us, True)] * (start_us < whole_us) + [(whole_us, until_us, False)]
    return tuple(
        SampleValues(start, end, cluster.within(every, start, end), is_older)
        for start, end, is_older in spans
    )
