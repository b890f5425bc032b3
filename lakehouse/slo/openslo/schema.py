"""Check of objects against schema.yaml, the shape of OpenSLO v1.

Findings have line and column, and a hint where other OpenSLO tools or older versions differ.
"""

import datetime as dt
import difflib
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, get_args

import yaml

from lakehouse.core import periods
from lakehouse.core.objective import Level
from lakehouse.core.yaml_nodes import Findings, Node, number
from lakehouse.errors import PeriodError

API: Final = "openslo/v1"
GOOD_SECONDS: Final = "GoodSeconds"
"""An extension of OpenSLO: good seconds per observed seconds."""

WITHOUT_SPEC: Final = "Service"
"""The kind whose spec is optional."""

Scalar = tuple[str, Callable[[Node], bool]]
"""A description of valid scalars, and a test of them."""

_LENGTH: Final = "a duration: a number and m, h, d, w, M, Q or Y (m is minutes, M is months)"
DURATION: Final = re.compile(r"([1-9][0-9]*)([mhdwMQY])")
DNS_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
METRIC: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")
LABEL: Final = "[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?"
_NAMES: Final = {
    "labels": re.compile(LABEL),
    "annotations": re.compile(f"(.{{1,253}}/)?{LABEL}", re.DOTALL),
}


def clock(node: Node) -> dt.datetime | None:
    """Return a time without a zone, or None."""
    try:
        return dt.datetime.strptime(node.text, "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - zone is apart
    except ValueError:
        return None


def _is_text(node: Node) -> bool:
    return not (node.is_nested or node.is_null)


def _matches(pattern: re.Pattern[str]) -> Callable[[Node], bool]:
    return lambda node: _is_text(node) and pattern.fullmatch(node.text) is not None


def _is_slice(node: Node) -> bool:
    return (node.tag == "int" and (number(node) or 0) > 0) or _matches(DURATION)(node)


def _is_time_zone(node: Node) -> bool:
    try:
        periods.time_zone(node.text)
    except PeriodError:
        return False
    return True


_SCALARS: Final[dict[str, Scalar]] = {
    "anything": ("anything", lambda _: True),
    "text": ("a text", _is_text),
    "description": (
        "a text of at most 1050 characters", lambda node: _is_text(node) and len(node.text) <= 1050,
    ),
    "name": (
        "a name: at most 63 of a-z, 0-9 and -, no - at either end (RFC 1123)", _matches(DNS_LABEL),
    ),
    "duration": (_LENGTH, _matches(DURATION)),
    "slice": (f"{_LENGTH}, or minutes", _is_slice),
    "boolean": ("true or false", lambda node: node.tag == "bool"),
    "number": ("a number", lambda node: number(node) is not None),
    "level": (f"one of {', '.join(get_args(Level))}", lambda node: node.text in get_args(Level)),
    "metric": (
        "a name of the catalogue", lambda node: node.tag == "str" and _matches(METRIC)(node),
    ),
    "local time": ("a time such as 2026-01-05 00:00:00", lambda node: clock(node) is not None),
    "time zone": ("the IANA name of a time zone", _is_time_zone),
}  # fmt: skip


@lru_cache
def shapes() -> dict[str, dict[str, Any]]:
    """Return the content of schema.yaml: shapes by name, in ``kinds`` and ``types``."""
    text = (Path(__file__).parent / "schema.yaml").read_text(encoding="utf-8")
    schema: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return schema


def check(node: Node, findings: Findings) -> str:
    """Add a finding for each fault of an object; returns its kind, empty where it has none."""
    if node.tag != "map":
        findings.invalid(node, "no object of OpenSLO: a map with apiVersion and kind")
        return ""
    version, kind = node.entries.get("apiVersion"), node.entries.get("kind")
    if version is None or version.text != API:
        actual = f"it is {version.text!r}" if version else "apiVersion is missing"
        hint = _version_hint(version.text) if version else ""
        findings.invalid(version or node, f"{actual}; only {API} is supported{hint}")
        return ""
    kinds = shapes()["kinds"]
    if kind is None or kind.text not in kinds:
        findings.invalid(kind or node, f"kind must be one of {', '.join(kinds)}")
        return ""
    spec = "spec" if kind.text == WITHOUT_SPEC else "spec!"
    envelope = {"apiVersion!": "text", "kind!": "text", "metadata!": "metadata"}
    check_shape(node, envelope | {spec: kinds[kind.text]}, findings)
    return kind.text


def check_shape(node: Node, shape: Any, findings: Findings) -> None:
    """Add a finding for each fault of a node; the shape is a value of schema.yaml."""
    if isinstance(shape, str) and shape in shapes()["types"]:
        shape = shapes()["types"][shape]
    if isinstance(shape, dict):
        _check_map(node, shape, findings)
    elif isinstance(shape, list):
        _check_list(node, shape, findings)
    elif shape in _NAMES:
        _check_texts(node, shape, findings)
    else:
        expected, is_valid = _scalar(shape)
        if not is_valid(node):
            findings.invalid(node, f"it is {_content(node)}, not {expected}{_hint(node, shape)}")


def _hint(node: Node, shape: str) -> str:
    """Return a hint for a scalar that is not of its shape; empty: there is none."""
    if node.is_nested or shape in _SCALARS:
        return ""
    if shape[0] in "[(":
        return _number_hint(node)
    return _choice_hint(node.text, shape.split(" | "))


def _check_map(node: Node, shape: dict[str, Any], findings: Findings) -> None:
    """Check the keys of a map; an optional key without a value counts as missing."""
    if node.tag != "map":
        findings.invalid(node, f"it is {_content(node)}, not a map")
        return
    keys = {key: value for key, value in shape.items() if key not in {"one of", "or reference"}}
    reference = shape.get("or reference")
    if reference in node.entries:
        keys = {f"{reference}!": "name"}
    known = {key.rstrip("!"): value for key, value in keys.items()}
    required = [key[:-1] for key in keys if key.endswith("!")]
    for key, value in node.entries.items():
        value_shape = known.get(key, known.get("*"))
        if value_shape is None:
            hint = _key_hint(node, key, known)
            findings.unsupported(node.keys[key], f"not one of {', '.join(known)}{hint}")
        elif key in required or not value.is_null:
            check_shape(value, value_shape, findings)
    for key in required:
        if key not in node.entries:
            findings.invalid(node, f"{key} is missing")
    for group in shape.get("one of", ()):
        present = node.present(*group)
        if len(present) != 1:
            actual = " and ".join(present) or "none"
            wanted = f"exactly one of {' or '.join(group)} is required"
            findings.invalid(node, f"{wanted}; present: {actual}")


def _check_list(node: Node, shape: list[Any], findings: Findings) -> None:
    item, least, most = shape
    if node.tag != "seq":
        findings.invalid(node, f"it is {_content(node)}, not a list")
    elif not least <= len(node.items) <= most:
        expected = f"{least}" if most == least else f"{least} or more"
        findings.invalid(node, f"{len(node.items)} items, not {expected}")
    for value in node.items:
        check_shape(value, item, findings)


def _check_texts(node: Node, noun: str, findings: Findings) -> None:
    """Check a map of names to texts; the value of a label may be a list of texts."""
    if node.tag != "map":
        findings.invalid(node, f"it is {_content(node)}, not a map")
    for key, value in node.entries.items():
        if not _NAMES[noun].fullmatch(key):
            findings.invalid(node.keys[key], f"no valid name for {noun}")
        has_list = noun == "labels" and value.tag == "seq"
        for text in value.items if has_list else (value,):
            check_shape(text, "text", findings)


def _scalar(shape: str) -> Scalar:
    if shape in _SCALARS:
        return _SCALARS[shape]
    if shape[0] not in "[(":
        allowed = shape.split(" | ")
        expected = f"one of {', '.join(allowed)}"
        return expected, lambda node: node.text in allowed and not node.is_nested
    low, high = map(float, shape[1:-1].split(", "))
    excluded = {end for end, mark in ((low, shape[0]), (high, shape[-1])) if mark in "()"}

    def is_within(node: Node) -> bool:
        value = number(node)
        return value is not None and low <= value <= high and value not in excluded

    return f"a number of {shape}", is_within


def _content(node: Node) -> str:
    if node.tag == "map" and set(node.entries) == {"?"}:  # YAML reads it as a map in a map's key
        return "a template ({{ }}; render it first)"
    if node.is_nested:
        return {"map": "a map", "seq": "a list"}[node.tag]
    return "empty" if node.is_null else repr(node.text[:60])


_UNITS: Final = {
    "second": "s", "minute": "m", "hour": "h", "day": "d", "week": "w", "month": "M",
    "quarter": "Q", "year": "Y",
}  # fmt: skip
"""Letters of a duration by the units that OpenSLO had before v1."""


def _version_hint(text: str) -> str:
    """Return what changed since an older apiVersion; empty for any other text.

    Args:
        text: The apiVersion of an object.
    """
    if not text.startswith("openslo/v1"):
        return ""
    return ". v1 has a list under timeWindow with a duration, and an indicator for the SLI"


def _choice_hint(text: str, allowed: Iterable[str]) -> str:
    """Return the choice that a text is nearest to, whatever its case.

    Args:
        text: The value.
        allowed: The choices.
    """
    known = {one.lower(): one for one in allowed}
    near = difflib.get_close_matches(text.lower(), known, n=1)
    return f"; did you mean {known[near[0]]!r}?" if near else ""


def _number_hint(node: Node) -> str:
    """Return the other key for a target that is written in percent.

    Args:
        node: A number out of its range.
    """
    value = number(node)
    is_percent = node.path.endswith(".target") and value is not None and 1 < value < 100
    return f"; write targetPercent: {node.text}" if is_percent else ""


def _key_hint(owner: Node, key: str, known: Iterable[str]) -> str:
    """Return what to write instead of an unknown key.

    Args:
        owner: The map that it is in.
        key: The key.
        known: The keys that the map may have.
    """
    if key in {"unit", "count"} and "duration" in known:
        unit, count = (owner.entries.get(name) for name in ("unit", "count"))
        letter = _UNITS.get(unit.text.lower().removesuffix("s"), "") if unit else ""
        written = f"{count.text}{letter}" if count and count.text.isdecimal() and letter else "30d"
        return f"; write duration: {written}"
    near = difflib.get_close_matches(key, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ": mistyped?"
