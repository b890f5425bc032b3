"""What changed between two answers of the cluster."""

from __future__ import annotations

from collector.model import Notice, Series
from collector.sources.admin import readings
from collector.sources.admin.client import PartitionState, QuotaEntity


def test_brokers_that_the_listener_does_not_show_are_events_when_they_change() -> None:
    none, some = frozenset[int](), frozenset({3, 12})
    assert readings.hidden_brokers(some, some) == []
    begun, over = readings.hidden_brokers(none, some) + readings.hidden_brokers(some, none)
    assert begun == Notice("broker_without_listener", Series(""), "", "broker-3,broker-12")
    assert (over.old, over.new) == (begun.new, "")


def test_a_topic_is_another_if_its_id_is() -> None:
    before = {"same": "a", "again": "b", "gone": "c"}
    after = {"same": "a", "again": "d", "new": "e"}
    again = Notice("topic_recreated", Series("", "again"), "b", "d")
    assert readings.recreated(before, after) == [again]


def test_a_group_that_does_not_answer_is_told_when_it_begins_and_when_it_ends() -> None:
    def told(group: str, old: str | None, new: str | None) -> Notice:
        return Notice("group_unreadable", Series("", group=group), old, new)

    failed = {"a": "TimeoutException", "b": "GroupAuthorizationException"}
    assert readings.group_failures({}, failed) == [
        told("a", None, "TimeoutException"),
        told("b", None, "GroupAuthorizationException"),
    ]
    assert readings.group_failures(failed, failed) == []
    (again,) = readings.group_failures(failed, {"b": failed["b"]})
    assert again == told("a", "TimeoutException", None)


def test_watched_groups_row_is_an_event_at_its_start_and_end() -> None:
    (begun,) = readings.rejected_rows({"gone": "why"}, {"gone": "why", "a[": "pattern"})
    assert begun == Notice("watched_groups_rejected", Series("", "a["), None, "pattern")
    (over,) = readings.rejected_rows({"a[": "pattern"}, {})
    assert (over.old, over.new) == ("pattern", None)


def test_unread_table_is_an_event_at_its_start_and_end() -> None:
    assert readings.unread_table(None, None) == readings.unread_table("a", "a") == []
    assert readings.unread_table("a", None) == [
        Notice("watched_groups_unread", Series(""), "a", None)
    ]


def test_an_election_is_told_once() -> None:
    before = {"t": (PartitionState(0, 1, 2), PartitionState(1, 2, 2), PartitionState(2, 1, 1))}
    after = {"t": (PartitionState(0, 2, 2), PartitionState(1, 2, 2), PartitionState(2, None, 1))}
    elected = Notice("leader_change", Series("", "t", 0), "broker-1", "broker-2")
    lost = Notice("leader_change", Series("", "t", 2), "broker-1", "none")
    assert readings.leader_changes(before, after, 2, for_all=False) == [elected]
    assert readings.leader_changes(before, after, 3, for_all=True) == [lost]
    assert readings.leader_changes(after, after, 2, for_all=True) == []


def test_a_new_topic_is_no_election_and_no_change() -> None:
    new = {"t": (PartitionState(0, 1, 1),)}
    assert readings.leader_changes({}, new, 1, for_all=True) == []
    assert readings.config_changes({}, {"t": {"retention.ms": "1"}}) == []


def test_changes_of_quotas_and_settings_are_told() -> None:
    bob = QuotaEntity("bob", None, "")
    before = {bob: {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0}}
    told = readings.quota_changes(before, {bob: {"producer_byte_rate": 3.0}})
    assert [(notice.old, notice.new) for notice in told] == [
        ("consumer_byte_rate=2.0", None),
        ("producer_byte_rate=1.0", "producer_byte_rate=3.0"),
    ]
    changed = readings.config_changes({"t": {"a": "1", "b": "1"}}, {"t": {"a": "2", "b": "1"}})
    assert changed == [Notice("config_change", Series("", "t"), "a=1", "a=2")]
