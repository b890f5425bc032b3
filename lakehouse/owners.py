"""Who owns what: a file that maps topics, clients and groups to an owner, a team and a tier.

```yaml
owners:
  - team: payments
    owner: Ada Example
    tier: gold
    topics: ["payments.*", "ledger"]
    clients: ["billing-*"]
    users: ["svc-payments"]
    groups: ["payments-*"]
```

Patterns are those of a shell (``*``, ``?``, ``[abc]``) and hold for whole names, letters as they
are. The first entry that matches counts, so what is special stands above what is general. Under
``prices`` stands what tiered storage costs, in money.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from lakehouse.errors import OwnersError

if TYPE_CHECKING:
    from pathlib import Path

LABELS: Final = ("team", "owner", "tier")
_KINDS: Final = {"topics": "topic", "clients": "client_id", "users": "user", "groups": "group"}


_GIB: Final = 1024.0**3
MONTH_SECONDS: Final = 30 * 86_400
_PRICES: Final = ("stored_gib_month", "uploaded_gib", "read_gib")


class Owner(NamedTuple):
    """Who owns something; None where the file does not say."""

    team: str | None = None
    owner: str | None = None
    tier: str | None = None


NOBODY: Final = Owner()


@dataclass(frozen=True, slots=True)
class Rule:
    """An entry of the file: what an owner has, by the key of the name."""

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
        stored_gib_month: A GiB that lies in the remote store for a month.
        uploaded_gib: A GiB that is uploaded.
        read_gib: A GiB that is read from the remote store.
    """

    currency: str
    stored_gib_month: float = 0.0
    uploaded_gib: float = 0.0
    read_gib: float = 0.0

    @classmethod
    def of(cls, given: object) -> Prices:
        """The prices that a file gives.

        Raises:
            ValueError: One is no price.
        """
        if not isinstance(given, Mapping) or not isinstance(given.get("currency"), str):
            raise ValueError("prices has a currency, such as EUR")  # noqa: TRY004 - one line
        _want_keys("prices", given, ("currency", *_PRICES))
        return cls(
            given["currency"], **{key: _price(key, given[key]) for key in _PRICES if key in given}
        )

    def cost(
        self, *, stored_byte_seconds: float, uploaded_bytes: float, read_bytes: float
    ) -> float:
        """What that costs, in the currency."""
        stored = stored_byte_seconds / _GIB / MONTH_SECONDS * self.stored_gib_month
        moved = uploaded_bytes * self.uploaded_gib + read_bytes * self.read_gib
        return stored + moved / _GIB


def _price(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"prices: {key} is a price of 0 or more")
    return float(value)


@dataclass(frozen=True, slots=True)
class Owners:
    """All entries, in the order of the file, and what tiered storage costs."""

    rules: tuple[Rule, ...]
    prices: Prices | None = None
    _known: dict[tuple[tuple[str, str], ...], Owner] = field(
        default_factory=dict, compare=False, repr=False
    )

    def of(self, row: Mapping[str, Any]) -> Owner:
        """Whose a row of the facts is: its group's owner, else its client's, else its topic's."""
        for keys in (("group",), ("client_id", "user"), ("topic",)):
            names = {key: str(row[key]) for key in keys if row.get(key) is not None}
            if names:
                return self._owner(names)
        return NOBODY

    def _owner(self, names: Mapping[str, str]) -> Owner:
        asked = tuple(names.items())
        if asked not in self._known:
            found = (rule.owner for rule in self.rules if rule.matches(names))
            self._known[asked] = next(found, NOBODY)
        return self._known[asked]


def load(path: Path) -> Owners:
    """The owners that a file names.

    Raises:
        OwnersError: It cannot be read, or says something that is not understood.
    """
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        document = None if node is None else yaml.SafeLoader("").construct_document(node)
    except OSError as error:
        raise OwnersError(f"{path}: {error.strerror}; name a file of owners") from error
    except (yaml.YAMLError, ValueError) as error:
        raise OwnersError(f"{path}: no YAML: {' '.join(str(error).split())}") from error
    try:
        return _owners(document, _lines(node))
    except ValueError as error:
        raise OwnersError(f"{path}: {error}; see docs/report-owners.md") from error


def _lines(node: yaml.Node | None) -> list[int]:
    """In which line each entry begins."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    entries = next((value for key, value in pairs if key.value == "owners"), None)
    if not isinstance(entries, yaml.SequenceNode):
        return []
    return [entry.start_mark.line + 1 for entry in entries.value]


def _owners(document: object, lines: list[int]) -> Owners:
    if not isinstance(document, dict) or not isinstance(document.get("owners"), list):
        raise ValueError("there is no list under owners")  # noqa: TRY004 - told as one line
    _want_keys("the file", document, ("owners", "prices"))
    rules = []
    for line, entry in zip(lines, document["owners"], strict=True):
        try:
            rules.append(_rule(entry))
        except ValueError as error:
            raise ValueError(f"line {line}: {error}") from error
    prices = document.get("prices")
    return Owners(tuple(rules), None if prices is None else Prices.of(prices))


def _rule(entry: object) -> Rule:
    if not isinstance(entry, dict):
        raise ValueError("an entry has keys such as team and topics")  # noqa: TRY004
    _want_keys("an entry", entry, (*LABELS, *_KINDS))
    labels = {key: _text(key, entry[key]) for key in LABELS if entry.get(key) is not None}
    if not labels:
        raise ValueError(f"an entry has one of {', '.join(LABELS)}")
    patterns = {name: _pattern(kind, entry[kind]) for kind, name in _KINDS.items() if kind in entry}
    if not patterns:
        raise ValueError(f"an entry has one of {', '.join(_KINDS)}")
    return Rule(Owner(**labels), patterns)


def _pattern(kind: str, globs: object) -> re.Pattern[str]:
    listed = [globs] if isinstance(globs, str) else globs
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise ValueError(f"{kind} is a pattern or a list of patterns, each in quotes")
    return re.compile("|".join(map(translate, listed)) or r"(?!)")


def _text(key: str, value: object) -> str:
    if isinstance(value, str | int | float) and str(value).strip():
        return str(value).strip()
    raise ValueError(f"{key} is a name")


def _want_keys(what: str, found: Mapping[Any, Any], allowed: tuple[str, ...]) -> None:
    unknown = [str(key) for key in found if key not in allowed]
    if unknown:
        raise ValueError(f"{what} has no {unknown[0]!r}, but {', '.join(allowed)}")
