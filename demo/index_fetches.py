"""Fetches of indexes: our plugin counts them for JMX, and the one that it wraps notes them.

What the wrapped plugin notes is the truth: what really reached the store, whatever a bean says.
One broker fetches the indexes of a segment at once, the others one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from demo.tier_plugin import CLASS, broker_account

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from demo.node import Node
    from demo.properties import NodePlan

FAMILY: Final = "index_fetches"
AT_ONCE: Final = 3
"""The broker that fetches all indexes of a segment at once."""

_AHEAD: Final = "jmxlake-index-fetch"  # the threads of our plugin; all others are the broker's own
_DELAY_MS: Final = 40  # as an object store takes to answer


def plugin_settings(plan: NodePlan) -> dict[str, str]:
    """Settings of a broker that counts its fetches of indexes, over those of the storage plugin."""
    return {
        "remote.log.storage.manager.class.name": "jmxlake.kafka.CountingRemoteStorageManager",
        "rsm.config.wrapped.class.name": CLASS,
        "rsm.config.fetch.indexes.at.once": str(plan.id == AT_ONCE).lower(),
        "rsm.config.index.delay.ms": str(_DELAY_MS),
    }


def noted(brokers: Iterable[Node], start: float, end: float) -> Iterator[dict[str, Any]]:
    """What the wrapped plugins noted between two instants (seconds), of each broker.

    A request by a thread of the broker itself is a round trip that it waited for.
    """
    for node in brokers:
        events = [event for event in broker_account(node) if start <= event.at_ms / 1000 < end]
        fetches = [event for event in events if event.event.startswith("index_")]
        waited = [event for event in fetches if event.thread != _AHEAD]
        yield {
            "source": node.plan.name,
            "at_once": node.plan.id == AT_ONCE,
            "segments": len({event.segment for event in fetches}),
            "requests": len(fetches),
            "round_trips": len(waited),
            "seconds": sum(event.nanos for event in waited) / 1e9,
            "bytes": sum(max(0, event.size) for event in fetches),
            "not_found": sum(event.size < 0 for event in fetches),
        }
