"""The short report in a terminal, a pipe and a mail without HTML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from lakehouse.report.summary import lines
from lakehouse.report.summary.lines import bar, summary_text
from tests import summaries

if TYPE_CHECKING:
    from lakehouse.report.summary.summarize import Summary

WEEKS = {
    "bad": summaries.bad_week(),
    "running": summaries.running_week(),
    "quiet": summaries.quiet_week(),
    "blind": summaries.blind_week(),
}


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("week", WEEKS.values(), ids=WEEKS)
def test_every_text_is_shown_within_80_columns(week: Summary) -> None:
    text = summary_text(week, terminal=False)
    assert "\x1b" not in text
    assert max(map(cell_len, text.splitlines())) <= 80
    shown = flat(text)
    assert lines.headline(week) in shown
    assert lines.plain(lines.about(week)) in shown
    said = [*week.lead, *week.notes, *(one.cause for one in week.events if one.is_major)]
    said += [lines.event_action(one) for one in week.events if one.is_major]
    for one in said:
        assert flat(lines.plain(one)) in shown
    # Cells of a table are beside each other: their words are compared, not their lines.
    words = shown.split()
    for tile in week.tiles:
        assert set(f"{tile.label} {tile.value} {tile.delta}".split()) <= set(words)
        assert set(lines.plain(tile.note).split()) <= set(words)
    for one in week.objectives:
        assert set(f"{one.title} {one.attained} {one.used}".split()) <= set(words)


def test_lines_of_the_bad_week_are_those_of_the_design() -> None:
    rows = summary_text(summaries.bad_week(), terminal=False).splitlines()
    assert rows[2] == "✗ 4 of 9 objectives missed, the same 4 as last week"
    assert "  Messages lost unread   ≤ 42,000  audit-archive          +1,680 vs W46" in rows
    (loss,) = (row for row in rows if row.startswith("✗ Unread data loss"))
    assert flat(loss) == "✗ Unread data loss 98.76 % 99.9 % ######|##########>> 1,240 %"
    assert any(re.match(r"  7 reporting / nightly throttled .* 6 min$", row) for row in rows)
    assert rows[-1] == "audit-archive"


@pytest.mark.parametrize("attained", ["not applicable", "not collected", "97.12 to 100 %"])
def test_attained_is_not_broken_inside_a_word(attained: str) -> None:
    week = summaries.bad_week()
    rows = [one._replace(attained=attained) for one in week.objectives]
    shown = summary_text(week._replace(objectives=tuple(rows)), terminal=False).split()
    assert all(shown.count(word) >= len(rows) for word in attained.split())


@pytest.mark.parametrize(
    ("used", "high", "drawn"),
    [
        (None, None, ""),
        (0.0, 0.0, "......|............"),
        (0.99, 0.99, "#####.|............"),
        (1.0, 1.0, "######|............"),
        (1.01, None, "######|#..........."),
        (0.5, 1.4, "###:::|::.........."),
        (3.0, 3.0, "######|############"),
        (3.01, 9e9, "######|##########>>"),
    ],
)
def test_bar_draws_three_budgets_on_one_scale(
    used: float | None, high: float | None, drawn: str
) -> None:
    one = summaries.objective("X", "met", "1", "1", used, used_high=high)
    assert bar(one) == drawn


def test_blind_week_states_nothing_good() -> None:
    text = summary_text(summaries.blind_week(), terminal=False)
    assert "\nEvents\n" not in text
    assert "✓" not in text
    assert "Met" not in text


def test_legend_has_only_symbols_that_occur() -> None:
    (legend,) = re.findall("Legend: .*", summary_text(WEEKS["quiet"], terminal=False))
    assert legend == "Legend: ✓ met."
    (legend,) = re.findall("Legend: .*", summary_text(WEEKS["running"], terminal=False))
    assert legend.endswith("- no data, ~ on track; : possibly used.")


def test_terminal_gets_colour() -> None:
    text = summary_text(summaries.bad_week(), terminal=True)
    assert "\x1b[1;31m✗ 4 of 9 objectives missed" in text
    assert re.search(r"\x1b\[1;32m *99.98 %", text)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("odd", summaries.ODD_NAMES, ids=range(len(summaries.ODD_NAMES)))
def test_name_is_neither_an_escape_nor_markup_of_the_terminal(terminal, odd) -> None:
    text = summary_text(summaries.hostile_week(odd), terminal=terminal)
    assert not re.search(r"\x1b(?!\[[\d;]*m)|[\x00-\x09\x0b-\x1a\x7f-\x9f]|\u202e", text)
    if not terminal:
        assert "\x1b" not in text
        assert max(map(cell_len, text.splitlines())) <= 80


def test_command_names_only_what_needs_no_quotes() -> None:
    assert "explain LAKE audit-archive" in flat(summary_text(WEEKS["bad"], terminal=False))
    for lake, shown in (("s3://b/lake", "s3://b/lake"), ("my lake", "LAKE"), ("-x", "LAKE")):
        text = flat(summary_text(WEEKS["bad"], terminal=False, lake=lake))
        assert f"jmxlake report {shown} --html report.html" in text
        assert f"explain {shown} audit-archive" in text
    for odd in ("$(touch x)", "-x", "a b", "x" * 300):
        text = summary_text(summaries.hostile_week(odd), terminal=False)
        assert "explain" not in text
