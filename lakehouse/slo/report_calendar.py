"""The calendar of a report: time zone, business hours, maintenance, and corrections from files.

Maintenance is planned. Figures without it are reported next to the figures with it. Gold has whole
windows, and the position of bad time within a window is not known, so maintenance counts for the
windows that it covers completely.

Business hours are parts of a week in the time zone. They are written as ``Mon-Fri 08:00-18:00``,
several separated by commas; ``22:00-06:00`` ends on the next day.

A correction is time that was agreed, after the fact, not to count. A statement keeps its figures,
and the agreed figures outside the corrections are reported next to them. Corrections exclude
windows as planned maintenance does. OpenSLO's draft of v2 has a BudgetAdjustment for this purpose,
which adds a percentage and has neither subjects nor approval.
"""

import datetime as dt
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

from lakehouse.core import periods
from lakehouse.core.display import visible
from lakehouse.core.objective import Objective
from lakehouse.core.periods import Period, Span, iso, micros, overlap, union
from lakehouse.core.subjects import Subject
from lakehouse.core.yaml_nodes import Kind, Node, read
from lakehouse.errors import MaintenanceFileError, PeriodError

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


def excluded_of(excluded: Iterable[Maintenance], objective: str) -> list[Maintenance]:
    """Return the excluded time that concerns an objective of this name."""
    return [one for one in excluded if one.is_on(objective)]


def load_maintenance(path: Path) -> tuple[Maintenance, ...]:
    """Return all maintenance of a file, by its start.

    Raises:
        MaintenanceFileError: The file cannot be read or is malformed; with line and column.
    """
    planned = [Maintenance(*_fields(item)) for item in _items(path, "maintenance", REQUIRED)]
    return tuple(sorted(planned, key=lambda one: (one.start_us, one.end_us, one.reason)))


def _items(path: Path, key: str, required: Sequence[str]) -> list[Node]:
    """Return the items of the list that is a file's only key.

    Args:
        path: The file.
        key: The key.
        required: The keys that an item must have, for the error.

    Raises:
        MaintenanceFileError: The file cannot be read or is malformed; with line and column.
    """
    found: list[Node] = []
    for node, findings in read(path, MaintenanceFileError, "Specify a readable file"):
        if findings:
            raise MaintenanceFileError(str(findings[0]))
        listed = node.entries.get(key)
        if listed is None or listed.tag != "seq" or len(node.entries) > 1:
            wanted = f"{', '.join(required[:-1])} and {required[-1]}"
            raise _error(node, f"write one key, {key}, with a list of {wanted}")
        found += listed.items
    return found


def _fields(
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
        raise _error(node, f"write {', '.join(required[:-1])} and {required[-1]}")
    keys = (*required, *more, *LISTS)
    for key in node.entries:
        if key not in keys:
            raise _error(node.keys[key], f"unknown key. Use one of {', '.join(keys)}")
    for key in required:
        value = node.get(key)
        if value is None or not value.text.strip():
            raise _error(node, f"{key} is missing")
    start, end = (_instant(node.entries[key]) for key in ("start", "end"))
    if end <= start:
        raise _error(node.entries["end"], "the end is not after the start")
    names = {
        name: _patterns(node.entries[key]) for key, name in LISTS.items() if key in node.entries
    }
    return start, end, node.entries["reason"].text, names


def _instant(node: Node) -> int:
    try:
        moment = dt.datetime.fromisoformat(node.text)
    except ValueError as caught:
        raise _error(node, "write an instant such as 2026-11-17T22:00:00Z") from caught
    if moment.tzinfo is None:
        raise _error(node, "add an offset: 2026-11-17T22:00:00Z, or +01:00 at its end")
    return micros(moment)


def _patterns(node: Node) -> tuple[str, ...]:
    """Return a list of patterns.

    Raises:
        MaintenanceFileError: The node is not such a list; with line and column.
    """
    if node.tag != "seq" or not node.items or any(item.is_nested for item in node.items):
        raise _error(node, 'write a list of patterns, such as ["orders-*"]')
    return tuple(item.text for item in node.items)


def matches(name: str | None, globs: Iterable[str]) -> bool:
    """Return True if a name matches one of some patterns."""
    return name is not None and any(fnmatchcase(name, glob) for glob in globs)


def _error(node: Node, message: str) -> MaintenanceFileError:
    """Return an error at a place of a file."""
    return MaintenanceFileError(str(node.says("invalid", message)))


REQUIRED_OF_CORRECTIONS: Final = (*REQUIRED, "approved_by", "ticket")


@dataclass(frozen=True, slots=True)
class Correction(Maintenance):
    """A span that was agreed not to count.

    Attributes:
        approved_by: The person who approved it.
        ticket: The record of the approval.
        node: Its place in the file.
    """

    approved_by: str = ""
    ticket: str = ""
    node: Node | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the correction as JSON, with the keys of its file."""
        return {
            **Maintenance.to_json(self),
            "objectives": list(self.objectives),
            "approved_by": self.approved_by,
            "ticket": self.ticket,
        }

    def says(self, message: str, key: str = "", kind: Kind = "invalid") -> str:
        """Return a line about it, or about one of its keys, with its place in the file."""
        if self.node is None:
            return message
        return visible(str(self.node.keys.get(key, self.node).says(kind, message)))


def load_corrections(path: Path) -> tuple[tuple[Correction, ...], list[str]]:
    """Return all corrections of a file, by their start, and a line for each malformed item.

    Raises:
        MaintenanceFileError: The file cannot be read, or does not have a list of corrections.
    """
    corrections, faults = [], []
    for node in _items(path, "corrections", REQUIRED_OF_CORRECTIONS):
        try:
            corrections.append(_correction(node))
        except MaintenanceFileError as error:
            faults.append(visible(str(error)))
    corrections.sort(key=lambda one: (one.start_us, one.end_us, one.reason))
    return tuple(corrections), faults


def _correction(node: Node) -> Correction:
    span = _fields(node, REQUIRED_OF_CORRECTIONS, ("objectives",))
    named = node.get("objectives")
    objectives = ("*",) if named is None else _patterns(named)
    approved_by, ticket = (node.entries[key].text for key in ("approved_by", "ticket"))
    return Correction(*span, objectives, approved_by, ticket, node)


def check_corrections(
    corrections: Sequence[Correction],
    objectives: Sequence[Objective],
    subjects: Sequence[Subject],
    now_us: int,
) -> Iterator[str]:
    """Yield a line for each fault: time in the future, unknown names, overlapping corrections.

    Args:
        corrections: By their start.
        objectives: Every objective.
        subjects: Every subject of the lake, past ones too.
        now_us: The present.
    """
    objective_names = {one.name for one in objectives}
    for one in corrections:
        if one.end_us > now_us:
            message = "it ends in the future; write planned work as maintenance"
            yield one.says(message, "end")
        yield from _unknown(one, "objectives", one.objectives, objective_names)
        for key, column in LISTS.items():
            names = {{"cluster": sub.cluster, **sub.names}[column] for sub in subjects}
            known = {str(name) for name in names if name is not None}
            yield from _unknown(one, key, one.names.get(column, ()), known)
    pairs = combinations(corrections, 2)
    for first, second in (pair for pair in pairs if pair[1].start_us < pair[0].end_us):
        kinds = {one.kind for one in objectives if first.is_on(one.name) and second.is_on(one.name)}
        common = (one for one in subjects if first.concerns(one) and second.concerns(one))
        if any(one.kind in kinds for one in common):
            place = first.node.line if first.node else iso(first.start_us)
            message = f"it overlaps the correction of line {place}; give the time one ticket"
            yield second.says(message, "start")


def _unknown(
    one: Correction, key: str, globs: Iterable[str], names: Iterable[str]
) -> Iterator[str]:
    known = sorted(names)
    for glob in globs:
        if not any(matches(name, (glob,)) for name in known):
            near = difflib.get_close_matches(glob, known, 1, 0.6)
            meant = f"; did you mean {near[0]}?" if near else "; correct or remove it"
            yield one.says(f"nothing here is called {glob}{meant}", key)


_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY: Final = "|".join(_DAYS)
_RULE: Final = re.compile(
    rf"({_DAY})(?:-({_DAY}))? +([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)"
)


class Rule(NamedTuple):
    """Hours on some days of the week (Monday is 0); minutes after midnight."""

    days: frozenset[int]
    start: int
    end: int


class BusinessHours(NamedTuple):
    """Business hours.

    Attributes:
        text: The hours as they were written.
        rules: The hours of some days; they may overlap.
    """

    text: str
    rules: tuple[Rule, ...]

    def within(self, period: Period, zone: dt.tzinfo) -> tuple[Period, ...]:
        """Return the parts of a period that are business hours, oldest first, without overlap."""
        spans = (
            (_at(date, rule.start, zone), _at(date, rule.end, zone))
            for date in periods.days(period.start - dt.timedelta(days=1), period.end, zone)
            for rule in self.rules
            if date.weekday() in rule.days
        )
        clipped = (overlap(span, period.span) for span in spans)
        return tuple(Period.of(span) for span in union(span for span in clipped if span))


def _at(date: dt.date, minutes: int, zone: dt.tzinfo) -> int:
    days, rest = divmod(minutes, 24 * 60)
    time = dt.time(rest // 60, rest % 60)
    return micros(periods.wall(date + dt.timedelta(days=days), time, zone))


def parse_business_hours(text: str) -> BusinessHours:
    """Return business hours from their text.

    Raises:
        PeriodError: The text has another form.
    """
    parts, rules = [part.strip() for part in text.split(",")], []
    for part in parts:
        match = _RULE.fullmatch(part)
        if match is None:
            raise PeriodError(
                f"business hours {text[:60]!r}: not valid. Use a form such as Mon-Fri 08:00-18:00"
            )
        first, last, *clock = match.groups()
        begin, end = _DAYS.index(first), _DAYS.index(last or first)
        days = frozenset((begin + n) % 7 for n in range((end - begin) % 7 + 1))
        start, until = (int(hour) * 60 + int(minute) for hour, minute in (clock[:2], clock[2:]))
        if until > 24 * 60:
            raise PeriodError(f"business hours {clock[2]}:{clock[3]}: a day ends at 24:00")
        rules.append(Rule(days, start, until if until > start else until + 24 * 60))
    return BusinessHours(", ".join(parts), tuple(rules))


class Calendar(NamedTuple):
    """The time zone of a report, its business hours, planned maintenance and corrections.

    Attributes:
        time_zone: IANA name; it determines the limits of a week, and how instants are shown.
        business: Business hours in that zone; None: the report has no section on them.
        maintenance: Planned maintenance. The report also has the objectives without it.
        corrections: Time that was agreed not to count. The report also has the objectives without
            it.
    """

    time_zone: str = periods.UTC_NAME
    business: BusinessHours | None = None
    maintenance: tuple[Maintenance, ...] = ()
    corrections: tuple[Correction, ...] = ()

    @property
    def zone(self) -> dt.tzinfo:
        """The time zone."""
        return periods.time_zone(self.time_zone)


OF_UTC: Final = Calendar()
