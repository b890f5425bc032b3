"""Gold of 200 fleets against two computations that know nothing of the engine (tests/oracle)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.oracle import duck, fleets, gold
from tests.oracle.rows import HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.oracle.plain import Rows
    from tests.oracle.rows import Bronze, Run


# Also those that need no Spark: else another lane would compute both oracles again.
pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", gold.KEYS)
def test_gold_equals_plain_python(rolled: Path, by_python: dict[str, Rows], name: str):
    assert by_python[name], "an empty table proves nothing"
    assert_same(name, gold.told(rolled, name), by_python[name])


@pytest.mark.parametrize("name", duck.ANSWERED)
def test_gold_equals_duckdb(rolled: Path, by_duckdb: dict[str, Rows], name: str):
    assert_same(name, gold.told(rolled, name), by_duckdb[name])


@pytest.mark.parametrize("name", duck.ANSWERED)
def test_the_two_oracles_agree(by_python: dict[str, Rows], by_duckdb: dict[str, Rows], name: str):
    assert_same(name, by_duckdb[name], by_python[name])


def assert_same(name: str, found: Rows, expected: Rows) -> None:
    differences = gold.differences(name, found, expected)
    assert not differences, "\n".join((f"{len(differences)} differences", *differences[:10]))


@pytest.mark.parametrize("name", gold.KEYS)
def test_a_changed_figure_a_missing_row_and_one_too_many_are_found(
    by_python: dict[str, Rows], name: str
):
    """The oracle can fail: at every column of every table."""
    expected = by_python[name]
    key = max(expected, key=lambda key: sum(bool(value) for value in expected[key].values()))
    for column, value in expected[key].items():
        other = {**expected, key: {**expected[key], column: changed(value)}}
        assert len(gold.differences(name, other, expected)) == 1, column
    without = {other: row for other, row in expected.items() if other != key}
    assert len(gold.differences(name, without, expected)) == 1
    assert len(gold.differences(name, expected, without)) == 1


def changed(value: Any) -> Any:
    """The least change of a figure that matters."""
    match value:
        case None:
            return 0
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value * (1 + 1e-8) + 1e-5
        case _:
            return {**value, "kafka.topic.partitions": -1.0}


def test_the_fleets_hold_what_is_hard(bronze: Bronze):
    """Without these the comparisons above would prove little."""
    usable = bronze.usable()
    positive = [run for run in usable if run.positive and not run.counter]
    assert any(run.lead_edge > run.start - run.window > 0 for run in positive), "a lead spills"
    assert any(run.tail_edge > run.end - run.start for run in positive), "a tail outlasts its run"
    assert any(run.start == run.window and run.lead_edge for run in positive), "it opens a window"
    assert any("known_wrong" in run.flags for run in positive)
    assert any("previous_positive" in run.flags and run.lead for run in positive)
    assert any("next_positive" in run.flags and run.tail for run in positive)
    assert any(run.value is not None and run.value < 0 for run in usable), "below zero"
    assert any(run.value is None and run.counter for run in usable), "a reset"
    assert any("gap" in run.flags for run in usable), "an increase over a gap"
    assert any(run.value is None and run.partitions for run in usable), "folded idle partitions"
    assert any(run.clients and (None, "c1") in run.clients for run in usable), "folded clients"
    assert any(run.level == "group" and run.topic is None for run in usable), "a group of no topic"
    assert any(run.metric == "my.own.bean" for run in usable), "a metric of no shipped catalogue"
    assert {run.topic for run in usable} >= set(fleets.TOPICS), "names that hurt"
    assert len({run.window % HOUR for run in usable}) > 3, "several windows of an hour"
    assert len({row.outcome for row in bronze.accounts()}) == 5
    every = {run.reason for run in bronze.runs} | {row.reason for row in bronze.scrapes}
    assert len(every - {None}) == 17, sorted(every - {None})


def test_the_fleets_hold_claims_that_contradict_one_another(bronze: Bronze):
    pairs = list(contested(bronze.usable()))
    assert any(a.positive and b.value == 0 for a, b in pairs), "a stale zero beside a one"
    assert any(a.value == b.value == 0 for a, b in pairs), "two claims of a healthy partition"
    assert any(a.positive and b.positive and a.value != b.value for a, b in pairs)
    assert any(a.positive and (b.value or 0) < 0 for a, b in pairs), "above and below zero"
    assert any(a.partitions and b.partition is not None for a, b in pairs), "folded and unfolded"


def contested(runs: list[Run]) -> Iterable[tuple[Run, Run]]:
    """Rows of two sources that claim one partition at one instant, either one first."""
    gauges = [run for run in runs if run.level == "partition" and not run.counter]
    grouped: dict[Any, list[Run]] = {}
    for run in gauges:
        grouped.setdefault((run.cluster, run.window, run.metric, run.topic), []).append(run)
    for own in grouped.values():
        for a in own:
            for b in own:
                held = set(b.partitions or (b.partition,))
                at_once = a.source != b.source and a.start < b.end and b.start < a.end
                if at_once and held & set(a.partitions or (a.partition,)):
                    yield a, b


def test_the_fleets_lie_at_the_edges_of_weeks_and_years(by_python: dict[str, Rows]):
    topics = [key for key in by_python["topics"] if key[2].startswith("fleet-")]
    assert {key[1] for key in topics if key[0] == "1w"} == {"2020", "2021"}
    for grain in ("1h", "1d", "1w"):
        assert len({key[3] for key in topics if key[0] == grain}) == 2, grain
