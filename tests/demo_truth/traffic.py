"""How much went through a topic that known clients alone wrote and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.demo_truth.figure import Figure, stated

if TYPE_CHECKING:
    from collections.abc import Iterator


def figures(truth: Any, report: Any) -> Iterator[Figure]:
    """Records, bytes and requests: brokers count each just once, so nothing else is in them."""
    counted = truth.get("traffic")
    if counted is None:
        return
    topics = report["service"]["topics"]
    row = next((one for one in topics if one["topic"] == counted["topic"]), None)
    for name in ("records_in", "bytes_in", "bytes_out", "bytes_rejected", "produce_requests"):
        yield Figure(name, *stated(row, f"{name}_low", f"{name}_high"), counted[name])
