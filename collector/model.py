"""Frozen records that sources return, with the protocols of sources and clocks.

Records exist in memory only. Instants are microseconds since the epoch (UTC).
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Final, Literal, NamedTuple, Protocol, Self

from collector.catalogue import Family, Kind
from lakehouse.tables import MAX_GAP_INTERVALS

_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # macOS has the latter
Outcome = Literal["ok", "timeout", "refused", "error", "skipped", "dropped", "clock_step", "down"]
"""Outcome of a scrape. ``down``: the start of the next process proves that none was running."""
_LONGEST_US: Final = 3_600_000_000
"""A history without changes becomes one scrape per hour, so that its windows can be closed."""


class Series(NamedTuple):
    """Identity of one time series on one source. ``labels`` are sorted pairs."""

    metric: str
    topic: str | None = None
    partition: int | None = None
    user: str | None = None
    client_id: str | None = None
    group: str | None = None
    labels: tuple[tuple[str, str], ...] = ()


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Commit(NamedTuple):
    """A group and a partition with its commits."""

    group: str
    topic: str
    partition: int

    @property
    def log(self) -> Partition:
        """The partition."""
        return Partition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class Reading:
    """All series of one metric at one instant.

    Attributes:
        metric: Name in the catalogue.
        kind: ``gauge``, or ``counter`` for a cumulative count.
        zeros: Series that exist and are zero. A source returns the same object while nothing
            changes, so that a scrape without a change costs nothing.
        values: Series with another value. ``None`` if the MBean has NaN (observed, idle).
        flags: Flags of lakehouse.tables for every value.
        exact: True if the values hold from the instant of the reading, so that a change is exact.
    """

    metric: str
    kind: Kind
    zeros: frozenset[Series] = frozenset()
    values: Mapping[Series, float | None] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Offsets:
    """Commits, log starts and commits again, read in this order for partitions of the leader.

    A commit ``None`` means that the group is listed and has no commit there (KIP-490). A partition
    with commits and without a log start did not answer.

    Attributes:
        moved: Partitions whose leadership has just moved to another broker.
        topic_ids: Topic ID by name, if the cluster has IDs.
        unanswered: Partitions without a log start: no response, or no leader.
        silent_groups: Requested groups that did not answer.
        uncertain: Maximum number of offsets, from the second commit on, that are not lost: a share
            group completed them out of order, or compaction removed them. Absent: 0.
    """

    commits_before: Mapping[Commit, int | None]
    log_starts: Mapping[Partition, int]
    commits_after: Mapping[Commit, int | None]
    moved: frozenset[Partition] = frozenset()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    unanswered: frozenset[Partition] = frozenset()
    silent_groups: frozenset[str] = frozenset()
    uncertain: Mapping[Commit, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of the source that answered, read again after every connect.

    Attributes:
        cluster: Cluster ID.
        node: Node ID of a broker or controller, or the configured name of a client.
        kafka_version: Version that the JVM reports. None with the Admin API.
        started_us: Start of the JVM. 0 with the Admin API.
        is_combined: True if the JVM is a broker and a controller.
    """

    cluster: str
    node: str
    kafka_version: str | None
    started_us: int
    is_combined: bool = False


class Notice(NamedTuple):
    """A cluster change for bronze/events.

    ``at_us`` is its instant. None means the time of the response.
    """

    kind: str
    subject: Series
    old: str | None
    new: str | None
    at_us: int | None = None


class Event(NamedTuple):
    """A row of bronze/events without the columns that delivery adds."""

    at: int
    kind: str
    subject: Series
    old: str | None = None
    new: str | None = None


class Moment(NamedTuple):
    """An exact instant, and the readings from then on. None if they are unknown."""

    at_us: int
    readings: tuple[Reading, ...] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """Response of a source for one family.

    Attributes:
        readings: Current readings.
        beans: Number of MBeans, partitions or similar objects read.
        dropped_series: Number of series in the overflow series ``__other__``.
        offsets: Commits and log starts, for counting expired offsets.
        notices: Cluster changes for bronze/events.
        moments: Exact history since the last read, in order.
        more: True if more history follows in another response.
        listed_us: Time between listing the series and the read.
        held_back: Topics that keep closed segments local. None if they were not requested.
    """

    readings: tuple[Reading, ...]
    beans: int
    dropped_series: int = 0
    offsets: Offsets | None = None
    notices: tuple[Notice, ...] = ()
    moments: tuple[Moment, ...] = ()
    more: bool = False
    listed_us: int = 0
    held_back: frozenset[str] | None = None

    def mapped(self, change: Callable[[tuple[Reading, ...]], tuple[Reading, ...]]) -> Self:
        """Return a copy with changed readings, in its moments as well."""
        moments = tuple(Moment(at_us, known and change(known)) for at_us, known in self.moments)
        return replace(self, readings=change(self.readings), moments=moments)


Read = tuple[str, str]
"""Name of a source in the lake, and a family."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """One scrape of one family, successful or not.

    Attributes:
        family: Family of the catalogue.
        tick_us: Scheduled time, aligned to the epoch.
        asked_us: Time of the request, or of listing its series before.
        answered_us: Time of the response or the failure.
        interval_us: Scrape interval.
        outcome: Outcome.
        identity: The source that answered. None without a response.
        answer: The response, if the outcome is ``ok``.
        error: One line, if the outcome is not ``ok``.
        exact: True for a moment of an exact history: its request and response have that instant,
            and the time since the previous moment is known.
        source: Name of the source in the lake. Empty for the only source of an agent.
    """

    family: str
    tick_us: int
    asked_us: int
    answered_us: int
    interval_us: int
    outcome: Outcome
    identity: Identity | None = None
    answer: Answer | None = None
    error: str | None = None
    exact: bool = False
    source: str = ""

    @property
    def read(self) -> Read:
        """Source and family."""
        return self.source, self.family

    @property
    def max_gap_us(self) -> int:
        """Longest time that it covers if no other scrape follows."""
        return round(self.interval_us * MAX_GAP_INTERVALS)


def expand(scrape: Scrape) -> Iterator[Scrape]:
    """Yield the scrape itself, or one scrape per change of the history in its answer.

    A source that reads a log has the exact history. Each change becomes a scrape that was requested
    and answered at that instant, and an empty history yields no scrape. ``tick_us`` stays the
    original one, by the agent's clock; changes have the controller's clock.
    """
    answer = scrape.answer
    if answer is None or not any(reading.exact for reading in answer.readings):
        yield scrape
        return
    for moment, after in zip_longest(answer.moments, answer.moments[1:]):
        yield _at_moment(scrape, moment, answer if after is None else None)
        if after is not None:
            hour_us = moment.at_us - moment.at_us % _LONGEST_US + _LONGEST_US
            for at_us in range(hour_us, after.at_us, _LONGEST_US):
                yield _at_moment(scrape, moment._replace(at_us=at_us), None)


def _at_moment(scrape: Scrape, moment: Moment, whole: Answer | None) -> Scrape:
    """Return the scrape of one change. The last one has the fields that count once per scrape."""
    at_us = moment.at_us
    instant = replace(scrape, asked_us=at_us, answered_us=at_us, exact=True)
    if moment.readings is None:
        error = "the log no longer has this part of the history"
        return replace(instant, outcome="error", answer=None, error=error)
    if whole is None:
        return replace(instant, answer=Answer(moment.readings, 0))
    last = replace(whole, readings=moment.readings, moments=(), more=False)
    return replace(instant, answer=last)


class Source(Protocol):
    """A broker, a controller, a client JVM or Kafka's Admin API."""

    def identify(self) -> Identity:
        """Connect if needed and return the identity of the source.

        Raises:
            SourceError: It is unreachable, refuses the connection, or has another identity.
        """

    def read(self, family: Family) -> Answer:
        """Read one family.

        Raises:
            SourceError: No response in time, or an invalid one. The connection is closed.
        """

    def close(self) -> None:
        """Close the connection. The source can be used again."""


class Clock(Protocol):
    """Both clocks, in microseconds."""

    def wall_us(self) -> int:
        """Return the time since the epoch (UTC)."""

    def steady_us(self) -> int:
        """Return the time since a fixed instant. It never steps."""


class SystemClock:
    """The clocks of this host. The steady clock runs while the host sleeps."""

    def wall_us(self) -> int:
        """Return the time since the epoch (UTC)."""
        return time.time_ns() // 1_000

    def steady_us(self) -> int:
        """Return the time since the start of the host."""
        return time.clock_gettime_ns(_BOOT) // 1_000
