"""What brokers answered, and when nobody could have answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from demo.clock import seconds
from tests.demo_truth.figure import Figure, nearest, stated

if TYPE_CHECKING:
    from collections.abc import Iterator


def figures(truth: Any, report: Any) -> Iterator[Figure]:
    """Refused writes by their error, and the time without a leader.

    Only one client gets these errors: a record a request, and it never tries again.
    """
    rows = {row["error"]: row for row in report["service"]["errors"] if row["request"] == "produce"}
    for refused in truth.get("refused", ()):
        bounds = stated(rows.get(refused["error"]), "answers_low", "answers_high")
        yield Figure(f"writes refused, {refused['error']}", *bounds, refused["answers"])
    low, high = stated(report["service"], "leaderless_low_us", "leaderless_high_us")
    # A broker shows what the controllers decided once it has heard of it.
    headless, heard = _leaderless_us(truth), truth["slowest_heard_us"]
    yield Figure(
        "microseconds without a leader", low, high,
        nearest((headless - heard, headless + heard), (low, high)),
    )  # fmt: skip


def _leaderless_us(truth: Any) -> float:
    """Time in which any partition had no leader, by the metadata log."""
    total, reached = 0.0, 0.0
    for start, end in sorted(
        (seconds(row["start"]) * 1e6, seconds(row["end"]) * 1e6) for row in truth["leaderless"]
    ):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
