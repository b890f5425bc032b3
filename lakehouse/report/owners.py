"""Owners: a file that maps topics, clients, groups and sources to their owners; their accounts.

```yaml
owners:
  - team: payments
    owner: Ada Example
    tier: gold
    topics: ["payments.*", "ledger"]
    clients: ["billing-*"]
    users: ["svc-payments"]
    groups: ["payments-*"]
    sources: ["broker-*"]
```

Patterns are shell patterns (``*``, ``?``, ``[abc]``), match whole names and are case-sensitive.
The first entry that matches counts, so write special entries above general entries. ``prices`` are
the costs of storage.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from lakehouse.errors import OwnersError
from lakehouse.report.evidence import nothing_seen
from lakehouse.report.facts.fields import LABELS, OWNED, Bounds, Known, Means
from lakehouse.report.figures import Row, value_at
from lakehouse.tables import strict_yaml
from lakehouse.tables.strict_files import UnreadableFileError
from lakehouse.tables.typed_settings import WrongSettingError, convert, wording

NAMES: Final = {"topics": "topic", "clients": "client_id", "users": "user", "groups": "group"}
"""Keys of patterns, and keys of the names that they match; a row with such a name gets labels."""

_PATTERNS: Final = {**NAMES, "sources": "source"}
"""All keys of patterns. The owner of a source owns only its coverage."""

ORDER: Final = (("group",), ("client_id", "user"), ("topic",), ("source",))
"""Names of a row; the first of these that it has decides its owner."""

GIB: Final = 1024.0**3
MONTH_SECONDS: Final = 30 * 86_400


class Owner(NamedTuple):
    """The labels of an owner; None if the file has none."""

    team: str | None = None
    owner: str | None = None
    tier: str | None = None


NO_OWNER: Final = Owner()


def shown(row: Mapping[str, Any]) -> str | None:
    """Return the shown owner of a row with labels: the team, otherwise the owner."""
    found = row.get("team") or row.get("owner")
    return None if found is None else str(found)


@dataclass(frozen=True, slots=True)
class Rule:
    """An entry of the file: an owner, and patterns by the key of the name that they match."""

    owner: Owner
    patterns: Mapping[str, re.Pattern[str]]

    def matches(self, names: Mapping[str, str]) -> bool:
        """Return True if a pattern matches one of the names."""
        return any(
            key in self.patterns and self.patterns[key].fullmatch(name)
            for key, name in names.items()
        )


_Price = Annotated[float, Meta(ge=0, le=1e12, extra=wording("a price of 0 or more"))]


class Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices in one currency; a month has 30 days.

    Attributes:
        currency: Its name, such as EUR.
        stored_gib_month: A GiB in remote storage for a month.
        uploaded_gib: A GiB that is uploaded.
        read_gib: A GiB that is read from remote storage.
        disk_gib_month: A GiB on brokers' disks for a month, of each replica.
    """

    currency: Annotated[str, Meta(min_length=1, extra=wording("a currency, such as EUR"))]
    stored_gib_month: _Price = 0.0
    uploaded_gib: _Price = 0.0
    read_gib: _Price = 0.0
    disk_gib_month: _Price = 0.0

    def cost(self, used: Mapping[str, float]) -> float:
        """Return the cost of an account's sums, in the currency."""
        stored = used["stored_byte_seconds"] * self.stored_gib_month
        kept = (stored + used["disk_byte_seconds"] * self.disk_gib_month) / MONTH_SECONDS
        moved = used["uploaded_bytes"] * self.uploaded_gib + used["read_bytes"] * self.read_gib
        return (kept + moved) / GIB


@dataclass(frozen=True, slots=True)
class Owners:
    """All entries, in the order of the file, and the costs of storage."""

    rules: tuple[Rule, ...]
    prices: Prices | None = None
    _cache: dict[tuple[tuple[str, str], ...], Owner] = field(
        default_factory=dict, compare=False, repr=False
    )

    def labels(self, row: Mapping[str, Any]) -> dict[str, str | None]:
        """Return the owner of a row as keys for it."""
        return self.of(row)._asdict()

    def of(self, row: Mapping[str, Any]) -> Owner:
        """Return the owner of a row of the facts: of its group, client, topic or source."""
        for keys in ORDER:
            names = {key: str(row[key]) for key in keys if row.get(key) is not None}
            if names:
                break
        # A row without any of these names has no owner.
        key = tuple(names.items())
        if key not in self._cache:
            matching = (rule.owner for rule in self.rules if rule.matches(names))
            self._cache[key] = next(matching, NO_OWNER)
        return self._cache[key]


NO_OWNERS: Final = Owners(())


_Label = Annotated[str | int | float | None, Meta(extra=wording("a name"))]
_Glob = Annotated[str, Meta(extra=wording("a pattern in quotes"))]
_Globs = Annotated[
    _Glob | tuple[_Glob, ...] | None,
    Meta(extra=wording("a pattern or a list of patterns, in quotes")),
]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the file: an owner, and patterns of names.

    Attributes:
        team: Team, the shown owner.
        owner: Person.
        tier: Service class, such as gold.
        topics: Patterns of topic names.
        clients: Patterns of client IDs.
        users: Patterns of users.
        groups: Patterns of group names.
        sources: Patterns of sources, such as `broker-*`, for their coverage.
    """

    team: _Label = None
    owner: _Label = None
    tier: _Label = None
    topics: _Globs = None
    clients: _Globs = None
    users: _Globs = None
    groups: _Globs = None
    sources: _Globs = None

    def __post_init__(self) -> None:
        """Check that it has a label and a pattern.

        Raises:
            ValueError: It lacks one.
        """
        for keys in (LABELS, tuple(_PATTERNS)):
            if all(getattr(self, key) in (None, "") for key in keys):
                raise ValueError(f"an entry has one of {', '.join(keys)}")

    def rule(self) -> Rule:
        """Return the owner and the patterns by the key of the name that they match."""
        labels = {key: str(label).strip() for key in LABELS if (label := getattr(self, key))}
        patterns = {
            name: pattern([globs] if isinstance(globs, str) else globs)
            for key, name in _PATTERNS.items()
            if (globs := getattr(self, key)) is not None
        }
        return Rule(Owner(**labels), patterns)


_ONE_OF_EACH: Final = {
    "allOf": [{"anyOf": [{"required": [key]} for key in keys]} for keys in (LABELS, _PATTERNS)]
}
"""JSON Schema of ``Entry.__post_init__``."""


class OwnersFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file.

    Attributes:
        owners: Owners. The first entry that matches counts.
        prices: Costs of storage, for the accounts of owners.
    """

    owners: Annotated[
        tuple[
            Annotated[
                Entry,
                Meta(extra=wording("labels and patterns"), extra_json_schema=_ONE_OF_EACH),
            ],
            ...,
        ],
        Meta(extra=wording("a list of owners")),
    ]
    prices: Prices | None = None


def load(path: Path) -> Owners:
    """Return the owners in a file.

    Raises:
        OwnersError: It cannot be read, or is not a file of owners; with the key.
    """
    try:
        found = convert(strict_yaml.load_file(path) or {}, OwnersFile)
    except UnreadableFileError as error:
        raise OwnersError(error.advised("Specify an owners file")) from None
    except WrongSettingError as error:
        raise OwnersError(f"{path}: {error}. See docs/weekly.md#owners") from None
    return Owners(tuple(one.rule() for one in found.owners), found.prices)


def pattern(globs: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches whatever one of some shell patterns matches."""
    return re.compile("|".join(map(translate, globs)) or r"(?!)")


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


def accounts(facts: Mapping[str, Any], prices: Prices | None) -> list[Account]:
    """Return an account for each owner of rows; rows without an owner are last."""
    rows: dict[Owner, defaultdict[str, list[Row]]] = {}
    for kind, (path, _) in _COUNTED.items():
        for row in value_at(facts, path) or ():
            owner = Owner(*map(row.get, LABELS))
            rows.setdefault(owner, defaultdict(list))[kind].append(row)
    was_read = {kind: not nothing_seen(facts, one) for kind, (_, one) in _COUNTED.items()}
    owners = sorted(rows, key=lambda owner: (owner == NO_OWNER, *map(str, owner)))
    return [_account(facts, owner, rows[owner], was_read, prices) for owner in owners]


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
    facts: Mapping[str, Any], owner: Owner, rows: Mapping[str, list[Row]],
    was_read: Mapping[str, bool], prices: Prices | None,
) -> Account:  # fmt: skip
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
        highest_used=_highest_used(facts, owner),
        total_used=_total_used(facts, owner.team),
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


def with_owners(objectives: Iterable[Row]) -> list[Row]:
    """Return objectives with the ``owner`` of their worst subject."""
    return [{**one, "owner": shown((one["subjects"] or [{}])[0])} for one in objectives]


def with_rows(value: Any, change: Callable[[dict[str, Any]], Row | None]) -> Any:
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
