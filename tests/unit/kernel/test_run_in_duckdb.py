"""How the kernel is called: by value, in any process, and with errors that say where."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from lakehouse.kernel import run_in_duckdb
from tests.kernel_inputs import one_call, placed
from tests.kernel_tables import differing
from tests.lake_builder import Batch
from tests.oracle import fleets


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
    ((runs, sets),) = call.parts
    with pytest.raises(run_in_duckdb.KernelError) as caught:
        run_in_duckdb.roll_up(
            program, call.units, call.scrapes, None, iter([(runs.drop_columns(["value"]), sets)])
        )
    told = str(caught.value)
    assert "\n" not in told
    assert "fleet-001" in told
    assert "2021-01-0" in told


def test_no_units_no_rows(program: run_in_duckdb.Program):
    nothing = one_call(Batch())
    found = nothing.roll_up(program)
    assert {rows.num_rows for rows in found.values()} == {0}
    assert found.keys() == {*program.schemas}
