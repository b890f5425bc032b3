"""Events of a report: elections, of which there are many, leave all others in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalake import write_deltalake

from collector.delivery import arrow
from lakehouse import tables
from lakehouse.core import periods
from lakehouse.core.lake import Lake
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts.gold import Gold
from tests.lake_builder import CLUSTER, made, micros

if TYPE_CHECKING:
    from pathlib import Path


def test_rolling_restart_hides_no_other_event(tmp_path: Path):
    kinds = ["leader_change"] * 1_200 + ["source_restart", "batch_dropped"]
    told = {"date": micros(0) // 86_400_000_000, "cluster": CLUSTER, "source": "broker-1",
            "agent": "agent-1", "batch": 1}  # fmt: skip
    rows = [
        tuple(
            (told | {"at": micros(n), "kind": kind}).get(name)
            for name in tables.EVENTS.column_names
        )
        for n, kind in enumerate(kinds)
    ]
    events = made(tmp_path, tables.EVENTS)
    write_deltalake(events, arrow.to_arrow(tables.EVENTS, rows), mode="append")
    gold = Gold(LocalEngine(Lake(str(tmp_path))), CLUSTER, periods.week("2026-W47"), 300)
    listed, omitted = gold.changes()
    assert [row["at"] for row in listed] == sorted(row["at"] for row in listed)
    assert [row["kind"] for row in listed[1_000:]] == ["source_restart", "batch_dropped"]
    assert omitted == {"leader_change": 200}
