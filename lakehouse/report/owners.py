"""Owners: a file that maps topics, clients, groups and sources to an owner, a team and a tier.

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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from lakehouse.errors import OwnersError
from lakehouse.tables import strict_yaml
from lakehouse.tables.strict_files import UnreadableFileError
from lakehouse.tables.typed_settings import WrongSettingError, convert, wording

LABELS: Final = ("team", "owner", "tier")
NAMES: Final = {"topics": "topic", "clients": "client_id", "users": "user", "groups": "group"}
"""Keys of patterns, and keys of the names that they match; a row with such a name gets labels."""

_PATTERNS: Final = {**NAMES, "sources": "source"}
"""All keys of patterns. The owner of a source owns only its coverage."""

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
        for keys in (("group",), ("client_id", "user"), ("topic",), ("source",)):
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


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the file."""

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
        labels = {key: str(label).strip() for key in LABELS if (label := getattr(self, key))}
        patterns = {
            name: pattern([globs] if isinstance(globs, str) else globs)
            for key, name in _PATTERNS.items()
            if (globs := getattr(self, key)) is not None
        }
        return Rule(Owner(**labels), patterns)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    owners: Annotated[
        tuple[Annotated[_Entry, Meta(extra=wording("labels and patterns"))], ...],
        Meta(extra=wording("a list of owners")),
    ]
    prices: Prices | None = None


def load(path: Path) -> Owners:
    """Return the owners in a file.

    Raises:
        OwnersError: It cannot be read, or is not a file of owners; with the key.
    """
    try:
        found = convert(strict_yaml.load_file(path) or {}, _File)
    except UnreadableFileError as error:
        raise OwnersError(error.advised("name a file of owners")) from None
    except WrongSettingError as error:
        raise OwnersError(f"{path}: {error}; see docs/report-owners.md") from None
    return Owners(tuple(one.rule() for one in found.owners), found.prices)


def pattern(globs: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches whatever one of some shell patterns matches."""
    return re.compile("|".join(map(translate, globs)) or r"(?!)")
