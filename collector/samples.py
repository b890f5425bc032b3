"""What a source hands over: frozen records, in memory only.

Instants are microseconds since the epoch, UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collector.catalogue import Family

Kind = Literal["gauge", "counter"]
Outcome = Literal["ok", "timeout", "refused", "error", "skipped", "dropped", "clock_step"]


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
    """What a group commits to: one partition."""

    group: str
    topic: str
    partition: int


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
    """

    metric: str
    kind: Kind
    zeros: frozenset[Series] = frozenset()
    values: Mapping[Series, float | None] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Offsets:
    """Commits, log starts, commits again: read in this order, for partitions led by the source.

    ``None`` as a commit: the group is listed and has not committed there (KIP-490).
    """

    commits_before: Mapping[Commit, int | None]
    log_starts: Mapping[Partition, int]
    commits_after: Mapping[Commit, int | None]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who answered: read anew at every connect.

    Attributes:
        cluster: Cluster id.
        node: Node id of a broker or controller; the configured name of a client.
        kafka_version: Version the JVM reports; None: not told (Admin).
        started_us: When the JVM started; 0: not told (Admin).
    """

    cluster: str
    node: str
    kafka_version: str | None
    started_us: int


class Notice(NamedTuple):
    """Something that changed and is worth a row of bronze/events."""

    kind: str
    subject: Series
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What one read of a family brought."""

    readings: tuple[Reading, ...]
    beans: int
    dropped_series: int = 0
    offsets: Offsets | None = None
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Scrape:
    """One attempt to read one family, successful or not.

    Attributes:
        family: Family of the catalogue.
        tick_us: The instant it was due, aligned to the epoch.
        asked_us: When the question left.
        answered_us: When the answer came, or the attempt ended.
        interval_us: The cadence in force.
        outcome: How it ended.
        identity: Who answered, if anybody did.
        answer: What was read, if the outcome is ``ok``.
        error: One line, if the outcome is not ``ok``.
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
