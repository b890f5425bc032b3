"""The kernel's rows of generated fleets against the oracle, which knows nothing of it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse.kernel.build_program import build_program
from tests.kernel_inputs import together
from tests.kernel_tables import COMMITTED, bronze, rolled_up
from tests.oracle import fleets, gold, meaning, odd_values, stories, whole_hours
from tests.oracle.objectives import OBJECTIVES
from tests.oracle.rows import HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.kernel import run_in_duckdb
    from tests.lake_builder import Batch
    from tests.oracle.plain import Rows
    from tests.oracle.rows import Bronze, Run

pytestmark = pytest.mark.slow

FLEETS, HOURS, ODD, FAST = 100, 24, 30, 20


@pytest.fixture(scope="module")
def batch() -> Batch:
    generated = (*map(fleets.fleet, range(FLEETS)), *map(whole_hours.fleet, range(HOURS)))
    return together((*generated, *stories.all_stories()))


@pytest.fixture(scope="module")
def read(batch: Batch) -> Bronze:
    return bronze(batch)


@pytest.fixture(scope="module")
def right(read: Bronze) -> dict[str, Rows]:
    return gold.wanted(read, OBJECTIVES)


@pytest.fixture(scope="module")
def found(program: run_in_duckdb.Program, batch: Batch) -> dict[str, Rows]:
    return rolled_up(program, batch)


@pytest.mark.parametrize("name", gold.KEYS)
def test_every_row_is_what_plain_python_computes(
    found: dict[str, Rows], right: dict[str, Rows], name: str
):
    assert right[name], "an empty table proves nothing"
    assert_same(name, found[name], right[name])


@pytest.fixture(scope="module")
def odd() -> Batch:
    return together(map(odd_values.fleet, range(0, 2 * ODD, 2)))


@pytest.fixture(scope="module")
def odd_right(odd: Batch) -> dict[str, Rows]:
    return gold.wanted(bronze(odd), OBJECTIVES)


@pytest.fixture(scope="module")
def odd_found(program: run_in_duckdb.Program, odd: Batch) -> dict[str, Rows]:
    return rolled_up(program, odd)


# A value's bucket is of its millionths: of 1e-7 plain Python knows better than gold promises.
@pytest.mark.parametrize("name", [name for name in gold.KEYS if name != "distributions"])
def test_values_that_no_double_holds_exactly_are_rounded_and_no_more(
    odd_found: dict[str, Rows], odd_right: dict[str, Rows], name: str
):
    assert_same(name, odd_found[name], odd_right[name], slack=1e-3)


@pytest.fixture(scope="module")
def fast() -> Batch:
    return together(fleets.faster(fleets.fleet(seed), 10) for seed in range(FAST))


@pytest.fixture(scope="module")
def fast_right(fast: Batch) -> dict[str, Rows]:
    return gold.wanted(bronze(fast, 30_000_000), OBJECTIVES)


@pytest.fixture(scope="module")
def fast_found(fast: Batch) -> dict[str, Rows]:
    return rolled_up(build_program(30, COMMITTED, OBJECTIVES, meaning.LAKE), fast)


@pytest.mark.parametrize("name", gold.KEYS)
def test_windows_may_be_of_half_a_minute(
    fast_found: dict[str, Rows], fast_right: dict[str, Rows], name: str
):
    assert_same(name, fast_found[name], fast_right[name])


def assert_same(name: str, found: Rows, expected: Rows, slack: float = 1e-6) -> None:
    differences = gold.differences(name, found, expected, slack)
    told = f"{len(differences)} differences; python -m tests.oracle.shrink CLUSTER {name}"
    assert not differences, "\n".join((told, *differences[:10]))


@pytest.mark.parametrize("name", gold.KEYS)
def test_a_changed_figure_a_missing_row_and_one_too_many_are_noticed(
    right: dict[str, Rows], name: str
):
    """The comparison can fail: at every column of every table."""
    key = max(right[name], key=lambda key: sum(map(bool, right[name][key].values())))
    expected = {**dict(islice(right[name].items(), 20)), key: right[name][key]}
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
        case str():
            return f"{value}-"
        case _:
            return {**value, "kafka.topic.partitions": -1.0}


def test_the_fleets_hold_what_is_hard(read: Bronze):
    """Without these the comparisons above would prove little."""
    usable = read.usable()
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
    assert len({run.window % HOUR for run in usable}) == 12, "every window of an hour"
    assert len({row.outcome for row in read.accounts()}) == 6
    every = {run.reason for run in read.runs} | {row.reason for row in read.scrapes}
    assert len(every - {None}) == 20, sorted(every - {None})


def test_the_fleets_hold_claims_that_contradict_one_another(read: Bronze):
    pairs = list(contested(read.usable()))
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


def test_hours_are_good_throughout_in_part_and_perhaps(right: dict[str, Rows]):
    whole = [(key, row) for key, row in right["sli"].items() if row["good_us"] == HOUR]
    assert {key[2] for key, _ in whole} >= {"min-isr", "fetch-throttling", "coverage"}
    # Good, and may have been bad all the same.
    perhaps = {key[2] for key, row in whole if row["bad_high_us"]}
    assert perhaps == {"copied-late", "lost-before-read"}
    assert any(0 < row["good_us"] < HOUR for row in right["sli"].values())
    assert any(row["before_us"] for row in right["sli"].values()), "it may have begun before"
    of_clients = [row for key, row in right["sli_windows"].items() if key[5] is not None]
    assert any(not any(row.values()) for row in of_clients), "a client of which nothing is known"
