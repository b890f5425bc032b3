"""Hints for what files of other OpenSLO tools and older versions often have."""

import difflib
from collections.abc import Iterable
from typing import Final

from lakehouse.core.yaml_nodes import Node, number

_UNITS: Final = {
    "second": "s", "minute": "m", "hour": "h", "day": "d", "week": "w", "month": "M",
    "quarter": "Q", "year": "Y",
}  # fmt: skip
"""Letters of a duration by the units that OpenSLO had before v1."""


def of_version(text: str) -> str:
    """Return what changed since an older apiVersion; empty for any other text.

    Args:
        text: The apiVersion of an object.
    """
    if not text.startswith("openslo/v1"):
        return ""
    return ". v1 has a list under timeWindow with a duration, and an indicator for the SLI"


def of_choice(text: str, allowed: Iterable[str]) -> str:
    """Return the choice that a text is nearest to, whatever its case.

    Args:
        text: The value.
        allowed: The choices.
    """
    known = {one.lower(): one for one in allowed}
    near = difflib.get_close_matches(text.lower(), known, n=1)
    return f"; did you mean {known[near[0]]!r}?" if near else ""


def of_number(node: Node) -> str:
    """Return the other key for a target that is written in percent.

    Args:
        node: A number out of its range.
    """
    value = number(node)
    is_percent = node.path.endswith(".target") and value is not None and 1 < value < 100
    return f"; write targetPercent: {node.text}" if is_percent else ""


def of_key(owner: Node, key: str, known: Iterable[str]) -> str:
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


def is_template(node: Node) -> bool:
    """Return True for ``{{ ... }}``, which YAML reads as a map whose key is a map."""
    return node.tag == "map" and set(node.entries) == {"?"}
