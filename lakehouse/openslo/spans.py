"""Lengths of time in a valid SLO: its window, and the slices that it is cut into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse.openslo.checks import DURATION, clock, present
from lakehouse.openslo.nodes import number, truth
from lakehouse.slo_objective import Slices
from lakehouse.slo_window import ISO_WEEK, LONGEST_DAYS, TimeWindow
from lakehouse.tables import DEFAULT_WINDOW_SECONDS

if TYPE_CHECKING:
    from lakehouse.openslo.findings import Finding
    from lakehouse.openslo.nodes import Node

_SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DAYS: Final = {"d": 1, "w": 7, "M": 31, "Q": 92, "Y": 366}


def time_window(spec: Node, found: list[Finding]) -> TimeWindow | None:
    """The window of an SLO's spec; None where jmxlake has no such window."""
    if not present(spec, "timeWindow"):
        found.append(spec.says("note", "no timeWindow: ISO weeks, UTC"))
        return ISO_WEEK
    (window,) = spec.entries["timeWindow"].items
    rolling = _is_rolling(window, found)
    return None if rolling is None else _window(window, found, rolling=rolling)


def _window(window: Node, found: list[Finding], *, rolling: bool) -> TimeWindow | None:
    duration = window.entries["duration"]
    count, unit = _parts(duration)
    if unit not in _DAYS:
        told = "it is minutes, and M is months" if unit == "m" else "it is hours"
        found.append(duration.says("unsupported", f"{told}: no window is shorter than 1d"))
        return None
    too_long = count * _DAYS[unit] > LONGEST_DAYS
    if too_long or (rolling and unit not in {"d", "w"}):
        told = f"a rolling {duration.text} has no fixed length: write days, such as 30d"
        told = "no window is longer than a year" if too_long else told
        found.append(duration.says("unsupported", told))
        return None
    if rolling:
        return TimeWindow(count * _DAYS[unit], "d", None)
    calendar = window.entries["calendar"].entries
    return TimeWindow(count, unit, clock(calendar["startTime"]), calendar["timeZone"].text)


def slices(goal: Node, method: str, found: list[Finding], *, are_events: bool) -> Slices | None:
    """The slices of an objective; None where they are not told, or jmxlake has none such."""
    wanted = ["timeSliceWindow", *(["timeSliceTarget"] if method == "Timeslices" else [])]
    missing = [key for key in wanted if not present(goal, key)]
    found += (goal.says("invalid", f"{key} is missing: {method} needs it") for key in missing)
    if missing:
        return None
    window = goal.entries["timeSliceWindow"]
    if window.tag == "int":
        count, unit = int(number(window) or 0), "m"
    else:
        count, unit = _parts(window)
    seconds = count * _SECONDS.get(unit, 0)
    if not 0 < seconds <= _SECONDS["d"]:
        found.append(window.says("unsupported", "a slice is between 1m and 1d"))
        return None
    if seconds % DEFAULT_WINDOW_SECONDS and DEFAULT_WINDOW_SECONDS % seconds:
        told = "it neither divides 5m nor is a multiple of it: the lake needs another window"
        found.append(window.says("note", told))
    if DEFAULT_WINDOW_SECONDS % seconds == 0 and seconds < DEFAULT_WINDOW_SECONDS:
        if are_events:
            told = "events are counted in windows of 5m: write a multiple of it"
            found.append(window.says("unsupported", told))
            return None
        told = "it is shorter than gold's windows of 5m: how many slices were bad has wider bounds"
        found.append(window.says("note", told))
    target = goal.entries.get("timeSliceTarget")
    if method != "Timeslices":
        if target is not None and not target.is_null:
            told = f"{method} averages slices and judges none"
            found.append(goal.keys["timeSliceTarget"].says("note", told))
        return Slices(seconds * 1_000_000)
    return Slices(seconds * 1_000_000, number(target) if target else None)


def _is_rolling(window: Node, found: list[Finding]) -> bool | None:
    calendar = bool(present(window, "calendar"))
    told = window.entries.get("isRolling")
    rolling = truth(told) if told else not calendar
    if rolling and calendar:
        found.append(window.says("invalid", "a rolling window has no calendar"))
        return None
    if not rolling and not calendar:
        found.append(window.says("invalid", "calendar is missing: the window is not rolling"))
        return None
    return rolling


def _parts(duration: Node) -> tuple[int, str]:
    match = DURATION.fullmatch(duration.text)
    if match is None:
        raise AssertionError(f"{duration.text!r} was checked to be a duration")
    return min(int(match[1]), 10**6), match[2]
