"""Planned maintenance, from a YAML file: shown beside the figures, never taken out of them.

Gold tells of whole windows. So what counts as maintenance are the windows that lie wholly in it;
of one that is cut nobody knows on which side its bad time was.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse.errors import MaintenanceFileError
from lakehouse.existence import SUBJECT, Subject
from lakehouse.gold_rows import is_one_of
from lakehouse.openslo.nodes import MalformedError, Node, documents
from lakehouse.periods import iso, micros

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from lakehouse.gold_rows import GoldRows
    from lakehouse.periods import Period
    from lakehouse.rollup.engine import Relation
    from lakehouse.spans import Span

_LISTS: Final = {
    "clusters": "cluster", "topics": "topic", "users": "user", "clients": "client_id",
    "groups": "group", "sources": "source",
}  # fmt: skip
SPILL: Final = "spill_us"
"""The column that says how long before a row's window something may have begun, at most."""

_KEYS: Final = ("start", "end", "reason", *_LISTS)


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A span in which it was planned that something is bad.

    Attributes:
        start_us: Microseconds since the epoch.
        end_us: The same; it is not part of it any more.
        reason: What was done.
        names: Patterns of clusters, and of subjects by what they are called; without any of
            subjects it concerns all of its clusters.
    """

    start_us: int
    end_us: int
    reason: str
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def concerns(self, one: Subject) -> bool:
        """Whether a subject was touched by it."""
        if not matches(one.cluster, self.names.get("cluster", ("*",))):
            return False
        given = self.subject_names
        return not given or any(matches(one.names[key], self.names[key]) for key in given)

    def overlaps(self, period: Period) -> bool:
        """Whether some of it lies in a period."""
        return self.start_us < micros(period.end) and self.end_us > micros(period.start)

    @property
    def subject_names(self) -> tuple[str, ...]:
        """By what it chooses subjects, if at all."""
        return tuple(name for name in self.names if name != "cluster")

    def windows(self, window_us: int) -> Span:
        """What lies in it of whole windows; its start is not before its end if nothing does."""
        return -(-self.start_us // window_us) * window_us, self.end_us // window_us * window_us

    def told(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "start": iso(self.start_us),
            "end": iso(self.end_us),
            "reason": self.reason,
            **{key: list(self.names[name]) for key, name in _LISTS.items() if name in self.names},
        }


def load(path: Path) -> tuple[Maintenance, ...]:
    """All maintenance of a file, by its start.

    Raises:
        MaintenanceFileError: The file says something else; with line and column.
    """
    try:
        nodes = documents(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no text in UTF-8"
        raise MaintenanceFileError(f"{path}: {reason}; name a file that can be read") from error
    except MalformedError as error:
        raise MaintenanceFileError(str(error.finding)) from error
    found = []
    for node, wrong in nodes:
        if wrong:
            raise MaintenanceFileError(str(wrong[0]))
        items = node.entries.get("maintenance")
        if items is None or items.tag != "seq" or len(node.entries) > 1:
            raise _wrong(node, "write one key, maintenance, with a list of start, end and reason")
        found += [_read(item) for item in items.items]
    return tuple(sorted(found, key=lambda one: (one.start_us, one.end_us, one.reason)))


def _read(node: Node) -> Maintenance:
    if node.tag != "map":
        raise _wrong(node, "write start, end and reason")
    for key in node.entries:
        if key not in _KEYS:
            raise _wrong(node.keys[key], f"only {', '.join(_KEYS)} have a meaning here")
    for key in _KEYS[:3]:
        if key not in node.entries or not node.entries[key].text:
            raise _wrong(node, f"{key} is missing")
    start, end = (_instant(node.entries[key]) for key in ("start", "end"))
    if end <= start:
        raise _wrong(node.entries["end"], "it is not after the start")
    names = {
        name: _patterns(node.entries[key]) for key, name in _LISTS.items() if key in node.entries
    }
    return Maintenance(start, end, node.entries["reason"].text, names)


def _instant(node: Node) -> int:
    try:
        moment = dt.datetime.fromisoformat(node.text)
    except ValueError as error:
        raise _wrong(node, "write an instant such as 2026-11-17T22:00:00Z") from error
    if moment.tzinfo is None:
        raise _wrong(node, "say which offset: 2026-11-17T22:00:00Z, or +01:00 at its end")
    return micros(moment)


def _patterns(node: Node) -> tuple[str, ...]:
    if node.tag != "seq" or not node.items or any(one.tag in {"map", "seq"} for one in node.items):
        raise _wrong(node, 'write a list of patterns, such as ["orders-*"]')
    return tuple(one.text for one in node.items)


def matches(name: str | None, patterns: Iterable[str]) -> bool:
    """Whether a name is like one of some patterns."""
    return name is not None and any(fnmatchcase(name, one) for one in patterns)


def _wrong(node: Node, message: str) -> MaintenanceFileError:
    return MaintenanceFileError(str(node.says("invalid", message)))


class LeftOut(NamedTuple):
    """Maintenance whose windows do not count.

    Attributes:
        planned: The maintenance.
        subjects: All that rows are of.
        window_us: Length of gold's finest windows.
        names: Which columns of a subject the rows have.
    """

    planned: Sequence[Maintenance]
    subjects: Sequence[Subject]
    window_us: int
    names: Sequence[str] = SUBJECT

    def holds(self, window: str = "r.window") -> str:
        """The condition that a window of a row ``r`` lies in maintenance of its subject."""
        return " OR ".join(self._holds(one, window) for one in self.planned) or "false"

    def rest(
        self, gold: GoldRows, rows: Relation, keys: Sequence[str], sums: Sequence[str]
    ) -> Relation:
        """Rows that count, and what may have begun just before maintenance.

        What was first seen in the first window of maintenance may have begun in the one before it,
        and of that nobody else says so: so of that window there is a row more, all zeros but for
        its upper bound.

        Args:
            gold: Where the rows are from.
            rows: With ``window``, the columns that are named here, and ``SPILL``.
            keys: Columns that a row keeps.
            sums: What is summed up; the upper bound is the last.
        """
        if not self.planned:
            return rows
        before = f"r.window - {self.window_us}"
        others = [f"r.{name} AS {name}" for name in keys]
        same = [f"r.{name} AS {name}" for name in (*sums, SPILL)]
        moved = [f"0 AS {name}" for name in sums[:-1]]
        moved += [f"r.{SPILL} AS {sums[-1]}", f"0 AS {SPILL}"]
        return gold.engine.query(
            f"SELECT r.window AS window, {', '.join((*others, *same))} FROM {{rows}} r "
            f"WHERE NOT ({self.holds()}) "
            f"UNION ALL SELECT {before} AS window, {', '.join((*others, *moved))} FROM {{rows}} r "
            f"WHERE ({self.holds()}) AND NOT ({self.holds(before)}) AND r.{SPILL} > 0",
            rows=rows,
        )

    def _holds(self, one: Maintenance, window: str) -> str:
        start, end = one.windows(self.window_us)
        parts = [f"{window} >= {start} AND {window} < {end}"]
        if "cluster" in one.names:
            clusters = {each.cluster for each in self.subjects}
            chosen = sorted(each for each in clusters if matches(each, one.names["cluster"]))
            parts.append(is_one_of("r.cluster", chosen))
        if one.subject_names:
            touched = [
                f"coalesce({is_one_of(f'r.{name}', self._named(one, name))}, false)"
                for name in one.subject_names
                if name in self.names
            ]
            parts.append(f"({' OR '.join(touched) or 'false'})")
        return f"({' AND '.join(parts)})"

    def _named(self, one: Maintenance, name: str) -> list[str]:
        own = {each.names[name] for each in self.subjects}
        return sorted(each for each in own if each is not None and matches(each, one.names[name]))
