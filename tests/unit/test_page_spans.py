from __future__ import annotations

import itertools
from datetime import UTC, datetime

from hypothesis import given, strategies as st

from lakehouse.core.periods import iso, micros
from lakehouse.report.charts.series import series_of

START = micros(datetime(2026, 11, 21, 6, tzinfo=UTC))
SECOND = 1_000_000
MINUTE = 60 * SECOND
WITHIN = (START, START + 10 * MINUTE)


def point(minute: int, value: float | None) -> list[object]:
    return [iso(START + minute * MINUTE), value, value, value]


@given(
    st.dictionaries(
        st.integers(min_value=0, max_value=9),
        st.none() | st.integers(min_value=0, max_value=2),
    )
)
def test_every_minute_of_the_period_is_known_or_not_known_and_never_both(values):
    drawn = series_of([point(n, values[n]) for n in sorted(values)], WITHIN, "partitions")
    every = sorted([(one.start, one.end) for one in drawn.known] + list(drawn.unknown))
    assert every[0][0] == WITHIN[0]
    assert every[-1][1] == WITHIN[1]
    assert all(one[1] == other[0] for one, other in itertools.pairwise(every))
    unknown = sum(end - start for start, end in drawn.unknown)
    if len(values) > 1 and min(b - a for a, b in _neighbours(sorted(values))) == 1:
        assert unknown == (10 - sum(one is not None for one in values.values())) * MINUTE


def _neighbours(minutes):
    return itertools.pairwise(minutes)


def test_what_no_point_covers_is_not_known():
    drawn = series_of([point(2, 1), point(3, 1), point(7, 0)], WITHIN, "partitions")
    minutes = [((a - START) // MINUTE, (b - START) // MINUTE) for a, b in drawn.unknown]
    assert minutes == [(0, 2), (4, 7), (8, 10)]
    assert drawn.is_drawn


def test_a_coarser_drawing_keeps_every_extreme():
    many = [point(0, 0)] + [
        [iso(START + n * SECOND), n % 7, n % 7 - 1, n % 7 + 1] for n in range(1, 600)
    ]
    fine = series_of(many, WITHIN, "partitions")
    coarse = fine.coarser(50)
    assert len(coarse.known) <= 51 < len(fine.known)
    assert coarse.highest == fine.highest == 7
    assert (coarse.known[0].start, coarse.known[-1].end) == (fine.known[0].start, WITHIN[1])


def test_bytes_are_drawn_in_the_unit_that_reads_best():
    drawn = series_of([point(0, 3 * 1024 * 1024)], WITHIN, "By").scaled()
    assert (drawn.unit, drawn.highest) == ("MiB", 3)
