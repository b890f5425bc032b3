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

Patterns are those of a shell (``*``, ``?``, ``[abc]``), match whole names and are case-sensitive.
The first entry that matches counts, so special entries stand above general ones. ``prices`` says
what storage costs.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path
from typing import Any, Final, NamedTuple

from lakehouse.core.yaml_nodes import Node, number, read
from lakehouse.errors import OwnersError

LABELS: Final = ("team", "owner", "tier")
NAMES: Final = {"topics": "topic", "clients": "client_id", "users": "user", "groups": "group"}
"""Keys of patterns, and of the names that these match; a row with one of them gets labels."""

_PATTERNS: Final = {**NAMES, "sources": "source"}
"""With those of sources, which own nothing but their coverage."""

_GIB: Final = 1024.0**3
MONTH_SECONDS: Final = 30 * 86_400
_PRICES: Final = ("stored_gib_month", "uploaded_gib", "read_gib", "disk_gib_month")


class Owner(NamedTuple):
    """The labels of an owner; None where the file does not say."""

    team: str | None = None
    owner: str | None = None
    tier: str | None = None


NO_OWNER: Final = Owner()


def shown(row: Mapping[str, Any]) -> str | None:
    """Return what a report calls the owner of a row with labels: the team, or else the owner."""
    found = row.get("team") or row.get("owner")
    return None if found is None else str(found)


@dataclass(frozen=True, slots=True)
class Rule:
    """An entry of the file: an owner, and patterns by the key of the name that they match."""

    owner: Owner
    patterns: Mapping[str, re.Pattern[str]]

    def matches(self, names: Mapping[str, str]) -> bool:
        """Whether one of the names is the owner's."""
        return any(
            key in self.patterns and self.patterns[key].fullmatch(name)
            for key, name in names.items()
        )


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in one currency; a month has 30 days.

    Attributes:
        currency: Its name, such as EUR.
        stored_gib_month: A GiB in the remote store for a month.
        uploaded_gib: A GiB that is uploaded.
        read_gib: A GiB that is read from the remote store.
        disk_gib_month: A GiB on brokers' disks for a month, of each replica.
    """

    currency: str
    stored_gib_month: float = 0.0
    uploaded_gib: float = 0.0
    read_gib: float = 0.0
    disk_gib_month: float = 0.0

    def cost(self, used: Mapping[str, float]) -> float:
        """The cost of an account's sums, in the currency."""
        stored = used["stored_byte_seconds"] * self.stored_gib_month
        kept = (stored + used["disk_byte_seconds"] * self.disk_gib_month) / MONTH_SECONDS
        moved = used["uploaded_bytes"] * self.uploaded_gib + used["read_bytes"] * self.read_gib
        return (kept + moved) / _GIB


@dataclass(frozen=True, slots=True)
class Owners:
    """All entries, in the order of the file, and what storage costs."""

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
        # A row without any of these names has the owner of none.
        key = tuple(names.items())
        if key not in self._cache:
            matching = (rule.owner for rule in self.rules if rule.matches(names))
            self._cache[key] = next(matching, NO_OWNER)
        return self._cache[key]


NO_OWNERS: Final = Owners(())


def load(path: Path) -> Owners:
    """The owners that a file names.

    Raises:
        OwnersError: It cannot be read, or is no file of owners; with line and column.
    """
    roots = read(path, OwnersError, "name a file of owners")
    entries = roots[0][0].get("owners") if len(roots) == 1 else None
    if entries is None or entries.tag != "seq":
        raise OwnersError(f"{path}: there is no list under owners; see docs/report-owners.md")
    root, findings = roots[0]
    if findings:
        raise OwnersError(str(findings[0]))
    _check_keys(root, ("owners", "prices"))
    prices = root.get("prices")
    return Owners(tuple(map(_rule, entries.items)), None if prices is None else _prices(prices))


def _rule(entry: Node) -> Rule:
    _check_keys(entry, (*LABELS, *_PATTERNS))
    labels = {key: _label(entry.entries[key]) for key in entry.present(*LABELS)}
    if not labels:
        raise _error(entry, f"an entry has one of {', '.join(LABELS)}")
    patterns = {
        name: pattern(_globs(entry.entries[key]))
        for key, name in _PATTERNS.items()
        if entry.present(key)
    }
    if not patterns:
        raise _error(entry, f"an entry has one of {', '.join(_PATTERNS)}")
    return Rule(Owner(**labels), patterns)


def pattern(globs: Iterable[str]) -> re.Pattern[str]:
    """A pattern that any of some shell patterns matches."""
    return re.compile("|".join(map(translate, globs)) or r"(?!)")


def _globs(node: Node) -> list[str]:
    items = node.items if node.tag == "seq" else (node,)
    if any(item.tag != "str" for item in items):
        raise _error(node, "write a pattern or a list of patterns, each in quotes")
    return [item.text for item in items]


def _label(node: Node) -> str:
    if node.is_nested or not node.text.strip():
        raise _error(node, "write a name")
    return node.text.strip()


def _prices(node: Node) -> Prices:
    _check_keys(node, ("currency", *_PRICES))
    currency = node.get("currency")
    if currency is None or currency.tag != "str":
        raise _error(node, "write a currency, such as EUR")
    return Prices(
        currency.text, **{key: _price(node.entries[key]) for key in node.present(*_PRICES)}
    )


def _price(node: Node) -> float:
    price = number(node)
    if price is None or price < 0:
        raise _error(node, "write a price of 0 or more")
    return price


def _check_keys(node: Node, allowed: tuple[str, ...]) -> None:
    for name, key in node.keys.items():
        if name not in allowed:
            raise _error(key, f"no such key; write one of {', '.join(allowed)}")


def _error(node: Node, message: str) -> OwnersError:
    return OwnersError(f"{node.says('invalid', message)}; see docs/report-owners.md")
