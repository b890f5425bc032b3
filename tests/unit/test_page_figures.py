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


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (12_400, 12_431, "12,400 to 12,431"),
        (7, 7, "7 (±0)"),
        (None, None, "not known"),
        (None, 9, "at most 9"),
        (9, None, "at least 9"),
    ],
)
def test_lost_offsets_are_told_by_their_bounds(low, high, text):
    lost = {"offsets_low": low, "offsets_high": high, "unknown_us": 0}
    assert said(figures.offsets(lost)) == text


@pytest.mark.edge(7)
@pytest.mark.parametrize(
    ("unknown_us", "limit", "text"),
    [
        (0, "at least", "479"),
        (1, "at least", "at least 479"),
        (None, "at least", "at least 479"),
        (100 * SECOND, "at most", "at most 479"),
    ],
)
def test_peak_beside_unknown_time_is_a_bound(unknown_us: int | None, limit: str, text: str) -> None:
    row = {"most": 479, "unknown_us": unknown_us}
    assert said(figures.peak(row, "most", str, limit)) == text
    assert said(figures.peak({**row, "most": None}, "most", str, limit)) == "None"


def test_an_incident_is_bounded_by_its_edges():
    incident = {
        "start": "2026-11-21T06:00:10Z",
        "end": "2026-11-21T06:00:50Z",
        "lead_us": 3 * SECOND,
        "tail_us": 2 * SECOND,
    }
    assert said(figures.incident_length(incident)) == "40 s (38 s to 43 s)"


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
