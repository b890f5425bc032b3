"""Corrections on the page: the raw and the agreed verdict side by side, and who approved."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from lakehouse.report.facts.fields import to_json
from lakehouse.report.facts.objectives.restated import restated_figures
from lakehouse.report.facts.objectives.verdicts import SUBJECT
from lakehouse.report.facts.owner_accounts import add_owners
from lakehouse.report.page.page import render
from lakehouse.tables import SLA_FIGURES
from tests import sample_facts
from tests.page_reader import read
from tests.unit.test_owners import loaded

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


def whole() -> Facts:
    """The same with a composite, its figures of teams and tiers, and a restatement."""
    facts = corrected()
    for one in facts["objectives"][:3]:
        part = {"composite": "all", "title": "Client experience", "service": "kafka"}
        one |= {"window": "1w", "composites": [{**part, "weight": 3}]}
    facts["restated"] = restated(facts)
    with tempfile.TemporaryDirectory() as folder:
        return add_owners(facts, loaded(Path(folder)))


def restated(facts: Facts) -> list[Facts]:
    """What differs from the figures of the demo, if these were published."""
    rows = [
        {"objective": one["name"], **{name: row.get(name) for name in (*SUBJECT, *SLA_FIGURES)},
         "statement": 1, "stated_at": 1_800_000_000_000_000}
        for one in sample_facts.demo()["objectives"] for row in one["subjects"]
    ]  # fmt: skip
    found: list[Facts] = to_json(restated_figures(facts["objectives"], rows))
    return found


def note(facts: Facts) -> str:
    """The page's row of the objective that is corrected."""
    return read(render(facts)).one("tr", id="slo-min-isr").text


def test_both_verdicts_are_on_the_page_and_neither_is_hidden() -> None:
    said = note(corrected())
    assert said.startswith("Missed")
    assert "with agreed corrections: 100 %, Met" in said


def test_without_a_correction_nothing_is_said_of_one() -> None:
    assert "agreed" not in note(sample_facts.demo())


def test_a_correction_of_a_published_figure_is_restated() -> None:
    facts = corrected()
    facts["restated"] = restated(facts)
    (one,) = facts["restated"]
    assert one["before"]["verdict"] == one["now"]["verdict"] == "missed"
    assert (one["before"]["agreed_verdict"], one["now"]["agreed_verdict"]) == (None, "met")
    number = len(facts["restated"])
    assert f"{number} published result" in read(render(facts)).text
