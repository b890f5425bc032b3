"""Corrections on the page: the raw and the agreed verdict side by side, and who approved."""

from __future__ import annotations

from typing import Any

from lakehouse.report.facts.fields import names_of, to_json
from lakehouse.report.facts.objectives.verdicts import restated_figures
from lakehouse.report.page.page import render
from lakehouse.tables import SLA_FIGURES
from tests import sample_facts
from tests.page_reader import read

Facts = dict[str, Any]

CORRECTION = {
    "start": "2026-11-21T06:01:30Z", "end": "2026-11-21T06:02:30Z", "reason": "our <i>test</i>",
    "topics": ["orders-*"], "objectives": ["min-isr"], "approved_by": "Ada <b>Example</b>",
    "ticket": "OPS-1",
}  # fmt: skip


def corrected(verdict: str = "met") -> Facts:
    """The demo, with a correction of the time in which the topic ``orders`` was bad."""
    facts = sample_facts.demo()
    facts["corrections"] = [CORRECTION]
    orders = facts["objectives"][0]["subjects"][0]
    figures = {name: orders[name] for name in SLA_FIGURES}
    agreed = {**figures, "expected_us": 300_000_000, "bad_us": 0, "attainment": 1.0,
              "attainment_low": 1.0, "attainment_high": 1.0, "verdict": verdict}  # fmt: skip
    orders |= {"corrections": [CORRECTION], "agreed": agreed}
    row = next(one for one in facts["verdicts"] if one["objective"] == "min-isr")
    row["agreed"] = verdict
    return facts


def restated(facts: Facts) -> list[Facts]:
    """What differs from the figures of the demo, if these were published."""
    rows = [
        {"objective": one["name"], **names_of(row), **{name: row.get(name) for name in SLA_FIGURES},
         "statement": 1, "stated_at": 1_800_000_000_000_000}
        for one in sample_facts.demo()["objectives"] for row in one["subjects"]
    ]  # fmt: skip
    found: list[Facts] = to_json(restated_figures(facts["objectives"], rows))
    return found


def test_both_statuses_are_in_the_row_and_neither_is_hidden() -> None:
    row = read(render(corrected())).one("tr", id="slo-min-isr")
    assert row.one("th").text == "Missed"
    assert "with agreed corrections: 100 %, Met" in row.text


def test_a_correction_without_effect_changes_no_headline() -> None:
    facts = corrected("missed")
    assert read(render(facts)).one("h1").text == read(render(sample_facts.demo())).one("h1").text


def test_a_correction_of_a_published_figure_is_restated() -> None:
    facts = corrected()
    facts["restated"] = restated(facts)
    (one,) = facts["restated"]
    assert one["before"]["verdict"] == one["now"]["verdict"] == "missed"
    assert (one["before"]["agreed_verdict"], one["now"]["agreed_verdict"]) == (None, "met")
    assert "1 published result changed after publication." in read(render(facts)).text
