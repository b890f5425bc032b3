"""Frozen records that sources return, in memory only.

Instants are microseconds since the epoch, UTC.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Protocol, Self

from collector.catalogue import Family, Kind
from lakehouse.tables import MAX_GAP_INTERVALS

Outcome = Literal["ok", "timeout", "refused", "error", "skipped", "dropped", "clock_step", "down"]
"""How an attempt ended; ``down``: there was no process, as the start of the next one proves."""


class Series(NamedTuple):
    """The identity of one time series on one source; ``labels`` are sorted pairs."""

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
    """A group and a partition that it commits to."""

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
        zeros: Series that exist and are zero. A source hands over the same object again while
            nothing changed, so that a quiet scrape costs nothing.
        values: Series with another value; ``None`` where the bean says NaN (observed, idle).
        flags: Flags of lakehouse.tables that hold for every value.
        exact: The values hold from the very instant of the reading on, so a change has no edge.
    """

    metric: str
    kind: Kind
    zeros: frozenset[Series] = frozenset()
    values: Mapping[Series, float | None] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Offsets:
    """Commits, log starts, commits again: read in this order, for partitions led by the source.

    ``None`` as a commit: the group is listed and has not committed there (KIP-490). A partition
    that has commits and no log start did not answer.

    Attributes:
        moved: Partitions among them that another broker leads since a moment ago.
        topic_ids: By name, where the cluster has ids.
        unanswered: Partitions among them without a log start: no answer, or no leader.
        silent_groups: Groups that were asked and did not answer.
    """

    commits_before: Mapping[Commit, int | None]
    log_starts: Mapping[Partition, int]
    commits_after: Mapping[Commit, int | None]
    moved: frozenset[Partition] = frozenset()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    unanswered: frozenset[Partition] = frozenset()
    silent_groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Identity:
    """The source that answered: read again at every connect.

    Attributes:
        cluster: Cluster id.
        node: Node id of a broker or controller; the configured name of a client.
        kafka_version: Version the JVM reports; None: not reported (Admin).
        started_us: When the JVM started; 0: not reported (Admin).
    """

    cluster: str
    node: str
    kafka_version: str | None
    started_us: int


class Notice(NamedTuple):
    """Something that changed and is worth a row of bronze/events.

    ``at_us`` is its instant where that is known; None: it was noticed with the answer.
    """

    kind: str
    subject: Series
    old: str | None
    new: str | None
    at_us: int | None = None


class Event(NamedTuple):
    """A row of bronze/events: a notice and its instant, before the columns that others add."""

    at: int
    kind: str
    subject: Series
    old: str | None = None
    new: str | None = None


class Moment(NamedTuple):
    """An instant known exactly, and the readings as they were from then on; None: not known."""

    at_us: int
    readings: tuple[Reading, ...] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one read of a family.

    Attributes:
        readings: What is, as far as the source knows.
        beans: How many beans, partitions or the like it took.
        dropped_series: How many series were folded into ``__other__``.
        offsets: Commits and log starts, to count offsets that expired unread.
        notices: What changed and is worth a row of bronze/events.
        moments: The history since the last read, from a source that knows it exactly; in order.
        more: Whether there is more history than fits into one answer: ask again at once.
        listed_us: How long before the read its series were listed.
        held_back: Topics that keep closed segments local on purpose; None: not asked.
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
        """The same with changed readings, now and at each of its moments."""
        moments = tuple(Moment(at_us, known and change(known)) for at_us, known in self.moments)
        return replace(self, readings=change(self.readings), moments=moments)


@dataclass(frozen=True, slots=True)
class Scrape:
    """One attempt to read one family, successful or not.

    Attributes:
        family: Family of the catalogue.
        tick_us: The instant it was due, aligned to the epoch.
        asked_us: When the request was sent, or before it its series were listed.
        answered_us: When the answer came, or the attempt ended.
        interval_us: The cadence in force.
        outcome: How it ended.
        identity: The source that answered; None: no answer.
        answer: The readings, if the outcome is ``ok``.
        error: One line, if the outcome is not ``ok``.
        exact: It is a moment of a history that is known exactly (collector.agent.scrape_attempt):
            asked and answered are that instant, and nothing is unknown between it and the one
            before.
        source: Name in the lake of what was read; empty: the only source of its agent.
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
    def max_gap_us(self) -> int:
        """Longest time that it covers if no other scrape follows."""
        return round(self.interval_us * MAX_GAP_INTERVALS)


class Source(Protocol):
    """Something that can be read: a broker, a controller, a client JVM, Kafka's Admin API."""

    def identify(self) -> Identity:
        """Connect if needed and say who answers.

        Raises:
            SourceError: It cannot be reached, refused us, or is another than expected.
        """

    def read(self, family: Family) -> Answer:
        """Read one family.

        Raises:
            SourceError: The answer did not come, or not in time; the connection is given up.
        """

    def close(self) -> None:
        """Give up the connection; the source may be used again."""
