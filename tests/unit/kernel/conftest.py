"""The kernel as these tests run it: objectives of every kind, an instant of the newest commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse import tables
from lakehouse.kernel.build_program import build_program
from tests.kernel_tables import COMMITTED
from tests.oracle import meaning
from tests.oracle.objectives import OBJECTIVES

if TYPE_CHECKING:
    from lakehouse.kernel.run_in_duckdb import Program


@pytest.fixture(scope="session")
def program() -> Program:
    return build_program(tables.DEFAULT_WINDOW_SECONDS, COMMITTED, OBJECTIVES, meaning.LAKE)
