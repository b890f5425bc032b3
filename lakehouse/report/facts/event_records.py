"""Events and incidents as report.json has them."""

from typing import Annotated, NamedTuple

from lakehouse.report.facts.fields import Bounds, Known, Means

_TOPIC = Annotated[str | None, Means("topic; empty: it is of no topic")]
_PARTITION = Annotated[int | None, Means("partition; empty: it is of no partition")]
_USER = Annotated[str | None, Means("authenticated principal; empty: it is of none")]
_CLIENT_ID = Annotated[str | None, Means("client id; empty: it is of none")]
_GROUP = Annotated[str | None, Means("consumer group; empty: it is of none")]
_SOURCE = Annotated[str | None, Means("broker, controller or client; empty: it is of none")]


class Hit(NamedTuple):
    """What an event did to a topic."""

    topic: Annotated[str, Means("topic")]
    kind: Annotated[str, Means("under_min_isr or leaderless")]
    partitions: Annotated[int, Means("partitions of it that were hit")]
    of: Annotated[int | None, Means("partitions that it has")]
    most: Annotated[int, Means("most partitions at one instant")]
    bad_us: Annotated[int, Means("microseconds in which any partition was")]


class Size(NamedTuple):
    """How bad an event was; what is not of its kind, or not known, is None."""

    partitions: Annotated[
        int | None, Means("partitions that were hit, or of which messages were lost")
    ] = None
    offsets_low: Annotated[Known, Means("offsets lost, at least")] = None
    offsets_high: Annotated[Known, Means("offsets lost, at most")] = None
    throttle_ms_mean: Annotated[Known, Means("mean wait while throttled, milliseconds")] = None
    throttle_ms_max: Annotated[Known, Means("longest wait, milliseconds")] = None
    rate_max: Annotated[Known, Means("highest rate of the client on one broker")] = None
    max_bytes: Annotated[Known, Means("most bytes that waited for tiering")] = None
    max_value: Annotated[Known, Means("greatest value of the metric")] = None


class Part(NamedTuple):
    """A span of an event in which something was bad; very short pauses may be left out."""

    start: Annotated[str, Means("start, UTC")]
    end: Annotated[str, Means("end, UTC")]


class Unobserved(NamedTuple):
    """A broker that was not read near the onset of an event."""

    source: Annotated[str, Means("broker")]
    us: Annotated[int, Means("microseconds in which it was not read")]


class EventCause(NamedTuple):
    """The likely cause of an event."""

    kind: Annotated[
        str,
        Means(
            "rolling_restart, restarted, no_answer, fenced, unclean_election, leader_change, "
            "reassignment, config_change, quota, retention, slow_group, copy_errors or not_known"
        ),
    ]
    sources: Annotated[list[str], Means("brokers that it names")]
    start: Annotated[str | None, Means("since when these were away, UTC")]
    end: Annotated[str | None, Means("until when, UTC")]
    error: Annotated[str | None, Means("what a failed attempt to read them said")]
    single_replica: Annotated[list[str], Means("topics hit that have one replica")]
    no_spare: Annotated[
        list[str], Means("topics hit that have no replica to spare for their min ISR")
    ]
    also: Annotated[list[str], Means("further brokers and changes near the onset")]
    ruled_out: Annotated[list[str], Means("causes that were looked for and were not there")]
    unobserved: Annotated[list[Unobserved], Means("brokers that were not read near the onset")]
    leader_changes: Annotated[int, Means("leader changes of its topics near the onset")]


class Use(NamedTuple):
    """Bad time of one subject under one objective that belongs to an event."""

    objective: Annotated[str, Means("name of the objective")]
    topic: _TOPIC
    partition: _PARTITION
    user: _USER
    client_id: _CLIENT_ID
    group: _GROUP
    source: _SOURCE
    bad_us: Annotated[int, Means("microseconds of its bad time")]
    share: Annotated[Known, Means("share of the objective's whole error budget")]


class Event(NamedTuple):
    """Incidents that belong together, with the likely cause."""

    number: Annotated[int, Means("1 is the event that used most of an error budget")]
    kind: Annotated[
        str,
        Means(
            "availability, throttling, loss, tiered, consumer_lag, latency, errors, replication "
            "or other"
        ),
    ]
    of: Annotated[str | None, Means("kind of request, copy or delete, else the metric")]
    from_: Annotated[str, Means("start, UTC")]
    to: Annotated[str, Means("end, UTC")]
    ongoing: Annotated[bool, Means("whether its last part reaches the end of the data")]
    bad_us: Annotated[Bounds, Means("microseconds in which any part of it was bad")]
    topics: Annotated[list[str], Means("topics that it is about")]
    user: _USER
    client_id: _CLIENT_ID
    group: _GROUP
    source: _SOURCE
    hits: Annotated[list[Hit], Means("what it did to topics")]
    size: Annotated[Size, Means("", column="")]
    parts: Annotated[list[Part], Means("its spans")]
    incidents: Annotated[int, Means("number of its incidents")]
    cause: Annotated[EventCause, Means("likely cause")]
    uses: Annotated[list[Use], Means("whose error budget it used")]
    objective: Annotated[
        str | None, Means("objective of whose error budget it used the greatest share")
    ]
    used: Annotated[Known, Means("that share of the whole error budget")]
    owner: Annotated[str | None, Means("owner of the subject that used most of it")]
    owners: Annotated[list[str] | None, Means("owners of all its subjects")]
    weeks_in_row: Annotated[int, Means("weeks in a row with such an event, this one included")]
    planned: Annotated[bool, Means("whether planned maintenance overlaps it")]
    agreed: Annotated[bool, Means("whether a correction overlaps it")]


class IncidentOfEvent(NamedTuple):
    """A span in which one series was bad without a break, joined over hours and sources."""

    event: Annotated[int, Means("number of its event")]
    metric: Annotated[str, Means("metric that was above 0")]
    kind: Annotated[str, Means("kind of its event")]
    level: Annotated[str, Means("partition, topic, client, group or source")]
    topic: _TOPIC
    partition: _PARTITION
    user: _USER
    client_id: _CLIENT_ID
    group: _GROUP
    start: Annotated[str, Means("start, UTC")]
    end: Annotated[str, Means("end, UTC")]
    lead_us: Annotated[int, Means("microseconds before its start in which it may have started")]
    tail_us: Annotated[int, Means("microseconds before its end in which it may have ended")]
    worst: Annotated[float, Means("greatest value")]
    total: Annotated[float, Means("sum of its values; of a counter its increase")]
    sources: Annotated[list[str], Means("sources that reported it")]


class EventSections(NamedTuple):
    """The sections ``events`` and ``incidents``, and how many incidents are not listed."""

    events: list[Event] | None = None
    incidents: list[IncidentOfEvent] | None = None
    incidents_omitted: int | None = None
