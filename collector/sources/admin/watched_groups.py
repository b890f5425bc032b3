"""Groups that count per topic (KIP-490).

The first place that has groups for a topic applies:

1. the topic's own setting ``non.consumed.offsets.groups``, which KIP-490 proposes. No Kafka release
   has it, but a broker can return it;
2. the lake's table ``control/watched_groups``, which the owners of topics change with SQL;
3. the agent's file: ``admin.groups``;
4. ``admin.groups_default``.

Rows of the table come from others, so their number and lengths are limited, and an invalid row only
affects itself.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import translate
from functools import cache, lru_cache
from typing import Final, NamedTuple

import msgspec

from lakehouse.tables import watched_groups_fault

TOPIC_SETTING: Final = "non.consumed.offsets.groups"
"""Setting of a topic: IDs of groups, separated by commas. Empty: not set."""

MOST_ROWS: Final = 10_000
"""Maximum rows of the table. An agent rejects a larger table."""
_MOST_PATTERNS: Final = 200  # each is compared with each topic
_LONGEST: Final = 1_000  # text of an event
_WILD: Final = re.compile(r"[*?\[]")
_KNOWN: Final = 100_000  # cached answers


class Row(NamedTuple):
    """A row of control/watched_groups.

    Attributes:
        topic: Name or pattern of a topic.
        groups: Names and patterns of groups; ``!`` excludes.
        set_at_us: Time of the row (µs). The newest row of a topic applies.
    """

    topic: str | None
    groups: Sequence[str | None] | None
    set_at_us: int | None = None


class Owners(msgspec.Struct, frozen=True):
    """Rules of the topics' owners at the last successful read of the table.

    Attributes:
        rules: Groups by name or pattern of a topic, in the order in which they apply: names first,
            then patterns, the longest first.
        rejected: Reasons by the topic of an invalid row.
        failure: Reason why the last read failed. The rules are older then. None: it succeeded.
    """

    rules: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    rejected: dict[str, str] = msgspec.field(default_factory=dict)
    failure: str | None = None

    def unmatched(self, topics: Collection[str]) -> dict[str, str]:
        """Return the reason by topic of each rule that does not match any of these topics."""
        names = [rule for rule in self.rules if not _WILD.search(rule)]
        patterns = {rule: _Names([rule]) for rule in self.rules if _WILD.search(rule)}
        absent = [name for name in names if name not in topics]
        absent += [rule for rule, one in patterns.items() if not any(t in one for t in topics)]
        return dict.fromkeys(absent, "the cluster does not have such a topic")


def owners_of(rows: Iterable[Row]) -> Owners:
    """Return the rules of the table's rows. An invalid row is rejected with its reason."""
    newest: dict[str, Row] = {}
    rejected: dict[str, str] = {}
    for row in sorted(rows, key=_age):
        topic, why = row.topic or "", watched_groups_fault(row.topic, row.groups)
        if why is not None:
            rejected[topic[:_LONGEST]] = why
        else:
            newest[topic] = row
    names = sorted(one for one in newest if not _WILD.search(one))
    patterns = sorted(newest.keys() - {*names}, key=lambda one: (-len(one), one))
    for one in patterns[_MOST_PATTERNS:]:
        rejected[one] = f"the table has more than {_MOST_PATTERNS} patterns"
    ordered = [*names, *patterns[:_MOST_PATTERNS]]
    return Owners({one: tuple(map(str, newest[one].groups or ())) for one in ordered}, rejected)


def _age(row: Row) -> tuple[int, str]:
    return (-1 if row.set_at_us is None else row.set_at_us, repr(row))


class WatchedGroups:
    """The newest rules of the topics' owners. One thread sets them, others read them."""

    def __init__(self, owners: Owners | None = None) -> None:
        self.owners = owners or Owners()


@cache
def shared() -> WatchedGroups:
    """Return the rules that the reader of the table and all Admin sources of a process share."""
    return WatchedGroups()


class GroupRules:
    """Groups that count per topic.

    Args:
        rules: Patterns of groups, by pattern of a topic; ``!`` excludes. The first pattern that
            matches a topic applies.
        owners: Rules of the topics' owners. They have priority over ``rules``.
        default: Whether groups count in topics without a rule.
    """

    def __init__(
        self,
        rules: Mapping[str, Sequence[str]] | None = None,
        owners: Owners | None = None,
        *,
        default: bool = True,
    ) -> None:
        self.owners, self._default = owners or Owners(), default
        self._file = rules or {}
        owned = self.owners.rules.items()
        self._by_name = {one: groups for one, groups in owned if not _WILD.search(one)}
        patterns = [pair for pair in owned if pair[0] not in self._by_name]
        every = (*patterns, *self._file.items())
        self._patterns = [(_Names([one]), tuple(groups)) for one, groups in every]
        self._rule = lru_cache(maxsize=_KNOWN)(self._rule_of)
        self._made = lru_cache(maxsize=MOST_ROWS)(_Rule)
        self.counts = lru_cache(maxsize=_KNOWN)(self._counts)

    def renewed(self, owners: Owners) -> "GroupRules":
        """Return these rules with other rules of the owners."""
        return (
            self if owners is self.owners else GroupRules(self._file, owners, default=self._default)
        )

    def _counts(self, group: str, topic: str, own: str = "") -> bool:
        """Return True if a group counts in a topic.

        Args:
            group: ID of the group.
            topic: Name of the topic.
            own: The topic's own setting ``TOPIC_SETTING``.
        """
        names = {name for part in own.split(",") if (name := part.strip())}
        if names:
            return group in names
        rule = self._rule(topic)
        return self._default if rule is None else rule.has(group)

    def _rule_of(self, topic: str) -> "_Rule | None":
        groups = self._by_name.get(topic)
        if groups is None:
            groups = next((groups for names, groups in self._patterns if topic in names), None)
        return None if groups is None else self._made(groups)


class _Names:
    """Names, and patterns with ``*``, ``?`` and ``[abc]``, compiled once."""

    def __init__(self, texts: Iterable[str]) -> None:
        every = [*texts]
        self._names = frozenset(every)
        self._patterns = [re.compile(translate(one)) for one in every if _WILD.search(one)]

    def __contains__(self, name: str) -> bool:
        return name in self._names or any(one.match(name) for one in self._patterns)


class _Rule:
    """Groups of a topic. A rule that only excludes groups includes all others."""

    def __init__(self, groups: tuple[str, ...]) -> None:
        wanted = [one for one in groups if not one.startswith("!")]
        self._wanted = _Names(wanted or (["*"] if groups else []))
        self._unwanted = _Names(one[1:] for one in groups if one.startswith("!"))

    def has(self, group: str) -> bool:
        return group in self._wanted and group not in self._unwanted
