"""Incidents by SQL are those of a plain reading of the same stretches."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from lakehouse.core.lake import Lake
from lakehouse.core.metrics import LEADERLESS, UNDER_MIN_ISR
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.gold import incidents
from tests.stretches import SECOND, Row, as_rows, plainly, random_stretches, stretch

if TYPE_CHECKING:
    from collections.abc import Sequence


def joined(stretches: Sequence[Row]) -> list[incidents.Incident]:
    engine = LocalEngine(Lake("."))
    return incidents.joined(engine, as_rows(stretches))


@pytest.mark.parametrize("seed", range(12))
def test_sql_joins_as_a_plain_reading_does(seed: int) -> None:
    stretches = random_stretches(random.Random(seed))
    assert sorted(joined(stretches), key=repr) == plainly(stretches)


def test_the_lead_is_that_of_the_source_that_saw_it_first() -> None:
    """The report said 10 s, ``explain`` 29 s: broker-2 saw it later, after a longer interval."""
    first = stretch(100, 160, lead_us=10 * SECOND, tail_us=10 * SECOND)
    second = stretch(101, 160, "broker-2", lead_us=30 * SECOND, tail_us=5 * SECOND)
    (one,) = joined([first, second])
    assert (one.lead_us, one.tail_us) == (10 * SECOND, 5 * SECOND)
    assert one.sources == ("broker-1", "broker-2")


def test_stretches_that_touch_are_one_incident_with_the_outer_edges() -> None:
    pieces = [
        stretch(0, 30, tail_us=0), stretch(30, 40, lead_us=0), stretch(35, 60, "broker-2"),
        stretch(90, 95),
    ]  # fmt: skip
    first, second = joined(pieces)
    assert (first.sources, first.lead_us, first.tail_us) == (("broker-1", "broker-2"), 7, 5)
    assert (first.end, second.start) == (60 * SECOND, 90 * SECOND)


def test_a_tail_reaches_back_over_a_cut_when_the_piece_after_it_may_be_over_wholly() -> None:
    """Seen last at 20; the hour begins at 30; the scrape at 31 says that it is over."""
    pieces = [stretch(0, 30, tail_us=10 * SECOND), stretch(30, 31, tail_us=SECOND, lead_us=0)]
    assert [one.tail_us for one in joined(pieces)] == [11 * SECOND]
    beside = stretch(10, 31, "broker-2", tail_us=4 * SECOND)
    assert [one.tail_us for one in joined([*pieces, beside])] == [4 * SECOND]


def test_being_leaderless_is_an_incident_of_its_own() -> None:
    found = joined([stretch(0, 30), stretch(0, 30, metric=LEADERLESS)])
    assert {one.metric for one in found} == {UNDER_MIN_ISR, LEADERLESS}
