"""Fetches of indexes beside what the wrapped plugin noted, request by request (KIP-1002)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from demo.index_fetches import FAMILY
from tests.demo_truth.figure import Figure, stated

if TYPE_CHECKING:
    from collections.abc import Iterator


def figures(truth: Any, report: Any) -> Iterator[Figure]:
    """Of each broker that read remotely; one of them fetches all indexes of a segment at once."""
    rows = {row["source"]: row for row in report["remote_reads"]["indexes"]}
    # Of a broker that nobody has read the report says nothing.
    read = {
        row["source"]
        for row in report["coverage"]["sources"]
        if row["family"] == FAMILY and row["observed_us"]
    }
    for noted in truth.get("index_fetches", ()):
        if not noted["requests"]:
            continue
        source, ahead = noted["source"], noted["requests"] - noted["round_trips"]
        true = {
            # What was fetched ahead was asked for, once each: the broker needs them all.
            "fetches": noted["requests"],
            "round_trips": noted["round_trips"],
            "at_once": noted["segments"],
            "saved": ahead if noted["at_once"] else noted["requests"] - noted["segments"],
            "requests": noted["requests"],
            # The demo's plugin has no method for several indexes.
            "requests_saved": 0 if noted["at_once"] else noted["requests"] - noted["segments"],
        }
        for name, figure in true.items():
            bounds = 0.0, math.inf
            if source in rows or source in read:
                bounds = stated(rows.get(source), f"{name}_low", f"{name}_high")
            yield Figure(f"{source} {name}", *bounds, figure)
