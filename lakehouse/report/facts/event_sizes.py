"""How bad events were, beside their time: messages lost, rates, waits and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from lakehouse import tables
from lakehouse.core.metrics import COPY_LAG, DELETE_LAG
from lakehouse.gold.event_kinds import AVAILABILITY
from lakehouse.gold.events import Key
from lakehouse.gold.incidents import Incident
from lakehouse.report.facts.counters import with_bounds
from lakehouse.report.facts.event_records import Size
from lakehouse.report.facts.fields import per_second
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.kafka.throttling import KINDS

_WAITS: Final = {"copy": COPY_LAG, "delete": DELETE_LAG}


class Sizes:
    """Sums of gold over the period, by the subject of an event."""

    def __init__(self, gold: Gold) -> None:
        self._gold = gold

    def of(self, key: Key, items: Sequence[Incident]) -> Size:
        """Return the sizes of an event."""
        match key.kind:
            case "throttling":
                return self._throttled(key)
            case "loss":
                lost = self._lost(key.group)
                low, high = (
                    sum(row[name] for row in lost) for name in ("offsets_low", "offsets_high")
                )
                return Size(partitions=len(lost), offsets_low=low, offsets_high=high)
            case "tiered":
                row = self._topics[key.topic].get(_WAITS.get(str(key.of), ""), {})
                return Size(max_bytes=row.get("max_total", row.get("max")))
            case _ if key.kind == AVAILABILITY:
                hit = {(one.topic, one.partition) for one in items if one.partition is not None}
                return Size(partitions=len(hit))
        return Size(max_value=max((one.worst for one in items), default=None))

    def topics_lost(self, key: Key) -> list[str]:
        """Return the topics of which a group lost messages; of other kinds none."""
        rows = self._lost(key.group) if key.kind == "loss" else ()
        return sorted({row["topic"] for row in rows})

    def failed(self, key: Key) -> bool | None:
        """Return whether copies or deletions of a topic failed; None: not known."""
        rise = self._rises[key.topic].get(f"kafka.topic.remote_{key.of}.errors", {})
        most = rise.get("increase_high")
        return None if most is None else bool(rise.get("increase"))

    def _throttled(self, key: Key) -> Size:
        rows = self._clients[key.user, key.client_id]
        throttle = rows.get(f"kafka.client.{key.of}.throttle_time", {})
        rate = rows.get(KINDS[str(key.of)].rate, {})
        return Size(
            throttle_ms_mean=per_second(throttle, "positive_us") if throttle else None,
            throttle_ms_max=throttle.get("max"),
            rate_max=rate.get("max"),
        )

    def _lost(self, group: str | None) -> list[Mapping[str, Any]]:
        return [row for row in self._losses if row["group"] == group and row["offsets_high"] > 0]

    @cached_property
    def _losses(self) -> list[Mapping[str, Any]]:
        return list(self._gold.sums(tables.NON_CONSUMED))

    @cached_property
    def _clients(self) -> Mapping[Any, Mapping[str, Mapping[str, Any]]]:
        return self._gold.by_subject(tables.CLIENTS)

    @cached_property
    def _topics(self) -> Mapping[Any, Mapping[str, Mapping[str, Any]]]:
        return self._gold.raised(tables.TOPICS)

    @cached_property
    def _rises(self) -> Mapping[Any, Mapping[str, Mapping[str, Any]]]:
        return with_bounds(self._gold, tables.TOPICS)
