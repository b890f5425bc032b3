"""The judge of the demo's report: bounds without an upper end, and scenarios that were missed."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from tests.demo_truth import __main__ as demo_truth, lag, lost
from tests.demo_truth.busy import LOOPS, busy_loops
from tests.demo_truth.figure import Figure

if TYPE_CHECKING:
    from pathlib import Path

SLOW = {"group": "slow-readers", "topic": "clicks", "partition": 0}
OTHER = {**SLOW, "partition": 1}


def row(low: float, high: float | None, **key: Any) -> dict[str, Any]:
    return {**(key or SLOW), "offsets_low": low, "offsets_high": high}


@pytest.mark.parametrize(
    ("rows", "low", "high", "holds"),
    [
        ([row(2098, 2098)], 2098, 2098, False),
        ([row(2098, None)], 2098, math.inf, True),
        ([row(2098, 2098), row(700, 800)], 2798, 2898, True),
        ([row(2098, None), row(800, 800)], 2898, math.inf, False),
        ([row(2842, 2842, **OTHER)], 0, 0, False),
        ([], 0, 0, False),
        (None, 0, math.inf, True),
    ],
)
def test_lost_bounds_hold_the_truth_or_do_not(
    rows: Any, low: float, high: float, *, holds: bool
) -> None:
    truth = {"expired": [{**SLOW, "offsets": 2842, "offsets_most": 2842}]}
    (figure,) = lost.figures(truth, {"lost_before_read": {"groups": rows}})
    assert (figure.low, figure.high, figure.holds) == (low, high, holds)


def test_lost_truth_between_two_commits_is_a_range() -> None:
    truth = {"expired": [{**SLOW, "offsets": 10, "offsets_most": 30}]}
    (figure,) = lost.figures(truth, {"lost_before_read": {"groups": [row(20, 25)]}})
    assert figure.holds
    (outside,) = lost.figures(truth, {"lost_before_read": {"groups": [row(31, 40)]}})
    assert not outside.holds


def test_lag_unknown_time_may_be_late_but_no_records() -> None:
    at = "2026-11-28T17:00:{:02}+00:00".format
    late = {
        "group": "warehouse",
        "topic": "shipments",
        "records": 300,
        "first_unread_at": at(0),
        "caught_up_from": at(27),
        "caught_up_at": at(28),
    }
    most = {"records_low": 216, "records_high": 256, "seconds_low": 20, "seconds_high": None}
    own = {"group": "warehouse", "bad_low_us": 0, "bad_high_us": 5e6, "unknown_us": 8e6}
    report = {
        "consumer_lag": {"groups": [{"group": "warehouse", "topic": "shipments", "most": most}]},
        "objectives": [{"name": "warehouse-in-time", "subjects": [own]}],
    }
    assert [one.holds for one in lag.figures({"late_groups": [late]}, report)] == [
        False, True, True
    ]  # fmt: skip
    own["unknown_us"] = 7e6
    assert not [*lag.figures({"late_groups": [late]}, report)][-1].holds


def judged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *missed: str, **figures: list[Figure]
) -> bool:
    """The judgement where each question that is not named has one figure, which holds."""
    own = {name: figures.get(name, [Figure("one", 0, 1, 1)]) for name in demo_truth.QUESTIONS}
    monkeypatch.setattr(
        demo_truth,
        "QUESTIONS",
        {name: lambda *_, name=name: own[name] for name in own},
    )
    scenarios = [{"scenario": name, "reason": "none"} for name in missed]
    (folder / "truth.json").write_text(json.dumps({"scenarios_missed": scenarios}))
    (folder / "report.json").write_text("{}")
    return demo_truth.judge(folder)


@pytest.mark.parametrize(
    ("missed", "figures", "holds"),
    [
        ([], {}, True),
        ([], {"lost": []}, False),
        (["expiry"], {"lost": []}, True),
        (["expiry", "traffic"], {"lost": [], "traffic": []}, False),
        ([], {"lost": [Figure("one", 0, 1, 2)]}, False),
    ],
)
def test_judge_missed_scenario_needs_no_figures(
    *,
    missed: list[str],
    figures: dict[str, list[Figure]],
    holds: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert judged(tmp_path, monkeypatch, *missed, **figures) == holds
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told.keys() == {"claim", "figures", "ratios"}
    assert told["figures"]["scenarios_missed"] == len(missed)
    assert told["figures"]["outside"] == sum(not f.holds for o in figures.values() for f in o)
    assert told["figures"]["lost"] == len(figures.get("lost", [1]))


def test_busy_loops_end_with_a_failed_block(tmp_path: Path) -> None:
    def fail_beside_loops() -> None:
        with busy_loops(tmp_path) as loops:
            running.extend(loops)
            assert [loop.poll() for loop in loops] == [None] * LOOPS
            raise ZeroDivisionError

    running: list[Any] = []
    with pytest.raises(ZeroDivisionError):
        fail_beside_loops()
    assert len(running) == LOOPS
    assert all(loop.returncode is not None for loop in running)
