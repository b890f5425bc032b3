"""Columns that nobody declared: their names never enter SQL, and their values reach no reader."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, Field, QueryBuilder
from deltalake.schema import PrimitiveType

from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import lake as lakes
from lakehouse.core.delta_rs import Location
from lakehouse.engines import local_relations
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import EngineError, TableSchemaError
from lakehouse.ops import pseudonymize
from tests import hostile_columns, rollups
from tests.lake_builder import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse.tables import Table

pytestmark = pytest.mark.slow

TABLES: Final = (*tables.BRONZE, *tables.GOLD, *tables.ROLLUP_STATE)
MANY: Final = tuple(f"column {number}" for number in range(1_000))
HOUR: Final = rollups.HOUR


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that is rolled up, of two clients and a topic."""
    root = tmp_path_factory.mktemp("clean") / "lake"
    batch = rollups.hours(1, 0, HOUR)
    clients: list[tuple[str | None, str | None]] = [("alice", "app"), (None, "billing")]
    batch.idle("kafka.client.produce.throttle_time", 0, 300, clients)
    batch.commit(root)
    DeltaTable.create(
        f"{root}/{tables.EVENTS.path}",
        schema=local_schema(tables.EVENTS), configuration=tables.EVENTS.properties,
        partition_by=["date"], raise_if_key_not_exists=False,
    )  # fmt: skip
    rollups.prepare(root)
    rollups.local(root)
    return root


def local_schema(table: Table) -> pa.Schema:
    from lakehouse.engines.delta_tables import row_schema  # noqa: PLC0415

    return row_schema(table)


@pytest.fixture
def lake(clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of it; afterwards no SQL of a name has written its file."""
    root = tmp_path / "lake"
    shutil.copytree(clean, root)
    elsewhere = tmp_path / "working directory"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    yield root
    assert os.listdir(elsewhere) == []


def rows(root: Path, table: Table) -> list[dict[str, Any]]:
    engine = LocalEngine(lakes.at(str(root)))
    found = engine.collect(engine.rows(table)).to_pylist()
    return sorted(found, key=repr)


def run(*arguments: str) -> str:
    """The output of a command that ended well."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_table_with_hostile_columns_reads_as_before(clean: Path, lake: Path, table: Table) -> None:
    before = rows(clean, table)
    hostile_columns.add(lake, table, *hostile_columns.NAMES, *MANY)
    after = rows(lake, table)
    without_time = [{k: v for k, v in row.items() if k != "written"} for row in after]
    assert without_time == [{k: v for k, v in r.items() if k != "written"} for r in before]
    assert set().union(*after) <= {*table.column_names, "hour", "misdated", "written"}


@pytest.mark.parametrize("name", hostile_columns.NAMES, ids=range(len(hostile_columns.NAMES)))
def test_hostile_column_is_not_in_sql(lake: Path, name: str) -> None:
    hostile_columns.add(lake, tables.SUBJECTS, name)
    delta = DeltaTable(f"{lake}/{tables.SUBJECTS.path}")
    text = local_relations.of_files(tables.SUBJECTS, delta, [], None).sql
    (hostile,) = tables.SUBJECTS.undeclared(field.name for field in delta.schema().fields)
    assert hostile == name
    clean_text = local_relations.of_files(
        tables.SUBJECTS, DeltaTable(f"{lake}/{tables.SUBJECTS.path}", version=0), [], None
    ).sql
    assert text == clean_text
