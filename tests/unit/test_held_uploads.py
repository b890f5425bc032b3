"""Upload lag that a topic holds back on purpose is not bad time (KIP-1241, Kafka 4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import pytest

from collector import catalogue
from collector.agent.removed_values import HeldUploads
from collector.model import Answer, Reading, Series
from collector.sources.admin.readings import holds_uploads_back
from lakehouse.core.periods import week
from lakehouse.core.subjects import Subject
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections import tier_lag
from lakehouse.report.facts.sections.tier_lag import HeldTopic
from lakehouse.tables import FLAG_KNOWN_WRONG

if TYPE_CHECKING:
    from lakehouse.engines.engine import Engine

TIERED: Final = catalogue.load().family("tiered")
LAG: Final = "kafka.topic.remote_copy_lag.bytes"
TOPICS: Final = {"held": 2_059_168.0, "late": 7.0, "done": 0.0}


def lags(held: HeldUploads, version: str | None) -> tuple[dict[str | None, float | None], bool]:
    """The lags by topic that are left of an answer, and whether they are flagged."""
    zeros = frozenset(Series(LAG, topic) for topic, lag in TOPICS.items() if not lag)
    values = {Series(LAG, topic): lag for topic, lag in TOPICS.items() if lag}
    answer = Answer((Reading(LAG, "gauge", zeros, values),), 3)
    (reading,) = held.removed_from(answer, TIERED, version).readings
    found = {one.topic: 0.0 for one in reading.zeros} | {
        one.topic: lag for one, lag in reading.values.items()
    }
    return found, FLAG_KNOWN_WRONG in reading.flags


def told(*topics: str, by_admin: bool = True) -> HeldUploads:
    held = HeldUploads(by_admin=by_admin)
    answer = held.learned_from(Answer((), 0, held_back=frozenset(topics)))
    assert answer.held_back is None
    return held


@pytest.mark.edge(15)
@pytest.mark.parametrize(
    ("held", "version", "left", "flagged"),
    [
        (told("held"), "4.4.0", {"late", "done"}, False),
        (told("held", "other"), "4.5.1", {"late", "done"}, False),
        (told("held", "late", "done"), "4.4.0", {"done"}, False),
        (told(), "4.4.0", {"held", "late", "done"}, False),
        (told("held"), None, {"late", "done"}, False),
        (HeldUploads(by_admin=True), "4.4.0", {"done"}, False),
        (HeldUploads(by_admin=True), "4.3.1", {"held", "late", "done"}, False),
        (HeldUploads(by_admin=False), "4.4.0", {"held", "late", "done"}, True),
        (HeldUploads(by_admin=False), "4.3.1", {"held", "late", "done"}, False),
        (HeldUploads(by_admin=False), None, {"held", "late", "done"}, False),
    ],
)
def test_held_back_lag_is_unknown(
    held: HeldUploads, version: str | None, left: set[str], *, flagged: bool
) -> None:
    assert lags(held, version) == ({topic: TOPICS[topic] for topic in left}, flagged)


@pytest.mark.edge(15)
@pytest.mark.parametrize(
    ("ms", "size", "tiered", "expected"),
    [
        ("3600000", "2097152", "true", True),
        ("-1", "-1", "true", True),
        ("0", "2097152", "true", False),
        ("3600000", "0", "true", False),
        ("3600000", "2097152", "false", False),
        (None, None, "true", False),
    ],
)
def test_topic_settings_determine_held_uploads(
    ms: str | None, size: str | None, tiered: str, *, expected: bool
) -> None:
    settings = {"remote.copy.lag.ms": ms, "remote.copy.lag.bytes": size}
    config = {key: value for key, value in settings.items() if value is not None}
    assert holds_uploads_back({**config, "remote.storage.enable": tiered}) is expected


@pytest.mark.edge(15)
@pytest.mark.parametrize(
    ("metric", "issue"),
    [
        (LAG, "KAFKA-20977"),
        ("kafka.topic.remote_copy_lag.segments", "KAFKA-20977"),
        ("kafka.topic.remote_delete_lag.bytes", "KAFKA-21098"),
        ("kafka.topic.remote_delete_lag.segments", "KAFKA-21098"),
    ],
)
def test_lag_fixed_in_kafka_4_4_is_not_flagged(metric: str, issue: str) -> None:
    known = [one for one in TIERED.metric(metric).known_wrong if issue in one.reason]
    assert [one.covers("4.3.1") for one in known] == [True]
    assert [one.covers("4.4.0") for one in known] == [False]


def topic(name: str, **attributes: float) -> Subject:
    keys = {f"kafka.topic.remote_{key}".replace("__", "."): one for key, one in attributes.items()}
    return Subject("c", "topic", name, None, None, None, None, 0, 1, attributes=keys)


def test_report_lists_topics_that_hold_uploads_back() -> None:
    held = {"copy_held_back__time": 3_600_000.0, "copy_held_back__bytes": -1.0}
    subjects = [
        topic("orders", storage_enabled=1.0, **held),
        topic("clicks", storage_enabled=1.0, **held),
        topic("at-once", storage_enabled=1.0, **held | {"copy_held_back__time": 0.0}),
        topic("local", storage_enabled=0.0, **held),
        topic("before-4.4", storage_enabled=1.0),
    ]
    gold = Gold(cast("Engine", None), "c", week("2026-W47"), 300, subjects)
    expected = [HeldTopic(name, 3_600_000, -1) for name in ("clicks", "orders")]
    assert tier_lag._held_topics(gold) == expected
