"""The short report: its words are those of the facts, and no sentence is better than they are."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings, strategies as st

from lakehouse.report.facts import report_json
from lakehouse.report.figures import Name
from lakehouse.report.summary.summarize import Summary, summarize
from lakehouse.report.summary.texts import Strong, plain
from tests.odd_names import HELD, REFUSED
from tests.summary_facts import MINUTE, WEEK, Facts, at, blind, facts, running, subject

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "report.json"
QUIET: Final = re.compile(
    r"\bMet\b|\ball \d+ \w+ met\b|All \d+ objectives|On track|0 events|No event used|\b0 of \d+"
)
"""Sentences that reassure."""


def strings(value: Any) -> Iterator[str]:
    """Yield every text of a summary, sentences as one."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Name | Strong):
        yield value.text
    elif hasattr(value, "_fields"):
        for field in value:
            yield from strings(field)
    elif isinstance(value, tuple):
        if value and all(isinstance(part, str | Name | Strong) for part in value):
            yield plain(value)
        else:
            for item in value:
                yield from strings(item)


def everything(summary: Summary) -> str:
    return "\n".join(strings(summary))


def rows_of(summary: Summary) -> dict[str, tuple[str, str, str, str]]:
    return {
        one.name: (one.word, plain(one.worst), one.attained, one.used) for one in summary.objectives
    }


def tiles_of(summary: Summary) -> dict[str, tuple[str, str, str]]:
    return {one.label: (one.value, plain(one.note), one.delta) for one in summary.tiles}


# The week of the sample.


def test_headline_of_week() -> None:
    summary = summarize(facts())
    assert summary.headline == (
        "missed", "4 of 9 objectives missed", "the same 4 as last week"
    )  # fmt: skip
    assert [plain(sentence) for sentence in summary.lead] == [
        "Group audit-archive lost up to 42,000 messages unread.",
        "billing / invoicing was throttled every day, 4 h 24 min in total.",
        "Partitions of orders rejected acks=all writes for 20 min; the cause is not known. An "
        "outage of broker-2 and a rolling restart hit payments and scratch: partitions rejected "
        "acks=all writes.",
    ]
    assert (summary.week, summary.period) == ("Week 47", "Mon 16 to Sun 22 Nov 2026, UTC")


def test_tiles_of_week() -> None:
    assert tiles_of(summarize(facts())) == {
        "Writes unavailable": ("20 min", "worst topic: orders", "+9 min vs W46"),
        "No leader": ("12 min", "worst topic: scratch (±40 s)", "+1 min; no clear change"),
        "Messages lost unread": ("≤ 42,000", "worst group: audit-archive", "+1,680 vs W46"),
        "Clients throttled": (
            "2 of 12",
            "worst client: billing / invoicing, 4 h 24 min",
            "same as W46",
        ),
        "Coverage, all sources": (
            "99.98 %",
            "worst source: broker-2, 8 min 51 s not observed",
            "same as W46",
        ),
    }


@pytest.mark.parametrize(("high", "delta"), [(1, "no clear change"), (None, "W46 not fully known")])
def test_difference_of_zero_is_not_written(high: int | None, delta: str) -> None:
    found = facts()
    before = {"week": "2026-W46", "value": 20 * MINUTE, "low": 20 * MINUTE, "high": high}
    found["key_figures"][0] |= {"change": "unclear", "previous": before}
    assert tiles_of(summarize(found))["Writes unavailable"][2] == delta


def test_figure_of_zero_has_no_worst_subject() -> None:
    found = facts()
    zero = {f"{name}value{end}": 0 for name in ("", "subject_") for end in ("", "_low", "_high")}
    found["key_figures"][0] |= zero
    assert tiles_of(summarize(found))["Writes unavailable"][:2] == ("0", "")
    found["key_figures"][0] |= {"value_high": 20 * 1_000_000, "subject_value_high": 20 * 1_000_000}
    assert tiles_of(summarize(found))["Writes unavailable"][:2] == (
        "0", "worst topic: orders (≤ 20 s)"
    )  # fmt: skip


@pytest.mark.edge(6)
@pytest.mark.parametrize("state", ["bad", "partly_known"])
def test_figure_of_zero_states_how_much_was_observed(state: str) -> None:
    # Another figure can make the same question bad.
    found = facts()
    zero = {f"{name}value{end}": 0 for name in ("", "subject_") for end in ("", "_low", "_high")}
    found["key_figures"][1] |= zero
    found["answers"].append({"question": "min-isr", "state": state, "observed_percent": 91.67})
    assert tiles_of(summarize(found))["No leader"][1] == "91.6 % of the expected time observed"


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("Not applicable: no consumer group was observed.", "not applicable"),
        ("Not collected: family offsets is disabled.", "not collected"),
        ("Not known: no agent observed it in this week.", "not known"),
    ],
)
def test_key_figure_and_objective_without_subjects_agree(reason: str, word: str) -> None:
    found, state = facts(), word.replace(" ", "_")
    (loss,) = (row for row in found["objectives"] if row["name"] == "lost-before-read")
    loss |= {"subjects": [], "status": "no_data"}
    figure = next(row for row in found["key_figures"] if row["name"] == "messages_lost")
    figure |= {"state": state, "reason": reason}
    others = [row for row in found["answers"] if row["question"] != "lost"]
    found["answers"] = [*others, {"question": "lost", "state": state, "reason": reason}]
    summary, why = summarize(found), reason.partition(": ")[2]
    assert tiles_of(summary)["Messages lost unread"][:2] == (word, why)
    assert rows_of(summary)["lost-before-read"][1:] == (why, word, word)


def test_zero_that_unobserved_time_may_hide_has_a_reason() -> None:
    found = facts()
    found["key_figures"][1] |= {"value": 0, "value_low": 0, "value_high": None}
    assert tiles_of(summarize(found))["No leader"][:2] == ("not known", "0 in the observed time")


def test_objectives_of_week() -> None:
    found = rows_of(summarize(facts()))
    assert list(found) == [
        "lost-before-read", "produce-throttling", "leaderless", "min-isr", "copy-lag", "coverage",
        "fetch-throttling", "delete-lag", "request-throttling",
    ]  # fmt: skip
    assert found["leaderless"] == (
        "Missed", "scratch: 12 min (±40 s) · 1 of 6 topics missed", "99.88 %", "238 %"
    )  # fmt: skip
    assert found["lost-before-read"][2:] == ("98.76 %", "1,240 %")
    assert found["fetch-throttling"][1] == (
        "reporting / nightly: 6 min (4 min 50 s to 6 min 10 s) · all 2 clients met"
    )
    assert found["delete-lag"][1:] == ("clicks: none · all 2 topics met", "100 %", "0 %")


def test_notes_of_week() -> None:
    summary = summarize(facts())
    assert summary.objectives_note == "4 missed, 5 met. The worst subject sets the status."
    assert plain(summary.notes[0]) == (
        "Not observed, and counted neither good nor bad: up to 4 min per group, 11 min 21 s per "
        "client and 1 min 52 s per topic. No status in this report depends on it."
    )
    assert plain(summary.notes[1]).startswith(
        "Client experience, the weighted mean of 6 objectives: 99.85 % (target 99.67 %)."
    )
    assert summary.not_collected == ("consumer lag (metric kafka.group.lag)",)


# Headlines.


def with_statuses(*statuses: str) -> Facts:
    found = facts(events=[], previous=None)
    row = found["objectives"][0]
    found["objectives"] = [
        {**row, "name": f"o{number}", "status": status} for number, status in enumerate(statuses)
    ]
    found["verdicts"] = []
    return found


@pytest.mark.parametrize(
    ("statuses", "text"),
    [
        (["met", "met"], "All 2 objectives met"),
        (["met"], "1 objective met"),
        (["missed"], "1 of 1 objective missed"),
        (["uncertain", "met", "uncertain"], "2 of 3 objectives uncertain, none missed"),
        (["no_data", "met"], "1 of 2 objectives without data; 1 met"),
        (["no_data", "no_data"], "No data for 2 objectives"),
        ([], "0 objectives are defined"),
    ],
)
def test_headline_by_statuses(statuses: list[str], text: str) -> None:
    assert summarize(with_statuses(*statuses)).headline.text == text


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["missed", "uncertain", "no_data", "met", "on_track", "at_risk"])))
def test_headline_counts_equal_statuses(statuses: list[str]) -> None:
    headline = summarize(with_statuses(*statuses)).headline
    counts = Counter(statuses)
    if counts["missed"]:
        assert headline.status == "missed"
        assert headline.text.startswith(f"{counts['missed']} of {len(statuses)} objective")
        assert not re.search(r"\bmet\b", headline.text + headline.then)
    if "All" in headline.text:
        assert set(statuses) in ({"met"}, {"on_track"})
    if headline.status in {"met", "on_track"}:
        assert set(statuses) <= {"met", "on_track"}


@pytest.mark.parametrize(
    ("newly", "gone", "before", "then"),
    [
        ([], [], 4, "the same 4 as last week"),
        (["min-isr"], [], 3, "1 of them not missed last week"),
        ([], ["copy-lag"], 5, "5 last week"),
    ],
)
def test_change_of_missed_objectives(
    newly: list[str], gone: list[str], before: int, then: str
) -> None:
    previous = {"newly_missed": newly, "no_longer_missed": gone, "missed": before}
    assert summarize(facts(previous={"week": "2026-W46", **previous})).headline.then == then
    assert summarize(facts(previous=None)).headline.then == ""


# A running week.


def test_running_week_is_never_met() -> None:
    summary = summarize(running())
    assert summary.running == "week running: 81 % elapsed"
    assert summary.headline.text == "4 of 9 objectives already missed"
    assert {one.delta for one in summary.tiles} == {""}
    assert {one.change for one in summary.tiles} == {"none"}
    assert not re.search(r"\bMet\b|\ball \d+ \w+ met\b", everything(summary))
    assert {one.status for one in summary.objectives} == {"missed", "on_track"}
    assert summary.elapsed_to < summary.span[1]


def opened(found: Facts, folder: Path) -> Facts:
    """Return facts that were saved and are read again."""
    file = folder / "report.json"
    file.write_text(json.dumps(found), encoding="utf-8")
    return report_json.load(file)


def test_running_week_of_old_format_is_never_met(tmp_path: Path) -> None:
    found = running()
    for key in ("running", "elapsed", "key_figures", "previous", "composites", "events", "answers"):
        del found[key]
    found |= {"format": 1}
    for one in found["objectives"]:
        one["subjects"][0]["budget_of_window_us"] = one["budget_whole_us"]
        for key in ("status", "used", "used_low", "used_high", "history"):
            del one[key]
    summary = summarize(opened(found, tmp_path))
    assert summary.running == "week running: 81 % elapsed"
    assert {one.word for one in summary.objectives} == {"Missed", "On track"}


# Too little observed.


def test_blind_week_states_nothing_good() -> None:
    summary = summarize(blind())
    assert summary.headline == ("no_data", "Not known: only 0.1 % of this week was observed", "")
    assert (summary.tiles, summary.events) == ((), ())
    assert summary.is_blind
    assert summary.events_note == "Not known: only 0.1 % of this week was observed."
    assert not QUIET.search(everything(summary))
    assert {one.status for one in summary.objectives} == {"missed", "no_data"}
    assert "Missed in the observed time" in plain(summary.lead[2])


def test_week_without_observation_is_not_known() -> None:
    nothing: Facts = {
        "expected_us": 0,
        "observed_us": 0,
        "unknown_us": 0,
        "percent": None,
        "sources": [],
    }
    summary = summarize(facts(coverage=nothing))
    assert summary.headline.text == "Not known: this week was not observed"


@pytest.mark.parametrize("key", sorted(set(facts()) - {
    "from", "to", "cluster", "format", "objectives", "verdicts", "week", "time_zone",
}))  # fmt: skip
@pytest.mark.parametrize("percent", [99.98, 0.001])
def test_null_fact_is_never_a_quiet_sentence(key: str, percent: float) -> None:
    whole = facts(events=[], answers=[])
    for one, verdict in zip(whole["objectives"], whole["verdicts"], strict=True):
        one["status"] = "uncertain"
        verdict |= {"verdict": "uncertain", "missed": 0, "uncertain": 1, "met": 0}
    whole["coverage"]["percent"] = percent
    for found in (whole | {key: None}, {name: whole[name] for name in whole if name != key}):
        summary = summarize(found)
        text = everything(summary)
        if key in {"coverage", "events"} or percent < 1:
            assert not QUIET.search(text)
            assert "Not known" in text


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("words", ["not known", "not collected", "not applicable"])
def test_unknown_figure_is_not_a_number(number: int, words: str) -> None:
    found = facts()
    found["key_figures"][number] |= {
        "state": words.replace(" ", "_"), "reason": f"{words.capitalize()}: family x failed.",
        "value": None, "value_low": None, "value_high": None,
    }  # fmt: skip
    tile = summarize(found).tiles[number]
    assert (tile.value, plain(tile.note), tile.delta) == (words, "family x failed.", "")


@pytest.mark.parametrize("number", range(5))
def test_null_value_of_known_figure_is_not_known(number: int) -> None:
    found = facts()
    found["key_figures"][number]["value"] = None
    assert summarize(found).tiles[number].value == "not known"


def test_objective_without_attainment_is_not_known() -> None:
    found = facts()
    for one in found["objectives"]:
        one["status"] = "no_data"
        one["subjects"][0] |= {"attainment": None}
    summary = summarize(found)
    assert {one.attained for one in summary.objectives} == {"not known"}
    assert {one.used for one in summary.objectives} == {"not known"}
    assert {one.left for one in summary.objectives} == {()}
    assert not QUIET.search(" ".join(plain(one.worst) for one in summary.objectives))


def test_uncertain_objective_has_its_bounds_as_figures() -> None:
    found = facts()
    row = subject(0.99, (391_000_000,) * 3, 88 * MINUTE, source="broker-1")
    found["objectives"][5] |= {
        "status": "uncertain", "subjects": [row] * 4,
        **{key: row[key] for key in ("used", "used_low", "used_high")},
    }  # fmt: skip
    found["verdicts"][5] |= {"uncertain": 4, "met": 0, "subjects": 4}
    assert rows_of(summarize(found))["coverage"] == (
        "Uncertain",
        "broker-1: 6 min 31 s, not observed 1 h 28 min · 4 of 4 sources uncertain",
        "99.06 to 99.94 %",
        "6 to 94 %",
    )


def test_missed_objective_beside_unobserved_time_has_its_bounds_as_figures() -> None:
    found = facts()
    before = rows_of(summarize(found))["produce-throttling"][2:]
    row = found["objectives"][1]["subjects"][0]
    row |= subject(0.99, (row["bad_us"],) * 3, 5 * 24 * 60 * MINUTE)
    assert (found["objectives"][1]["name"], row["verdict"]) == ("produce-throttling", "missed")
    found["objectives"][1] |= {key: row[key] for key in ("used", "used_low", "used_high")}
    after = rows_of(summarize(found))["produce-throttling"]
    assert (before, after[0]) == (("97.38 %", "262 %"), "Missed")
    assert after[2:] == ("25.9 to 97.4 %", "261 to 7,405 %")


def test_question_observed_in_part_is_a_note_and_statuses_may_depend_on_it() -> None:
    found = facts()
    assert "No status in this report depends on it." in plain(summarize(found).notes[0])
    found["answers"].append({"question": "throttling", "state": "bad", "observed_percent": 71.41})
    first, second, *_ = map(plain, summarize(found).notes)
    assert "depends on it" not in first
    assert second == (
        "Observed in part: client throttling 71.4 %. "
        "A topic, client or group counts from its first observation on."
    )


def test_pooled_share_that_unobserved_time_decides_has_bounds() -> None:
    found = facts()
    found["composites"][0] |= {"verdict": "uncertain", "attainment_low": 0.143}
    assert "6 objectives: 14.30 to 99.86 % (target 99.67 %)." in plain(summarize(found).notes[1])


@pytest.mark.parametrize(
    ("since", "then"),
    [("22 23:00", "observed only since Sun 22 Nov 23:00:00"), ("16 00:00:05", "")],
)
def test_headline_says_since_when_the_cluster_is_observed(since: str, then: str) -> None:
    found = facts(previous=None)
    for one in found["objectives"]:
        one["status"] = "met"
    found["coverage"]["since"] = at(since)
    headline = summarize(found).headline
    assert (headline.text, plain((headline.then,))) == ("All 9 objectives met", then)


@pytest.mark.parametrize(
    ("number", "low", "value", "high", "text"),
    [
        (0, 0, 0, 0, "0"),
        (0, 0, 0, None, "not known"),
        (0, 60_000_000, 120_000_000, None, "≥ 1 min"),
        (2, 0, 0, 0, "0"),
        (2, 12_400, 12_400, None, "≥ 12,400"),
        (3, 0, 0, 0, "0 of 12"),
        (3, 2, 2, 5, "2 to 5 of 12"),
        (3, 2, 2, None, "≥ 2 of 12"),
        (3, 0, 0, None, "not known"),
        (4, 1, 1, 1, "100 %"),
    ],
)
def test_value_of_tile(number: int, low: Any, value: Any, high: Any, text: str) -> None:
    found = facts()
    found["key_figures"][number] |= {"value": value, "value_low": low, "value_high": high}
    assert summarize(found).tiles[number].value == text


def test_title_of_tile_has_bounds_and_unobserved_time() -> None:
    found = facts()
    found["key_figures"][0]["unknown_us"] = 112_000_000
    found["key_figures"][2] |= {"value_high": None, "unknown_us": 240_000_000}
    found["key_figures"][3]["value_high"] = 5
    assert [one.title for one in summarize(found).tiles] == [
        "19 min 50 s to 20 min 10 s; not observed 1 min 52 s",
        "11 min 20 s to 12 min 40 s",
        "not observed 4 min",
        "2 to 5",
        "",
    ]


# Changes.


@pytest.mark.parametrize("change", ["worse", "better", "unclear", "same", "none"])
@pytest.mark.parametrize("number", range(5))
def test_no_clear_change_iff_unclear(change: str, number: int) -> None:
    found = facts()
    found["key_figures"][number]["change"] = change
    tile = summarize(found).tiles[number]
    assert ("no clear change" in tile.delta) == (change == "unclear")
    assert tile.change == change


def test_change_without_week_before() -> None:
    found = facts()
    for one in found["key_figures"]:
        one["previous"] = None
    assert {one.delta for one in summarize(found).tiles} == {"not compared"}
    found["previous"] = None
    assert {one.delta for one in summarize(found).tiles} == {"no earlier week"}
    found["key_figures"][0]["previous"] = {"week": "2026-W46", "value": None}
    assert summarize(found).tiles[0].delta == "W46 not known"


def test_change_against_week_not_fully_known() -> None:
    found = facts()
    found["key_figures"][0] |= {"change": "unclear"}
    found["key_figures"][0]["previous"] |= {"high": None}
    assert summarize(found).tiles[0].delta.endswith("; W46 not fully known")


# Periods.


def test_period_of_minutes_has_no_week() -> None:
    found = facts(week=None, **{"from": at("18 14:00"), "to": at("18 14:20")}, previous=None)
    for one in found["key_figures"]:
        one["previous"] = None
    summary = summarize(found)
    assert (summary.week, summary.period) == ("", "Wed 18 Nov 2026, 14:00 to 14:20, UTC")
    assert "week" not in everything(summary).lower()


def test_period_of_days_that_is_no_week() -> None:
    found = facts(week=None, **{"from": "2026-11-28T00:00:00Z", "to": "2026-12-02T00:00:00Z"})
    assert summarize(found).period == "Sat 28 Nov to Tue 1 Dec 2026, UTC"
    found |= {"from": "2026-12-31T12:00:00Z", "to": "2027-01-02T06:00:00Z"}
    assert summarize(found).period == "Thu 31 Dec 12:00 to Sat 2 Jan 06:00, 2027, UTC"


def test_week_across_years() -> None:
    found = facts(**{"from": "2026-12-28T00:00:00Z", "to": "2027-01-04T00:00:00Z"})
    found["week"]["iso"] = "2026-W53"
    summary = summarize(found)
    assert (summary.week, summary.period) == (
        "Week 53", "Mon 28 Dec 2026 to Sun 3 Jan 2027, UTC"
    )  # fmt: skip


def test_week_with_time_change_in_its_zone() -> None:
    found = facts(
        time_zone="Europe/Berlin",
        **{"from": "2026-10-18T22:00:00Z", "to": "2026-10-25T23:00:00Z"},
    )
    assert summarize(found).period == "Mon 19 to Sun 25 Oct 2026, Europe/Berlin"


def test_objective_over_28_days_names_its_window() -> None:
    found = facts()
    found["objectives"][0]["from"] = "2026-10-26T00:00:00Z"
    rows = {one.name: one.target for one in summarize(found).objectives}
    assert rows["lost-before-read"] == "target 99.9 %, 28 days to 22 Nov"
    assert rows["leaderless"] == "target 99.95 %"


# Further notes.


def test_corrections_and_business_hours_are_second_lines() -> None:
    found = facts()
    row = found["objectives"][0]
    row["subjects"][0]["agreed"] = {"attainment": 0.9995, "verdict": "met"}
    found["business_hours"] = {"objectives": [{
        "name": "min-isr", "subjects": [{"attainment": 0.9991, "verdict": "met"}]
    }]}  # fmt: skip
    notes = {one.name: one.note for one in summarize(found).objectives if one.note}
    assert notes == {
        "lost-before-read": "with agreed corrections: 99.95 %, Met",
        "min-isr": "business hours: 99.91 %",
    }


def test_restated_results_are_one_note() -> None:
    found = facts(restated=[{"objective": "min-isr"}])
    assert plain(summarize(found).notes[0]) == "1 published result changed after publication."


def test_restated_weeks_are_named_once() -> None:
    found = facts()
    for one in found["objectives"]:
        one["history"][5]["restated"] = one["history"][6]["restated"] = True
    assert plain(summarize(found).notes[0]) == "Results of W45 and W46 changed after publication."


def test_last_week_has_status_of_row_in_a_report_of_a_week_only() -> None:
    found = running()
    assert summarize(found).objectives[-1].weeks[-1] == ("W47", "on_track")
    assert summarize(found | {"week": None}).objectives[-1].weeks[-1] == ("W47", "met")


def test_lenient_objectives_are_counted() -> None:
    found = facts()
    for row in found["objectives"][4]["subjects"]:
        row["interval_verdict"] = "uncertain"
    notes = " ".join(map(plain, summarize(found).notes))
    assert "The status of 1 met objective depends on the rule for unobserved time." in notes


def test_counted_events_are_figures_of_their_objective() -> None:
    found = facts()
    found["objectives"][4]["subjects"][0]["events"] = {"good": 990, "bad": 10, "total": 1000}
    assert rows_of(summarize(found))["copy-lag"][1].startswith("sessions: 10 of 1,000 bad")


def test_more_objectives_than_nine() -> None:
    summary = summarize(with_statuses(*["met"] * 20))
    assert len(summary.objectives) == 20
    assert summary.headline.text == "All 20 objectives met"


def test_team_and_owners() -> None:
    summary = summarize(facts(team="Payments"))
    assert summary.team == Name("Payments")
    assert summary.has_owners
    assert not summarize(facts(owners=None)).has_owners


def test_golden_report_has_the_statuses_and_events_of_its_json() -> None:
    found = json.loads(GOLDEN.read_text("utf-8"))
    summary = summarize(found)
    statuses = {row["name"]: row["status"] for row in found["objectives"]}
    assert {one.name: one.status for one in summary.objectives} == statuses
    missed = sum(status == "missed" for status in statuses.values())
    assert summary.headline.text.startswith(f"{missed} of {len(statuses)} objectives ")
    assert [(one.number, one.used_share) for one in summary.events] == [
        (row["number"], row["used"]) for row in found["events"]
    ]
    for one, row in zip(summary.events, found["events"], strict=True):
        assert plain(one.cause).startswith("Not known") == (row["cause"]["kind"] == "not_known")


def test_saved_report_of_format_1_opens(tmp_path: Path) -> None:
    found = json.loads(GOLDEN.read_text("utf-8"))
    found = {key: found[key] for key in found if key not in {
        "key_figures", "events", "incidents", "changes", "previous", "running", "elapsed",
    }} | {"format": 1, "events": found["changes"]}  # fmt: skip
    for one in found["objectives"]:
        for key in ("status", "used", "used_low", "used_high", "history", "owner"):
            one.pop(key, None)
    summary = summarize(opened(found, tmp_path))
    assert {one.status for one in summary.objectives} <= {"missed", "uncertain", "no_data", "met"}
    assert summary.headline.status == "missed"
    assert summary.events == ()
    assert {one.label for one in summary.tiles} >= {"Writes unavailable", "No leader"}
    assert summary.events_note == "Not known: this report does not contain events."
    assert not summary.is_blind


# Hostile names.


@pytest.mark.parametrize("name", [*HELD, *REFUSED, "", "<script>alert(1)</script>", "a" * 249])
def test_hostile_names_are_bounded_and_visible(name: str) -> None:
    found = json.loads(
        json.dumps(facts(team=name, cluster=name))
        .replace('"audit-archive"', json.dumps(name))
        .replace('"payments"', json.dumps(name))
        .replace('"invoicing"', json.dumps(name))
        .replace('"Payments"', json.dumps(name))
        .replace('"Unread data loss"', json.dumps(name))
        .replace('"connection refused"', json.dumps(name))
    )
    for text in strings(summarize(found)):
        assert len(text) < 600
        assert text.isprintable()
        assert "\u00a0" not in text


def test_texts_are_one_line_with_plain_spaces() -> None:
    for found in (facts(), running(), blind(), json.loads(GOLDEN.read_text("utf-8"))):
        for text in strings(summarize(found)):
            assert not re.search(r"[\n\u00a0]|  | [.,;:)]|\(\)|\[|\{|\bNone\b", text), text


# Bounds.

_UNITS: Final = {"d": 86_400, "h": 3_600, "min": 60, "s": 1, "ms": 0.001}


def microseconds(text: str) -> float:
    """Read a duration as the report writes it."""
    parts = re.findall(r"([\d.]+) (d|h|min|ms|s)\b", text)
    return sum(float(number) * _UNITS[unit] for number, unit in parts) * 1e6


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, WEEK), min_size=3, max_size=3).map(sorted))
def test_duration_is_within_its_printed_bounds(bounds: list[int]) -> None:
    low, us, high = bounds
    found = facts()
    row = subject(0.999, (us, low, high), 0, topic="orders")
    found["objectives"][3] |= {"subjects": [row], "status": row["verdict"], "used": row["used"]}
    text = rows_of(summarize(found))["min-isr"][1]
    match = re.fullmatch(r"orders: (none|[^(·]+?)(?: \((.*)\))? · 1 topic", text)
    assert match, text
    value = 0 if match[1] == "none" else microseconds(match[1])
    if match[2] is None:
        assert max(high - us, us - low) <= 0.05 * us
    elif match[2].startswith("±"):
        around = microseconds(match[2])
        step = 60e6 if value >= 3600e6 else 1e6
        assert value - around <= low + step
        assert high - step <= value + around
    elif match[2].startswith("≤ "):
        assert us == 0
        assert microseconds(match[2]) >= high
    else:
        first, last = map(microseconds, match[2].split(" to "))
        assert first <= low <= high <= last
        assert first <= value <= last


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=3, max_size=3).map(sorted))
def test_share_is_within_its_printed_bounds(bounds: list[float]) -> None:
    low, share, high = bounds
    found = facts()
    found["objectives"][3]["subjects"][0] |= {
        "attainment": share, "attainment_low": low, "attainment_high": high,
    }  # fmt: skip
    row = next(one for one in summarize(found).objectives if one.name == "min-isr")
    shares = [float(one) for one in re.findall(r"([\d.]+) %", row.bounds)]
    step = 1e-6 if len(shares) > 1 else 1e-3  # one figure, if both bounds are the same
    assert shares[0] <= low * 100 + step
    assert high * 100 - step <= shares[-1]
    assert (float(row.attained.removesuffix(" %")) == 100) == (share > 1 - 1e-8)
