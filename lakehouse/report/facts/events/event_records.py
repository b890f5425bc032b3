"""Events and incidents as report.json has them."""

from typing import Annotated, NamedTuple

from lakehouse.report.facts.fields import (
    CLIENT_ID,
    GROUP,
    OBJECTIVE,
    PARTITION,
    SOURCE,
    TOPIC,
    USER,
    Bounds,
    Known,
    Means,
)


class Hit(NamedTuple):
    """A topic that an event hit."""

    topic: Annotated[str, TOPIC]
    kind: Annotated[str, Means("under_min_isr or leaderless")]
    partitions: Annotated[int, Means("number of its partitions that were hit")]
    of: Annotated[int | None, Means("number of its partitions")]
    most: Annotated[int, Means("maximum number of partitions at one instant")]
    bad_us: Annotated[int, Means("time in which any partition was hit, microseconds")]


class Size(NamedTuple):
    """Sizes of an event; None: not of its kind, or not known."""

    partitions: Annotated[int | None, Means(
        "number of partitions that were hit or lost messages")] = None  # fmt: skip
    offsets_low: Annotated[Known, Means("lower bound of the lost offsets")] = None
    offsets_high: Annotated[Known, Means("upper bound of the lost offsets")] = None
    throttle_ms_mean: Annotated[Known, Means("mean wait while throttled, milliseconds")] = None
    throttle_ms_max: Annotated[Known, Means("maximum wait, milliseconds")] = None
    rate_max: Annotated[Known, Means("maximum rate of the client on one broker")] = None
    quota: Annotated[Known, Means("quota of the client on each broker, in the same unit")] = None
    max_bytes: Annotated[Known, Means("maximum tiered-storage lag, bytes")] = None
    max_value: Annotated[Known, Means("maximum of the metric")] = None


class Part(NamedTuple):
    """A span of an event in which something was bad; very short pauses may be left out."""

    start: Annotated[str, Means("start, UTC")]
    end: Annotated[str, Means("end, UTC")]


class Unobserved(NamedTuple):
    """A broker that was not read near the onset of an event."""

    source: Annotated[str, Means("broker")]
    us: Annotated[int, Means("unknown time, microseconds")]


class EventCause(NamedTuple):
    """The likely cause of an event."""

    kind: Annotated[str, Means(
        "rolling_restart, restarted, no_answer, fenced, unclean_election, leader_change, "
        "reassignment, config_change, quota, retention, slow_group, copy_errors, "
        "hanging_transaction or not_known",
        column="")]  # fmt: skip
    sources: Annotated[list[str], Means("brokers that caused it")]
    start: Annotated[str | None, Means("start of their absence, UTC")]
    end: Annotated[str | None, Means("end of their absence, UTC")]
    error: Annotated[str | None, Means("error of a failed scrape of them")]
    single_replica: Annotated[list[str], Means("affected topics with one replica")]
    no_spare: Annotated[list[str], Means(
        "affected topics without a spare replica for their min ISR")]  # fmt: skip
    also: Annotated[list[str], Means("further brokers and changes near the start")]
    ruled_out: Annotated[list[str], Means("causes without evidence")]
    unobserved: Annotated[list[Unobserved], Means("brokers with unknown time near the start")]
    leader_changes: Annotated[int, Means("number of leader changes of its topics near the start")]


class Use(NamedTuple):
    """Bad time of one subject under one objective that belongs to an event."""

    objective: Annotated[str, OBJECTIVE]
    topic: Annotated[str | None, TOPIC]
    partition: Annotated[int | None, PARTITION]
    user: Annotated[str | None, USER]
    client_id: Annotated[str | None, CLIENT_ID]
    group: Annotated[str | None, GROUP]
    source: Annotated[str | None, SOURCE]
    bad_us: Annotated[int, Means("its bad time, microseconds")]
    share: Annotated[Known, Means("share of the whole error budget of the objective")]


class Event(NamedTuple):
    """Incidents that belong together, with the likely cause."""

    number: Annotated[int, Means("rank by error budget used; 1 used most")]
    kind: Annotated[str, Means(
        "availability, throttling, loss, tiered, consumer_lag, latency, errors, replication or "
        "other")]  # fmt: skip
    of: Annotated[str | None, Means("kind of request, copy or delete; otherwise the metric")]
    from_: Annotated[str, Means("start, UTC", column="start")]
    to: Annotated[str, Means("end, UTC", column="end")]
    ongoing: Annotated[bool, Means("1: it lasts until the end of the data")]
    bad_us: Annotated[Bounds, Means("bad time, microseconds")]
    topics: Annotated[list[str], Means("affected topics")]
    user: Annotated[str | None, USER]
    client_id: Annotated[str | None, CLIENT_ID]
    group: Annotated[str | None, GROUP]
    source: Annotated[str | None, SOURCE]
    hits: Annotated[list[Hit], Means("affected topics, with their partitions")]
    size: Annotated[Size, Means("", column="")]
    parts: Annotated[list[Part], Means("bad intervals; very short pauses can be left out")]
    incidents: Annotated[int, Means("number of incidents")]
    cause: Annotated[EventCause, Means("likely cause")]
    uses: Annotated[list[Use], Means("bad time of each subject under each objective")]
    objective: Annotated[str | None, Means("objective with most error budget used")]
    used: Annotated[Known, Means("share of that error budget")]
    owner: Annotated[
        str | None,
        Means("owner of the brokers that caused it, or of the subject with the greatest share"),
    ]
    owners: Annotated[list[str] | None, Means("owners of its subjects")]
    weeks_in_row: Annotated[int, Means(
        "number of weeks in a row with such an event, this week included")]  # fmt: skip
    planned: Annotated[bool, Means("1: planned maintenance overlaps it")]
    agreed: Annotated[bool, Means("1: a correction overlaps it")]


class IncidentOfEvent(NamedTuple):
    """A span in which one series was bad without a break, joined over hours and sources."""

    event: Annotated[int, Means("number of its event")]
    metric: Annotated[str, Means("metric above 0")]
    kind: Annotated[str, Means("kind of its event")]
    level: Annotated[str, Means("partition, topic, client, group or source")]
    topic: Annotated[str | None, TOPIC]
    partition: Annotated[int | None, PARTITION]
    user: Annotated[str | None, USER]
    client_id: Annotated[str | None, CLIENT_ID]
    group: Annotated[str | None, GROUP]
    start: Annotated[str, Means("start, UTC")]
    end: Annotated[str, Means("end, UTC")]
    lead_us: Annotated[int, Means(
        "start uncertainty: it started at most this much earlier, microseconds")]  # fmt: skip
    tail_us: Annotated[int, Means(
        "end uncertainty: it ended at most this much earlier, microseconds")]  # fmt: skip
    worst: Annotated[float, Means("maximum value")]
    total: Annotated[float, Means("sum of its values, or increase of a counter")]
    sources: Annotated[list[str], Means("sources that reported it")]


class EventSections(NamedTuple):
    """The sections ``events`` and ``incidents``, and how many incidents are not listed."""

    events: list[Event] | None = None
    incidents: list[IncidentOfEvent] | None = None
    incidents_omitted: int | None = None
