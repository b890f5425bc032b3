from __future__ import annotations

import pytest

from lakehouse.report import figures

SECOND = 1_000_000


def row(value, low, high, unknown):
    return {"x_us": value, "x_low_us": low, "x_high_us": high, "unknown_us": unknown}


@pytest.mark.parametrize(
    ("figure", "text", "is_wide"),
    [
        ((2472, 2458, 2480), "40 min 58 s to 41 min 20 s", False),
        ((100, 60, 140), "±40 s", True),
        ((100, 60, None), "≥ 1 min", True),
        ((100, None, 103), "≤ 1 min 43 s", False),
        ((0, 0, 3), "≤ 3 s", True),
        ((0, 0, 0), "", False),
        ((None, 0, 3), "", False),
        ((1, None, None), "", False),
    ],
)
def test_bounds_are_read_with_a_figure_that_they_are_far_from(figure, text, is_wide):
    words, wide = figures.around(*(one and one * SECOND for one in figure))
    assert (words.replace("\u00a0", " "), wide) == (text, is_wide)


def test_the_worst_is_what_was_bad_then_what_is_not_known_then_what_was_not_seen():
    bad, not_known = row(1, 0, 2, 0), row(None, None, None, 9)
    unseen, good = row(0, 0, 0, 5), row(0, 0, 0, 0)
    ordered = sorted(
        (good, unseen, not_known, bad), key=lambda one: figures.badness(one, "x"), reverse=True
    )
    assert ordered == [bad, not_known, unseen, good]


def test_a_long_name_is_short_and_its_title_is_capped():
    found = figures.name("\x00" * 32_768)
    assert len(found.text) <= 48
    assert len(found.title) <= 240
    assert figures.name("").text == "(empty)"
