"""What asks to be tidied up: from rows of gold, without Spark."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lakehouse.core.subjects import Subject
from lakehouse.report.facts.fields import to_json
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections.hygiene import (
    Hygiene,
    clients_near_quota,
    groups_overtaken,
    hygiene,
    spare_replicas,
    suggested_quota,
    unused_quotas,
)
from lakehouse.report.facts.sections.throttling import quota_in_force, quotas
from lakehouse.report.page.page import render
from tests import sample_facts
from tests.page_reader import read

PRODUCE = "kafka.quota.produce.byte_rate"
RATE = "kafka.client.produce.byte_rate"
THROTTLE = "kafka.client.produce.throttle_time"
DEFAULT = "<default>"
MEGA = 1_000_000.0


def topic(
    name: str, replicas_: float | None, least: float | None, partitions: float = 6
) -> Subject:
    told = {
        "kafka.topic.replication_factor": replicas_,
        "kafka.topic.min_insync_replicas": least,
        "kafka.topic.partitions": partitions,
    }
    return Subject("c", "topic", name, None, None, None, None, 0, 10, attributes=told)


def quota(user: str | None, client_id: str | None, limit: float | None = MEGA) -> Subject:
    return Subject(
        "c", "quota", None, user, client_id, None, None, 0, 10, attributes={PRODUCE: limit}
    )


def rate(most: float, throttled_us: int = 0) -> dict[str, dict[str, Any]]:
    return {
        RATE: {"value_max": most, "series_affected_high_us": 1 if most else 0},
        THROTTLE: {"series_affected_high_us": throttled_us},
    }


def test_replicas_that_cannot_be_spared():
    single, tight, untold = spare_replicas([
        topic("one", 1, 1), topic("all", 3, 3), topic("more", 2, 3), topic("well", 3, 2),
        topic("untold", None, None), topic("big", 1, 1, 50), topic("no min told", 2, None),
    ])  # fmt: skip
    assert single is not None
    assert tight is not None
    assert [row.topic for row in single] == ["big", "one"]
    assert [row.topic for row in tight] == ["all", "more"]
    assert untold == 1


def test_where_nobody_told_of_replicas_there_is_no_list():
    assert spare_replicas([topic("untold", None, None)]) == (None, None, 1)


@pytest.mark.parametrize(
    ("given_", "user", "client_id", "wanted"),
    [
        ([("u", "c"), ("u", DEFAULT)], "u", "c", ("u", "c")),
        ([("u", DEFAULT), (DEFAULT, "c")], "u", "c", ("u", DEFAULT)),
        ([(DEFAULT, "c"), (DEFAULT, DEFAULT)], "u", "c", (DEFAULT, "c")),
        ([(DEFAULT, DEFAULT)], "u", "c", (DEFAULT, DEFAULT)),
        ([("u", None), (DEFAULT, None)], "u", None, ("u", None)),
        ([(DEFAULT, None)], "u", None, (DEFAULT, None)),
        ([(None, DEFAULT)], None, "c", (None, DEFAULT)),
        ([("u", None)], None, "c", None),
        ([(None, "c")], "u", "c", None),
    ],
)
def test_the_quota_in_force_is_the_one_kafka_takes(given_, user, client_id, wanted):
    held = quota_in_force(quotas([quota(*one) for one in given_]), user, client_id, PRODUCE)
    assert (held.entity if held else None) == wanted


def test_a_limit_nobody_could_tell_is_no_other_limit():
    known = quotas([quota("u", None, None), quota(DEFAULT, None)])
    assert quota_in_force(known, "u", None, PRODUCE) is None


def test_a_quota_under_which_nobody_did_anything_is_unused():
    known = quotas([quota(None, "a"), quota(None, "b"), quota(None, DEFAULT), quota("u", None)])
    seen = {(None, "a"): rate(10.0), (None, "b"): rate(0.0), ("v", None): rate(5.0)}
    assert [(row.user, row.client_id) for row in unused_quotas(known, seen)] == [
        (None, DEFAULT), (None, "b"), ("u", None),
    ]  # fmt: skip
    assert {row.kind for row in unused_quotas(known, seen)} == {"produce"}


def test_who_was_throttled_has_used_the_quota():
    known = quotas([quota(None, "a")])
    assert unused_quotas(known, {(None, "a"): rate(0.0, throttled_us=5)}) == []


def test_who_falls_under_a_default_uses_it():
    known = quotas([quota(None, DEFAULT)])
    assert unused_quotas(known, {(None, "whoever"): rate(1.0)}) == []


def test_clients_near_their_quota_and_what_would_do():
    known = quotas([quota(None, "a"), quota(None, "b"), quota(None, DEFAULT, 2 * MEGA)])
    seen = {
        (None, "a"): rate(0.8 * MEGA),
        (None, "b"): rate(0.79 * MEGA),
        (None, "c"): rate(2.2 * MEGA, throttled_us=1),
    }
    first, second = clients_near_quota(known, seen)
    assert (first.client_id, first.quota_of.client_id) == ("c", DEFAULT)
    assert first.share == pytest.approx(1.1)
    assert (first.suggested, first.suggested_at_least) == (2.8 * MEGA, True)
    assert (second.client_id, second.suggested) == ("a", 1.3 * MEGA)
    assert second.suggested_at_least is False


def test_a_quota_of_zero_has_no_near():
    assert clients_near_quota(quotas([quota(None, "a", 0.0)]), {(None, "a"): rate(0.0)}) == []


@given(st.floats(1e-6, 1e15))
def test_what_is_suggested_is_a_quarter_more_and_a_round_number(most: float):
    value = suggested_quota(most)
    assert 1.25 * most * (1 - 1e-6) <= value <= 1.25 * most * 1.1 * (1 + 1e-6)
    assert float(f"{value:.1e}") == pytest.approx(value)


def headroom(group: str, last: float | None, window: int = 0) -> dict[str, Any]:
    most = None if last is None else 2 * last
    return {
        "consumer_group": group, "topic": "t", "last": last, "most": most, "window_start": window,
    }  # fmt: skip


def test_groups_that_retention_overtakes_soonest_first():
    hour = 3600.0
    rows = [headroom("later", 48 * hour), headroom("safe", None), headroom("day", 24 * hour),
            headroom("now", 0.0, window=1_000_000 * 3600)]  # fmt: skip
    found = groups_overtaken(rows, 300)
    assert found is not None
    assert [row.group for row in found] == ["now", "day"]
    assert found[0].as_of == "1970-01-01T01:05:00Z"
    assert found[1].most_seconds == 48 * hour


def test_nobody_told_of_headroom_is_not_that_all_is_well():
    assert groups_overtaken([], 300) is None
    assert groups_overtaken([headroom("safe", None)], 300) == []


class NoGold:
    """Gold in which nobody told anything."""

    expected = Gold.expected

    def __init__(self, period: Any, now_us: int) -> None:
        self.period, self.window_seconds = period, 300
        self.subjects, self.now_us = [quota(None, "a")], now_us

    def by_subject(self, *_: Any) -> dict[str, Any]:
        return {}

    def ask(self, *_: Any, **__: Any) -> list[Any]:
        return []

    def finest(self, *_: Any) -> None:
        return None


def test_quotas_are_judged_only_where_rates_and_limits_were_read():
    from lakehouse.core.periods import span  # noqa: PLC0415

    gold: Any = NoGold(span("1970-01-01T00:00Z", "1970-01-02T00:00Z"), 10**12)
    read_ = ["client_rates", "quota_limits"]
    found = hygiene(gold, read_)
    assert found.unused_quotas is not None
    assert len(found.unused_quotas) == 1
    assert found.within_hours == 24
    for missing in (0, 1):
        found = hygiene(gold, read_[missing : missing + 1])
        assert found.unused_quotas is found.near_quota is None


def test_a_quota_and_a_topic_of_another_time_are_not_told_of():
    from lakehouse.core.periods import span  # noqa: PLC0415

    gold: Any = NoGold(span("1970-02-01T00:00Z", "1970-02-02T00:00Z"), 10**15)
    found = hygiene(gold, ["client_rates", "quota_limits"])
    assert found.unused_quotas == []


def tidy() -> sample_facts.Facts:
    facts = sample_facts.demo()
    known = quotas([quota(None, "a"), quota(None, "idle"), quota(DEFAULT, DEFAULT)])
    seen = {(None, "a"): rate(0.9 * MEGA, throttled_us=3)}
    facts["hygiene"] = to_json(
        Hygiene(
            *spare_replicas(
                [topic("single", 1, 1), topic("tight", 2, 2), topic("untold", None, None)]
            ),
            unused_quotas(known, seen),
            clients_near_quota(known, seen),
            groups_overtaken([headroom("slow", 7200.0), headroom("gone", 0.0)], 300),
        )
    )
    return facts


def test_the_page_has_a_table_for_each_list():
    page = read(render(tidy()))
    section = page.one("div", id="d-risks")
    assert len(list(section.all("table"))) >= 4
    assert "gonetovertaken" in section.text


def test_a_list_that_was_not_read_is_not_known():
    facts = tidy()
    facts["hygiene"] |= {"unused_quotas": None, "near_quota": None, "overtaken": None,
                         "replication_one": None, "no_spare_replica": None}  # fmt: skip
    fold = next(
        one for one in read(render(facts)).all("details") if "Configuration risks" in one.text
    )
    assert "0 risks" not in fold.text
    assert re.search("not known|not collected|no data", fold.text, re.IGNORECASE)
