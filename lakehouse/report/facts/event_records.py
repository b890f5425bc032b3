"""Events and incidents as report.json has them; a field ``from_`` is the key ``from``."""

from typing import Annotated, NamedTuple

from lakehouse.report.facts.fields import Bounds, Means


class Hit(NamedTuple):
    """What an event did to a topic.

    Attributes:
        kind: under_min_isr or leaderless.
        partitions: How many of its partitions.
        of: How many it has.
        most: The most at a time.
        bad_us: For how long any of them was.
    """

    topic: str
    kind: str
    partitions: int
    of: int | None
    most: int
    bad_us: int


class Size(NamedTuple):
    """How bad an event was; None where that is not of its kind, or not known.

    Attributes:
        partitions: Partitions that were hit, or of which messages were lost.
        max_value: Greatest value of an incident.
    """

    partitions: int | None = None
    offsets_low: float | None = None
    offsets_high: float | None = None
    throttle_ms_mean: float | None = None
    throttle_ms_max: float | None = None
    rate_max: float | None = None
    max_bytes: float | None = None
    max_value: float | None = None


class Part(NamedTuple):
    """A span of an event in which something was bad."""

    start: str
    end: str


class Unobserved(NamedTuple):
    """For how long a broker was not read near the onset of an event."""

    source: str
    us: int


class EventCause(NamedTuple):
    """The likely cause of an event.

    Attributes:
        kind: rolling_restart, restarted, no_answer, fenced, unclean_election, leader_change,
            reassignment, config_change, quota, retention, slow_group, copy_errors or not_known.
        sources: The brokers that it names.
        error: What a failed attempt to read such a broker said.
        single_replica: Topics that were hit and have one replica.
        no_spare: Topics that were hit and have no replica to spare for their min ISR.
        also: Further brokers and changes at that time.
        ruled_out: restart, scrape_failure and changes that were looked for and were not there.
        leader_changes: Leader changes of its topics near the onset.
    """

    kind: str
    sources: list[str]
    start: str | None
    end: str | None
    error: str | None
    single_replica: list[str]
    no_spare: list[str]
    also: list[str]
    ruled_out: list[str]
    unobserved: list[Unobserved]
    leader_changes: int


class Use(NamedTuple):
    """Bad time of one subject under one objective that belongs to an event.

    Attributes:
        share: Share of the objective's whole error budget; None: it has none.
    """

    objective: str
    topic: str | None
    partition: int | None
    user: str | None
    client_id: str | None
    group: str | None
    source: str | None
    bad_us: int
    share: float | None


class Event(NamedTuple):
    """Incidents that belong together, with the likely cause.

    Attributes:
        number: 1 is the one that used most of an error budget.
        kind: availability, throttling, loss, tiered, consumer_lag, latency, errors, replication or
            other.
        of: produce, fetch, request or controller_mutation; copy or delete; else the metric.
        ongoing: Whether its last part reaches the end of the data.
        bad_us: For how long anything of it was bad.
        incidents: How many incidents it has.
        objective: The objective of which it used the greatest share.
        used: That share of the objective's whole error budget.
        weeks_in_row: For how many weeks in a row there was such an event, this one included.
        planned: Whether planned maintenance overlaps it.
        agreed: Whether a correction overlaps it.
    """

    number: int
    kind: str
    of: str | None
    from_: Annotated[str, Means("start, UTC", column="start")]
    to: Annotated[str, Means("end, UTC", column="end")]
    ongoing: bool
    bad_us: Bounds
    topics: list[str]
    user: str | None
    client_id: str | None
    group: str | None
    source: str | None
    hits: list[Hit]
    size: Size
    parts: list[Part]
    incidents: int
    cause: EventCause
    uses: list[Use]
    objective: str | None
    used: float | None
    owner: str | None
    owners: list[str] | None
    weeks_in_row: int
    planned: bool
    agreed: bool


class IncidentOfEvent(NamedTuple):
    """A span in which one series was bad without a break, joined over hours and sources.

    Attributes:
        event: The number of its event.
        level: What the series is of: partition, topic, client, group or source.
        lead_us: It may have started so much before its start.
        tail_us: It may have ended so much before its end.
        worst: Greatest value.
        total: Sum of its values; of a counter its increase.
        sources: The sources that reported it.
    """

    event: int
    metric: str
    kind: str
    level: str
    topic: str | None
    partition: int | None
    user: str | None
    client_id: str | None
    group: str | None
    start: str
    end: str
    lead_us: int
    tail_us: int
    worst: float
    total: float
    sources: list[str]


class Told(NamedTuple):
    """The sections ``events`` and ``incidents``, and how many incidents are not listed."""

    events: list[Event] | None = None
    incidents: list[IncidentOfEvent] | None = None
    incidents_omitted: int | None = None
