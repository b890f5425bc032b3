"""How far a group was behind, by its own commits and what brokers acknowledged to its producer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from demo.clock import seconds
from tests.demo_truth.figure import Figure, stated, stated_us

if TYPE_CHECKING:
    from collections.abc import Iterator

_OBJECTIVE: Final = "warehouse-in-time"
_IN_TIME_SECONDS: Final = 15.0
"""The objective's threshold."""


def figures(truth: Any, report: Any) -> Iterator[Figure]:
    """Records, for how long, and for how long it was later than the objective has it."""
    for late in truth.get("late_groups", ()):
        rows = [
            one
            for one in report["consumer_lag"]["groups"]
            if (one["group"], one["topic"]) == (late["group"], late["topic"])
        ]
        name, most = f"{late['group']}, {late['topic']}", rows[0]["most"] if rows else None
        records = stated(most, "records_low", "records_high")
        yield Figure(f"{name}: most records to read", *records, late["records"])
        unread = seconds(late["first_unread_at"])
        age = seconds(late["caught_up_from"]) - unread
        longest = stated(most, "seconds_low", "seconds_high")
        yield Figure(f"{name}: age of the oldest, seconds", *longest, age)
        bad = (us / 1e6 for us in _bad_us(report, late["group"]))
        late_for = seconds(late["caught_up_at"]) - unread - _IN_TIME_SECONDS
        yield Figure(f"{name}: later than {_IN_TIME_SECONDS:g} s, seconds", *bad, late_for)


def _bad_us(report: Any, group: str) -> tuple[float, float]:
    (objective,) = (one for one in report["objectives"] if one["name"] == _OBJECTIVE)
    subjects = [one for one in objective["subjects"] if one["group"] == group]
    return stated_us(subjects[0] if subjects else None, "bad_low_us", "bad_high_us")
