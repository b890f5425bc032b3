"""Rows of bronze in plain Python, instants and edges in microseconds."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.oracle.meaning import BOUNDS, DESCRIBES, OF_REPLICAS, POSITIONS

HOUR = 3_600_000_000
DAY = 24 * HOUR


@dataclass(frozen=True, slots=True)
class Run:
    """A row of bronze/runs with its set; instants and edges in microseconds."""

    cluster: str
    source: str
    metric: str
    topic: str | None
    partition: int | None
    user: str | None
    client_id: str | None
    group: str | None
    labels: tuple[tuple[str, str], ...]
    start: int
    end: int
    lead: int
    tail: int
    value: float | None
    series: int
    members: str | None
    flags: frozenset[str]
    agent: str
    batch: int
    day: int
    window: int
    partitions: tuple[int, ...] | None = None
    clients: tuple[tuple[str | None, str | None], ...] | None = None
    reason: str | None = None

    @property
    def counter(self) -> bool:
        return "increase" in self.flags

    @property
    def positive(self) -> bool:
        return self.value is not None and self.value > 0

    @property
    def level(self) -> str:
        """The finest subject that the row is of."""
        if self.group is not None:
            return "group"
        if self.partition is not None or self.partitions is not None:
            return "partition"
        if self.topic is not None:
            return "topic"
        named = self.user is not None or self.client_id is not None
        return "client" if named or self.clients is not None else "source"

    @property
    def measure(self) -> bool:
        """Neither a position nor what describes a subject."""
        return self.metric not in POSITIONS and self.metric not in DESCRIBES

    @property
    def of_replicas(self) -> bool:
        return self.metric in OF_REPLICAS

    @property
    def value_name(self) -> str:
        """The value that it bounds, or its metric."""
        return BOUNDS.get(self.metric, (self.metric, ""))[0]

    @property
    def side(self) -> str:
        """``low`` or ``high``. Empty: it is not a bound."""
        return BOUNDS.get(self.metric, ("", ""))[1]

    @property
    def lead_edge(self) -> int:
        return 0 if "previous_positive" in self.flags else self.lead

    @property
    def tail_edge(self) -> int:
        return 0 if "next_positive" in self.flags else self.tail


@dataclass(frozen=True, slots=True)
class Scrapes:
    """A row of bronze/scrapes."""

    cluster: str
    source: str
    family: str
    start: int
    end: int
    outcome: str
    scrapes: int
    interval: int
    seconds_total: float
    seconds_max: float
    error: str | None
    agent: str
    batch: int
    day: int
    window: int
    reason: str | None = None


@dataclass
class Bronze:
    """Rows of a lake, usable or not."""

    window_us: int
    runs: list[Run] = field(default_factory=list)
    scrapes: list[Scrapes] = field(default_factory=list)

    def usable(self) -> list[Run]:
        return [run for run in self.runs if run.reason is None]

    def accounts(self) -> list[Scrapes]:
        return [row for row in self.scrapes if row.reason is None]
