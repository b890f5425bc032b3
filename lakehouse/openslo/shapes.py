"""What OpenSLO v1 allows, kind by kind, as its specification has it.

Source: https://github.com/OpenSLO/OpenSLO (README, version of September 2025); where it is silent,
what the project's own Go SDK checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse.openslo.checks import (
    NAME,
    SHORTHAND,
    Check,
    a_map,
    annotated,
    any_number,
    anything,
    between,
    boolean,
    choice,
    labelled,
    local_time,
    several,
    slice_window,
    text,
    time_zone,
)

if TYPE_CHECKING:
    from lakehouse.openslo.findings import Finding
    from lakehouse.openslo.nodes import Node

API: Final = "openslo/v1"
GOOD_SECONDS: Final = "GoodSeconds"
"""An extension of OpenSLO: good seconds per observed seconds."""

METHODS: Final = ("Occurrences", "Timeslices", "RatioTimeslices")
_OPERATORS: Final = choice("lte", "gte", "lt", "gt")
_DESCRIPTION: Final = text(1050)
_METADATA: Final = a_map(
    {"name": NAME}, {"displayName": text(), "labels": labelled, "annotations": annotated}
)
_SOURCE: Final = a_map(
    {"metricSource": a_map({"spec": anything}, {"metricSourceRef": NAME, "type": text()})}
)
_RATIO: Final = a_map(
    {},
    {
        "counter": boolean, "good": _SOURCE, "bad": _SOURCE, "total": _SOURCE, "raw": _SOURCE,
        "rawType": choice("success", "failure"),
    },
    one_of=(("total", "raw"), ("good", "bad", "raw")),
)  # fmt: skip
_INDICATOR: Final = a_map(
    {},
    {"description": _DESCRIPTION, "thresholdMetric": _SOURCE, "ratioMetric": _RATIO},
    one_of=(("thresholdMetric", "ratioMetric"),),
)
_INLINE_INDICATOR: Final = a_map({"metadata": _METADATA, "spec": _INDICATOR})
_TIME_WINDOW: Final = a_map(
    {"duration": SHORTHAND},
    {
        "isRolling": boolean,
        "calendar": a_map({"startTime": local_time, "timeZone": time_zone}),
    },
)
_OBJECTIVE: Final = a_map(
    {},
    {
        "displayName": text(), "op": _OPERATORS, "value": any_number,
        "target": between("[0", "1)"), "targetPercent": between("[0", "100)"),
        "timeSliceTarget": between("(0", "1]"), "timeSliceWindow": slice_window,
        "indicator": _INLINE_INDICATOR, "indicatorRef": NAME,
        "compositeWeight": between("(0", "1e308]"),
    },
    one_of=(("target", "targetPercent"),),
)  # fmt: skip
_CONDITION: Final = a_map(
    {
        "severity": text(),
        "condition": a_map(
            {"op": _OPERATORS, "threshold": any_number, "lookbackWindow": SHORTHAND},
            {"kind": choice("burnrate"), "alertAfter": text()},
        ),
    },
    {"description": _DESCRIPTION},
)
_TARGET: Final = a_map({"target": text()}, {"description": _DESCRIPTION})


def _inline(spec: Check) -> Check:
    return a_map({"kind": text(), "metadata": _METADATA, "spec": spec}, {"apiVersion": text()})


def _referred(name: str, otherwise: Check) -> Check:
    """A reference to an object, else the object itself."""
    reference = a_map({name: NAME})

    def check(node: Node, found: list[Finding]) -> None:
        (reference if name in node.entries else otherwise)(node, found)

    return check


_POLICY: Final = a_map(
    {
        "conditions": several(_referred("conditionRef", _inline(_CONDITION)), 1, 1),
        "notificationTargets": several(_referred("targetRef", _inline(_TARGET)), 1),
    },
    {
        "description": _DESCRIPTION, "alertWhenNoData": boolean, "alertWhenResolved": boolean,
        "alertWhenBreaching": boolean,
    },
)  # fmt: skip
_SLO: Final = a_map(
    {
        "service": text(),
        "budgetingMethod": choice(*METHODS, GOOD_SECONDS),
        "objectives": several(_OBJECTIVE, 1),
    },
    {
        "description": _DESCRIPTION, "indicator": _INLINE_INDICATOR, "indicatorRef": NAME,
        "timeWindow": several(_TIME_WINDOW, 1, 1),
        "alertPolicies": several(_referred("alertPolicyRef", _inline(_POLICY))),
    },
)  # fmt: skip

SPECS: Final[dict[str, Check]] = {
    "SLO": _SLO,
    "SLI": _INDICATOR,
    "DataSource": a_map(
        {"type": text()}, {"description": _DESCRIPTION, "connectionDetails": anything}
    ),
    "AlertPolicy": _POLICY,
    "AlertCondition": _CONDITION,
    "AlertNotificationTarget": _TARGET,
    "Service": a_map({}, {"description": _DESCRIPTION}),
}


def check(node: Node, found: list[Finding]) -> str | None:
    """Add what is not OpenSLO v1 in an object; gives its kind, or None where it has none."""
    if node.tag != "map":
        found.append(node.says("invalid", "no object of OpenSLO: a map with apiVersion and kind"))
        return None
    version, kind = node.entries.get("apiVersion"), node.entries.get("kind")
    if version is None or version.text != API:
        at = version or node
        told = f"it is {at.text!r}" if version else "apiVersion is missing"
        found.append(at.says("invalid", f"{told}; only {API} is read"))
        return None
    spec = SPECS.get(kind.text) if kind else None
    if kind is None or spec is None:
        at = kind or node
        found.append(at.says("invalid", f"kind must be one of {', '.join(SPECS)}"))
        return None
    envelope = {"apiVersion": text(), "kind": text(), "metadata": _METADATA, "spec": spec}
    if kind.text == "Service":  # its spec may be left out
        a_map({name: envelope[name] for name in list(envelope)[:3]}, {"spec": spec})(node, found)
    else:
        a_map(envelope)(node, found)
    return kind.text
