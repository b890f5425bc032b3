"""Files and folders of OpenSLO v1 objects: read together, for they refer to one another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lakehouse.errors import ObjectiveError
from lakehouse.openslo import reading, shapes
from lakehouse.openslo.findings import Finding, Kind, worst
from lakehouse.openslo.nodes import MalformedError, Node, documents
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


@dataclass(frozen=True, slots=True)
class Read:
    """One object of a file, and what was made of it.

    Attributes:
        kind: Its kind; empty where it has none.
        name: Its name; empty where it has none.
        objectives: What jmxlake computes of it.
    """

    file: str
    line: int
    kind: str
    name: str
    findings: tuple[Finding, ...]
    objectives: tuple[Objective, ...] = ()

    @property
    def outcome(self) -> str:
        """``supported``, ``read`` (others refer to it), ``no effect``, else what it is."""
        kind: Kind | None = worst(list(self.findings))
        if kind in {"invalid", "unsupported"}:
            return str(kind)
        if self.objectives:
            return "supported"
        return "no effect" if kind else "read"


@dataclass(slots=True)
class _Draft:
    node: Node
    kind: str | None
    findings: list[Finding]
    objectives: list[Objective] = field(default_factory=list)

    @property
    def is_valid(self) -> bool:
        return self.kind is not None and worst(self.findings) != "invalid"

    @property
    def name(self) -> str:
        metadata = self.node.entries.get("metadata")
        name = metadata.entries.get("name") if metadata else None
        return name.text if name else ""


@dataclass(frozen=True, slots=True)
class Found:
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
    drafts, failed = [], []
    for path in _paths(places):
        try:
            nodes = documents(_text(path), str(path))
        except MalformedError as error:
            failed.append(Read(str(path), error.finding.line, "", "", (error.finding,)))
            continue
        own = [_checked(node, found) for node, found in nodes]
        if not own:
            finding = Finding("invalid", str(path), 1, 1, "", "no object is there")
            failed.append(Read(str(path), 1, "", "", (finding,)))
        drafts += own
    _understand(drafts)
    told = [
        Read(
            one.node.file, one.node.line, one.kind or "", one.name,
            tuple(sorted(one.findings, key=lambda f: (f.line, f.column))), tuple(one.objectives),
        )
        for one in drafts
    ]  # fmt: skip
    return Found(tuple(sorted([*failed, *told], key=lambda one: (one.file, one.line))))


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


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        finding = Finding("invalid", str(path), 1, 1, "", f"no text in UTF-8: {error.reason}")
        raise MalformedError(finding) from error
    except OSError as error:
        raise ObjectiveError(f"{path}: {error.strerror}; name a file that can be read") from error


def _checked(node: Node, found: list[Finding]) -> _Draft:
    return _Draft(node, shapes.check(node, found), found)


def _understand(drafts: list[_Draft]) -> None:
    """Make objectives of the valid SLOs, and say what of the rest has no effect."""
    valid = [one for one in drafts if one.is_valid]
    of = {
        kind: {one.name: one.node for one in valid if one.kind == kind}
        for kind in ("SLI", "DataSource")
    }
    library = Library(of["SLI"], of["DataSource"])
    used = set()
    for one in valid:
        if one.kind != "SLO":
            continue
        ref = one.node.entries["spec"].entries.get("indicatorRef")
        used.add(ref.text if ref else "")
        one.objectives = reading.objectives(one.node, library, one.findings)
        if not one.is_valid:
            one.objectives = []
    for one in valid:
        if one.kind in _QUIET and not (one.kind == "SLI" and one.name in used):
            told = f"{one.kind} has no effect: {_QUIET[one.kind]}"
            one.findings.append(one.node.says("note", told))
    _name_twice(valid)


def _name_twice(drafts: list[_Draft]) -> None:
    """Say where a name is not unique; it matters only of what others refer to, or is stated."""
    seen: dict[tuple[str | None, str], Node] = {}
    for one in drafts:
        first = seen.setdefault((one.kind, one.name), one.node)
        if first is not one.node and one.kind in {"SLO", "SLI", "DataSource"}:
            told = f"another {one.kind} is called {one.name}: {first.file}:{first.line}"
            name = one.node.entries["metadata"].entries["name"]
            one.findings.append(name.says("unsupported", told))
            one.objectives = []
