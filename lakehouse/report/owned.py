"""Facts with owners: every row that is somebody's bears its labels, and owners have an account.

And one team's part of them: what is its own, judged alone.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from lakehouse.errors import OwnersError
from lakehouse.owners import LABELS, NOBODY, Owner
from lakehouse.report import words
from lakehouse.report.lookup import nothing_seen, tally, value_at
from lakehouse.trends.change import LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lakehouse.owners import Owners, Prices

Facts = dict[str, Any]
Row = dict[str, Any]

_OF_SECTIONS: Final = (
    "min_isr.topics",
    "min_isr.partitions",
    "throttling.clients",
    "tier_lag.topics",
    "lost_before_read.groups",
    "remote_reads.topics",
    "tiering.topics",
    "hygiene.replication_one",
    "hygiene.no_spare_replica",
    "hygiene.unused_quotas",
    "hygiene.near_quota",
    "hygiene.overtaken",
)
_ROWS: Final = (
    "objectives.*.subjects",
    "business_hours.objectives.*.subjects",
    "trends.objectives.*.subjects",
    "trends.drains",
    "events",
    "restated",
    *_OF_SECTIONS,
)
"""Where rows are about a topic, a client or a group."""

_COUNTED: Final = {
    "topic": "min_isr.topics",
    "client": "throttling.clients",
    "group": "lost_before_read.groups",
    "tiered": "tiering.topics",
}
_LOOKED: Final = {
    "client": frozenset({"quotas"}),
    "tiered": frozenset({"tiered"}),
    "group": frozenset({"offsets"}),
}
"""Families of beans that must have been read to know that there was nothing."""

_SUMMED: Final = {
    "client": ("throttled_us", "throttled_low_us", "throttled_high_us"),
    "tiered": ("uploaded_bytes", "read_bytes", "stored_byte_seconds"),
    "group": ("offsets_low", "offsets_high"),
}
_OF_SUBJECT: Final = ("topic", "user", "client_id", "group")


def labelled(facts: Mapping[str, Any], owners: Owners) -> Facts:
    """The facts with ``team``, ``owner`` and ``tier`` in rows, and a section ``owners``."""
    made = _changed(
        facts, _ROWS, lambda rows: [{**row, **owners.of(row)._asdict()} for row in rows]
    )
    made["owners"] = {
        "currency": None if owners.prices is None else owners.prices.currency,
        "accounts": accounts(made, owners.prices),
    }
    return made


def _changed(
    facts: Mapping[str, Any], paths: Iterable[str], change: Callable[[Sequence[Row]], list[Row]]
) -> Facts:
    """The facts with other rows at some paths; nothing of what was given is changed."""

    def at(told: Any, path: str) -> Any:
        key, _, rest = path.partition(".")
        if key == "*":
            return [at(one, rest) for one in told]
        if not told.get(key):
            return told
        return {**told, key: at(told[key], rest) if rest else change(told[key])}

    made = dict(facts)
    for path in paths:
        made = at(made, path)
    return made


def accounts(facts: Mapping[str, Any], prices: Prices | None) -> list[Row]:
    """What throttling and tiered storage came to, by owner; nobody's last.

    Sums are of what is known. How many clients and topics they leave out for that is said beside.
    """
    told: defaultdict[Owner, defaultdict[str, list[Row]]]
    told = defaultdict(lambda: defaultdict(list))
    for kind, path in _COUNTED.items():
        for row in value_at(facts, path) or ():
            told[Owner(*map(row.get, LABELS))][kind].append(row)
    looked = {kind: not nothing_seen(facts, families) for kind, families in _LOOKED.items()}
    owners = sorted(told, key=lambda owner: (owner == NOBODY, *map(str, owner)))
    return [_account(owner, told[owner], looked, prices) for owner in owners]


def _account(
    owner: Owner,
    told: Mapping[str, list[Row]],
    looked: Mapping[str, bool],
    prices: Prices | None,
) -> Row:
    clients, tiered, groups = (told[kind] for kind in _SUMMED)
    sums = {
        key: _sum(told[kind], key, looked=looked[kind])
        for kind, keys in _SUMMED.items()
        for key in keys
    }
    moved = {key: sums[key] for key in _SUMMED["tiered"]}
    cost = None
    if prices is not None and any(value is not None for value in moved.values()):
        cost = prices.cost(**{key: value or 0.0 for key, value in moved.items()})
    times = [row.get("unknown_us") for row in (*clients, *tiered)]
    unread = any(not told[kind] and not looked[kind] for kind in ("client", "tiered"))
    return {
        **owner._asdict(),
        "topics": len({row.get("topic") for row in told["topic"]}),
        "clients": len({(row.get("user"), row.get("client_id")) for row in clients}),
        "groups": len({row.get("group") for row in groups}),
        **sums,
        "not_known": {
            "clients": sum(row.get("throttled_us") is None for row in clients),
            "topics": sum(None in map(row.get, _SUMMED["tiered"]) for row in tiered),
            "groups": sum(row.get("offsets_low") is None for row in groups),
        },
        # Where that of one of them is not known, nobody knows it of all.
        "unknown_us": None if unread or None in times else sum(us for us in times if us),
        "cost": cost,
    }


def _sum(rows: Sequence[Row], key: str, *, looked: bool) -> float | None:
    """The sum of what is known; zero where somebody looked and nobody is told of, else None."""
    known = [row[key] for row in rows if row.get(key) is not None]
    return sum(known) if known or (looked and not rows) else None


def of_team(facts: Mapping[str, Any], team: str) -> Facts:
    """The facts of one team.

    What is of the whole cluster stays as it is where it says how far the rest can be trusted
    (coverage) or what happened to all (restarts); sums over all teams are left out.

    Args:
        facts: With owners, see ``labelled``.
        team: Its name in the file of owners.

    Raises:
        OwnersError: The facts have no owners, or no such team.
    """
    if facts.get("owners") is None:
        raise OwnersError(f"team {team!r}: these facts have no owners; name their file (--owners)")
    accounts = facts["owners"]["accounts"]
    teams = sorted({str(one["team"]) for one in accounts if one["team"] is not None})
    if team not in teams:
        known = ", ".join(map(words.line, teams)) or "none"
        raise OwnersError(f"team {team!r} owns nothing here; those that do: {known}")
    own = [one for one in accounts if one["team"] == team]
    made = _changed(
        facts,
        _ROWS,
        lambda rows: [row for row in rows if row.get("team") == team or _is_of_all(row)],
    )
    made = _changed(made, ("min_isr.brokers", "remote_reads.brokers"), lambda _: [])
    made |= {"team": team, "owners": {**facts["owners"], "accounts": own}, **_judged(made)}
    if made.get("hygiene"):  # of how many nobody told anything is not the team's to know
        made["hygiene"] = {**made["hygiene"], "replicas_untold": 0}
    if made.get("business_hours"):
        made["business_hours"] = {**made["business_hours"], **_judged(made["business_hours"])}
    if made.get("trends"):
        made["trends"] = _trends(made["trends"])
    made["timelines"] = _timelines(facts, made)
    return made


def _is_of_all(row: Mapping[str, Any]) -> bool:
    """Whether an event is of a node or the cluster; every other row names somebody."""
    return "kind" in row and "at" in row and all(row.get(key) is None for key in _OF_SUBJECT)


def _judged(told: Mapping[str, Any]) -> Facts:
    """Its objectives that have a subject left, and the verdicts on just those; worst first."""
    # What subjects come to together is of all teams.
    objectives = [{**one, "weighted": None} for one in told["objectives"] if one["subjects"]]
    by_name = {one["name"]: one["subjects"] for one in objectives}
    made = []
    for row in told.get("verdicts") or ():
        subjects = by_name.get(row["objective"])
        if subjects:
            made.append({**row, **tally(str(one.get("verdict")) for one in subjects)})
    made.sort(key=lambda one: words.rank(one["verdict"]), reverse=True)
    return {"objectives": objectives, "verdicts": made}


def _trends(told: Mapping[str, Any]) -> Facts:
    """Its own trends; how many would stand out by chance is counted anew."""
    compared = [
        changed["compared"] + 1
        for one in told["objectives"]
        for subject in one["subjects"]
        if (changed := subject.get("change")) and changed.get("p") is not None
    ]
    return {
        **told,
        # How many were never bad is known of all teams together alone.
        "objectives": [{**one, "never_bad": None} for one in told["objectives"]],
        "tested": len(compared),
        "significant_by_chance": round(sum(int(LEVEL * n) / n for n in compared), 2),
    }


def _timelines(facts: Mapping[str, Any], made: Facts) -> list[Row]:
    """Those of its own topics and groups, and what was seen at all."""
    rows = [row for path in _OF_SECTIONS for row in value_at(made, path) or ()]
    # A row of a group names a topic that may be another team's.
    groups = {row["group"] for row in rows if row.get("group") is not None}
    topics = {row.get("topic") for row in rows if row.get("group") is None}

    def is_own(one: Row) -> bool:
        mine = groups if one.get("name") == "lost_offsets" else topics
        return one.get("subject") is not None and one["subject"] in mine

    lines = facts.get("timelines") or ()
    return [one for one in lines if one.get("name") == "coverage" or is_own(one)]
