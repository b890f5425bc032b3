from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from lakehouse.report.page.verdicts import verdicts
from lakehouse.report.terminal import verdict_table
from tests import sample_facts


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_file_gets_plain_text_of_a_readable_width():
    text = verdict_table(sample_facts.demo(), terminal=False)
    assert "\x1b" not in text
    assert max(cell_len(line) for line in text.splitlines()) <= 100
    assert text.startswith("5 objectives: 2 missed, 1 uncertain, 1 without data and 1 met.\n")


def test_verdicts_have_a_mark_and_a_word_worst_first():
    text = verdict_table(sample_facts.demo(), terminal=False)
    places = [text.index(mark) for mark in ("✗ missed", "? uncertain", "- no data", "✓ met")]
    assert places == sorted(places)


def test_figures_have_bounds_and_unknown_time():
    text = flat(verdict_table(sample_facts.demo(), terminal=False))
    assert "orders, 1 m 11 s (1 m 10 s to 1 m 14 s), 20 s unknown" in text
    assert "Worst: nightly, at least 12,400 offsets in 2 partitions; 6 m 0 s unknown." in text
    assert "Worst: nightly on clicks, 30 m 0 s (29 m 0 s to 31 m 0 s)" in text
    assert "98.14 % of the expected time was observed." in text


def test_silence_is_not_good():
    text = flat(verdict_table(sample_facts.silent_week(), terminal=False))
    assert text.count("Not known: no agent ran in this period.") == 9
    assert "met" not in text


@pytest.mark.parametrize(
    ("policy", "said"),
    [("exclude", "is left out"), ("good", "counts as good"), ("bad", "counts as bad")],
)
def test_a_verdict_by_policy_never_stands_without_its_unknown_time(policy: str, said: str):
    facts = sample_facts.demo()
    objective = facts["objectives"][0]
    objective["unknown"] = policy
    for subject in objective["subjects"]:
        subject["interval_verdict"] = subject["verdict"]
    one = next(row for row in verdicts(facts) if row.name == objective["name"])
    shown = f"unknown time (at most 20 s) {said}, taken both ways: 2 missed, 1 uncertain, 1 met"
    assert one.title.startswith(f"{objective['title']} (")
    assert "unknown time" in one.title
    assert shown in one.counts.replace("\u00a0", " ")
    assert "taken both" in flat(verdict_table(facts, terminal=False))
    assert "taken both" not in flat(verdict_table(sample_facts.demo(), terminal=False))


def test_a_terminal_gets_colour():
    assert "\x1b[31m✗ missed" in verdict_table(sample_facts.demo(), terminal=True)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_name_is_neither_an_escape_nor_markup_of_the_terminal(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    facts = sample_facts.demo()
    facts["verdicts"][0]["title"] = "[bold]x[/]\x1b[7m\x07\u202e"
    text = verdict_table(facts, terminal=terminal)
    assert r"[bold]x[/]\u001b[7m\u0007" in text
    assert not re.search(r"\x1b(?!\[[\d;]*m)|\x1b\[7m|[\x00-\x09\x0b-\x1a]|\u202e", text)
