"""Gaps in readings with their reason, and time that is not known."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, strategies as st

from lakehouse.explain.evidence import Attempt, Gap, gaps_of, unknown_spans
from lakehouse.report.facts.sections.monitoring import ANY_FAMILY

LIFE = {"broker-1": (0, 100)}


def ok(start: int, end: int, family: str = "f") -> Attempt:
    return Attempt("broker-1", family, start, end, "ok")


def test_time_without_a_reading_is_told_with_its_reason_and_first_error() -> None:
    told = [
        ok(0, 20),
        ok(80, 100),
        Attempt("broker-1", "f", 20, 40, "refused", "refused by a:1"),
        Attempt("broker-1", "f", 40, 50, "refused", "refused by b:2"),
        Attempt("broker-1", "f", 50, 60, "timeout"),
    ]
    assert gaps_of(LIFE, told) == [
        Gap("broker-1", "f", 20, 50, "refused", "refused by a:1"),
        Gap("broker-1", "f", 50, 60, "timeout"),
        Gap("broker-1", "f", 60, 80),
    ]


def test_a_source_that_was_never_read_was_silent_all_its_life() -> None:
    assert gaps_of(LIFE, []) == [Gap("broker-1", ANY_FAMILY, 0, 100)]


def test_a_source_of_other_families_is_not_missed() -> None:
    lives = {**LIFE, "controller-3000": (0, 100), "broker-9": (0, 100)}
    found = gaps_of(lives, [ok(0, 100)], ["broker-1", "controller-3000"])
    assert found == [Gap("broker-9", ANY_FAMILY, 0, 100)]


def test_who_did_not_exist_is_not_waited_for() -> None:
    assert gaps_of({}, [ok(0, 10)]) == []
    assert gaps_of({"broker-1": (30, 60)}, [ok(0, 40)]) == [Gap("broker-1", "f", 40, 60)]


def test_each_family_is_judged_by_itself() -> None:
    found = gaps_of(LIFE, [ok(0, 100), ok(10, 100, "g")])
    assert found == [Gap("broker-1", "g", 0, 10)]


def test_within_an_interval_only_its_part_is_told() -> None:
    one = Gap("b", "f", 10, 50, "refused", "e")
    assert one.within((20, 30)) == Gap("b", "f", 20, 30, "refused", "e")
    assert one.within((50, 60)) is None


SPANS = st.lists(
    st.tuples(
        st.integers(0, 95), st.integers(1, 30), st.sampled_from(["ok", "refused", "timeout"])
    ),
    max_size=8,
)


@given(SPANS)
def test_gaps_are_all_that_no_reading_vouches_for(spans: list[Any]) -> None:
    told = [Attempt("broker-1", "f", start, start + size, what) for start, size, what in spans]
    found = gaps_of(LIFE, told)
    good = {i for one in told if one.outcome == "ok" for i in range(one.start, one.end)}
    silent = {i for one in found for i in range(one.start, one.end)}
    assert silent == set(range(100)) - good
    failed = {i for one in told if one.outcome != "ok" for i in range(one.start, one.end)}
    unexplained = {i for one in found if one.outcome is None for i in range(one.start, one.end)}
    assert unexplained == silent - failed


@given(
    st.dictionaries(st.integers(0, 9).map(lambda at: at * 10), st.integers(0, 10)),
    st.integers(0, 99),
    st.integers(1, 100),
)
def test_time_that_is_not_known_is_what_is_neither_good_nor_bad(
    known: dict[int, int], start: int, size: int
) -> None:
    life = (start, min(100, start + size))
    found = unknown_spans(life, 10, known)
    wanted = 0
    for window in range(0, 100, 10):
        there = max(0, min(life[1], window + 10) - max(life[0], window))
        wanted += max(0, there - known.get(window, 0))
    assert sum(us for _, _, us in found) == wanted
    assert all(start < end and 0 < us <= end - start for start, end, us in found)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(found))


def test_windows_that_nobody_tells_of_are_unknown_wholly() -> None:
    assert unknown_spans((5, 40), 10, {20: 10}) == [(5, 20, 15), (30, 40, 10)]
