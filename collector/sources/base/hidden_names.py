"""Names that must not leave the host: the agent drops their series or hashes the names.

The hash is the first 16 hexadecimal digits of HMAC-SHA-256 over the name's UTF-8. Every agent with
the same key produces the same hash, so that the series of one topic have one name in the lake.
"""

import hmac
import re
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from collector.errors import ConfigError, SourceRefusedError
from collector.model import Answer, Commit, Offsets, Partition, Reading, Series
from collector.settings import Secret, Section
from lakehouse.tables import OTHER

_Named = TypeVar("_Named", Series, Commit, Partition)
_Value = TypeVar("_Value")

_KAFKAS_OWN: Final = (
    "__cluster_metadata",
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__remote_log_metadata",
)
_SHORTEST_KEY: Final = 16
_MOST_KNOWN: Final = 200_000
_IN_ERRORS: Final = re.compile(r'\b(topic|client-id|user|group)=(?:"(?:[^"\\]|\\.)*"|[^,\s]*)')


class NameRule(Section, frozen=True):
    """Rules for one kind of name. Patterns have ``*``, ``?`` and ``[abc]``.

    Attributes:
        hash: Whether a keyed hash is recorded instead of the name.
        include: Names whose series are recorded.
        exclude: Exceptions from ``include``.
    """

    hash: bool = False
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()


class Names(Section, frozen=True):
    """Names that must not leave the host. All agents of a cluster need the same rules and key.

    Attributes:
        topics: Topics.
        groups: Consumer groups.
        users: Users.
        client_ids: Client ids.
        key_file: Key for ``hash``: at least 16 characters on the first line.
    """

    topics: NameRule = msgspec.field(default_factory=NameRule)
    groups: NameRule = msgspec.field(default_factory=NameRule)
    users: NameRule = msgspec.field(default_factory=NameRule)
    client_ids: NameRule = msgspec.field(default_factory=NameRule)
    key_file: Path | None = None


class HiddenNames:
    """Applies the rules to the answers of a source.

    Args:
        names: Rules.

    Raises:
        ConfigError: A rule has ``hash: true``, and the key cannot be read or is too short.
    """

    def __init__(self, names: Names) -> None:
        self._rules = {
            "topic": names.topics,
            "group": names.groups,
            "user": names.users,
            "client_id": names.client_ids,
        }
        hashed = any(rule.hash for rule in self._rules.values())
        self._key = _key(Secret(names.key_file)) if hashed else b""
        self._name = lru_cache(_MOST_KNOWN)(self._applied)
        self._sets: WeakKeyDictionary[frozenset[Series], frozenset[Series]] = WeakKeyDictionary()

    def answer(self, answer: Answer) -> Answer:
        """Return the answer without the names that must not leave the host."""
        subjects = [(self._renamed(one.subject), one) for one in answer.notices]
        return replace(
            answer.mapped(self._readings),
            offsets=answer.offsets and self._offsets(answer.offsets),
            notices=tuple(one._replace(subject=of) for of, one in subjects if of is not None),
        )

    def error(self, text: str) -> str:
        """Return an error text without the names in its object names."""
        return _IN_ERRORS.sub(r"\1=***", text)

    def _readings(self, readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
        return tuple(
            replace(one, zeros=self._zeros(one.zeros), values=self._by_name(one.values))
            for one in readings
        )

    def _zeros(self, zeros: frozenset[Series]) -> frozenset[Series]:
        found = self._sets.get(zeros)  # a source returns the same object while it does not change
        if found is None:
            found = self._sets[zeros] = frozenset(self._by_name(dict.fromkeys(zeros)))
        return found

    def _offsets(self, offsets: Offsets) -> Offsets:
        ids = {Partition(name, 0): id_ for name, id_ in offsets.topic_ids.items()}
        groups = self._by_name({Series("", group=name): None for name in offsets.silent_groups})
        return Offsets(
            self._by_name(offsets.commits_before),
            self._by_name(offsets.log_starts),
            self._by_name(offsets.commits_after),
            frozenset(self._by_name(dict.fromkeys(offsets.moved))),
            {one.topic: id_ for one, id_ in self._by_name(ids).items()},
            frozenset(self._by_name(dict.fromkeys(offsets.unanswered))),
            frozenset(one.group for one in groups if one.group is not None),
            self._by_name(offsets.uncertain),
        )

    def _by_name(self, values: Mapping[_Named, _Value]) -> dict[_Named, _Value]:
        named = ((self._renamed(one), value) for one, value in values.items())
        return {one: value for one, value in named if one is not None}

    def _renamed(self, one: _Named) -> _Named | None:
        """Return the subject with hashed names. None: a name must not leave the host."""
        names: dict[str, Any] = {
            kind: self._name(kind, name)
            for kind in self._rules.keys() & one._fields
            if (name := getattr(one, kind)) is not None
        }
        return None if None in names.values() else one._replace(**names)

    def _applied(self, kind: str, name: str) -> str | None:
        rule = self._rules[kind]
        if name in _KAFKAS_OWN or name.startswith(OTHER):
            return name
        included = any(fnmatchcase(name, pattern) for pattern in rule.include)
        if not included or any(fnmatchcase(name, pattern) for pattern in rule.exclude):
            return None
        if not rule.hash:
            return name
        return hmac.new(self._key, name.encode(), "sha256").hexdigest()[:16]


def _key(secret: Secret) -> bytes:
    where = "names.key_file"
    try:
        key = secret.read(where).encode()
    except SourceRefusedError as error:
        raise ConfigError(str(error)) from None
    if len(key) < _SHORTEST_KEY:
        raise ConfigError(
            f"{where}: the key has {len(key)} bytes; use {_SHORTEST_KEY} or more, because names can"
            " be guessed with a short key"
        )
    return key
