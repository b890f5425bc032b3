"""Unread data loss: the known part of an unknown loss is a minimum ("at least")."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from lakehouse.core import lake as lakes
from lakehouse.core.periods import Period
from lakehouse.engines.gold_reader import subjects
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections import consumer_groups
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from lakehouse.slo.openslo import objective_files
from tests import rollups
from tests.lake_builder import BASE, CLUSTER, Batch, micros

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.report.facts.sections.consumer_groups import LostOffsets

END = 1200
Run = tuple[float, float, float | None]
WHOLE: list[Run] = [
    (start, start + 300, 100.0 * (start == 300)) for start in range(0, END + 300, 300)
]
"""A reading every ten seconds; 100 offsets were lost in the second window."""


def cut(since: float, until: float, value: float | None = -1) -> list[Run]:
    """The runs without a part, or with a value in its place."""
    before = [(start, min(end, since), rose) for start, end, rose in WHOLE if start < since]
    after = [(max(start, until), end, 0.0) for start, end, _ in WHOLE if end > until]
    return before + ([] if value == -1 else [(since, until, value)]) + after


def lost(
    lake: Path, runs: list[Run], failed: tuple[float, float] | None = None, *names: str
) -> LostOffsets:
    batch = Batch()
    for start, end, rose in runs:
        for bound in ("low", "high"):
            metric = f"kafka.group.non_consumed.{bound}"
            batch.counter(metric, start, end, rose, group="g", topic="t", partition=0)
    for start in range(0, END + 300, 300):
        spans = [(float(start), start + 300.0)]
        if failed and start <= failed[0] < start + 300:
            spans = [(start, failed[0]), (failed[1], start + 300)]
            batch.scrape("offsets", *failed, "timeout")
        for span in spans:
            batch.scrape("offsets", *span)
    rollups.prepare(lake)
    batch.commit(lake)
    objectives = tuple(one for one in objective_files.load() if one.name in names)
    engine = LocalEngine(lakes.at(str(lake)))
    rollup(engine, objectives, Wanted(tidy="never"))
    period = Period(BASE, BASE + dt.timedelta(seconds=END))
    gold = Gold(engine, CLUSTER, period, 300, subjects(engine), micros(END + 3600))
    statements = gold.statements(objectives)
    (row,) = consumer_groups.lost_before_read(gold, statements, objectives).groups
    return row


@pytest.mark.edge(1)
@pytest.mark.parametrize(
    ("runs", "failed"),
    [
        pytest.param(cut(610, 640), None, id="group is missing in an answer"),
        pytest.param(cut(610, 640), (610, 640), id="attempts fail"),
        pytest.param(cut(610, 640, None), None, id="group was rewound"),
        pytest.param(cut(1150, 1500), (1150, 1200), id="attempts fail as the period ends"),
    ],
)
def test_loss_beside_unknown_time_is_at_least(
    tmp_path: Path, runs: list[Run], failed: tuple[float, float] | None
) -> None:
    row = lost(tmp_path, runs, failed, "lost-before-read")
    assert (row.offsets_low, row.offsets_high) == (100, None)
    assert row.unknown_us > 0


@pytest.mark.edge(1)
def test_loss_that_was_always_known_is_bounded(tmp_path: Path) -> None:
    row = lost(tmp_path, WHOLE, None, "lost-before-read")
    assert (row.offsets_low, row.offsets_high, row.unknown_us) == (100, 100, 0)


@pytest.mark.edge(1)
def test_loss_of_a_group_without_objective_is_at_least(tmp_path: Path) -> None:
    row = lost(tmp_path, cut(610, 640))
    assert (row.offsets_low, row.offsets_high) == (100, None)
