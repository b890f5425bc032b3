"""The used error budget of an objective, and its status.

All functions work on objectives as JSON, because a team's objectives are computed again.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, get_args

from lakehouse.core.observed_share import state_of
from lakehouse.report.facts.fields import Bounds, bounds_json
from lakehouse.report.figures import Row

Status = Literal["missed", "at_risk", "uncertain", "no_data", "on_track", "met"]
"""Statuses of an objective, worst first; ``at_risk`` and ``on_track``: the window is running."""

STATUSES: Final = get_args(Status)

_NEEDS_DATA: Final = ("uncertain", "on_track", "met")
"""Statuses that are not stated if too little was observed."""


def with_budgets(objectives: Sequence[Row], *, running: bool, floor: float) -> list[dict[str, Any]]:
    """Return objectives with the budget that each used; subjects with the worst status first.

    Args:
        objectives: As in the facts.
        running: Whether the report's period has not ended.
        floor: Minimum coverage for a good status, percent.
    """
    return [_with_budget(one, running=running, floor=floor) for one in objectives]


def _with_budget(objective: Row, *, running: bool, floor: float) -> dict[str, Any]:
    running = running or any(row.get("ahead_us") for row in objective["subjects"])
    subjects = [{**row, **budget(row, objective, running=running)} for row in objective["subjects"]]
    subjects.sort(key=lambda row: STATUSES.index(row["status"]))  # stable: worst first as before
    if not subjects:
        return {**objective, **_NO_BUDGET, "subjects": []}
    worst = {key: subjects[0][key] for key in _NO_BUDGET}
    worst["status"] = or_no_data(worst["status"], observed_percent(subjects), floor)
    return {**objective, **worst, "subjects": subjects}


def budget(subject: Row, objective: Row, *, running: bool) -> Row:
    """Return the status of a subject and the budget that it used, as ``Used`` declares them.

    Args:
        subject: As in the facts.
        objective: Its objective.
        running: Whether the objective's window has not ended.
    """
    whole_us = subject.get("budget_of_window_us", subject.get("budget_us"))
    used = _used(subject, objective, whole_us)
    status = _so_far(subject, objective, whole_us) if running else verdict(subject)
    return _row(status, whole_us, used)


def _row(status: Status, whole_us: int | None, used: Bounds) -> dict[str, Any]:
    return {"status": status, "budget_whole_us": whole_us, **bounds_json("used", used)}


_NO_BUDGET: Final[Row] = _row("no_data", None, Bounds())


def verdict(row: Row) -> Status:
    """Return the verdict of a row, ``no_data`` without one."""
    known: dict[Any, Status] = {name: name for name in STATUSES}
    return known.get(row.get("verdict"), "no_data")


def _used(subject: Row, objective: Row, whole_us: int | None) -> Bounds:
    bad = _bad_us(subject, objective)
    if bad.value is None or not whole_us:
        return Bounds()
    shares = Bounds(*(None if us is None else us / whole_us for us in bad))
    counted = subject.get("events") if objective.get("slice_us") is None else None
    if not counted or not counted["total"]:
        return shares
    # Events against allowed events, for the elapsed part of the window.
    over = (subject.get("budget_us") or 0) / whole_us
    value = counted["bad"] / counted["total"] / (1 - objective["target"]) * over
    low, high = shares.low or 0.0, shares.high
    return Bounds(value, min(value, low), None if high is None else max(value, high))


def _bad_us(subject: Row, objective: Row) -> Bounds:
    """Return the time that counts as bad; at most with all unobserved time."""
    value, low, high = (subject.get(key) for key in ("bad_us", "bad_low_us", "bad_high_us"))
    if subject.get("attainment") is None or value is None or low is None or high is None:
        return Bounds()
    unknown_us = subject.get("unknown_us")
    if objective.get("unknown") == "bad":
        value, low = value + (unknown_us or 0), low + (unknown_us or 0)
    return Bounds(value, low, None if unknown_us is None else high + unknown_us)


def _so_far(subject: Row, objective: Row, whole_us: int | None) -> Status:
    """Return the status of a subject in a running window."""
    bad = _bad_us(subject, objective)
    if bad.value is None or bad.low is None or whole_us is None:
        return "no_data"
    if bad.low > whole_us:
        return "missed"
    if bad.value > subject["budget_us"]:  # the used share exceeds the elapsed share of the window
        return "at_risk"
    most = bad.high
    if objective.get("unknown") in ("exclude", "good"):  # unobserved time never counts as bad
        most = subject["bad_high_us"]
    return "uncertain" if most is None or most > whole_us else "on_track"


def or_no_data(status: Status, percent: float | None, floor: float) -> Status:
    """Return a status, or ``no_data`` if coverage is too low for it."""
    too_little = state_of(percent, floor) == "not_known"
    return "no_data" if too_little and status in _NEEDS_DATA else status


def observed_percent(subjects: Sequence[Row]) -> float | None:
    """Return the observed share of the expected time of some subjects; None: none is expected."""
    expected_us = sum(row.get("expected_us") or 0 for row in subjects)
    observed_us = sum(
        max(0, (row.get("expected_us") or 0) - row["unknown_us"])
        for row in subjects
        if row.get("unknown_us") is not None
    )
    return 100 * observed_us / expected_us if expected_us else None
