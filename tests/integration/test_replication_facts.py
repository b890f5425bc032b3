"""Missing, moving and unclean replicas in the report, of gold made by hand."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from lakehouse import tables
from lakehouse.core.lake import Lake
from lakehouse.core.periods import Period
from lakehouse.core.subjects import Subject
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts.fields import Bounds
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections.replication import ReplicatedTopic, replication
from lakehouse.slo.openslo import objective_files
from lakehouse.slo.sla_statement import Statement, Times
from tests import gold_builder
from tests.lake_builder import BASE, CLUSTER, micros

if TYPE_CHECKING:
    from pathlib import Path

SECOND: Final = 1_000_000
WINDOW: Final = 300
NOTHING: Final = Bounds(None, None, None)
METRICS: Final = tuple(
    f"kafka.partition.{what}"
    for what in ("under_replicated", "without_spare", "reassigning", "unclean_leader")
)


def window(metric: str, topic: str, us: int) -> dict[str, Any]:
    row = {"cluster": CLUSTER, "window_start": BASE, "metric": metric, "topic": topic, "series": 1}
    names = (
        "series_affected_us",
        "series_affected_low_us",
        "series_affected_high_us",
        "affected_us",
        "affected_low_us",
    )
    return (
        row | dict.fromkeys((*names, "affected_high_us"), us) | {"series_seen_us": WINDOW * SECOND}
    )


def found(root: Path, *windows: Any, events: Any = ()) -> list[ReplicatedTopic]:
    gold_builder.put(root, tables.WINDOWS["topics"], *windows)
    gold_builder.put(root, tables.TOPICS)
    period = Period(BASE, BASE + dt.timedelta(seconds=WINDOW))
    gold = Gold(LocalEngine(Lake(str(root))), CLUSTER, period, WINDOW)
    topic = Subject(CLUSTER, "topic", "t", None, None, None, None, micros(0), micros(WINDOW))
    (objective,) = (one for one in objective_files.load() if one.name == "min-isr")
    seen = Times(250 * SECOND, 0)
    return replication(gold, [Statement(objective, topic, WINDOW * SECOND, seen)], events).topics


def test_unread_topic_is_null_and_plain_topic_omitted(
    tmp_path: Path,
) -> None:
    missing = METRICS[0]
    (row,) = found(tmp_path, window(missing, "t", 7), window(missing, "well", 0))
    assert row == ReplicatedTopic(
        "t", Bounds(7, 7, 7), NOTHING, NOTHING, NOTHING, None, 50 * SECOND
    )


def test_short_elections_are_counted(tmp_path: Path) -> None:
    rows = [window(metric, "t", 0) for metric in METRICS]
    events = [
        {"kind": "unclean_election", "topic": "t"},
        {"kind": "unclean_election", "topic": "t"},
        {"kind": "leader_change", "topic": "t"},
        {"kind": "unclean_election", "topic": "elsewhere"},
    ]
    elsewhere, row = found(tmp_path, *rows, events=events)
    zero = Bounds(0, 0, 0)
    assert row == ReplicatedTopic("t", zero, zero, zero, zero, 2, 50 * SECOND)
    assert elsewhere == ReplicatedTopic("elsewhere", NOTHING, NOTHING, NOTHING, NOTHING, 1, None)
