"""Planned maintenance from a YAML file, and the exclusion of its windows from rows of gold.

Figures without maintenance are reported next to the figures with it. Gold has whole windows, and
the position of bad time within a window is not known, so maintenance counts for the windows that it
covers completely.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple

from lakehouse.core.periods import Period, Span, iso, micros
from lakehouse.core.subjects import SUBJECT, SUBJECT_COLUMNS, Subject
from lakehouse.core.yaml_nodes import Node, read
from lakehouse.engines.relation import Relation, is_one_of, select
from lakehouse.errors import MaintenanceFileError

LISTS: Final = {
    "clusters": "cluster", "topics": "topic", "users": "user", "clients": "client_id",
    "groups": "group", "sources": "source",
}  # fmt: skip
"""Keys of patterns, and the columns of the names that these match."""
REQUIRED: Final = ("start", "end", "reason")
"""Keys that each maintenance has."""


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A span in which bad time was planned.

    Attributes:
        start_us: Microseconds since the epoch.
        end_us: The first instant after it.
        reason: The planned work.
        names: Patterns of clusters and of subjects, by column; without a pattern of subjects the
            maintenance concerns all subjects of its clusters.
        objectives: Patterns of the names of objectives. Only corrections have other patterns.
    """

    start_us: int
    end_us: int
    reason: str
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    objectives: tuple[str, ...] = ("*",)

    def concerns(self, subject: Subject) -> bool:
        """Return True if it concerns a subject."""
        if not matches(subject.cluster, self.names.get("cluster", ("*",))):
            return False
        columns = self.subject_columns
        return not columns or any(matches(subject.names[c], self.names[c]) for c in columns)

    def is_on(self, objective: str) -> bool:
        """Return True if it concerns an objective of this name."""
        return matches(objective, self.objectives)

    def overlaps(self, period: Period) -> bool:
        """Return True if it overlaps a period."""
        return self.start_us < micros(period.end) and self.end_us > micros(period.start)

    @property
    def subject_columns(self) -> tuple[str, ...]:
        """The columns of a subject for which it has patterns."""
        return tuple(name for name in self.names if name != "cluster")

    def windows(self, window_us: int) -> Span:
        """Return the span of its whole windows; empty or negative if there are none."""
        return -(-self.start_us // window_us) * window_us, self.end_us // window_us * window_us

    def to_json(self) -> dict[str, Any]:
        """Return the maintenance as JSON, with the keys of its file."""
        return {
            "start": iso(self.start_us),
            "end": iso(self.end_us),
            "reason": self.reason,
            **{key: list(self.names[name]) for key, name in LISTS.items() if name in self.names},
        }


def of(excluded: Iterable[Maintenance], objective: str) -> list[Maintenance]:
    """Return the excluded time that concerns an objective of this name."""
    return [one for one in excluded if one.is_on(objective)]


def load(path: Path) -> tuple[Maintenance, ...]:
    """Return all maintenance of a file, by its start.

    Raises:
        MaintenanceFileError: The file cannot be read or is malformed; with line and column.
    """
    planned = [Maintenance(*span(item)) for item in items(path, "maintenance", REQUIRED)]
    return tuple(sorted(planned, key=lambda one: (one.start_us, one.end_us, one.reason)))


def items(path: Path, key: str, required: Sequence[str]) -> list[Node]:
    """Return the items of the list that is a file's only key.

    Args:
        path: The file.
        key: The key.
        required: The keys that an item must have, for the error.

    Raises:
        MaintenanceFileError: The file cannot be read or is malformed; with line and column.
    """
    found: list[Node] = []
    for node, findings in read(path, MaintenanceFileError, "name a file that can be read"):
        if findings:
            raise MaintenanceFileError(str(findings[0]))
        listed = node.entries.get(key)
        if listed is None or listed.tag != "seq" or len(node.entries) > 1:
            wanted = f"{', '.join(required[:-1])} and {required[-1]}"
            raise error(node, f"write one key, {key}, with a list of {wanted}")
        found += listed.items
    return found


def span(
    node: Node, required: Sequence[str] = REQUIRED, more: Sequence[str] = ()
) -> tuple[int, int, str, Mapping[str, tuple[str, ...]]]:
    """Return the span of an item, its reason and its patterns.

    Args:
        node: The item.
        required: The keys that it must have, with a text.
        more: Further keys that it may have.

    Raises:
        MaintenanceFileError: The item is malformed; with line and column.
    """
    if node.tag != "map":
        raise error(node, f"write {', '.join(required[:-1])} and {required[-1]}")
    keys = (*required, *more, *LISTS)
    for key in node.entries:
        if key not in keys:
            raise error(node.keys[key], f"unknown key; write one of {', '.join(keys)}")
    for key in required:
        value = node.get(key)
        if value is None or not value.text.strip():
            raise error(node, f"{key} is missing")
    start, end = (_instant(node.entries[key]) for key in ("start", "end"))
    if end <= start:
        raise error(node.entries["end"], "the end is not after the start")
    names = {
        name: patterns(node.entries[key]) for key, name in LISTS.items() if key in node.entries
    }
    return start, end, node.entries["reason"].text, names


def _instant(node: Node) -> int:
    try:
        moment = dt.datetime.fromisoformat(node.text)
    except ValueError as caught:
        raise error(node, "write an instant such as 2026-11-17T22:00:00Z") from caught
    if moment.tzinfo is None:
        raise error(node, "add an offset: 2026-11-17T22:00:00Z, or +01:00 at its end")
    return micros(moment)


def patterns(node: Node) -> tuple[str, ...]:
    """Return a list of patterns.

    Raises:
        MaintenanceFileError: The node is not such a list; with line and column.
    """
    if node.tag != "seq" or not node.items or any(item.is_nested for item in node.items):
        raise error(node, 'write a list of patterns, such as ["orders-*"]')
    return tuple(item.text for item in node.items)


def matches(name: str | None, globs: Iterable[str]) -> bool:
    """Return True if a name matches one of some patterns."""
    return name is not None and any(fnmatchcase(name, glob) for glob in globs)


def error(node: Node, message: str) -> MaintenanceFileError:
    """Return an error at a place of a file."""
    return MaintenanceFileError(str(node.says("invalid", message)))


BEFORE: Final = "before_us"
"""The column with the part of a row's upper bound that may be before its window."""

_COLUMNS: Final = dict(zip(SUBJECT, SUBJECT_COLUMNS, strict=True)) | {"cluster": "cluster"}
"""Columns of gold, by the names that patterns are of."""


class Exclusions(NamedTuple):
    """Excluded time, of maintenance and corrections, whose windows do not count.

    Attributes:
        planned: That time.
        subjects: All subjects that the rows are of; rows have their names.
        window_us: Length of gold's finest windows.
    """

    planned: Sequence[Maintenance]
    subjects: Sequence[Subject]
    window_us: int

    def condition(self, window: str = "r.window_start") -> str:
        """Return the SQL condition that a row ``r`` is in maintenance of its subject."""
        return " OR ".join(self._condition(one, window) for one in self.planned) or "false"

    def apply(
        self, rows: Relation, keys: Sequence[str], sums: Sequence[str], since: int
    ) -> Relation:
        """Return the rows outside maintenance, with the bad time that may be just before it.

        Bad time that is first observed in the first window of maintenance may have started before
        it. No other row covers that, so the window before gets an additional row. Only its upper
        bound is not zero.

        Args:
            rows: With ``window_start``, ``keys``, ``sums`` and ``BEFORE``.
            keys: Columns that a row keeps.
            sums: Columns with times; the upper bound is the last.
            since: Start of the first window that counts, microseconds.
        """
        if not self.planned:
            return rows
        before = f"r.window_start - {self.window_us}"
        kept = ", ".join(f"r.{name} AS {name}" for name in (*keys, *sums, BEFORE))
        values = {name: f"r.{name}" for name in keys} | dict.fromkeys((*sums, BEFORE), "0")
        values[sums[-1]] = f"r.{BEFORE}"
        moved = ", ".join(f"{value} AS {name}" for name, value in values.items())
        return select(
            f"SELECT r.window_start, {kept} FROM {{rows}} r WHERE NOT ({self.condition()}) "
            f"UNION ALL SELECT {before} AS window_start, {moved} FROM {{rows}} r "
            f"WHERE ({self.condition()}) AND NOT ({self.condition(before)}) AND r.{BEFORE} > 0 "
            f"AND {before} >= {since}",
            rows=rows,
        )

    def _condition(self, planned: Maintenance, window: str) -> str:
        start, end = planned.windows(self.window_us)
        parts = [f"{window} >= {start} AND {window} < {end}"]
        if "cluster" in planned.names:
            parts.append(self._has_name("cluster", planned))
        if keys := planned.subject_columns:
            named = (f"coalesce({self._has_name(key, planned)}, false)" for key in keys)
            parts.append(f"({' OR '.join(named)})")
        return f"({' AND '.join(parts)})"

    def _has_name(self, key: str, planned: Maintenance) -> str:
        """Return the SQL condition that a row has a name that a pattern of this key matches."""
        names = {{"cluster": one.cluster, **one.names}[key] for one in self.subjects}
        found = (str(name) for name in names if matches(name, planned.names[key]))
        return is_one_of(f"r.{_COLUMNS[key]}", sorted(found))
