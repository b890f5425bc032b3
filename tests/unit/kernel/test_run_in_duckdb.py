"""How the kernel is called: by value, in any process, and with errors that say where."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys

import pytest

from lakehouse.kernel import run_in_duckdb
from tests.kernel_inputs import one_call, placed
from tests.kernel_tables import differing
from tests.lake_builder import Batch
from tests.oracle import fleets

COPY_LAG = "kafka.topic.remote_copy_lag.bytes"


@pytest.mark.slow
def test_a_program_is_plain_data_that_travels(program: run_in_duckdb.Program):
    call = one_call(placed(fleets.fleet(1)))
    there = pickle.loads(pickle.dumps(program))  # noqa: S301 - our own
    assert there == program
    assert differing(call.roll_up(there), call.roll_up(program)) == []


def test_a_worker_needs_nothing_of_ours_and_imports_nothing_early():
    """Spark's workers have duckdb and pyarrow; a process that hands rows on needs neither."""
    code = (
        "import sys; before = {*sys.modules}; import lakehouse.kernel.run_in_duckdb; "
        "print(*sorted({name.partition('.')[0] for name in {*sys.modules} - before}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {*ran.stdout.split()} <= {"lakehouse", *sys.stdlib_module_names}


def test_an_error_is_one_line_that_names_the_cluster_and_its_hour(program: run_in_duckdb.Program):
    call = one_call(placed(fleets.fleet(1)))
    (runs,) = call.parts
    with pytest.raises(run_in_duckdb.KernelError) as caught:
        dataclasses.replace(call, parts=[runs.drop_columns(["value"])]).roll_up(program)
    told = str(caught.value)
    assert "\n" not in told
    assert "fleet-001" in told
    assert "2021-01-0" in told


def test_no_units_no_rows(program: run_in_duckdb.Program):
    nothing = one_call(Batch())
    found = nothing.roll_up(program)
    assert {rows.num_rows for rows in found.values()} == {0}
    assert found.keys() == {*program.schemas}


def test_runs_that_do_not_fit_into_memory_are_cut_smaller(program: run_in_duckdb.Program):
    batch = Batch()
    for number in range(1_500):
        for start in range(0, 3600, 300):
            batch.run(COPY_LAG, start, start + 300, 1.5, topic=f"t{number}")
    call = one_call(batch)
    (runs,) = call.parts
    whole = run_in_duckdb.part(program, call.hours, runs)
    small = dataclasses.replace(program, memory="100MB")
    found = run_in_duckdb.part(small, call.hours, runs)
    assert 100_000_000 < whole.peak_bytes < 160_000_000, "more than there is now"
    assert 50_000_000 < found.peak_bytes < 100_000_000, "what half of the hour takes"
    assert differing(found.final, whole.final) == []


def test_what_does_not_fit_in_the_smallest_pieces_is_an_error(program: run_in_duckdb.Program):
    call = one_call(placed(fleets.fleet(1)))
    small = dataclasses.replace(program, memory="15MB")
    with pytest.raises(run_in_duckdb.TooLargeError, match=r"fleet-001.*Out of Memory") as caught:
        run_in_duckdb.part(small, call.hours, call.parts[0])
    assert "\n" not in str(caught.value)
