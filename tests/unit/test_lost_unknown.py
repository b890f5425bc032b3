"""Unread data loss: the known part of an unknown loss is a minimum ("at least")."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from lakehouse.core import lake as lakes
from lakehouse.core.periods import Period
from lakehouse.engines.gold_reader import subjects_of
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections import consumer_groups
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from lakehouse.slo.openslo import objective_files
from tests import rollups
from tests.kernel_inputs import of_clusters
from tests.lake_builder import BASE, CLUSTER, Batch, micros

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.core.objective import Objective
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


def read(runs: list[Run], failed: tuple[float, float] | None = None) -> Batch:
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
    return batch


def rolled_up(lake: Path, batch: Batch, objectives: tuple[Objective, ...]) -> LocalEngine:
    rollups.prepare(lake)
    batch.commit(lake)
    engine = LocalEngine(lakes.at(str(lake)))
    rollup(engine, objectives, Wanted(tidy="never"))
    return engine


def lost(engine: LocalEngine, cluster: str, objectives: tuple[Objective, ...]) -> LostOffsets:
    period = Period(BASE, BASE + dt.timedelta(seconds=END))
    _, subjects = subjects_of(engine, cluster)
    gold = Gold(engine, cluster, period, 300, subjects, micros(END + 3600))
    statements = gold.statements(objectives)
    (row,) = consumer_groups.lost_before_read(gold, statements, objectives).groups
    return row


UNKNOWN = {
    "group is missing in an answer": read(cut(610, 640)),
    "attempts fail": read(cut(610, 640), (610, 640)),
    "group was rewound": read(cut(610, 640, None)),
    "attempts fail as the period ends": read(cut(1150, 1500), (1150, 1200)),
}
OBJECTIVES = tuple(one for one in objective_files.load() if one.name == "lost-before-read")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> LocalEngine:
    """Roll up all cases, each a cluster of its name."""
    batch = of_clusters({**UNKNOWN, "known": read(WHOLE)})
    return rolled_up(tmp_path_factory.mktemp("lost") / "lake", batch, OBJECTIVES)


@pytest.mark.edge(1)
@pytest.mark.parametrize("case", UNKNOWN)
def test_loss_beside_unknown_time_is_at_least(engine: LocalEngine, case: str) -> None:
    row = lost(engine, case, OBJECTIVES)
    assert (row.offsets_low, row.offsets_high) == (100, None)
    assert row.unknown_us > 0


@pytest.mark.edge(1)
def test_loss_that_was_always_known_is_bounded(engine: LocalEngine) -> None:
    row = lost(engine, "known", OBJECTIVES)
    assert (row.offsets_low, row.offsets_high, row.unknown_us) == (100, 100, 0)


@pytest.mark.edge(1)
def test_loss_of_a_group_without_objective_is_at_least(tmp_path: Path) -> None:
    row = lost(rolled_up(tmp_path, read(cut(610, 640)), ()), CLUSTER, ())
    assert (row.offsets_low, row.offsets_high) == (100, None)
