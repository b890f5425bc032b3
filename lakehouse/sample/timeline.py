"""The timeline of a sample: outages, load, scrapes, and spans of a series that scrapes observe.

The spans follow the rules of the agents' encoder. All changes are known in advance here, so the
cost depends on the changes, not on the samples. A span is as long as its value is held; ``writer``
splits it at windows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Final, Literal, NamedTuple

from lakehouse.core.periods import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from lakehouse.sample import cluster
from lakehouse.sample.cluster import Incident, Metric, Subject
from lakehouse.tables import DEFAULT_WINDOW_SECONDS

WINDOW_US: Final = DEFAULT_WINDOW_SECONDS * 1_000_000
ABSENT: Final = float("-inf")
"""The value of a series that does not exist."""

_UNREAD: Final = float("inf")  # stands for a source that does not answer

Outcome = Literal["ok", "down", "refused"]
Value = float | None
History = list[tuple[int, Value]]
"""Instants of a series with the value that starts there, in order."""

Increments = list[tuple[int, float]]
"""Instants at which a counter rises, with the increase."""


class Attempts(NamedTuple):
    """Scrapes of a family of a source: at even intervals, without success during ``outages``."""

    interval_us: int
    offset_us: int
    took_us: int
    first_us: int
    until_us: int
    outages: tuple[tuple[int, int], ...] = ()

    def number(self, at_us: int) -> int:
        """Return the number of the first attempt at an instant or after it."""
        return -((self.offset_us - at_us) // self.interval_us)

    def requested(self, number: int) -> int:
        """Return the instant of an attempt."""
        return number * self.interval_us + self.offset_us

    def answered(self, number: int) -> int:
        """Return the instant of its response."""
        return self.requested(number) + self.took_us

    def outcomes(self) -> Iterator[tuple[Outcome, int, int]]:
        """Yield spans of equal outcomes, from the response of a success or a failed request.

        Until the start of the process that responds, the outcome is ``down``.
        """
        at_us = self.answered(self.number(self.first_us))
        for gap_us, back_us in self.outages:
            if self.number(gap_us) == self.number(back_us):
                continue  # nothing was read meanwhile
            failed_us = self.requested(self.number(gap_us))
            again_us = self.answered(self.number(back_us))
            yield "ok", at_us, failed_us
            yield "down", failed_us, back_us
            yield "refused", back_us, again_us
            at_us = again_us
        yield "ok", at_us, self.until_us

    def sightings(self, history: History) -> list[tuple[int, Value]]:
        """Return the attempts at which the observed value changes, with the value."""
        first = self.number(self.first_us)
        values = {max(first, self.number(at_us)): value for at_us, value in history}
        gaps = [(self.number(start), self.number(end)) for start, end in self.outages]
        changes: list[tuple[int, Value]] = []
        value: Value = ABSENT
        for number in sorted({*values, *(end for gap in gaps for end in gap), first}):
            value = values.get(number, value)
            if self.requested(number) >= self.until_us:
                break
            unread = any(start <= number < end for start, end in gaps)
            state = _UNREAD if unread else value
            if not changes or state != changes[-1][1]:
                changes.append((number, state))
        return changes


class Span(NamedTuple):
    """A value that a series held; times in microseconds.

    Attributes:
        lead: Start uncertainty: it may have started this much earlier.
        may_end: End uncertainty before ``over``; 0: the next value followed at once.
        over: Its latest end: with a memory, after further values above zero.
        was_positive: Whether another value above zero was before.
        stays_positive: Whether another value above zero comes after.
    """

    value: Value
    start: int
    end: int
    lead: int
    may_end: int
    over: int
    was_positive: bool
    stays_positive: bool


def of_series(metric: Metric, history: History, attempts: Attempts) -> Iterator[Span]:
    """Yield the spans of one series, the last span first; a counter has no uncertain edges."""
    end = over = attempts.until_us
    may_end, stays = 0, False
    states = [(0, _UNREAD), *attempts.sightings(history)]
    for (_, before), (number, state) in reversed(list(pairwise(states))):
        at_us = attempts.requested(number) if state == _UNREAD else attempts.answered(number)
        edge = 0 if before == _UNREAD else at_us - attempts.requested(number - 1)
        was_positive = _is_positive(before)
        continues = was_positive and _is_positive(state)
        remembers = continues and metric.memory_us > 0
        if state not in (ABSENT, _UNREAD):
            lead = 0 if remembers or metric.is_counter else edge
            may = 0 if metric.is_counter else may_end
            yield Span(state, at_us, end, lead, may, over, continues and not remembers, stays)
        end, stays = at_us, continues and not remembers
        if not remembers:
            over = at_us
            may_end = edge + (metric.memory_us if was_positive and not continues else 0)


def _is_positive(value: Value) -> bool:
    """Return True for a value above zero."""
    return value is not None and 0 < value < _UNREAD


_DETECTED_US: Final = 9 * SECOND_US  # a broker that is killed is fenced when its session ends
_LEAVES_US: Final = 2 * SECOND_US  # one that is shut down hands over its partitions first
_BACK_US: Final = 12 * SECOND_US
_BY_HOUR: Final = (
    *(12, 9, 8, 8, 9, 14, 24, 38, 55, 72, 86, 95),
    *(90, 84, 92, 100, 97, 88, 76, 70, 62, 44, 28, 18),
)
"""Load of the cluster at each hour of a day, in percent of a busy hour."""


class Series(NamedTuple):
    """One series of a source.

    Attributes:
        increments: Increases of a counter.
        flow: Additional increase in a window at a busy hour.
    """

    subject: Subject
    history: History
    increments: Increments = []  # noqa: RUF012 - never changed
    flow: float = 0.0


@dataclass(frozen=True)
class Timeline:
    """The incidents in a span of whole windows.

    Attributes:
        start_us: Start of the agents.
        until_us: End of the delivered time.
        incidents: No two of one kind and name overlap, and brokers are away one at a time.
        is_older: Whether the agents read fewer metrics, less often, as in the older weeks.
    """

    start_us: int
    until_us: int
    incidents: tuple[Incident, ...]
    is_older: bool = False

    def families(self, source: int) -> list[str]:
        """Return the families that an agent reads from its source."""
        known = [
            name for name, one in cluster.FAMILIES.items() if one.at_first or not self.is_older
        ]
        by_controller = source == cluster.CONTROLLER
        return [name for name in known if (name == "controller") == by_controller]

    def reads(self, metric: str) -> bool:
        """Return True if agents read a metric."""
        return not self.is_older or metric in cluster.AT_FIRST

    def attempts(self, source: int, family: str) -> Attempts:
        """Return the scrapes of a family."""
        one, place = cluster.FAMILIES[family], list(cluster.FAMILIES).index(family)
        seconds = one.at_first if self.is_older else one.seconds
        offset_us = 41_000 * source + 67_000 * place + 1_300
        took_us = 2_000 + 700 * place + 300 * source
        return Attempts(
            seconds * SECOND_US, offset_us, took_us, self.start_us, self.until_us,
            self.outages(source) if one.via_jmx else (),
        )  # fmt: skip

    def outages(self, source: int) -> tuple[tuple[int, int], ...]:
        """Return the spans in which a source is away."""
        return tuple((a.from_us, a.to_us) for a in self.away if a.name == cluster.SOURCES[source])

    def started(self, source: int, at_us: int) -> int:
        """Return the start of the JVM that responds at an instant."""
        ends = [one.to_us for one in self.away if one.broker == source and one.to_us <= at_us]
        return max([self.start_us - DAY_US * source, *ends])

    @cached_property
    def away(self) -> list[Incident]:
        """Incidents in which brokers are away."""
        away = [one for one in self.incidents if one.kind in ("killed", "restarted")]
        return sorted(away, key=attrgetter("from_us"))

    @cached_property
    def epochs(self) -> list[tuple[int, int | None]]:
        """Instants with the broker that is fenced from then on; None: no broker."""
        found: list[tuple[int, int | None]] = [(self.start_us, None)]
        for one in self.away:
            fenced_us = one.from_us + (_DETECTED_US if one.kind == "killed" else -_LEAVES_US)
            found += [(fenced_us, one.broker), (one.to_us + _BACK_US, None)]
        return found

    def pulses(self, source: int) -> Increments:
        """Return the instant of each window's traffic, and its load in percent of a busy hour."""
        return [(at, self.busy(at)) for at in self.counted(source, WINDOW_US)]

    def counted(self, source: int, every_us: int) -> list[int]:
        """Return instants at even intervals at which a counter of a source may rise.

        While the source is away, and a minute before and after, counts are lost.
        """
        near = [(start - MINUTE_US, end + MINUTE_US) for start, end in self.outages(source)]
        first_us = self.start_us // every_us * every_us + WINDOW_US // 2
        if first_us <= self.start_us + MINUTE_US:
            first_us += every_us
        every = range(first_us, self.until_us, every_us)
        return [at for at in every if not any(start <= at < end for start, end in near)]

    def busy(self, at_us: int) -> float:
        """Return the load of the cluster, in percent of a busy hour."""
        wave = at_us // WINDOW_US * 7919 % 11 - 5  # no two windows are alike
        weekend = 70 if at_us // DAY_US % 7 in (2, 3) else 100  # 1970 started on a Thursday
        return float(max(1, _BY_HOUR[at_us // HOUR_US % 24] * weekend // 100 + wave))

    def spans(self, kind: str, name: str) -> list[tuple[int, int]]:
        """Return the spans of incidents of a kind and name."""
        return [(a.from_us, a.to_us) for a in self.incidents if (a.kind, a.name) == (kind, name)]

    def times(self, kind: str, name: str, every_us: int, after_us: int = 0) -> list[int]:
        """Return instants at even intervals in incidents of a kind and name."""
        spans = self.spans(kind, name)
        return [at for start, end in spans for at in range(start + after_us, end, every_us)]

    def by_epoch(
        self, source: int, brokers: Sequence[int], value: Callable[[int | None], Value] | float
    ) -> History:
        """Return a value, fixed or by the fenced broker, at the sources that report it."""
        history: History = []
        for at_us, fenced in self.epochs:
            reported = value(fenced) if callable(value) else float(value)
            history.append((at_us, reported if source in reporters(brokers, fenced) else ABSENT))
        return history


def leader(brokers: Sequence[int], fenced: int | None) -> int | None:
    """Return the leader of a partition; None without one."""
    return next((one for one in brokers if one != fenced), None)


def reporters(brokers: Sequence[int], fenced: int | None) -> tuple[int, ...]:
    """Return the reporters of a partition: its leader, or two live brokers without a leader."""
    found = leader(brokers, fenced)
    return (found,) if found else tuple(one for one in cluster.BROKERS if one != fenced)[:2]


def added_up(histories: Sequence[History]) -> History:
    """Return the sum of histories; absent values count as 0."""
    changes: list[tuple[int, float]] = []
    for history in histories:
        before = 0.0
        for at_us, value in history:
            now = value if value is not None and value > 0 else 0.0
            changes.append((at_us, now - before))
            before = now
    changes.sort()
    sums = accumulate(change for _, change in changes)
    return list({at: value for (at, _), value in zip(changes, sums, strict=True)}.items())
