"""The kernel as these tests run it: objectives of every kind, an instant of the newest commit."""

from __future__ import annotations

import pytest

from lakehouse import tables
from lakehouse.kernel import program as programs, run_in_duckdb
from tests.kernel_tables import COMMITTED
from tests.oracle import meaning
from tests.oracle.objectives import OBJECTIVES


@pytest.fixture(scope="session")
def program() -> run_in_duckdb.Program:
    return programs.program(tables.DEFAULT_WINDOW_SECONDS, COMMITTED, OBJECTIVES, meaning.LAKE)
