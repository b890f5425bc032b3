"""Slices of a history that is known, against what is said of it where little of it was seen.

The SQL runs in DuckDB, which starts at once.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import duckdb
import pytest
from hypothesis import given, settings, strategies as st

from lakehouse.core.objective import Slices
from lakehouse.slo import sli_query

if TYPE_CHECKING:
    from lakehouse.slo.sli_query import Judgement

pytestmark = pytest.mark.slow

SECOND = 1_000_000
WINDOW = 300 * SECOND
STEP = 10  # seconds: history is told in steps
STEPS = 30
_CONNECTION = duckdb.connect()

GOOD, BAD, UNSEEN_GOOD, UNSEEN_BAD, ABSENT = "gbGB-"


def asked(one: Judgement, row: dict[str, int]) -> list[int]:
    """The times of a row, microseconds."""
    sql = ", ".join(one)
    columns = ", ".join(f"CAST({value} AS BIGINT) AS {name}" for name, value in row.items())
    found = _CONNECTION.execute(f"SELECT {sql} FROM (SELECT {columns})").fetchone()  # noqa: S608
    assert found is not None
    assert all(int(value) == value for value in found)
    return [int(value) for value in found]


def row_of(history: str) -> dict[str, int]:
    """What gold/sli would say of a history, and how long the subject existed in it."""

    def us(*states: str) -> int:
        return sum(history.count(state) for state in states) * STEP * SECOND

    existed = us(GOOD, BAD, UNSEEN_GOOD, UNSEEN_BAD)
    return {"good": us(GOOD), "bad": us(BAD), "low": us(BAD), "high": us(BAD), "expected": existed}


def parts(history: str, length_us: int) -> list[str]:
    """Slices in which there is something."""
    size = length_us // (STEP * SECOND)
    cut = [history[at : at + size] for at in range(0, len(history), size)]
    return [one for one in cut if one.strip(ABSENT)]


def share(part: str) -> Fraction:
    """How much of a slice was truly good."""
    good = part.count(GOOD) + part.count(UNSEEN_GOOD)
    return Fraction(good, len(part.replace(ABSENT, "")))


def bounds(one: Judgement, history: str, length_us: int) -> tuple[Fraction, Fraction] | None:
    """The least and greatest share of good slices, as ``Statement`` has it."""
    good, bad, low, high = asked(one, row_of(history))
    assert good >= 0
    assert 0 <= low <= bad <= high
    whole = len(parts(history, length_us)) * length_us
    if not good + bad:
        return None
    assert good + bad <= whole
    unknown = whole - good - bad
    return Fraction(whole - high - unknown, whole), Fraction(whole - low, whole)


@st.composite
def histories(draw: st.DrawFn) -> str:
    """A window in which a subject may come into being, and end."""
    states = st.sampled_from((GOOD, BAD, UNSEEN_GOOD, UNSEEN_BAD))
    runs = draw(st.lists(st.tuples(states, st.integers(1, 12)), min_size=1, max_size=8))
    lived = "".join(state * number for state, number in runs)[:STEPS]
    before = draw(st.integers(0, STEPS - len(lived)))
    return (ABSENT * before + lived).ljust(STEPS, ABSENT)


@settings(max_examples=150)
@given(
    histories(),
    st.sampled_from((60, 100, 150, 300)),
    st.sampled_from((0.5, 0.9, 0.95, 0.99, 1.0)),
)
def test_the_true_share_of_good_slices_is_within_the_bounds(
    history: str, seconds: int, target: float
):
    cut = Slices(seconds * SECOND, target)
    found = bounds(sli_query.judge(cut, WINDOW), history, cut.length_us)
    if found is None:
        assert GOOD not in history
        assert BAD not in history
        return
    own = parts(history, cut.length_us)
    true = Fraction(sum(share(part) >= Fraction(str(target)) for part in own), len(own))
    assert found[0] <= true <= found[1]


@settings(max_examples=100)
@given(histories())
def test_the_true_mean_of_slices_is_within_the_bounds(history: str):
    cut = Slices(WINDOW)
    found = bounds(sli_query.judge(cut, WINDOW), history, WINDOW)
    if found is not None:
        (own,) = parts(history, WINDOW)
        assert found[0] <= share(own) <= found[1]


@pytest.mark.parametrize(
    ("history", "wanted"),
    [
        ("g" * 30, (300, 0, 0, 0)),
        ("g" * 28 + "b" * 2, (0, 300, 300, 300)),
        ("g" * 29 + "b", (300, 0, 0, 0)),
        ("g" * 28 + "GG", (300, 0, 0, 300)),
        ("G" * 30, (0, 0, 0, 0)),
        ("b" * 1 + "B" * 29, (0, 300, 0, 300)),
    ],
)
def test_a_slice_is_judged_by_what_was_seen_of_it(history: str, wanted: tuple[int, ...]):
    found = asked(sli_query.judge(Slices(WINDOW, 0.95), WINDOW), row_of(history))
    assert [one // SECOND for one in found] == list(wanted)


def test_edges_are_bounds_of_slices_too():
    row = {"good": 285, "bad": 15, "low": 14, "high": 16, "expected": 300}
    row = {name: seconds * SECOND for name, seconds in row.items()}
    found = asked(sli_query.judge(Slices(WINDOW, 0.95), WINDOW), row)
    assert [one // SECOND for one in found] == [300, 0, 0, 300]


def test_bad_time_within_a_window_may_be_of_one_slice_or_of_several():
    one = sli_query.judge(Slices(60 * SECOND, 0.9), WINDOW)
    row = row_of("g" * 28 + "bb")  # 20 s bad, and 6 s of each minute are allowed
    assert [us // SECOND for us in asked(one, row)] == [240, 60, 0, 180]
    row = row_of("g" * 24 + "bbbbbb")
    assert [us // SECOND for us in asked(one, row)] == [240, 60, 60, 300]


def test_the_average_counts_every_slice_alike():
    cut = sli_query.judge(Slices(2 * WINDOW), WINDOW)
    half = {"good": 30, "bad": 30, "low": 30, "high": 30, "expected": 600}
    found = asked(cut, {name: seconds * SECOND for name, seconds in half.items()})
    assert [us // SECOND for us in found] == [300, 300, 30, 570]


def test_slices_are_expected_from_the_first_to_the_last_in_which_it_existed():
    def expected(spans: list[tuple[int, int]], cut: Slices) -> int:
        return sli_query.expected_us(cut, 300, 0, spans)

    cut = Slices(300, 0.9)
    assert expected([(0, 3000)], cut) == 3000
    assert expected([(10, 20)], cut) == 300
    assert expected([(299, 301)], cut) == 600
    assert expected([(0, 100), (150, 200), (700, 1000)], cut) == 300 + 600
    assert expected([], cut) == 0
    assert expected([(0, 100)], Slices(60, 0.9)) == 120
    assert expected([(0, 100)], Slices(60)) == 300, "an average goes by windows"


@pytest.mark.parametrize(("length", "fit"), [(60, True), (120, False), (300, True), (450, False)])
def test_slices_fit_windows(length: int, *, fit: bool):
    assert sli_query.fits(Slices(length, 0.9), 300) is fit
