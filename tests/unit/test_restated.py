"""The old figure beside the new one."""

from __future__ import annotations

from typing import Any

from lakehouse.report.facts.by_owner import add_owners, of_team
from lakehouse.report.facts.fields import names_of, to_json
from lakehouse.report.facts.objectives.verdicts import restated_figures
from lakehouse.report.page.page import render
from lakehouse.tables import SLA_FIGURES
from tests import sample_facts
from tests.page_reader import read
from tests.unit.test_owners import loaded

AT = 1_800_000_000_000_000


def published(facts: sample_facts.Facts, statement: int = 1, **other: Any) -> list[dict[str, Any]]:
    """Every figure of the facts as gold/sla has it."""
    return [
        {
            "objective": one["name"],
            **names_of(subject),
            **{name: subject.get(name) for name in SLA_FIGURES},
            "statement": statement,
            "stated_at": AT + statement,
            **other,
        }
        for one in facts["objectives"]
        for subject in one["subjects"]
    ]


def with_late_data() -> sample_facts.Facts:
    """Where one topic was published as met, and is missed now."""
    facts = sample_facts.demo()
    rows = published(facts)
    was = next(row for row in rows if row["topic"] == "orders")
    was |= {"bad_us": 0, "attainment": 1.0, "attainment_low": 0.94, "attainment_high": 1.0,
            "unknown_us": 20_000_000, "verdict": "met"}  # fmt: skip
    facts["restated"] = to_json(restated_figures(facts["objectives"], rows))
    return facts


def test_what_was_published_and_is_the_same_is_not_restated():
    facts = sample_facts.demo()
    assert restated_figures(facts["objectives"], published(facts)) == []
    assert restated_figures(facts["objectives"], []) == []


def test_the_old_figure_stands_beside_the_new():
    (one,) = with_late_data()["restated"]
    assert (one["objective"], one["topic"]) == ("min-isr", "orders")
    assert (one["before"]["verdict"], one["now"]["verdict"]) == ("met", "missed")
    assert one["before"]["attainment"] == 1.0
    assert one["now"]["bad_us"] == 71_400_000
    assert one["before"]["stated_at"] == "2027-01-15T08:00:00.000001Z"


def test_of_several_the_last_that_differs_is_the_old_one():
    facts = sample_facts.demo()
    rows = [
        *published(facts, 3),  # as it is now
        *published(facts, 1, bad_us=1),
        *published(facts, 2, bad_us=2),
    ]
    found = restated_figures(facts["objectives"], rows)
    assert {row.before["bad_us"] for row in found} == {2}
    assert {row.before["statement"] for row in found} == {2}


def test_each_objective_is_compared_over_its_own_time():
    facts = sample_facts.demo()
    for one, (start, end) in zip(facts["objectives"], [("a", "b"), ("c", "d")] * 3, strict=False):
        one |= {"from": start, "to": end}
    rows = published(facts, bad_us=-1)
    of_first = [{**row, "from": "a", "to": "b"} for row in rows]
    names = {row.objective for row in restated_figures(facts["objectives"], of_first)}
    assert names == {one["name"] for one in facts["objectives"] if one["from"] == "a"}


def test_a_subject_that_was_never_published_is_not_restated():
    facts = sample_facts.demo()
    rows = [row for row in published(facts, bad_us=-1) if row["topic"] != "orders"]
    assert "orders" not in {row.topic for row in restated_figures(facts["objectives"], rows)}


def test_the_page_says_how_many_results_changed():
    assert "1 published result changed after publication." in read(render(with_late_data())).text


def test_a_page_of_which_nothing_changed_says_nothing():
    for told in (None, []):
        page = read(render(sample_facts.demo() | {"restated": told}))
        assert "after publication" not in page.raw


def test_a_team_sees_its_own_restatements(tmp_path):
    facts = add_owners(with_late_data(), loaded(tmp_path))
    assert facts["restated"][0]["team"] == "payments"
    assert of_team(facts, "storage")["restated"] == []
