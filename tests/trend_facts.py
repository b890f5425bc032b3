"""Invented facts with the trends of subjects."""

from __future__ import annotations

from typing import Any, Final

from tests import sample_facts

WEEKS: Final = [f"2026-W{number}" for number in range(35, 48)]
_WEEK_US: Final = 604_800 * sample_facts.SECOND


def week(bad: int | None, unknown: int = 0) -> dict[str, Any] | None:
    """Return a week with so many bad minutes; None: nothing was observed."""
    if bad is None:
        nothing = {"share": None, "share_low": 0.0, "share_high": 1.0}
        return {"expected_us": _WEEK_US, "unknown_us": _WEEK_US, **nothing, "bad_us": 0}
    us = bad * sample_facts.MINUTE
    return {
        "expected_us": _WEEK_US, "unknown_us": unknown, "bad_us": us, "bad_low_us": us,
        "bad_high_us": us, "share": us / _WEEK_US, "share_low": us / _WEEK_US,
        "share_high": (us + unknown) / _WEEK_US,
    }  # fmt: skip


def subject(topic: str, bad: list[int | None], verdict: str = "worse", **rest: Any) -> Any:
    """Return a topic with the bad minutes of its weeks."""
    return {
        "topic": topic, "user": None, "client_id": None, "group": None, "source": None,
        "weeks": [week(one) for one in bad],
        "change": {"share_low": 0.0, "share_high": 0.1, "p": 1 / 12, "compared": 11,
                   "verdict": verdict},
        "regimes": [],
        **rest,
    }  # fmt: skip


def facts_of(*subjects: Any) -> dict[str, Any]:
    """Return the facts of a quiet week with these trends."""
    objective = {"name": "min-isr", "title": "Enough replicas", "target": 0.999, "never_bad": 3}
    return sample_facts.quiet_week() | {
        "trends": {
            "weeks": WEEKS, "tested": len(subjects), "significant_by_chance": 0.08,
            "objectives": [{**objective, "subjects": list(subjects)}],
        }
    }  # fmt: skip
