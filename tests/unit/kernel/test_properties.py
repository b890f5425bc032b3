"""What must not matter to the kernel: order, packing, parts, doubts. Same rows, to the bit."""

from __future__ import annotations

import dataclasses
from itertools import permutations
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest

from lakehouse.kernel import run_in_duckdb
from tests.kernel_inputs import (
    by_subject,
    call_a_unit,
    of_clusters,
    one_call,
    placed,
    shuffled,
    together,
)
from tests.kernel_tables import DECLARED, by_key, differing, in_order, schema
from tests.lake_builder import Batch
from tests.oracle import doubled, fleets, gold, odd_values, stories, whole_hours

if TYPE_CHECKING:
    import pyarrow as pa

pytestmark = pytest.mark.slow


COPY_LAG = "kafka.topic.remote_copy_lag.bytes"


@pytest.fixture(scope="module")
def batch() -> Batch:
    seeds = range(60)
    kinds = (odd_values.fleet, fleets.fleet, doubled.fleet)
    made = (kind(seed) for kind in kinds for seed in seeds)
    hours = map(whole_hours.fleet, range(12))
    return placed(together((*made, *hours, *stories.all_stories())))


@pytest.fixture(scope="module")
def once(program: run_in_duckdb.Program, batch: Batch) -> dict[str, pa.Table]:
    return one_call(batch).roll_up(program)


def test_results_have_the_declared_columns_and_types(
    program: run_in_duckdb.Program, once: dict[str, pa.Table]
):
    assert once.keys() == gold.KEYS.keys() == {*program.schemas}
    for name, rows in once.items():
        assert [(one.name, one.type) for one in rows.schema] == schema(DECLARED[name]), name


def test_nothing_that_is_required_is_missing(once: dict[str, pa.Table]):
    for name, rows in once.items():
        required = [column.name for column in DECLARED[name].columns if not column.nullable]
        assert [column for column in required if rows[column].null_count] == [], name


def test_zero_has_no_sign(once: dict[str, pa.Table]):
    """Of 0.0 and -0.0 the greatest is whichever came first."""
    for name, rows in once.items():
        for row in rows.to_pylist():
            assert "-0.0" not in [repr(value) for value in row.values()], f"{name}: {row}"


def test_the_order_of_rows_does_not_matter(
    program: run_in_duckdb.Program, batch: Batch, once: dict[str, pa.Table]
):
    again = one_call(shuffled(batch, 0)).roll_up(program)
    assert differing(again, once) == []


def test_the_order_of_rows_that_begin_together_does_not_matter(program: run_in_duckdb.Program):
    """Of one series that overlaps itself, with an objective above a value, in every order."""
    batch = Batch()
    for start, end, value, lead, tail in (
        (50, 60, 0.0, 0, 3), (60, 90, 2.0, 5, 2), (60, 80, 18.0, 5, 7), (80, 120, 14.0, 4, 4),
    ):  # fmt: skip
        batch.run(COPY_LAG, start, end, value, topic="t", lead=lead, tail=tail)
    orders = [dataclasses.replace(batch, runs=[*rows]) for rows in permutations(batch.runs)]
    every = {str(number): one for number, one in enumerate(orders)}
    found = one_call(of_clusters(every)).roll_up(program)
    first, *others = (of_one(found, name) for name in every)
    assert first["sli"].filter(pc.equal(first["sli"]["objective"], "copied-late")).num_rows
    assert [differing(one, first) for one in others] == [[]] * len(others)


def of_one(found: dict[str, pa.Table], cluster: str) -> dict[str, pa.Table]:
    """Return the rows of a cluster without its name."""
    return {
        name: rows.filter(pc.equal(rows["cluster"], cluster)).drop_columns(["cluster"])
        for name, rows in found.items()
    }


def test_doubting_everything_gives_the_same(
    program: run_in_duckdb.Program, batch: Batch, once: dict[str, pa.Table]
):
    """Durations to the bit; sums of values are rounded stretch by stretch, and these differ."""
    doubting = by_key(one_call(batch).roll_up(dataclasses.replace(program, doubt_all=True)))
    for name, rows in by_key(once).items():
        small = {key: row for key, row in doubting[name].items() if not huge(key)}
        right = {key: row for key, row in rows.items() if not huge(key)}
        assert gold.differences(name, small, right, slack=1e-3) == []


def huge(key: tuple[object, ...]) -> bool:
    """Whether a row is of a fleet with values that swallow others (odd seeds of odd values)."""
    cluster = str(key[0])
    return cluster.startswith("odd-") and int(cluster[-1]) % 2 == 1


def test_it_does_not_matter_how_units_are_cut(
    program: run_in_duckdb.Program, batch: Batch, once: dict[str, pa.Table]
):
    """Into as many pieces as windows, so at every place."""
    assert differing(one_call(shuffled(batch, 7)).roll_up(program, pieces=12), once) == []


@pytest.mark.parametrize(("parts", "pieces"), [(2, 2), (5, 1)])
def test_parts_in_connections_of_their_own_make_the_same(
    program: run_in_duckdb.Program,
    batch: Batch,
    once: dict[str, pa.Table],
    parts: int,
    pieces: int,
):
    call = one_call(shuffled(batch, 7), by_subject(parts), program.describing)
    assert len(call.parts) == parts
    found = call.merged(program, pieces)
    found["subjects"] = run_in_duckdb.merge_subjects(
        program, once["subjects"].slice(0, 0), found["subjects"]
    )
    ordered, right = (
        {name: in_order([rows], name) for name, rows in tables.items()} for tables in (found, once)
    )
    assert differing(ordered, right) == []


def test_it_does_not_matter_what_else_is_in_a_call(program: run_in_duckdb.Program):
    """A call a unit; subjects are put together as drivers do it."""
    batch = placed(together((*map(fleets.fleet, range(2)), odd_values.fleet(2))))
    once = one_call(batch).roll_up(program)
    told = [call.roll_up(program) for call in call_a_unit(shuffled(batch, 7))]
    assert len(told) == 4
    again = {name: in_order([one[name] for one in told], name) for name in once}
    again["subjects"] = told[0]["subjects"]
    for one in told[1:]:
        again["subjects"] = run_in_duckdb.merge_subjects(
            program, again["subjects"], one["subjects"]
        )
    right = {name: in_order([rows], name) for name, rows in once.items()}
    assert differing({**again, "subjects": in_order([again["subjects"]], "subjects")}, right) == []
