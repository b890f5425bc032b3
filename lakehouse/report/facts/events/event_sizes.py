"""Sizes of events: messages lost, rates, waits and bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from lakehouse import tables
from lakehouse.core.metrics import COPY_LAG, DELETE_LAG
from lakehouse.gold.event_kinds import AVAILABILITY
from lakehouse.gold.events import Key
from lakehouse.gold.incidents import Incident
from lakehouse.report.facts.events.event_records import Size
from lakehouse.report.facts.fields import per_second
from lakehouse.report.facts.gold import Gold, Sums
from lakehouse.report.facts.kafka.consumer_groups import LostBeforeRead
from lakehouse.report.facts.kafka.throttling import KINDS, Quotas, quota_in_force, quotas

_WAITS: Final = {"copy": COPY_LAG, "delete": DELETE_LAG}


class Sizes:
    """Sums of gold over the period, by the subject of an event."""

    def __init__(self, gold: Gold, lost: LostBeforeRead) -> None:
        self._gold = gold
        self._totals = {one.group: one for one in lost.totals}
        self._topics_of: defaultdict[str | None, list[str]] = defaultdict(list)
        known = {
            (one.topic, one.group) for one in lost.groups if one.offsets_low or one.offsets_high
        }
        for topic, group in sorted(known):
            self._topics_of[group].append(topic)

    def of(self, key: Key, items: Sequence[Incident]) -> Size:
        """Return the sizes of an event."""
        match key.kind:
            case "throttling":
                return self._throttled(key)
            case "loss" if (total := self._totals.get(str(key.group))) is not None:
                return Size(
                    partitions=total.partitions,
                    offsets_low=total.offsets_low,
                    offsets_high=total.offsets_high,
                )
            case "tiered":
                row = self._topics[key.topic].get(_WAITS.get(str(key.of), ""), {})
                return Size(max_bytes=row.get("max_total", row.get("value_max")))
            case _ if key.kind == AVAILABILITY:
                hit = {(one.topic, one.partition) for one in items if one.partition is not None}
                return Size(partitions=len(hit))
        return Size(max_value=max((one.worst for one in items), default=None))

    def topics_lost(self, key: Key) -> list[str]:
        """Return the topics with lost messages of a group; other kinds have none."""
        return self._topics_of[key.group] if key.kind == "loss" else []

    def failed(self, key: Key) -> bool | None:
        """Return whether copies or deletions of a topic failed; None: not known."""
        rise = self._topics[key.topic][f"kafka.topic.remote_{key.of}.errors"].get("increase")
        return None if rise is None else rise > 0

    def _throttled(self, key: Key) -> Size:
        rows = self._clients[key.user, key.client_id]
        throttle = rows.get(f"kafka.client.{key.of}.throttle_time", {})
        kind = KINDS[str(key.of)]
        rate = rows.get(kind.rate, {})
        quota = quota_in_force(self._quotas, key.user, key.client_id, kind.quota)
        return Size(
            throttle_ms_mean=per_second(throttle, "series_affected_us") if throttle else None,
            throttle_ms_max=throttle.get("value_max"),
            rate_max=rate.get("value_max"),
            quota=None if quota is None else quota.limit,
        )

    @cached_property
    def _quotas(self) -> Quotas:
        return quotas(self._gold.subjects)

    @cached_property
    def _clients(self) -> Sums:
        return self._gold.by_subject(tables.CLIENTS)

    @cached_property
    def _topics(self) -> Sums:
        return self._gold.by_subject(tables.TOPICS)
