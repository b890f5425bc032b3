"""The words in which ``shapes`` says what OpenSLO v1 allows: small checks, put together."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from lakehouse.openslo.findings import Finding
from lakehouse.openslo.nodes import Node, number

Check = Callable[[Node, list[Finding]], None]
"""Adds what is wrong with a node."""

DURATION: Final = re.compile(r"([1-9][0-9]*)([mhdwMQY])")
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LABEL_KEY: Final = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?")
_CLOCK: Final = "%Y-%m-%d %H:%M:%S"


def anything(_node: Node, _found: list[Finding]) -> None:
    """Whatever is there."""


def text(most: int | None = None) -> Check:
    """A text of at most so many characters."""

    def check(node: Node, found: list[Finding]) -> None:
        if node.tag in {"map", "seq", "null"}:
            found.append(node.says("invalid", f"it is {_what(node)}, not a text"))
        elif most is not None and len(node.text) > most:
            found.append(node.says("invalid", f"{len(node.text)} characters; {most} at most"))

    return check


def matching(pattern: re.Pattern[str], what: str) -> Check:
    """A text of a form."""

    def check(node: Node, found: list[Finding]) -> None:
        if node.tag in {"map", "seq", "null"} or not pattern.fullmatch(node.text):
            found.append(node.says("invalid", f"it is {_what(node)}, not {what}"))

    return check


NAME: Final = matching(
    _DNS_LABEL, "a name: at most 63 of a-z, 0-9 and -, no - at either end (RFC 1123)"
)
SHORTHAND: Final = matching(
    DURATION, "a duration: a number and m, h, d, w, M, Q or Y (m is minutes, M is months)"
)


def slice_window(node: Node, found: list[Finding]) -> None:
    """A duration; a bare number is minutes."""
    if not (node.tag == "int" and (number(node) or 0) > 0):
        SHORTHAND(node, found)


def choice(*allowed: str) -> Check:
    """One of some words."""

    def check(node: Node, found: list[Finding]) -> None:
        if node.text not in allowed or node.tag in {"map", "seq"}:
            found.append(
                node.says("invalid", f"it is {_what(node)}, not one of {', '.join(allowed)}")
            )

    return check


def boolean(node: Node, found: list[Finding]) -> None:
    """True or false."""
    if node.tag != "bool":
        found.append(node.says("invalid", f"it is {_what(node)}, not true or false"))


def between(low: str, high: str) -> Check:
    """A number of a range, each end as ``[0`` (with it) or ``(0`` (without)."""
    least, most = float(low[1:]), float(high[:-1])

    def check(node: Node, found: list[Finding]) -> None:
        value = number(node)
        above = value is not None and (value >= least if low[0] == "[" else value > least)
        below = value is not None and (value <= most if high[-1] == "]" else value < most)
        if not (above and below):
            found.append(
                node.says("invalid", f"it is {_what(node)}, not a number of {low}, {high}")
            )

    return check


def any_number(node: Node, found: list[Finding]) -> None:
    """A number, no NaN and no infinity."""
    if number(node) is None:
        found.append(node.says("invalid", f"it is {_what(node)}, not a number"))


def local_time(node: Node, found: list[Finding]) -> None:
    """A date with a time of day, without a zone."""
    if clock(node) is None:
        found.append(
            node.says("invalid", f"it is {_what(node)}, not a time such as 2026-01-05 00:00:00")
        )


def clock(node: Node) -> dt.datetime | None:
    """A time without a zone, or None."""
    try:
        return dt.datetime.strptime(node.text, _CLOCK)  # noqa: DTZ007 - the zone is beside it
    except ValueError:
        return None


def time_zone(node: Node, found: list[Finding]) -> None:
    """A name of IANA's time zone database."""
    if zone(node.text) is None:
        found.append(node.says("invalid", f"{_what(node)}: no time zone of that name (IANA)"))


def zone(name: str) -> zoneinfo.ZoneInfo | None:
    """A time zone, or None where there is none of that name."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def several(check_: Check, least: int = 0, most: int | None = None) -> Check:
    """A list of so many."""

    def check(node: Node, found: list[Finding]) -> None:
        if node.tag != "seq":
            found.append(node.says("invalid", f"it is {_what(node)}, not a list"))
            return
        if len(node.items) < least or (most is not None and len(node.items) > most):
            wanted = f"{least}" if most == least else f"{least} or more"
            found.append(node.says("invalid", f"{len(node.items)} items, not {wanted}"))
        for item in node.items:
            check_(item, found)

    return check


def a_map(
    must: Mapping[str, Check],
    may: Mapping[str, Check] | None = None,
    *,
    one_of: Sequence[Sequence[str]] = (),
) -> Check:
    """A map of keys that must and may be there.

    Args:
        must: What is required.
        may: What is optional; a key without a value counts as not there.
        one_of: Keys of which exactly one is there.
    """
    known = {**must, **(may or {})}

    def check(node: Node, found: list[Finding]) -> None:
        if node.tag != "map":
            found.append(node.says("invalid", f"it is {_what(node)}, not a map"))
            return
        for key, value in node.entries.items():
            if key not in known:
                found.append(
                    node.keys[key].says("unsupported", "OpenSLO v1 has no such key here: mistyped?")
                )
            elif key in must or not value.is_null:
                known[key](value, found)
        missing = (key for key in must if key not in node.entries)
        found += (node.says("invalid", f"{key} is missing") for key in missing)
        for group in one_of:
            there = present(node, *group)
            if len(there) != 1:
                names = " or ".join(group)
                told = f"it has {' and '.join(there)}" if there else "none is there"
                found.append(node.says("invalid", f"exactly one of {names} is needed; {told}"))

    return check


def present(node: Node, *names: str) -> list[str]:
    """Which keys of a map have a value."""
    return [name for name in names if name in node.entries and not node.entries[name].is_null]


def labelled(node: Node, found: list[Finding]) -> None:
    """Labels: each key has a text, or several."""
    if node.tag != "map":
        found.append(node.says("invalid", f"it is {_what(node)}, not a map"))
        return
    for key, value in node.entries.items():
        if not _LABEL_KEY.fullmatch(key):
            found.append(node.keys[key].says("invalid", "no label can have this name"))
        for one in value.items if value.tag == "seq" else (value,):
            text()(one, found)


def annotated(node: Node, found: list[Finding]) -> None:
    """Annotations: each key has a text."""
    if node.tag != "map":
        found.append(node.says("invalid", f"it is {_what(node)}, not a map"))
        return
    for key, value in node.entries.items():
        prefix, slash, name = key.rpartition("/")
        if not _LABEL_KEY.fullmatch(name) or (slash and not 0 < len(prefix) <= 253):
            found.append(node.keys[key].says("invalid", "no annotation can have this name"))
        text()(value, found)


def _what(node: Node) -> str:
    if node.tag in {"map", "seq"}:
        return {"map": "a map", "seq": "a list"}[node.tag]
    return "empty" if node.is_null else repr(node.text[:60])
