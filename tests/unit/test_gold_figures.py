"""Figures of gold that fields of records are made of."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import pytest

from lakehouse.report.facts.fields import NONE, Bounds, Known, Means
from lakehouse.report.facts.gold_figures import (
    AnyTime,
    HeldBack,
    Increase,
    Max,
    Mean,
    Min,
    Rise,
    Stored,
    Sum,
    Time,
    figures,
)

ROWS: dict[str, dict[str, Any]] = {
    "gauge": {
        "value_max": 9.0, "value_min": 1.0, "value_seconds": 30.0, "series_seen_us": 10_000_000,
        "series_affected_us": 5_000_000, "series_affected_low_us": 4_000_000,
        "series_affected_high_us": 6_000_000,
        "affected_us": 3_000_000, "affected_low_us": 2_000_000, "affected_high_us": 4_000_000,
        "series": 2,
    },
    "errors": {"increase": 3.0, "increase_low": 2.0, "increase_high": None},
}  # fmt: skip


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        (Max("gauge"), 9.0),
        (Min("gauge"), 1.0),
        (Sum("gauge"), 30.0),
        (Mean("gauge"), 3.0),
        (Mean("gauge", above_zero=True), 6.0),
        (Stored("gauge", "series"), 2),
        (Time("gauge"), Bounds(5_000_000, 4_000_000, 6_000_000)),
        (AnyTime("gauge"), Bounds(3_000_000, 2_000_000, 4_000_000)),
        (Increase("errors"), 3.0),
        (Rise("errors"), Bounds(3.0, 2.0, None)),
        (Rise("errors", "gauge", ("late_errors",)), Bounds(3.0, 2.0, None)),
        (Rise("late_errors", "gauge"), NONE),
    ],
)
def test_figure_of_rows_is_exact(figure: Any, value: object) -> None:
    assert figure.figure(ROWS) == value


@pytest.mark.parametrize("figure", [Max("x"), Mean("x"), Sum("x"), Increase("x")])
def test_figure_without_rows_is_not_known(figure: Any) -> None:
    assert figure.figure(ROWS) is None
    assert figure.figure({}) is None


@pytest.mark.parametrize("figure", [Time("x"), HeldBack("x"), Rise("x"), Rise("x", "y")])
def test_bounds_without_rows_are_not_known(figure: Any) -> None:
    assert figure.figure(ROWS) == Bounds()


def test_wait_of_wrong_version_has_no_upper_bound() -> None:
    assert HeldBack("gauge").figure(ROWS) == Time("gauge").figure(ROWS)
    wrong = {"gauge": {**ROWS["gauge"], "known_wrong": 1}}
    assert HeldBack("gauge").figure(wrong) == Bounds(5_000_000, 4_000_000, None)


class Twins(NamedTuple):
    whole: Annotated[Bounds, Means("time", Time("gauge"))]
    union: Annotated[Bounds, Means("time", AnyTime("gauge"))]
    made: Annotated[Known, Means("made elsewhere")]


def test_fields_with_equal_meaning_keep_their_figures() -> None:
    found = figures(Twins, ROWS)
    assert list(found) == ["whole", "union"]
    assert found["whole"] != found["union"]
