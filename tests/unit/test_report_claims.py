"""That statements of the report are compared with its facts, and that a wrong one is found."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse.report.send import messages
from lakehouse.report.summary.lines import summary_text
from lakehouse.report.summary.summarize import summarize
from tests import report_figures, report_statements, summary_facts
from tests.report_claims import Claims, unlike
from tests.report_runs import mutated
from tests.report_statements import Statement

WEEKS = {
    "whole": summary_facts.facts,
    "running": summary_facts.running,
    "blind": summary_facts.blind,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4 h 20 min", 15_600_000_000), ("9.3 s", 9_296_000), ("259 ms", 258.75),
        ("8.6 MiB/s", 9e6), ("97.42 %", 0.974206), ("258 %", 2.5794), ("19,800", 19_800.0),
    ],
)  # fmt: skip
def test_a_figure_is_that_of_the_facts_to_its_last_digit(text: str, value: float) -> None:
    assert report_figures.wrong(f"It was {text} on Wed 18 Nov at 13:41.", [value]) == []
    assert report_figures.wrong(text, [value * 1.2]) == [text]


def test_names_dates_and_times_are_no_figures() -> None:
    text = "orders-12 of broker-3, Week 47, W46, 2026-11-16, Sat 21 Nov 10:20 to 10:35"
    assert report_figures.wrong(text, [], ["orders-12", "broker-3"]) == []


def told(facts: dict[str, Any]) -> dict[str, list[Statement]]:
    summary = summarize(facts)
    return {
        "terminal": report_statements.of_terminal(summary_text(summary, terminal=False)),
        "Slack": report_statements.of_slack(messages.slack_message(summary, None)),
        "Teams": report_statements.of_teams(messages.teams_message(summary, None)),
    }


@pytest.mark.parametrize("week", WEEKS)
def test_no_channel_contradicts_the_facts_or_another_channel(week: str) -> None:
    facts = WEEKS[week]()
    claims = Claims(facts)
    said = [one for each in told(facts).values() for one in each]
    assert [(one, wrong) for one in said if (wrong := claims.wrong(one))] == []
    assert list(unlike(said)) == []


@pytest.mark.parametrize("channel", ["terminal", "Slack", "Teams"])
def test_a_changed_figure_is_found(channel: str) -> None:
    facts = summary_facts.facts()
    claims = Claims(facts)
    changed = [other for one in told(facts)[channel] if (other := mutated(one))]
    found = [one for one in changed if claims.wrong(one)]
    assert len(changed) >= 15
    assert len(found) >= 0.9 * len(changed), [one for one in changed if one not in found]


@pytest.mark.parametrize(
    ("about", "key", "field", "text"),
    [
        ("headline", "", "text", "All 9 objectives met"),
        ("headline", "", "text", "3 of 9 objectives missed"),
        ("objective", "Unread data loss", "status", "Met"),
        ("event", "3", "cause", "Likely broker-2, which did not answer at 14:27."),
        ("event", "1", "title", "payments lost up to 42,000 messages"),
        ("tile", "No leader", "delta", "+1 min vs W46"),
        ("note", "objectives", "text", "Unobserved: up to 59 min per topic."),
    ],
)
def test_wrong_words_are_found(about: str, key: str, field: str, text: str) -> None:
    claims = Claims(summary_facts.facts())
    assert claims.wrong(Statement("page", about, key, field, text))


def test_the_sum_of_a_lead_counts_each_instant_once() -> None:
    (one,) = (row for row in summary_facts.events() if row["cause"]["kind"] == "not_known"
              and row["topics"] == ["orders"])  # fmt: skip
    start, end = summary_facts.at("18 14:37:30"), summary_facts.at("18 14:57:30")
    other = one | {"number": 2, "topics": ["audit"], "parts": [{"start": start, "end": end}]}
    claims = Claims(summary_facts.facts(events=[one, other]))
    text = "orders and audit fell under min ISR for 30 min in total; the cause is not known."
    right = Statement("page", "lead", "", "text", text)
    assert claims.wrong(right) == []
    assert claims.wrong(right._replace(text=text.replace("30 min", "40 min"))) == ["40 min"]


def test_two_channels_that_differ_are_found() -> None:
    one = Statement("page", "event", "1", "title", "orders fell under min ISR")
    assert list(unlike([one, one._replace(channel="Slack", text="payments fell under min ISR")]))
