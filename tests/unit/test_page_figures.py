from __future__ import annotations

import pytest

from lakehouse.report import figures

SECOND = 1_000_000


def said(figure: figures.Figure) -> str:
    return figure.text.replace("\u00a0", " ")


def row(value, low, high, unknown):
    return {"x_us": value, "x_low_us": low, "x_high_us": high, "unknown_us": unknown}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            row(2472 * SECOND, 2458 * SECOND, 2480 * SECOND, 120 * SECOND),
            "41 m 12 s (40 m 58 s to 41 m 20 s), 2 m 0 s unknown",
        ),
        (row(0, 0, 0, 0), "0 s (±0)"),
        (row(None, None, None, 7 * SECOND), "not known, 7 s unknown"),
        (row(None, 0, 3 * SECOND, 3 * SECOND), "not known (0 s to 3 s), 3 s unknown"),
        (row(SECOND, None, None, 0), "1 s (bounds not known)"),
        (row(0, 0, 0, None), "0 s, unknown time not known"),
        ({}, "not known, unknown time not known"),
    ],
)
def test_a_figure_never_stands_alone(given, text):
    assert said(figures.time(given, "x")) == text


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
