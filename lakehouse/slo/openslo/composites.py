"""Composite SLOs: several objectives, each with an indicator and a weight.

The form is that of OpenSLO's draft of v2 (enhancements/v2alpha.md: an SLI and a ``compositeWeight``
for each of ``objectives``) with the names of v1, as the project's Go SDK has them. An extension:
``indicatorRef`` may also name an SLO, whose objective then counts as it stands.
"""

from collections.abc import Sequence

from lakehouse.core.error_budget_window import TimeWindow
from lakehouse.core.objective import Objective, Part
from lakehouse.core.yaml_nodes import Findings, Node, number
from lakehouse.slo.openslo.metric import Library, target


def _goals(slo: Node) -> tuple[Node, ...]:
    return slo.entries["spec"].entries["objectives"].items


def is_one(slo: Node) -> bool:
    """Whether a valid SLO is a composite."""
    return any(goal.present("indicator", "indicatorRef", "compositeWeight") for goal in _goals(slo))


def references(slo: Node) -> set[str]:
    """The names of all indicators that a valid SLO refers to."""
    places = (slo.entries["spec"], *_goals(slo))
    return {ref.text for place in places if (ref := place.get("indicatorRef"))}


def parts(slo: Node, findings: Findings) -> list[Part]:
    """For each of a composite's objectives what it is a part of."""
    spec, metadata = slo.entries["spec"], slo.entries["metadata"].entries
    for key in spec.present("indicator", "indicatorRef"):
        message = "a composite has indicators in its objectives only: remove it"
        findings.unsupported(spec.keys[key], message)
    name, service = metadata["name"].text, spec.entries["service"].text
    title = metadata.get("displayName", metadata["name"]).text
    weights = (goal.get("compositeWeight") for goal in _goals(slo))
    return [Part(name, title, service, (w and number(w)) or 1.0) for w in weights]


def weighed(slo: Node, library: Library) -> list[tuple[Node, Part]]:
    """The objectives of a composite that refer to other SLOs."""
    pairs = zip(_goals(slo), parts(slo, Findings()), strict=True)
    return [(goal, part) for goal, part in pairs if refers_to_slo(goal, library)]


def refers_to_slo(goal: Node, library: Library) -> bool:
    """Whether an entry of ``objectives`` names an SLO, and no SLI."""
    ref = goal.get("indicatorRef")
    return ref is not None and ("SLI", ref.text) not in library and ("SLO", ref.text) in library


def compare(
    goal: Node, window: TimeWindow | None, found: Sequence[Objective], findings: Findings
) -> None:
    """Add what stands between an entry of ``objectives`` and the SLO to which it refers.

    Args:
        goal: The entry.
        window: The composite's.
        found: The objectives of that SLO.
        findings: Receives why they cannot be weighed, or what has no effect.
    """
    ref = goal.entries["indicatorRef"]
    if len(found) != 1:
        message = f"that SLO has {len(found)} objectives that jmxlake supports, not one"
        findings.unsupported(ref, message)
        return
    (one,) = found
    if one.target != target(goal):
        findings.note(ref, f"the target of that SLO counts: {one.target:.10g}")
    if one.window != window:
        findings.note(ref, f"the window of that SLO counts: {one.window.name}")
    for key in goal.present("op", "value"):
        findings.note(goal.keys[key], "it has no effect: that of the SLO counts")
