"""The values that each source of a sample reports over time, computed from its incidents."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from lakehouse.core.periods import DAY_US, micros
from lakehouse.sample import cluster, incidents
from lakehouse.sample.broker_series import (
    of_controller,
    of_nodes,
    of_partitions,
    of_remote_reads,
    of_requests,
    of_topic,
)
from lakehouse.sample.client_series import of_client, of_group, of_quotas
from lakehouse.sample.cluster import SOURCES, TOPICS
from lakehouse.sample.timeline import WINDOW_US, Series, Timeline, leader, reporters

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
            yield from of_controller(self)
            return
        yield from of_partitions(self, source)
        for topic, declared in TOPICS.items():
            yield from of_topic(self, source, topic, declared)
        for group in cluster.GROUPS:
            yield from of_group(self, source, group)
        for client in cluster.CLIENTS:
            yield from of_client(self, source, client)
        yield from of_quotas(self, source)
        yield from of_nodes(self, source)
        yield from of_requests(self, source)
        yield from of_remote_reads(self, source)

    def events(self) -> Iterator[Event]:
        """Yield the events that agents record."""
        for source in SOURCES:
            if self.families(source):
                yield Event(source, self.start_us, "agent_start")
        for one in self.away:
            reads = [self.attempts(one.broker, family) for family in self.families(one.broker)]
            at_us = min(each.answered(each.number(one.to_us)) for each in reads if each.outages)
            old, new = str(self.started(one.broker, one.from_us)), str(one.to_us)
            yield Event(one.broker, at_us, "source_restart", old=old, new=new)
        every = ((name, n) for name, one in TOPICS.items() for n in range(one.partitions))
        for topic, partition in every:
            yield from self._leader_changes(topic, partition)

    def _leader_changes(self, topic: str, partition: int) -> Iterator[Event]:
        brokers = TOPICS[topic].brokers(partition)
        for (_, before), (at_us, fenced) in pairwise(self.epochs):
            old_one, new_one = leader(brokers, before), leader(brokers, fenced)
            names = [SOURCES[one] if one else "none" for one in (old_one, new_one)]
            for source in reporters(brokers, fenced) if old_one != new_one else ():
                read = self.attempts(source, "leaders")
                noticed_us = read.answered(read.number(at_us))
                yield Event(source, noticed_us, "leader_change", topic, partition, *names)


def sampled(until: dt.datetime, weeks: int, seed: int) -> tuple[SampleValues, ...]:
    """Return ISO weeks (UTC) before an instant and the time since then, older weeks first."""
    day = (until - dt.timedelta(days=until.weekday())).date()
    monday_us = micros(dt.datetime.combine(day, dt.time(), dt.UTC))
    until_us = micros(until) // WINDOW_US * WINDOW_US
    start_us, whole_us = (
        monday_us - 7 * count * DAY_US for count in (weeks, min(weeks, WHOLE_WEEKS))
    )
    every = incidents.of_weeks(seed, monday_us, weeks)
    spans = [(start_us, whole_us, True)] * (start_us < whole_us) + [(whole_us, until_us, False)]
    return tuple(
        SampleValues(start, end, incidents.within(every, start, end), is_older)
        for start, end, is_older in spans
    )
