"""From values to readings and answers: what holds whatever way the values came."""

from __future__ import annotations

import math

import pytest

from collector.catalogue import KnownWrong, Metric
from collector.errors import SourceDataError
from collector.model import Answer, Moment, Notice, Reading, Series
from collector.sources.base.lake_limits import within_cap
from collector.sources.base.readings import Readings, answer_of, number_of, split
from collector.sources.java.jvm import rmi_options
from lakehouse.tables import FLAG_KNOWN_WRONG, OTHER

METRIC = Metric(
    name="m", unit="1", description="", object="a:b=c", known_wrong=(KnownWrong("4.0.0", "r"),)
)


def series(count: int) -> list[Series]:
    return [Series("m", f"t{number}") for number in range(count)]


@pytest.mark.parametrize(
    ("value", "number"), [(0, 0.0), (-1.5, -1.5), (True, 1.0), (False, 0.0), (math.nan, None)]
)
def test_numbers_are_told_and_nan_is_observed(value: object, number: float | None) -> None:
    assert number_of(value, "here", "a:b=c", METRIC) == number


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\n  b", "a b"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (None, "None"),
        (10**400, "10{79}"),
    ],
)
def test_what_is_no_number_is_refused_with_its_place(value: object, shown: str) -> None:
    text = f"^here: a:b=c Value is {shown}, not a number; correct or remove m in the catalogue$"
    with pytest.raises(SourceDataError, match=text):
        number_of(value, "here", "a:b=c", METRIC)


def test_zero_is_apart_from_idle_and_from_below_zero() -> None:
    zero, below, idle = series(3)
    assert split({zero: 0.0, below: -1.0, idle: None}) == ({zero}, {below: -1.0, idle: None})


def test_only_a_version_that_is_known_to_be_wrong_is_flagged() -> None:
    flags = [
        Readings(version).reading(METRIC, frozenset(), {}).flags
        for version in ("4.3.1", "3.9.1", None)
    ]
    assert flags == [(FLAG_KNOWN_WRONG,), (), ()]


def test_an_equal_set_of_zeros_is_the_set_of_the_last_reading() -> None:
    readings = Readings("4.3.1")
    first = readings.reading(METRIC, frozenset(series(3)), {})
    assert readings.reading(METRIC, frozenset(series(3)), {}).zeros is first.zeros
    assert readings.reading(METRIC, frozenset(series(2)), {}).zeros == frozenset(series(2))


def test_beans_are_counted_before_the_excess_is_folded() -> None:
    one, *others = series(5)
    answer = answer_of((Reading("m", "gauge", frozenset(others), {one: None}),), 3)
    assert (answer.beans, answer.dropped_series) == (5, 2)
    assert len(answer.readings[0].zeros) == 3
    assert answer.readings[0].values == {one: None}


def test_each_moment_is_capped_by_itself_and_all_else_stays() -> None:
    now = (Reading("m", "gauge", frozenset(series(3))),)
    few = (Reading("m", "gauge", frozenset(series(1))),)
    notice = Notice("controller_clock_back", Series(""), "2", "1")
    moments = (Moment(1, None), Moment(2, few), Moment(3, now))
    whole = Answer(now, 3, dropped_series=4, notices=(notice,), moments=moments, more=True)
    told = within_cap(whole, 1)
    folded = frozenset({Series("m", "t0"), Series("m", OTHER)})
    assert told.dropped_series == 4 + 2
    assert told.readings[0].zeros == folded
    assert told.moments[:2] == moments[:2]
    ((third,),) = [moment.readings or () for moment in told.moments[2:]]
    assert third.zeros == folded
    assert (told.beans, told.notices, told.more) == (3, (notice,), True)
    assert within_cap(whole, 3) == whole


@pytest.mark.parametrize(("seconds", "milliseconds"), [(0.0001, 1), (0.5, 500), (30, 30_000)])
def test_rmi_never_waits_for_ever_which_0_would_mean(seconds: float, milliseconds: int) -> None:
    options = rmi_options(seconds)
    assert len(options) == 3
    assert {option.partition("=")[2] for option in options} == {str(milliseconds)}
