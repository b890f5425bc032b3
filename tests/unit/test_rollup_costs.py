"""Costs of parts: of a batch, of a rollup, in gold/progress and in ``rollup --json``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import lake as lakes
from lakehouse.engines.engine import Costs
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.packets import Cost
from tests.lake_builder import Batch

if TYPE_CHECKING:
    from pathlib import Path

batch_cost = Costs.of_parts([Cost(10, 2.0, 700), Cost(30, 1.0, 900), Cost(20, 4.0, 100)])


def test_skew_is_the_slowest_part_by_the_median() -> None:
    assert Costs(3, 60, 7.0, 4.0, 2.0, 900) == batch_cost
    assert Costs.of_parts([Cost(0, 0.5, 1)]).skew == 1.0


def test_a_rollup_has_the_sums_and_the_largest_of_its_batches() -> None:
    second = Costs.of_parts([Cost(5, 9.0, 300)])
    assert Costs.of_batches([batch_cost, Costs(), second]) == Costs(4, 65, 16.0, 9.0, 2.0, 900)


def test_nothing_computed_costs_nothing_known() -> None:
    assert Costs.of_parts([]) == Costs.of_batches([]) == Costs.of_batches([Costs()]) == Costs()
    assert set(Costs()) == {None}, "unknown is not zero"


@pytest.mark.slow
def test_costs_are_printed_and_kept(tmp_path: Path) -> None:
    batch = Batch()
    for number in range(3):
        batch.run("kafka.topic.bytes_in", number * 3600, number * 3600 + 10, 1.5, topic="t")
    batch.commit(tmp_path)
    command = ["rollup", str(tmp_path), "--engine", "local", "--json", "--tidy", "never"]
    told = [json.loads(CliRunner().invoke(main, command).stdout) for _ in range(2)]
    assert (told[0]["parts"], told[0]["computed_rows"]) == (1, 3)
    assert told[0]["peak_bytes"] > 1_000_000
    assert told[0]["part_seconds"] == told[0]["longest_part_seconds"] > 0
    assert told[0]["skew"] == 1.0
    assert {told[1][name] for name in Costs._fields} == {None}, "nothing was new"
    engine = LocalEngine(lakes.at(str(tmp_path)))
    (row,) = engine.collect(engine.rows(tables.PROGRESS)).to_pylist()
    assert {name: row[name] for name in Costs._fields} == {
        name: told[0][name] for name in Costs._fields
    }
