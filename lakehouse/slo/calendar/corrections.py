"""Corrections, from a YAML file: time that was agreed, after the fact, not to count.

A statement keeps its figures; those outside the corrections' time stand beside them as the agreed
ones. The time is left out as that of planned maintenance is. OpenSLO's draft of v2 has a
BudgetAdjustment for this purpose, which adds a percentage and names neither subjects nor approval.
"""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from lakehouse.core.display import visible
from lakehouse.core.objective import Objective
from lakehouse.core.periods import iso
from lakehouse.core.subjects import Subject
from lakehouse.core.yaml_nodes import Kind, Node
from lakehouse.errors import MaintenanceFileError
from lakehouse.slo.calendar import maintenance

_REQUIRED: Final = (*maintenance.REQUIRED, "approved_by", "ticket")


@dataclass(frozen=True, slots=True)
class Correction(maintenance.Maintenance):
    """A span that was agreed not to count.

    Attributes:
        approved_by: Who approved it.
        ticket: Where that is recorded.
        node: Its place in the file.
    """

    approved_by: str = ""
    ticket: str = ""
    node: Node | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """The correction as JSON has it, with the keys of its file."""
        return {
            **maintenance.Maintenance.to_json(self),
            "objectives": list(self.objectives),
            "approved_by": self.approved_by,
            "ticket": self.ticket,
        }

    def says(self, message: str, key: str = "", kind: Kind = "invalid") -> str:
        """A line about it, or about one of its keys, with its place in the file."""
        if self.node is None:
            return message
        return visible(str(self.node.keys.get(key, self.node).says(kind, message)))


def load(path: Path) -> tuple[tuple[Correction, ...], list[str]]:
    """All corrections of a file, by their start; and a line for each item that is malformed.

    Raises:
        MaintenanceFileError: The file cannot be read, or is none of corrections.
    """
    corrections, faults = [], []
    for node in maintenance.items(path, "corrections", _REQUIRED):
        try:
            corrections.append(_read(node))
        except MaintenanceFileError as error:
            faults.append(visible(str(error)))
    corrections.sort(key=lambda one: (one.start_us, one.end_us, one.reason))
    return tuple(corrections), faults


def _read(node: Node) -> Correction:
    span = maintenance.span(node, _REQUIRED, ("objectives",))
    named = node.get("objectives")
    objectives = ("*",) if named is None else maintenance.patterns(named)
    approved_by, ticket = (node.entries[key].text for key in ("approved_by", "ticket"))
    return Correction(*span, objectives, approved_by, ticket, node)


def check(
    corrections: Sequence[Correction],
    objectives: Sequence[Objective],
    subjects: Sequence[Subject],
    now_us: int,
) -> Iterator[str]:
    """A line for each fault: time in the future, unknown names, two corrections of one figure.

    Args:
        corrections: By their start.
        objectives: Every objective that there is.
        subjects: Every subject of the lake, past ones too.
        now_us: The present.
    """
    objective_names = {one.name for one in objectives}
    for one in corrections:
        if one.end_us > now_us:
            message = "it ends in the future; write work that is planned as maintenance"
            yield one.says(message, "end")
        yield from _unknown(one, "objectives", one.objectives, objective_names)
        for key, column in maintenance.LISTS.items():
            names = {{"cluster": sub.cluster, **sub.names}[column] for sub in subjects}
            known = {str(name) for name in names if name is not None}
            yield from _unknown(one, key, one.names.get(column, ()), known)
    pairs = combinations(corrections, 2)
    for first, second in (pair for pair in pairs if pair[1].start_us < pair[0].end_us):
        kinds = {one.kind for one in objectives if first.is_on(one.name) and second.is_on(one.name)}
        common = (one for one in subjects if first.concerns(one) and second.concerns(one))
        if any(one.kind in kinds for one in common):
            place = first.node.line if first.node else iso(first.start_us)
            what = f"it overlaps the one of line {place}; change one, so that time has one ticket"
            yield second.says(what, "start")


def _unknown(
    one: Correction, key: str, globs: Iterable[str], names: Iterable[str]
) -> Iterator[str]:
    known = sorted(names)
    for glob in globs:
        if not any(maintenance.matches(name, (glob,)) for name in known):
            near = difflib.get_close_matches(glob, known, 1, 0.6)
            meant = f"; did you mean {near[0]}?" if near else "; correct or remove it"
            yield one.says(f"nothing here is called {glob}{meant}", key)
