"""Facts with owners: every row that is somebody's bears its labels, and owners have an account."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from lakehouse.owners import LABELS, NOBODY, Owner
from lakehouse.report.lookup import nothing_seen, value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lakehouse.owners import Owners, Prices

Facts = dict[str, Any]
Row = dict[str, Any]

LABELLED: Final = (
    ("min_isr", "topics"),
    ("min_isr", "partitions"),
    ("throttling", "clients"),
    ("tier_lag", "topics"),
    ("lost_before_read", "groups"),
    ("remote_reads", "topics"),
    ("tiering", "topics"),
    ("hygiene", "replication_one"),
    ("hygiene", "no_spare_replica"),
    ("hygiene", "unused_quotas"),
    ("hygiene", "near_quota"),
    ("hygiene", "overtaken"),
)
"""Sections and keys whose rows are about a topic, a client or a group."""

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

_THROTTLED: Final = ("throttled_us", "throttled_low_us", "throttled_high_us")
_TIERED: Final = ("uploaded_bytes", "read_bytes", "stored_byte_seconds")
_LOST: Final = ("offsets_low", "offsets_high")


def labelled(facts: Mapping[str, Any], owners: Owners) -> Facts:
    """The facts with ``team``, ``owner`` and ``tier`` in rows, and a section ``owners``."""
    label = _labeller(owners)
    made = _changed(facts, lambda rows: [label(row) for row in rows])
    made["owners"] = {
        "currency": None if owners.prices is None else owners.prices.currency,
        "accounts": accounts(made, owners.prices),
    }
    return made


def _labeller(owners: Owners) -> Callable[[Mapping[str, Any]], Row]:
    return lambda row: {**row, **owners.of(row)._asdict()}


def _changed(facts: Mapping[str, Any], change: Callable[[Sequence[Row]], list[Row]]) -> Facts:
    """The facts with other rows of subjects; nothing of what was given is changed."""
    made = dict(facts)
    made["objectives"] = _with_subjects(facts, change)
    if facts.get("business_hours"):
        hours = facts["business_hours"]
        made["business_hours"] = {**hours, "objectives": _with_subjects(hours, change)}
    made["events"] = change(facts.get("events") or ())
    if facts.get("restated"):
        made["restated"] = change(facts["restated"])
    if facts.get("trends"):
        trends = facts["trends"]
        made["trends"] = {
            **trends,
            "objectives": _with_subjects(trends, change),
            "drains": change(trends.get("drains") or ()),
        }
    for section, key in LABELLED:
        if (made.get(section) or {}).get(key):
            made[section] = {**made[section], key: change(made[section][key])}
    return made


def _with_subjects(
    told: Mapping[str, Any], change: Callable[[Sequence[Row]], list[Row]]
) -> list[Row]:
    return [
        {**one, "subjects": change(one.get("subjects") or ())}
        for one in told.get("objectives") or ()
    ]


def only_of(facts: Mapping[str, Any], keep: Callable[[Mapping[str, Any]], bool]) -> Facts:
    """The facts with those rows of subjects alone that are to be kept."""
    return _changed(facts, lambda rows: [row for row in rows if keep(row)])


def accounts(facts: Mapping[str, Any], prices: Prices | None) -> list[Row]:
    """What throttling and tiered storage came to, by owner; nobody's last.

    Sums are of what is known. How many clients and topics they leave out for that is said beside.
    """
    told: defaultdict[Owner, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for kind, path in _COUNTED.items():
        for row in value_at(facts, path) or ():
            told[_owner(row)][kind].append(row)
    looked = {kind: not nothing_seen(facts, families) for kind, families in _LOOKED.items()}
    owners = sorted(told, key=lambda owner: (owner == NOBODY, *map(str, owner)))
    return [_account(owner, told[owner], looked, prices) for owner in owners]


def _owner(row: Mapping[str, Any]) -> Owner:
    return Owner(*(row.get(key) for key in LABELS))


def _account(
    owner: Owner, told: Mapping[str, list[Row]], looked: Mapping[str, bool], prices: Prices | None
) -> Row:
    clients, tiered, groups = (told.get(key, []) for key in ("client", "tiered", "group"))
    sums = {key: _sum(clients, key, looked=looked["client"]) for key in _THROTTLED}
    sums |= {key: _sum(tiered, key, looked=looked["tiered"]) for key in _TIERED}
    sums |= {key: _sum(groups, key, looked=looked["group"]) for key in _LOST}
    return {
        **owner._asdict(),
        "topics": _many(told.get("topic", []), "topic"),
        "clients": len({(row.get("user"), row.get("client_id")) for row in clients}),
        "groups": _many(groups, "group"),
        **sums,
        "not_known": {
            "clients": sum(row.get("throttled_us") is None for row in clients),
            "topics": sum(any(row.get(key) is None for key in _TIERED) for row in tiered),
            "groups": sum(row.get("offsets_low") is None for row in groups),
        },
        "unknown_us": _unknown(clients, tiered, looked),
        "cost": None if prices is None else _cost(sums, prices),
    }


def _cost(sums: Mapping[str, float | None], prices: Prices) -> float | None:
    """What is known to have been paid for; None where nothing is known."""
    if all(sums[key] is None for key in _TIERED):
        return None
    return prices.cost(**{key: sums[key] or 0.0 for key in _TIERED})


def _sum(rows: Sequence[Row], key: str, *, looked: bool) -> float | None:
    """The sum of what is known; zero where somebody looked and nobody is told of, else None."""
    known = [row[key] for row in rows if row.get(key) is not None]
    return sum(known) if known or (looked and not rows) else None


def _unknown(
    clients: Sequence[Row], tiered: Sequence[Row], looked: Mapping[str, bool]
) -> int | None:
    """Unknown time of clients and topics; None where that of one of them is not known itself."""
    times = [row.get("unknown_us") for row in (*clients, *tiered)]
    told = {"client": clients, "tiered": tiered}
    unread = any(not rows and not looked[kind] for kind, rows in told.items())
    return None if unread or None in times else sum(us for us in times if us is not None)


def _many(rows: Iterable[Row], key: str) -> int:
    return len({row.get(key) for row in rows})
