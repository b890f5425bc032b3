"""What changed between two answers of the cluster, as notices, which become events."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from collector.model import Notice, Series
from collector.sources.admin.client import Topics
from collector.sources.admin.readings import Configs, Limits, leaders, leads, quota_series
from collector.sources.base.lake_limits import lake_name

_Value = TypeVar("_Value")


def leader_changes(
    before: Topics, after: Topics, node: int | None, *, for_all: bool
) -> list[Notice]:
    """Elections: the new leader's agent reports them; agents that report for all, a lost leader."""
    known = leaders(before)
    return [
        Notice("leader_change", Series("", *partition), _name(old), _name(new))
        for partition, new in leaders(after).items()
        if (old := known.get(partition, new)) != new
        and (leads(node, new) or (new is None and for_all))
    ]


def quota_changes(before: Limits, after: Limits) -> list[Notice]:
    """Quotas that were set, changed or taken away."""
    return [
        Notice("quota_change", quota_series("", entity), _setting(key, old), _setting(key, new))
        for entity in sorted({*before, *after}, key=repr)
        for key, old, new in _changed(before.get(entity, {}), after.get(entity, {}))
    ]


def config_changes(before: Configs, after: Configs) -> list[Notice]:
    """Settings of topics that changed; a topic that is new has changed nothing."""
    return [
        Notice("config_change", Series("", topic), _setting(key, old), _setting(key, new))
        for topic, settings in sorted(after.items())
        for key, old, new in _changed(before.get(topic, settings), settings)
    ]


def group_failures(before: Mapping[str, str], after: Mapping[str, str]) -> list[Notice]:
    """Groups that did not answer while others did, and those that do again; by group the reason."""
    return [
        Notice("group_unreadable", Series("", group=lake_name(group)), old, new)
        for group, old, new in _changed(before, after)
    ]


def hidden_brokers(before: frozenset[int], after: frozenset[int]) -> list[Notice]:
    """Brokers that may lead and are not shown by the listener that is asked, when they change."""
    old, new = (",".join(f"broker-{node}" for node in sorted(nodes)) for nodes in (before, after))
    return [Notice("broker_without_listener", Series(""), old, new)] if old != new else []


def recreated(before: Mapping[str, str], after: Mapping[str, str]) -> list[Notice]:
    """Topics that were deleted and made again: the name is the same, the id is another."""
    return [
        Notice("topic_recreated", Series("", topic), old, after[topic])
        for topic, old in sorted(before.items())
        if after.get(topic, old) != old
    ]


def _changed(
    before: Mapping[str, _Value], after: Mapping[str, _Value]
) -> Iterator[tuple[str, _Value | None, _Value | None]]:
    """Keys whose values differ, and both values; None: there is none."""
    both = ((key, before.get(key), after.get(key)) for key in sorted({*before, *after}))
    return ((key, old, new) for key, old, new in both if old != new)


def _setting(key: str, value: object) -> str | None:
    return None if value is None else f"{key}={value}"


def _name(leader: int | None) -> str:
    return "none" if leader is None else f"broker-{leader}"
