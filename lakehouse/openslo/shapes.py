"""What OpenSLO v1 allows, kind by kind, as its specification has it.

Source: https://github.com/OpenSLO/OpenSLO (README, version of September 2025); where it is silent,
what the project's own Go SDK checks.
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from lakehouse.openslo.nodes import Findings, Node, number

Check = Callable[[Node, Findings], None]
"""Adds what is wrong with a node."""

API: Final = "openslo/v1"
GOOD_SECONDS: Final = "GoodSeconds"
"""An extension of OpenSLO: good seconds per observed seconds."""

DURATION: Final = re.compile(r"([1-9][0-9]*)([mhdwMQY])")
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LABEL_KEY: Final = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?")
_CLOCK: Final = "%Y-%m-%d %H:%M:%S"
_MOST_DESCRIBED: Final = 1050


def clock(node: Node) -> dt.datetime | None:
    """A time without a zone, or None."""
    try:
        return dt.datetime.strptime(node.text, _CLOCK)  # noqa: DTZ007 - the zone is beside it
    except ValueError:
        return None


# The words in which the shapes below are said: small checks, put together.


def _a(what: str, is_one: Callable[[Node], bool]) -> Check:
    def check(node: Node, found: Findings) -> None:
        if not is_one(node):
            found.invalid(node, f"it is {_seen(node)}, not {what}")

    return check


def _seen(node: Node) -> str:
    if node.is_nested:
        return {"map": "a map", "seq": "a list"}[node.tag]
    return "empty" if node.is_null else repr(node.text[:60])


def _is_text(node: Node) -> bool:
    return not (node.is_nested or node.is_null)


def _matching(pattern: re.Pattern[str], what: str) -> Check:
    return _a(what, lambda node: _is_text(node) and pattern.fullmatch(node.text) is not None)


def _choice(*allowed: str) -> Check:
    told = f"one of {', '.join(allowed)}"
    return _a(told, lambda node: node.text in allowed and not node.is_nested)


def _between(low: str, high: str) -> Check:
    """A number of a range, each end as ``[0`` (with it) or ``(0`` (without)."""
    least, most = float(low[1:]), float(high[:-1])

    without = {end for end, mark in ((least, low[0]), (most, high[-1])) if mark in "()"}

    def is_within(node: Node) -> bool:
        value = number(node)
        return value is not None and least <= value <= most and value not in without

    return _a(f"a number of {low}, {high}", is_within)


def _anything(_node: Node, _found: Findings) -> None:
    """Whatever is there."""


_TEXT: Final = _a("a text", _is_text)
_NAME: Final = _matching(
    _DNS_LABEL, "a name: at most 63 of a-z, 0-9 and -, no - at either end (RFC 1123)"
)
_LENGTH: Final = "a duration: a number and m, h, d, w, M, Q or Y (m is minutes, M is months)"
_SHORTHAND: Final = _matching(DURATION, _LENGTH)
_BOOLEAN: Final = _a("true or false", lambda node: node.tag == "bool")
_NUMBER: Final = _a("a number", lambda node: number(node) is not None)
_LOCAL_TIME: Final = _a("a time such as 2026-01-05 00:00:00", lambda node: clock(node) is not None)


def _about(node: Node, found: Findings) -> None:
    _TEXT(node, found)
    if len(node.text) > _MOST_DESCRIBED:
        found.invalid(node, f"{len(node.text)} characters; {_MOST_DESCRIBED} at most")


def _slice_window(node: Node, found: Findings) -> None:
    """A duration; a bare number is minutes."""
    if not (node.tag == "int" and (number(node) or 0) > 0):
        _SHORTHAND(node, found)


def _time_zone(node: Node, found: Findings) -> None:
    try:
        zoneinfo.ZoneInfo(node.text)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        found.invalid(node, f"{_seen(node)}: no time zone of that name (IANA)")


def _several(each: Check, least: int = 0, most: int | None = None) -> Check:
    """A list of so many."""

    def check(node: Node, found: Findings) -> None:
        if node.tag != "seq":
            found.invalid(node, f"it is {_seen(node)}, not a list")
        elif len(node.items) < least or (most is not None and len(node.items) > most):
            wanted = f"{least}" if most == least else f"{least} or more"
            found.invalid(node, f"{len(node.items)} items, not {wanted}")
        for item in node.items:
            each(item, found)

    return check


def _map(keys: Mapping[str, Check], *one_of: Sequence[str]) -> Check:
    """A map.

    Args:
        keys: What it may have; what ends with ``!`` must be there. An optional key without a value
            counts as not there.
        one_of: Keys of which exactly one is there.
    """
    known = {key.rstrip("!"): check for key, check in keys.items()}
    required = [key[:-1] for key in keys if key.endswith("!")]

    def check(node: Node, found: Findings) -> None:
        if node.tag != "map":
            found.invalid(node, f"it is {_seen(node)}, not a map")
            return
        for key, value in node.entries.items():
            if key not in known:
                found.unsupported(node.keys[key], "OpenSLO v1 has no such key here: mistyped?")
            elif key in required or not value.is_null:
                known[key](value, found)
        for key in required:
            if key not in node.entries:
                found.invalid(node, f"{key} is missing")
        for group in one_of:
            there = node.present(*group)
            if len(there) != 1:
                told = f"it has {' and '.join(there)}" if there else "none is there"
                found.invalid(node, f"exactly one of {' or '.join(group)} is needed; {told}")

    return check


def _texts_by_name(is_name: Callable[[str], bool], noun: str, *, lists: bool) -> Check:
    """Texts by names; of each name a list of them, perhaps."""

    def check(node: Node, found: Findings) -> None:
        if node.tag != "map":
            found.invalid(node, f"it is {_seen(node)}, not a map")
        for key, value in node.entries.items():
            if not is_name(key):
                found.invalid(node.keys[key], f"no {noun} can have this name")
            for one in value.items if lists and value.tag == "seq" else (value,):
                _TEXT(one, found)

    return check


def _is_annotation(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return bool(_LABEL_KEY.fullmatch(name)) and (not slash or 0 < len(prefix) <= 253)


def _referred(name: str, otherwise: Check) -> Check:
    """A reference to an object, else the object itself."""
    reference = _map({f"{name}!": _NAME})

    def check(node: Node, found: Findings) -> None:
        (reference if name in node.entries else otherwise)(node, found)

    return check


def _inline(spec: Check) -> Check:
    return _map({"kind!": _TEXT, "metadata!": _METADATA, "spec!": spec, "apiVersion": _TEXT})


# What each kind of object has.

_LABELS: Final = _texts_by_name(lambda key: bool(_LABEL_KEY.fullmatch(key)), "label", lists=True)
_METADATA: Final = _map({
    "name!": _NAME, "displayName": _TEXT, "labels": _LABELS,
    "annotations": _texts_by_name(_is_annotation, "annotation", lists=False),
})  # fmt: skip
_SOURCE: Final = _map({
    "metricSource!": _map({"spec!": _anything, "metricSourceRef": _NAME, "type": _TEXT}),
})  # fmt: skip
_RATIO: Final = _map(
    {
        "counter": _BOOLEAN, "good": _SOURCE, "bad": _SOURCE, "total": _SOURCE, "raw": _SOURCE,
        "rawType": _choice("success", "failure"),
    },
    ("total", "raw"), ("good", "bad", "raw"),
)  # fmt: skip
_INDICATOR: Final = _map(
    {"description": _about, "thresholdMetric": _SOURCE, "ratioMetric": _RATIO},
    ("thresholdMetric", "ratioMetric"),
)
_INLINE_INDICATOR: Final = _map({"metadata!": _METADATA, "spec!": _INDICATOR})
_TIME_WINDOW: Final = _map({
    "duration!": _SHORTHAND, "isRolling": _BOOLEAN,
    "calendar": _map({"startTime!": _LOCAL_TIME, "timeZone!": _time_zone}),
})  # fmt: skip
_OPERATORS: Final = _choice("lte", "gte", "lt", "gt")
_OBJECTIVE: Final = _map(
    {
        "displayName": _TEXT, "op": _OPERATORS, "value": _NUMBER,
        "target": _between("[0", "1)"), "targetPercent": _between("[0", "100)"),
        "timeSliceTarget": _between("(0", "1]"), "timeSliceWindow": _slice_window,
        "indicator": _INLINE_INDICATOR, "indicatorRef": _NAME,
        "compositeWeight": _between("(0", "1e308]"),
    },
    ("target", "targetPercent"),
)  # fmt: skip
_CONDITION: Final = _map({
    "severity!": _TEXT, "description": _about,
    "condition!": _map({
        "op!": _OPERATORS, "threshold!": _NUMBER, "lookbackWindow!": _SHORTHAND,
        "kind": _choice("burnrate"), "alertAfter": _TEXT,
    }),
})  # fmt: skip
_TARGET: Final = _map({"target!": _TEXT, "description": _about})
_POLICY: Final = _map({
    "conditions!": _several(_referred("conditionRef", _inline(_CONDITION)), 1, 1),
    "notificationTargets!": _several(_referred("targetRef", _inline(_TARGET)), 1),
    "description": _about, "alertWhenNoData": _BOOLEAN, "alertWhenResolved": _BOOLEAN,
    "alertWhenBreaching": _BOOLEAN,
})  # fmt: skip
_METHODS: Final = _choice("Occurrences", "Timeslices", "RatioTimeslices", GOOD_SECONDS)
_SLO: Final = _map({
    "service!": _TEXT, "budgetingMethod!": _METHODS, "objectives!": _several(_OBJECTIVE, 1),
    "description": _about, "indicator": _INLINE_INDICATOR, "indicatorRef": _NAME,
    "timeWindow": _several(_TIME_WINDOW, 1, 1),
    "alertPolicies": _several(_referred("alertPolicyRef", _inline(_POLICY))),
})  # fmt: skip
_SPECS: Final[dict[str, Check]] = {
    "SLO": _SLO,
    "SLI": _INDICATOR,
    "DataSource": _map({"type!": _TEXT, "description": _about, "connectionDetails": _anything}),
    "AlertPolicy": _POLICY,
    "AlertCondition": _CONDITION,
    "AlertNotificationTarget": _TARGET,
    "Service": _map({"description": _about}),
}


def check(node: Node, found: Findings) -> str | None:
    """Add what is not OpenSLO v1 in an object; gives its kind, or None where it has none."""
    if node.tag != "map":
        found.invalid(node, "no object of OpenSLO: a map with apiVersion and kind")
        return None
    version, kind = node.entries.get("apiVersion"), node.entries.get("kind")
    if version is None or version.text != API:
        told = f"it is {version.text!r}" if version else "apiVersion is missing"
        found.invalid(version or node, f"{told}; only {API} is read")
        return None
    spec = _SPECS.get(kind.text) if kind else None
    if kind is None or spec is None:
        found.invalid(kind or node, f"kind must be one of {', '.join(_SPECS)}")
        return None
    own = "spec" if kind.text == "Service" else "spec!"  # a service's may be left out
    envelope = _map({"apiVersion!": _TEXT, "kind!": _TEXT, "metadata!": _METADATA, own: spec})
    envelope(node, found)
    return kind.text
