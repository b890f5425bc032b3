"""Files and folders of OpenSLO v1 objects: read together, for they refer to one another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse.errors import ObjectiveError
from lakehouse.openslo import reading, shapes
from lakehouse.openslo.nodes import Finding, Findings, MalformedError, Node, documents, worst
from lakehouse.openslo.sources import Library
from lakehouse.slo_objective import Objective

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_ENDINGS: Final = (".yaml", ".yml")
_QUIET: Final = {
    "Service": "jmxlake has no list of services",
    "AlertPolicy": "nothing here alerts",
    "AlertCondition": "nothing here alerts",
    "AlertNotificationTarget": "nothing here alerts",
    "DataSource": "only its type counts, where an SLI refers to it",
    "SLI": "no SLO of these files refers to it",
}


@dataclass(slots=True)
class Read:
    """One object of a file, and what was made of it.

    Attributes:
        node: The object; an empty one where nothing could be read.
        kind: Its kind; empty where it has none.
        findings: What is to be said of it.
        objectives: What jmxlake computes of it.
    """

    node: Node
    kind: str
    findings: Findings
    objectives: list[Objective] = field(default_factory=list)

    @property
    def file(self) -> str:
        """The file as it was named."""
        return self.node.file

    @property
    def line(self) -> int:
        """Where in the file it begins."""
        return self.node.line

    @property
    def name(self) -> str:
        """Its name; empty where it has none."""
        metadata = self.node.entries.get("metadata")
        name = metadata.entries.get("name") if metadata else None
        return name.text if name else ""

    @property
    def is_valid(self) -> bool:
        """Whether it is OpenSLO v1."""
        return self.kind != "" and worst(self.findings) != "invalid"

    @property
    def outcome(self) -> str:
        """``supported``, ``read`` (others refer to it), ``no effect``, else what it is."""
        kind = worst(self.findings)
        if kind in {"invalid", "unsupported"}:
            return str(kind)
        if self.objectives:
            return "supported"
        return "no effect" if kind else "read"


class Found(NamedTuple):
    """All that was read."""

    objects: tuple[Read, ...]

    @property
    def findings(self) -> list[Finding]:
        """What is to be said, file by file."""
        return [finding for one in self.objects for finding in one.findings]

    @property
    def objectives(self) -> list[Objective]:
        """All objectives."""
        return [objective for one in self.objects for objective in one.objectives]


def read(places: Sequence[Path]) -> Found:
    """Read files, and all YAML files of folders (not of folders in these).

    Raises:
        ObjectiveError: A place is not there, or a folder has no such file.
    """
    objects: list[Read] = []
    for path in _paths(places):
        try:
            nodes = _nodes(path)
            objects += [Read(node, shapes.check(node, found) or "", found) for node, found in nodes]
        except MalformedError as error:
            at = error.finding
            objects.append(Read(Node(at.file, "", at.line, at.column, "null"), "", Findings([at])))
    _understand([one for one in objects if one.is_valid])
    for each in objects:
        each.findings.sort(key=lambda one: (one.line, one.column))
    return Found(tuple(sorted(objects, key=lambda one: (one.file, one.line))))


def _paths(places: Sequence[Path]) -> list[Path]:
    paths = []
    for place in places:
        if place.is_dir():
            inside = sorted(path for path in place.iterdir() if path.suffix in _ENDINGS)
            if not inside:
                raise ObjectiveError(f"{place}: no objective there (*.yaml); use the shipped ones")
            paths += inside
        else:
            paths.append(place)
    return list(dict.fromkeys(paths))


def _nodes(path: Path) -> list[tuple[Node, Findings]]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError(str(path), None, f"no text in UTF-8: {error.reason}") from error
    except OSError as error:
        raise ObjectiveError(f"{path}: {error.strerror}; name a file that can be read") from error
    found = documents(text, str(path))
    if not found:
        raise MalformedError(str(path), None, "no object is there")
    return found


def _understand(valid: list[Read]) -> None:
    """Make objectives of the valid SLOs, and say what of the rest has no effect."""
    of = {
        kind: {one.name: one.node for one in valid if one.kind == kind}
        for kind in ("SLI", "DataSource")
    }
    library, used = Library(of["SLI"], of["DataSource"]), set()
    for one in valid:
        if one.kind == "SLO":
            ref = one.node.entries["spec"].entries.get("indicatorRef")
            used.add(ref.text if ref else "")
            made = reading.objectives(one.node, library, one.findings)
            one.objectives = made if one.is_valid else []
    for one in valid:
        if one.kind in _QUIET and not (one.kind == "SLI" and one.name in used):
            one.findings.note(one.node, f"{one.kind} has no effect: {_QUIET[one.kind]}")
    _name_twice(valid)


def _name_twice(valid: list[Read]) -> None:
    """Say where a name is not unique; it matters only of what others refer to, or is stated."""
    seen: dict[tuple[str, str], Node] = {}
    for one in valid:
        first = seen.setdefault((one.kind, one.name), one.node)
        if first is not one.node and one.kind in {"SLO", "SLI", "DataSource"}:
            told = f"another {one.kind} is called {one.name}: {first.file}:{first.line}"
            one.findings.unsupported(one.node.entries["metadata"].entries["name"], told)
            one.objectives = []
