"""OpenSLO v1 files of objectives, loaded together because objects can refer to each other.

A file's ``metricSource`` has type ``jmxlake``, with a ``level``, a ``metric``, the attributes that
a subject must have (``where``) and the patterns that its names, or labels of its series, must match
(``match``). See docs/objectives.md. Objectives are checked against a catalogue, because metrics and
labels outside it can never have data.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from lakehouse.core.metrics import UNAVAILABLE, Known, known
from lakehouse.core.objective import NAMES, Objective, Part, TimeWindow
from lakehouse.core.yaml_nodes import Findings, MalformedError, Node, documents, worst
from lakehouse.errors import ObjectiveError
from lakehouse.slo.openslo import schema, slo_to_objectives
from lakehouse.slo.openslo.slo_to_objectives import Library
from lakehouse.tables.strict_files import UnreadableFileError, read_text

SHIPPED: Final = Path(__file__).parents[1] / "objectives"
"""The folder of the objectives that jmxlake ships."""

OPTIONAL: Final = SHIPPED / "optional"
"""The folder of objectives on families that are disabled by default."""

_NO_FILE: Final = "{}: no *.yaml in this folder. Write the shipped ones with jmxlake slo init"

_NO_EFFECT: Final = {
    "Service": "jmxlake has no list of services",
    "AlertPolicy": "jmxlake sends no alerts",
    "AlertCondition": "jmxlake sends no alerts",
    "AlertNotificationTarget": "jmxlake sends no alerts",
    "DataSource": "only its type counts, where an SLI refers to it",
    "SLI": "no SLO of these files refers to it",
}


@dataclass(slots=True)
class FileObject:
    """One object of a file, with its findings and objectives.

    Attributes:
        node: The object; an empty node if the file could not be read.
        kind: Its kind; empty without one.
        findings: Its faults, and its parts that are unsupported or have no effect.
        objectives: The objectives that jmxlake computes.
        weighs: The objectives of other SLOs that a composite weighs.
    """

    node: Node
    kind: str
    findings: Findings
    objectives: list[Objective] = field(default_factory=list)
    weighs: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its name; empty without one."""
        metadata = self.node.entries.get("metadata")
        name = metadata.entries.get("name") if metadata else None
        return name.text if name else ""

    @property
    def outcome(self) -> str:
        """``supported``, ``read`` (others refer to it), ``no effect``, or its worst finding."""
        kind = worst(self.findings)
        if kind in {"invalid", "unsupported"}:
            return str(kind)
        if self.objectives or self.weighs:
            return "supported"
        return "no effect" if kind else "read"


def load(folder: Path = SHIPPED) -> tuple[Objective, ...]:
    """Return all objectives of a folder, by name.

    Raises:
        ObjectiveError: A file is not OpenSLO v1, has an unsupported part, or repeats a name.
    """
    objects = read([folder])
    faults = [fault for item in objects for fault in item.findings if fault.kind != "note"]
    if faults:
        others = len(faults) - 1
        more = f" (and {others} more: see jmxlake slo check)" if others else ""
        raise ObjectiveError(f"{' '.join(str(faults[0]).split())}{more}")
    objectives = [objective for item in objects for objective in item.objectives]
    if not objectives:
        raise ObjectiveError(_NO_FILE.format(folder))
    return tuple(sorted(objectives, key=lambda objective: objective.name))


def read(places: Sequence[Path]) -> list[FileObject]:
    """Return the objects of files, and of all YAML files of folders (not of their subfolders).

    Raises:
        ObjectiveError: A place does not exist, or a folder has no YAML file.
    """
    objects: list[FileObject] = []
    for path in _paths(places):
        try:
            nodes = _nodes(path)
            objects += [FileObject(one, schema.check(one, found), found) for one, found in nodes]
        except MalformedError as error:
            fault = error.finding
            node = Node(fault.file, "", fault.line, fault.column, "null")
            objects.append(FileObject(node, "", Findings([fault])))
    valid = [item for item in objects if item.kind and worst(item.findings) != "invalid"]
    _read_objectives(valid)
    for item in objects:
        item.findings.sort(key=lambda finding: (finding.line, finding.column))
    return sorted(objects, key=lambda item: (item.node.file, item.node.line))


def _paths(places: Sequence[Path]) -> list[Path]:
    paths = []
    for place in places:
        files = [place]
        if place.is_dir():
            files = sorted(path for path in place.iterdir() if path.suffix in {".yaml", ".yml"})
        if not files:
            raise ObjectiveError(_NO_FILE.format(place))
        paths += files
    return list(dict.fromkeys(paths))


def _nodes(path: Path) -> list[tuple[Node, Findings]]:
    try:
        text = read_text(path)
    except UnreadableFileError as error:
        if error.line is not None:
            raise MalformedError(str(path), error.problem, error.line) from None
        raise ObjectiveError(error.advised("Specify a readable file")) from None
    nodes = documents(text, str(path))
    if not nodes:
        raise MalformedError(str(path), "the file has no object")
    return nodes


def _read_objectives(valid: list[FileObject]) -> None:
    """Set the objectives of valid SLOs; add notes to the objects without effect."""
    library, used = {(item.kind, item.name): item.node for item in valid}, set()
    for item in valid:
        if item.kind == "SLO":
            used |= _references(item.node)
            item.objectives = slo_to_objectives.objectives(item.node, library, item.findings)
    for item in valid:
        if item.kind in _NO_EFFECT and not (item.kind == "SLI" and item.name in used):
            reason = _NO_EFFECT[item.kind]
            item.findings.note(item.node, f"{item.kind} has no effect: {reason}")
    _check_names(valid)
    for item in valid:
        if item.kind == "SLO" and slo_to_objectives.is_composite(item.node):
            _weigh(item, valid, library)


def _weigh(composite: FileObject, valid: list[FileObject], library: Library) -> None:
    """Make the objectives of other SLOs parts of a composite."""
    slos = {item.name: item for item in valid if item.kind == "SLO"}
    pairs = _weighed(composite.node, library)
    window = slo_to_objectives.window(composite.node)
    for goal, _ in pairs:
        slo = slos[goal.entries["indicatorRef"].text]
        _compare(goal, window, slo.objectives, composite.findings)
    if worst(composite.findings) in {"invalid", "unsupported"}:
        composite.objectives = []
        return
    for goal, part in pairs:
        item = slos[goal.entries["indicatorRef"].text]
        (one,) = item.objectives
        item.objectives = [replace(one, composites=(*one.composites, part))]
        composite.weighs.append(one.name)


def _check_names(valid: list[FileObject]) -> None:
    """Refuse a second object with the same name, kind and use."""
    first_by_name: dict[tuple[str, str], Node] = {}
    for item in valid:
        first = first_by_name.setdefault((item.kind, item.name), item.node)
        if first is not item.node and item.kind in {"SLO", "SLI", "DataSource"}:
            message = f"another {item.kind} is called {item.name}: {first.file}:{first.line}"
            item.findings.unsupported(item.node.entries["metadata"].entries["name"], message)
            item.objectives = []


def check_metrics(objects: list[FileObject], metrics: Mapping[str, Known], *, where: str) -> None:
    """Add a finding for each objective that cannot have data, and remove the objective.

    Args:
        objects: The objects of files; their findings are added to.
        metrics: The known metrics.
        where: Their place, for the findings.
    """
    for item in objects:
        for objective in item.objectives:
            for name, fault in _faults(objective, metrics, where):
                place = next(_places(item.node, name), item.node)
                if (finding := place.says("unsupported", fault)) not in item.findings:
                    item.findings.append(finding)
        if item.outcome == "unsupported":
            item.objectives = []


def _places(node: Node, name: str) -> Iterator[Node]:
    """Yield the places of a metric or label of this name; none if it is in a referenced object."""
    metric, match = node.get("metric"), node.get("match")
    if metric is not None and metric.text == name:
        yield metric
    if match is not None and name in match.keys:
        yield match.keys[name]
    for inner in (*node.entries.values(), *node.items):
        yield from _places(inner, name)


def _faults(
    objective: Objective, metrics: Mapping[str, Known], where: str
) -> Iterator[tuple[str, str]]:
    """Yield each metric and label of an objective that cannot have data, with the reason."""
    events = objective.events
    levels = ("topic", "partition") if objective.kind == "topic" else (objective.kind,)
    for name in dict.fromkeys(objective.metrics):
        one = metrics.get(name)
        if one is None and objective.level == "group" and not events:
            one = next((two for two in metrics.values() if two.traits.bound_of == name), None)
        if one is None:
            yield name, _unknown(name, metrics, where)
        elif one.level and one.level not in levels:
            yield name, f"it is a metric of level {one.level}, not {objective.level}"
        elif objective.kind in {"topic", "client"} and not one.traits.has_figures:
            yield name, "no figure is made of it: it describes, or is a position"
        elif events and one.kind != "counter":
            yield name, "it is a gauge, and counts no events: write a thresholdMetric"
        elif not events and one.kind == "counter" and objective.level != "group":
            yield name, "it is a counter, not a gauge: write a ratioMetric"
        labels = one.labels if one else objective.series
        for label in sorted(objective.series.keys() - labels):
            yield label, _no_label(label, name, labels, where)


def _no_label(label: str, metric: str, labels: Iterable[str], where: str) -> str:
    near = difflib.get_close_matches(label, [*labels, *NAMES], 1, 0.75)
    others = ", ".join(sorted(labels)) or "none yet: name a --lake, after a rollup"
    meant = f"did you mean {near[0]}?" if near else f"its labels are {others}"
    return f"{where} has no series of {metric} with that label; {meant}"


def _unknown(name: str, metrics: Mapping[str, Known], where: str) -> str:
    shipped = known().get(name)
    if shipped:
        families = " or ".join(sorted(shipped.families))
        return f"{where} does not read it: switch the family {families} on"
    named = dict.fromkeys(one.traits.bound_of or own for own, one in metrics.items())
    near = difflib.get_close_matches(name, [*named, UNAVAILABLE], 1, 0.75)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"{where} has no such metric{meant}"


def _references(slo: Node) -> set[str]:
    """Return the names of all indicators that a valid SLO refers to."""
    places = (slo.entries["spec"], *slo_to_objectives.goals(slo))
    return {ref.text for place in places if (ref := place.get("indicatorRef"))}


def _weighed(slo: Node, library: Library) -> list[tuple[Node, Part]]:
    """Return the objectives of a composite that refer to other SLOs."""
    pairs = zip(
        slo_to_objectives.goals(slo),
        slo_to_objectives.composite_parts(slo, Findings()),
        strict=True,
    )
    return [(goal, part) for goal, part in pairs if slo_to_objectives.refers_to_slo(goal, library)]


def _compare(
    goal: Node, window: TimeWindow | None, found: Sequence[Objective], findings: Findings
) -> None:
    """Add findings on the differences between an entry of ``objectives`` and its SLO.

    Args:
        goal: The entry.
        window: The window of the composite.
        found: The objectives of that SLO.
        findings: Receives differences that prevent a weight, and keys without effect.
    """
    ref = goal.entries["indicatorRef"]
    if len(found) != 1:
        message = f"that SLO has {len(found)} objectives that jmxlake supports, not one"
        findings.unsupported(ref, message)
        return
    (one,) = found
    if one.target != slo_to_objectives.target(goal):
        findings.note(ref, f"the target of that SLO counts: {one.target:.10g}")
    if one.window != window:
        findings.note(ref, f"the window of that SLO counts: {one.window.name}")
    for key in goal.present("op", "value"):
        findings.note(goal.keys[key], "no effect: the SLO's own value counts")
