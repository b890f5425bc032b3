"""Sentences on brokers and on what topics store, of facts made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse.report.figures import plain_text
from lakehouse.report.page.page import render
from lakehouse.report.page.questions import questions
from lakehouse.report.page.sections import capacity
from tests import sample_facts
from tests.page_reader import read
from tests.sample_facts import EVIL, exactly

NOT_SAID = {"held_back_us": None, "held_back_low_us": None, "held_back_high_us": None}


def answer(facts: sample_facts.Facts, anchor: str) -> str:
    (found,) = (one for one in questions(facts) if one.anchor == anchor)
    return plain_text(found.answer).replace("\u00a0", " ")


def broker(name: str, **given: Any) -> dict[str, Any]:
    return {"source": name, "copies_failed": 0, "deletions_failed": 0, **NOT_SAID, **given}


def stored(topic: str, verdict: str, **given: Any) -> dict[str, Any]:
    nothing = {"reached_us": None, "reached_low_us": None, "reached_high_us": None}
    return {"topic": topic, "verdict": verdict, "disk_bytes_mean": 1024.0, **nothing, **given}


def test_brokers_are_told_of_only_where_something_was_above_zero():
    facts = sample_facts.quiet_week()
    before = answer(facts, "tier-lag")
    facts["tier_lag"]["brokers"] = [broker("b1"), broker("b2", **exactly("held_back", 0))]
    assert (
        answer(facts, "tier-lag") == before == ("0 of 1 tiered topics had upload or deletion lag.")
    )


def test_the_longest_held_back_is_named_and_the_others_are_counted():
    facts = sample_facts.quiet_week()
    facts["tier_lag"]["brokers"] = [
        broker("b1", **exactly("held_back", 60_000_000)),
        broker("b2"),
        broker("b3", held_back_us=90_000_000, held_back_low_us=30_000_000),
    ]
    assert answer(facts, "tier-lag") == (
        "0 of 1 tiered topics had upload or deletion lag. 2 brokers were throttled by their own "
        "copy quota. Worst: b3, 1 m 30 s (at least 30 s)."
    )


def test_failures_are_told_beside_the_lag():
    facts = sample_facts.demo()
    before = answer(facts, "tier-lag")
    facts["tier_lag"]["topics"][0] |= {"copies_failed": 1.0, "deletions_failed": 12.0}
    topic = facts["tier_lag"]["topics"][0]["topic"]
    assert answer(facts, "tier-lag") == (
        f"{before} 1 of 1 tiered topic had failed uploads or deletions. "
        f"Worst: {topic}, 1 upload and 12 deletions."
    )


def test_facts_of_an_earlier_version_have_no_such_sentence():
    facts = sample_facts.demo()
    assert facts.get("capacity") is None
    assert capacity(facts) is None
    assert "refused" not in answer(facts, "min-isr")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([stored("a", "unlimited")], "1 topic has 1.0 KiB on brokers' disks."),
        (
            [stored("a", "full"), stored("b", "unknown", disk_bytes_mean=None)],
            "2 topics have 1.0 KiB on brokers' disks, without 1 topic of which it is not known. "
            "1 topic is at retention.bytes already.",
        ),
        (
            [
                stored(
                    "a",
                    "filling",
                    reached_us=9 * 10**9,
                    reached_low_us=8 * 10**9,
                    reached_high_us=10**10,
                ),
                stored(
                    "b",
                    "filling",
                    reached_us=6 * 10**9,
                    reached_low_us=6 * 10**9,
                    reached_high_us=7 * 10**9,
                ),
            ],
            "2 topics have 2.0 KiB on brokers' disks. Topic b reaches its "
            "retention.bytes first, in 1 h 40 m (1 h 40 m to 1 h 57 m), if it goes on like that.",
        ),
    ],
)
def test_what_fills_up_first_is_named(rows: list[dict[str, Any]], said: str):
    section = capacity({"capacity": {"topics": rows}})
    assert section is not None
    assert plain_text(section.answer).replace("\u00a0", " ") == said


def test_names_of_topics_and_sources_stay_text():
    facts = sample_facts.demo()
    facts["capacity"] = {"topics": [stored(EVIL, "filling", **exactly("reached", 10**9))]}
    facts["tier_lag"]["brokers"] = [broker(EVIL, **exactly("held_back", 1_000_000))]
    page = read(render(facts))
    assert [one.text for one in page.all("script") if "alert" in one.text] == []
    (row,) = page.one("section", id="capacity").one("tbody").all("tr")
    assert row.one("th").text, "it is there, as text"
