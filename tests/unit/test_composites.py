"""Composites: OpenSLO's form of them, their bounds, and what the report shows."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st

from lakehouse.cli.main import main
from lakehouse.errors import ObjectiveError
from lakehouse.report.facts.by_owner import add_owners, of_team
from lakehouse.report.facts.fields import to_json
from lakehouse.report.facts.objectives.verdicts import composites
from lakehouse.report.page.page import render
from lakehouse.slo.openslo import objective_files
from lakehouse.slo.openslo.objective_files import read
from tests import page_reader, sample_facts
from tests.unit.test_owners import loaded

Facts = dict[str, Any]

US = 1_000_000


def subject(good: int, bad: int, unknown: int = 0, edge: int = 0, **more: Any) -> Facts:
    """A subject's figures as a statement has them; times in microseconds."""
    whole, seen = good + bad + unknown, good + bad
    edge = min(edge, bad, good)
    low = (good - edge) / whole if seen else None
    high = (whole - bad + edge) / whole if seen else None
    return {
        "expected_us": whole, "good_us": good, "bad_us": bad, "unknown_us": unknown,
        "attainment": good / seen if seen else None, "attainment_low": low, "attainment_high": high,
        **more,
    }  # fmt: skip


def objective(name: str, weight: float, target: float, *subjects: Facts, **more: Any) -> Facts:
    part = {"composite": "all", "title": "All", "service": "kafka", "weight": weight}
    own = {"name": name, "title": name, "window": "1w", "target": target, "composites": [part]}
    return {**own, "unknown": "interval", "subjects": list(subjects), **more}


TIMES = st.integers(0, 7 * 86_400)
SUBJECTS = st.builds(
    lambda good, bad, unknown, edge, count: subject(good, bad, unknown, edge, partitions=count),
    TIMES, TIMES, TIMES, TIMES, st.integers(1, 50),
)  # fmt: skip
SHARES = st.floats(0, 1)


@st.composite
def measured(draw: st.DrawFn) -> tuple[list[Facts], list[list[float]]]:
    """Objectives, and what was true of each subject: a share within its bounds."""
    every, truth = [], []
    for number in range(draw(st.integers(1, 4))):
        rows = draw(st.lists(SUBJECTS, max_size=4))
        weight, target = draw(st.floats(0.1, 100)), draw(st.floats(0.01, 0.9999))
        every.append(objective(f"o{number}", weight, target, *rows))
        ends = [(row["attainment_low"], row["attainment_high"]) for row in rows]
        known = [(0.0, 1.0) if low is None else (low, high) for low, high in ends]
        truth.append([low + draw(SHARES) * (high - low) for low, high in known])
    return every, truth


@given(measured())
def test_the_bounds_contain_the_mean_of_whatever_was_true(drawn: tuple[Any, Any]) -> None:
    """Means in exact fractions: by expected time and partitions, then by weight."""
    every, truth = drawn
    shares, targets, weights = [], [], []
    for one, shares_of in zip(every, truth, strict=True):
        rows = list(zip(one["subjects"], shares_of, strict=True))
        counts = [Fraction(row["partitions"] * row["expected_us"]) for row, _ in rows]
        if sum(counts):
            pairs = zip(counts, rows, strict=True)
            shares.append(sum(w * Fraction(share) for w, (_, share) in pairs) / sum(counts))
            weights.append(Fraction(one["composites"][0]["weight"]))
            targets.append(Fraction(one["target"]))
    (found,) = composites(every)
    if found.attainment.value is None:
        assert found.verdict == "no_data"
        assert all(row["attainment"] is None for one in every for row in one["subjects"])
        return
    total = sum(weights)
    mean = float(sum(w * share for w, share in zip(weights, shares, strict=True)) / total)
    target = float(sum(w * goal for w, goal in zip(weights, targets, strict=True)) / total)
    low, high = found.attainment.low, found.attainment.high
    assert low is not None
    assert high is not None
    assert low - 1e-9 <= mean <= high + 1e-9
    assert low - 1e-9 <= found.attainment.value <= high + 1e-9
    assert found.target == pytest.approx(target, abs=1e-9)
    if found.verdict == "met":
        assert mean >= target - 1e-9
    if found.verdict == "missed":
        assert mean <= target + 1e-9


def test_each_at_its_target_is_met_and_a_little_less_is_not() -> None:
    at = [objective("a", 3, 0.999, subject(999, 1)), objective("b", 1, 0.99, subject(990, 10))]
    (found,) = composites(at)
    assert (found.attainment.value, found.target, found.verdict) == (0.99675, 0.99675, "met")
    at[0]["subjects"] = [subject(998, 2)]
    assert composites(at)[0].verdict == "missed"


def test_what_was_not_seen_is_never_good_and_what_has_no_subject_is_left_out() -> None:
    good, silent = objective("a", 1, 0.9, subject(1000, 0)), subject(0, 0, 1000)
    (found,) = composites([good, objective("b", 1, 0.9, silent)])
    assert (found.attainment.value, found.attainment.low, found.attainment.high) == (1.0, 0.5, 1.0)
    assert (found.verdict, found.objectives[1].verdict) == ("uncertain", "no_data")
    (found,) = composites([good, objective("b", 1, 0.9)])
    assert (found.attainment.low, found.verdict, found.objectives[1].subjects) == (1.0, "met", 0)
    assert composites([objective("b", 1, 0.9)])[0].verdict == "no_data"


def test_unknown_time_counts_as_each_objective_says() -> None:
    row = subject(950, 10, 40)
    for policy, verdict in {"interval": "uncertain", "exclude": "met", "bad": "missed"}.items():
        (found,) = composites([objective("a", 1, 0.98, row, unknown=policy)])
        assert (found.verdict, found.interval_verdict) == (verdict, "uncertain")
        assert (found.attainment.low, found.attainment.high) == (0.95, 0.99)
    (found,) = composites([objective("a", 1, 0.99, row, unknown="good")])
    assert found.verdict == "met"


def test_with_corrections_there_is_an_agreed_figure() -> None:
    row = subject(900, 100, agreed=subject(900, 0), corrections=[{}])
    (found,) = composites([objective("a", 1, 0.95, row, subject(1000, 0))])
    assert (found.attainment.value, found.verdict) == (0.95, "met")
    assert found.agreed is not None
    assert (found.agreed.attainment.value, found.agreed.verdict) == (1.0, "met")
    assert composites([objective("a", 1, 0.95, subject(1, 0))])[0].agreed is None


# OpenSLO.

SLI = """
apiVersion: openslo/v1
kind: SLI
metadata: {name: %s}
spec:
  thresholdMetric:
    metricSource: {type: jmxlake, spec: {level: topic, metric: %s}}
---"""
COMPOSITE = """
apiVersion: openslo/v1
kind: SLO
metadata: {name: whole, displayName: As a whole}
spec:
  service: orders
  timeWindow: [{duration: 1w, calendar: {startTime: "2026-01-05 00:00:00", timeZone: UTC}}]
  budgetingMethod: GoodSeconds
  objectives:
"""
OWN = "    - {indicatorRef: isr, op: lte, value: 0, target: 0.999, compositeWeight: 2.5}\n"
OTHERS = "    - {indicatorRef: min-isr, target: 0.999}\n"


def written(folder: Path, *goals: str, more: str = "") -> Path:
    shipped = objective_files.SHIPPED / "min-isr.yaml"
    (folder / "min-isr.yaml").write_text(shipped.read_text("utf-8"), "utf-8")
    text = SLI % ("isr", "kafka.partition.under_min_isr") + COMPOSITE + "".join(goals) + more
    (folder / "whole.yaml").write_text(text, "utf-8")
    return folder


def test_an_sli_is_an_objective_and_an_slo_counts_as_it_stands(tmp_path: Path) -> None:
    by_name = {one.name: one for one in objective_files.load(written(tmp_path, OWN, OTHERS))}
    assert by_name.keys() == {"whole.1", "min-isr"}
    (part,), (second,) = by_name["whole.1"].composites, by_name["min-isr"].composites
    assert (part.composite, part.title, part.service, part.weight) == (
        "whole", "As a whole", "orders", 2.5,
    )  # fmt: skip
    assert (second.composite, second.weight) == ("whole", 1.0)
    assert by_name["whole.1"].metric == "kafka.partition.under_min_isr"


@pytest.mark.parametrize(
    ("goals", "more", "outcome", "message"),
    [
        ([OWN, OTHERS], "", "supported", ""),
        ([OTHERS], "", "supported", ""),
        (["    - {indicatorRef: min-isr, target: 0.9}\n"], "", "supported",
         "the target of that SLO counts: 0.999"),
        ([OTHERS], "  indicatorRef: isr\n", "unsupported",
         "a composite has indicators in its objectives only: remove it"),
        (["    - {indicatorRef: nowhere, target: 0.9}\n"], "", "unsupported",
         "no valid SLI or SLO 'nowhere' here"),
        (["    - {indicatorRef: whole, target: 0.9}\n"], "", "unsupported",
         "that SLO has 0 objectives that jmxlake supports, not one"),
        (["    - {compositeWeight: 2, target: 0.9}\n"], "", "invalid",
         "exactly one of indicator and indicatorRef is required; present: none"),
        ([OWN.replace("2.5", "0")], "", "invalid", "it is '0', not a number of (0, inf)"),
    ],
)  # fmt: skip
def test_check_says_what_a_composite_is(
    tmp_path: Path, goals: list[str], more: str, outcome: str, message: str
) -> None:
    found = read([written(tmp_path, *goals, more=more)])
    (whole,) = [one for one in found if one.name == "whole"]
    assert whole.outcome == outcome
    assert any(message in one.message for one in whole.findings) or not message
    if outcome != "supported":
        assert whole.objectives == []
        assert not any(one.composites for item in found for one in item.objectives)
        with pytest.raises(ObjectiveError):
            objective_files.load(tmp_path)


def test_the_shipped_composite_weighs_shipped_objectives() -> None:
    weights = {one.name: part.weight for one in objective_files.load() for part in one.composites}
    assert weights["min-isr"] == 3
    assert len(weights) == 6
    listed = CliRunner().invoke(main, ["slo", "list", "--json"])
    assert listed.exit_code == 0, listed.output
    assert '"composite": "clients"' in listed.stdout


# The report.


def with_composite(*names: str) -> Facts:
    """The demo, with a composite of some of its objectives."""
    facts = sample_facts.demo()
    for one in facts["objectives"]:
        one["window"] = one.get("window") or "1w"
        if one["name"] in names:
            part = {"composite": "whole", "title": "The <b>whole</b>", "service": "kafka"}
            one["composites"] = [{**part, "weight": 2}]
    facts["composites"] = to_json(composites(facts["objectives"]))
    return facts


def test_it_is_one_line_without_a_status_below_the_objectives() -> None:
    facts = with_composite("min-isr", "throttling")
    (whole,) = facts["composites"]
    page = page_reader.read(render(facts))
    assert "<b>whole</b>" not in page.one("h1").text
    section = page.one("section", id="objectives")
    (note,) = (one.text for one in section.all("p", class_="note") if "weighted mean" in one.text)
    assert note.startswith("The <b>whole</b>, the weighted mean of 2 objectives: ")
    assert note.endswith("so it has no status.")
    assert f"{100 * whole['target']:.4g}"[:4] in note


def test_a_member_is_what_its_objective_is_weighted() -> None:
    """In the golden report, which a real lake was read for."""
    facts = json.loads(Path("tests/golden/report.json").read_text("utf-8"))
    weighted = {one["name"]: one["weighted"] for one in facts["objectives"]}
    members = [one for row in facts["composites"] for one in row["objectives"] if one["subjects"]]
    assert len(members) > 3
    for one in members:
        other = weighted[one["objective"]]
        for key in ("attainment", "attainment_low", "attainment_high"):
            assert one[key] == pytest.approx(other[key], abs=1e-9), one
        assert one["verdict"] == other["verdict"]


def test_without_a_composite_nothing_is_said_of_one() -> None:
    page = page_reader.read(render(sample_facts.demo()))
    assert "weighted mean" not in page.one("main").text


def test_teams_and_tiers_have_their_own(tmp_path: Path) -> None:
    facts = add_owners(with_composite("min-isr"), loaded(tmp_path))
    rows = facts["composites"]
    teams = {row["team"]: row for row in rows if row["team"]}
    own = next(one for one in facts["objectives"] if one["name"] == "min-isr")["subjects"]
    assert teams.keys() == {row["team"] for row in own if row["team"]}
    team = min(teams)
    part = of_team(facts, team)
    (alone,) = part["composites"]
    assert alone["attainment"] == teams[team]["attainment"]
    assert alone["team"] is None
