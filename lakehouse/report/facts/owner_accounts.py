"""Facts with owners: labels in rows, an account of each owner, owners of events.

All functions work on facts as JSON, because they are also applied to facts from a file.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

from lakehouse.report.facts.fields import OWNED, Bounds, Known, Means, to_json
from lakehouse.report.facts.objectives.composites import BY_OWNER, composites
from lakehouse.report.figures import nothing_seen, value_at
from lakehouse.report.owners import LABELS, NAMES, NO_OWNER, Owner, Owners, Prices, shown

Facts = dict[str, Any]
Row = dict[str, Any]


_COUNTED: Final = {
    "topic": ("min_isr.topics", "kafka.topic.partitions"),
    "client": ("throttling.clients", "kafka.client.produce.throttle_time"),
    "group": ("lost_before_read.groups", "kafka.group.non_consumed.low"),
    "tiered": ("tiering.topics", "kafka.topic.remote_copy.bytes"),
    "stored": ("capacity.topics", "kafka.log.size"),
}
"""Path of rows, and a metric: if its family was read, no row means zero."""

_TIERED: Final = ("uploaded_bytes", "read_bytes", "stored_byte_seconds")


class Account(NamedTuple):
    """Error budgets, throttling and storage of an owner: sums of the known figures."""

    team: Annotated[str | None, OWNED["team"]]
    owner: Annotated[str | None, OWNED["owner"]]
    tier: Annotated[str | None, OWNED["tier"]]
    topics: Annotated[int, Means("number of topics")]
    clients: Annotated[int, Means("number of clients with a quota or throttling")]
    groups: Annotated[int, Means("number of groups that may have lost offsets")]
    highest_used: Annotated[Known, Means(
        "highest share of an error budget that one of its subjects used")]  # fmt: skip
    total_used: Annotated[Known, Means(
        "share of the error budgets of its team that was used in total, by the weights of the "
        "first composite; empty: no team, or no composite")]  # fmt: skip
    throttled_us: Annotated[Bounds, Means(
        "throttled time, summed over clients and kinds of quota, microseconds")]  # fmt: skip
    uploaded_bytes: Annotated[Known, Means("bytes uploaded to remote storage")]
    read_bytes: Annotated[Known, Means("bytes read from remote storage")]
    stored_byte_seconds: Annotated[Known, Means("bytes in remote storage times observed seconds")]
    disk_byte_seconds: Annotated[Known, Means(
        "bytes of all replicas on brokers' disks times observed seconds")]  # fmt: skip
    offsets_low: Annotated[Known, Means("lower bound of the offsets deleted before they were read")]
    offsets_high: Annotated[Known, Means("their upper bound; empty: not known")]
    not_known: Annotated[dict[str, int], Means(
        "number of rows that the sums leave out, such as clients=2")]  # fmt: skip
    unknown_us: Annotated[int | None, Means(
        "unknown time, summed over clients and topics, microseconds")]  # fmt: skip
    cost: Annotated[Known, Means("cost of the known figures, in the currency of the owners file")]


def add_owners(facts: Mapping[str, Any], owners: Owners) -> Facts:
    """Return the facts with labels in rows, composites by owner, and a section ``owners``."""
    with_labels = with_rows(facts, lambda row: {**row, **owners.labels(row)})
    if facts.get("events"):
        with_labels["events"] = with_event_owners(facts["events"], owners.labels)
        incidents = facts.get("incidents") or ()
        with_labels["incidents"] = with_incident_owners(incidents, owners.labels)
    currency = None if owners.prices is None else owners.prices.currency
    with_labels["objectives"] = with_owners(with_labels.get("objectives") or ())
    with_labels["composites"] = to_json(composites(with_labels["objectives"], BY_OWNER))
    accounts = to_json(_accounts(with_labels, owners.prices))
    return {**with_labels, "owners": {"currency": currency, "accounts": accounts}}


def with_owners(objectives: Iterable[Row]) -> list[Row]:
    """Return objectives with the ``owner`` of their worst subject."""
    return [{**one, "owner": shown((one["subjects"] or [{}])[0])} for one in objectives]


def with_rows(value: Any, change: Callable[[Row], Row | None]) -> Any:
    """Return the facts with changed rows about topics, clients and groups.

    Args:
        value: The facts or a part of them, which stays as it is.
        change: The new row; None: the row is left out.
    """
    if isinstance(value, dict):
        return {key: with_rows(part, change) for key, part in value.items()}
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return value
    if not set(NAMES.values()) & value[0].keys():
        return [with_rows(part, change) for part in value]
    return [row for one in value if (row := change(one)) is not None]


def _accounts(facts: Mapping[str, Any], prices: Prices | None) -> list[Account]:
    """Return an account for each owner; rows without an owner are last."""
    rows: dict[Owner, defaultdict[str, list[Row]]] = {}
    for kind, (path, _) in _COUNTED.items():
        for row in value_at(facts, path) or ():
            owner = Owner(*map(row.get, LABELS))
            rows.setdefault(owner, defaultdict(list))[kind].append(row)
    was_read = {kind: not nothing_seen(facts, one) for kind, (_, one) in _COUNTED.items()}
    owners = sorted(rows, key=lambda owner: (owner == NO_OWNER, *map(str, owner)))
    return [
        _account(owner, rows[owner], was_read, prices)._replace(
            highest_used=_highest_used(facts, owner), total_used=_total_used(facts, owner.team)
        )
        for owner in owners
    ]


def _highest_used(facts: Mapping[str, Any], owner: Owner) -> float | None:
    labels = owner._asdict().items()
    subjects = (row for one in facts["objectives"] for row in one["subjects"])
    shares = [row.get("used") for row in subjects if labels <= row.items()]
    return max((share for share in shares if share is not None), default=None)


def _total_used(facts: Mapping[str, Any], team: str | None) -> float | None:
    own = (one for one in facts["composites"] if team is not None and one["team"] == team)
    found = next(own, None)
    if found is None or found["attainment"] is None or found["target"] == 1:
        return None
    used: float = (1 - found["attainment"]) / (1 - found["target"])
    return used


def _account(
    owner: Owner, rows: Mapping[str, list[Row]], was_read: Mapping[str, bool], prices: Prices | None
) -> Account:
    def total(kind: str, key: str) -> float | None:
        known = [row[key] for row in rows[kind] if row.get(key) is not None]
        return sum(known) if known or (was_read[kind] and not rows[kind]) else None

    clients, tiered, groups = rows["client"], rows["tiered"], rows["group"]
    moved: dict[str, Any] = {key: total("tiered", key) for key in _TIERED}
    disk = total("stored", "disk_byte_seconds")
    cost, priced = None, {**moved, "disk_byte_seconds": disk}
    if prices is not None and any(value is not None for value in priced.values()):
        cost = prices.cost({key: value or 0.0 for key, value in priced.items()})
    times = [row.get("unknown_us") for row in (*clients, *tiered)]
    unread = any(not rows[kind] and not was_read[kind] for kind in ("client", "tiered"))
    open_ended = any(row.get("offsets_high") is None for row in groups)
    keys = ("throttled_us", "throttled_low_us", "throttled_high_us")
    return Account(
        **owner._asdict(),
        topics=len({row.get("topic") for row in rows["topic"]}),
        clients=len({(row.get("user"), row.get("client_id")) for row in clients}),
        groups=len({row.get("group") for row in groups}),
        highest_used=None,
        total_used=None,
        throttled_us=Bounds(*(total("client", key) for key in keys)),
        **moved,
        disk_byte_seconds=disk,
        offsets_low=total("group", "offsets_low"),
        offsets_high=None if open_ended else total("group", "offsets_high"),
        not_known={
            "clients": sum(row.get("throttled_us") is None for row in clients),
            "topics": sum(None in map(row.get, _TIERED) for row in tiered),
            "groups": sum(row.get("offsets_low") is None for row in groups),
        },
        # A sum with an unknown row is unknown.
        unknown_us=None if unread or None in times else sum(us for us in times if us),
        cost=cost,
    )


Labels = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""The labels of a row by its names."""

_BY_BROKERS: Final = ("restarted", "rolling_restart", "no_answer", "fenced")
"""Kinds of causes with brokers."""


def with_event_owners(events: Iterable[Row], labels: Labels) -> list[Row]:
    """Return events with their owner, and all owners.

    The owner is the owner of the brokers that caused an event, or of the subject that used most of
    a budget.

    Args:
        events: As in the facts.
        labels: The labels of a row.
    """
    return [_with_owners(event, labels) for event in events]


def with_incident_owners(incidents: Iterable[Row], labels: Labels) -> list[Row]:
    """Return incidents with their owner; counts of a source have the owner of the source.

    Args:
        incidents: As in the facts.
        labels: The labels of a row.
    """
    return [{**row, **labels(_subject(row))} for row in incidents]


def _subject(incident: Row) -> Row:
    if incident.get("level") != "source":
        return incident
    return {"source": next(iter(incident["sources"]), None)}


def _with_owners(event: Row, labels: Labels) -> Row:
    of_topics = [{"topic": topic} for topic in event["topics"]] if _is_of_topics(event) else []
    uses, hits = ([{**row, **labels(row)} for row in event[key]] for key in ("uses", "hits"))
    of_brokers = [labels({"source": source}) for source in _brokers(event)]
    every = [*of_brokers, *uses, *hits, labels(event), *map(labels, of_topics)]
    first = next((row for row in every if shown(row)), {})
    found = sorted({name for row in every if (name := shown(row))})
    own = {name: first.get(name) for name in LABELS}
    return {**event, "uses": uses, "hits": hits, **own, "owner": shown(first), "owners": found}


def _brokers(event: Mapping[str, Any]) -> Sequence[str]:
    """Return the brokers that caused an event."""
    cause = event["cause"]
    found: Sequence[str] = cause["sources"] if cause["kind"] in _BY_BROKERS else ()
    return found


def is_of_brokers(event: Mapping[str, Any]) -> bool:
    """Return True if an event belongs to its brokers' owner, who has no subject in it."""
    subjects = {shown(row) for key in ("uses", "hits") for row in event.get(key) or ()}
    owner = event.get("owner")
    return owner is not None and event["cause"]["kind"] in _BY_BROKERS and owner not in subjects


def _is_of_topics(event: Mapping[str, Any]) -> bool:
    """Return True if an event's topics are its subjects; a group's may be another team's."""
    return event.get("group") is None


def of_team(
    events: Sequence[Row], incidents: Iterable[Row], team: str
) -> tuple[list[Row], list[Row]]:
    """Return the events and incidents of one team, with new numbers.

    An event with brokers only belongs to all teams. Other events keep only what the team owns.

    Args:
        events: With owners.
        incidents: Incidents of the team's topics, clients and groups.
        team: Its name.
    """
    own = [one for event in events if (one := _of_team(event, team)) is not None]
    own.sort(key=lambda event: -(event["used"] or 0.0))
    number_of = {event["number"]: number for number, event in enumerate(own, 1)}
    left = [
        {**row, "event": number_of[row["event"]]} for row in incidents if row["event"] in number_of
    ]
    counts = Counter(row["event"] for row in left)
    numbered = [
        {**event, "number": number, "incidents": counts[number]}
        for number, event in enumerate(own, 1)
    ]
    return numbered, left


def _of_team(event: Row, team: str) -> Row | None:
    names = (*map(event.get, NAMES.values()), *event["topics"])
    if all(name is None for name in names):
        return event
    uses = [row for row in event["uses"] if row.get("team") == team]
    hits = [row for row in event["hits"] if row.get("team") == team]
    if not (uses or hits or event.get("team") == team):
        return None
    topics = {row["topic"] for row in (*uses, *hits)} - {None}
    cause = dict(event["cause"])
    found = {**event, "uses": uses, "hits": hits, "cause": cause, "team": team}
    if _is_of_topics(event) and topics:
        for row, key in ((found, "topics"), (cause, "single_replica"), (cause, "no_spare")):
            row[key] = [name for name in row[key] if name in topics]
    most = max(uses, key=lambda use: use["share"] or 0.0, default=None)
    found |= {"objective": most and most["objective"], "used": most and most["share"]}
    owners = sorted({name for row in (*uses, *hits) if (name := shown(row))}) or [team]
    if is_of_brokers(event):
        return {**found, "owners": sorted({event["owner"], *owners})}
    return {**found, "owner": owners[0] if len(owners) == 1 else team, "owners": owners}
