"""Facts with owners: labels in rows, an account for each owner; and the facts of one team.

These work on facts as JSON, for they are applied to facts that were read from a file, too.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from lakehouse.core import display
from lakehouse.errors import OwnersError
from lakehouse.report.facts.composites import BY_OWNER, composites
from lakehouse.report.facts.saved import Bounds, to_json
from lakehouse.report.owners import LABELS, NAMES, NO_OWNER, Owner, Owners, Prices
from lakehouse.report.page.facts_lookup import nothing_seen, tally, value_at
from lakehouse.slo.trends.changes import by_chance

Facts = dict[str, Any]
Row = dict[str, Any]

_COUNTED: Final = {
    "topic": ("min_isr.topics", "kafka.topic.partitions"),
    "client": ("throttling.clients", "kafka.client.produce.throttle_time"),
    "group": ("lost_before_read.groups", "kafka.group.non_consumed.low"),
    "tiered": ("tiering.topics", "kafka.topic.remote_copy.bytes"),
    "stored": ("capacity.topics", "kafka.log.size"),
}
"""Where rows are, and a metric: if its family was read, no row means zero."""

_TIERED: Final = ("uploaded_bytes", "read_bytes", "stored_byte_seconds")


class NotKnown(NamedTuple):
    """How many rows the sums of an account leave out."""

    clients: int
    topics: int
    groups: int


class Account(NamedTuple):
    """Throttling and storage of an owner: sums of the known figures."""

    team: str | None
    owner: str | None
    tier: str | None
    topics: int
    clients: int
    groups: int
    throttled_us: Bounds
    uploaded_bytes: float | None
    read_bytes: float | None
    stored_byte_seconds: float | None
    disk_byte_seconds: float | None
    offsets_low: float | None
    offsets_high: float | None
    not_known: NotKnown
    unknown_us: int | None
    cost: float | None


def add_owners(facts: Mapping[str, Any], owners: Owners) -> Facts:
    """The facts with labels in rows, composites by owner, and a section ``owners``."""
    with_labels = _with_rows(facts, lambda row: {**row, **owners.of(row)._asdict()})
    currency = None if owners.prices is None else owners.prices.currency
    accounts = to_json(_accounts(with_labels, owners.prices))
    with_labels["composites"] = to_json(composites(with_labels.get("objectives") or (), BY_OWNER))
    return {**with_labels, "owners": {"currency": currency, "accounts": accounts}}


def _with_rows(value: Any, change: Callable[[Row], Row | None]) -> Any:
    """The facts with changed rows, wherever these are about a topic, client or group.

    Args:
        value: The facts or a part of them, which stays as it is.
        change: The new row; None: the row is left out.
    """
    if isinstance(value, dict):
        return {key: _with_rows(part, change) for key, part in value.items()}
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return value
    if not set(NAMES.values()) & value[0].keys():
        return [_with_rows(part, change) for part in value]
    return [row for one in value if (row := change(one)) is not None]


def _accounts(facts: Mapping[str, Any], prices: Prices | None) -> list[Account]:
    """An account for each owner; that of rows without an owner is last."""
    rows: dict[Owner, defaultdict[str, list[Row]]] = {}
    for kind, (path, _) in _COUNTED.items():
        for row in value_at(facts, path) or ():
            owner = Owner(*map(row.get, LABELS))
            rows.setdefault(owner, defaultdict(list))[kind].append(row)
    was_read = {kind: not nothing_seen(facts, one) for kind, (_, one) in _COUNTED.items()}
    owners = sorted(rows, key=lambda owner: (owner == NO_OWNER, *map(str, owner)))
    return [_account(owner, rows[owner], was_read, prices) for owner in owners]


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
    keys = ("throttled_us", "throttled_low_us", "throttled_high_us")
    return Account(
        **owner._asdict(),
        topics=len({row.get("topic") for row in rows["topic"]}),
        clients=len({(row.get("user"), row.get("client_id")) for row in clients}),
        groups=len({row.get("group") for row in groups}),
        throttled_us=Bounds(*(total("client", key) for key in keys)),
        **moved,
        disk_byte_seconds=disk,
        offsets_low=total("group", "offsets_low"),
        offsets_high=total("group", "offsets_high"),
        not_known=NotKnown(
            sum(row.get("throttled_us") is None for row in clients),
            sum(None in map(row.get, _TIERED) for row in tiered),
            sum(row.get("offsets_low") is None for row in groups),
        ),
        # If that of one row is not known, the sum is not known either.
        unknown_us=None if unread or None in times else sum(us for us in times if us),
        cost=cost,
    )


def of_team(facts: Mapping[str, Any], team: str) -> Facts:
    """The facts of one team.

    Coverage and events of brokers are of the whole cluster and stay, for they say how far the rest
    can be trusted; sums over all teams are left out.

    Args:
        facts: With owners, see ``add_owners``.
        team: Its name in the file of owners.

    Raises:
        OwnersError: The facts have no owners, or no such team.
    """
    if facts.get("owners") is None:
        raise OwnersError(f"team {team!r}: these facts have no owners; name their file (--owners)")
    accounts = facts["owners"]["accounts"]
    teams = sorted({str(one["team"]) for one in accounts if one["team"] is not None})
    if team not in teams:
        known = ", ".join(map(display.line, teams)) or "none"
        raise OwnersError(f"team {team!r} owns nothing here; those that do: {known}")
    part: Facts = _with_rows(
        facts, lambda row: row if row.get("team") == team or _is_of_all(row) else None
    )
    own = [one for one in accounts if one["team"] == team]
    part |= {"team": team, "owners": {**facts["owners"], "accounts": own}, **_judged(part)}
    part["composites"] = to_json(composites(part["objectives"]))
    part["timelines"] = _timelines(part)
    for name, changed in _CHANGED.items():
        if part.get(name):
            part[name] = {**part[name], **changed(part[name])}
    return part


def _is_of_all(row: Row) -> bool:
    """Whether an event is of a node or the cluster; every other row has a name."""
    return "kind" in row and "at" in row and all(row.get(key) is None for key in NAMES.values())


def _judged(facts: Mapping[str, Any]) -> Facts:
    """Objectives that have a subject left, and verdicts on just these subjects; worst first."""
    # ``weighted`` is of all teams.
    objectives = [{**one, "weighted": None} for one in facts["objectives"] if one["subjects"]]
    by_name = {one["name"]: one["subjects"] for one in objectives}
    verdicts = [
        {**row, **tally(str(one.get("verdict")) for one in by_name[row["objective"]])}
        for row in facts.get("verdicts") or ()
        if row["objective"] in by_name
    ]
    verdicts.sort(key=lambda row: display.rank(row["verdict"]), reverse=True)
    return {"objectives": objectives, "verdicts": verdicts}


def _trends(trends: Mapping[str, Any]) -> Facts:
    """The team's trends; the number that would stand out by chance is computed again."""
    compared = [
        changed["compared"]
        for one in trends["objectives"]
        for subject in one["subjects"]
        if (changed := subject.get("change")) and changed.get("p") is not None
    ]
    return {
        # How many were never bad is known of all teams together only.
        "objectives": [{**one, "never_bad": None} for one in trends["objectives"]],
        "tested": len(compared),
        "significant_by_chance": round(by_chance(compared), 2),
    }


def _timelines(part: Mapping[str, Any]) -> list[Row]:
    """Timelines of the team's topics and groups, and coverage."""
    rows: list[Row] = []
    _with_rows(part, rows.append)
    # A row of a group names a topic that may be another team's.
    groups = {row["group"] for row in rows if row.get("group") is not None}
    topics = {row.get("topic") for row in rows if row.get("group") is None} - {None}
    own = {"lost_offsets": groups, "coverage": {None}}
    lines = part.get("timelines") or ()
    return [line for line in lines if line.get("subject") in own.get(line.get("name"), topics)]


def _without_brokers(section: Mapping[str, Any]) -> Facts:
    return {key: [] for key in ("brokers", "controllers", "plugins") if key in section}


def _own_metrics(section: Mapping[str, Any]) -> Facts:
    # How many more subjects the team has is not known: the facts have the first of all teams.
    return {"metrics": [{**one, "subjects": None} for one in section["metrics"] if one["worst"]]}


_CHANGED: Final[Mapping[str, Callable[[Mapping[str, Any]], Facts]]] = {
    **dict.fromkeys(("min_isr", "throttling", "tier_lag", "remote_reads"), _without_brokers),
    "hygiene": lambda _: {"replicas_untold": 0},  # it is of topics whose owners are not known
    "business_hours": _judged,
    "own_metrics": _own_metrics,
    "trends": _trends,
}
"""What is different in a team's section."""
