"""Spark runs no SQL that stands in a table's metadata, and no code of the working directory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse import tables
from lakehouse.core.lake import Lake
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.errors import TableSchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_CALL: Final = "java_method('java.lang.System', 'setProperty', 'jmxlake.ran', 'yes')"
_TABLE: Final = tables.STRETCHES


def generated(metadata: dict[str, Any]) -> None:
    schema = json.loads(metadata["schemaString"])
    column = {"name": "other", "type": "string", "nullable": True}
    schema["fields"].append({**column, "metadata": {"delta.generationExpression": _CALL}})
    metadata["schemaString"] = json.dumps(schema)


def constrained(metadata: dict[str, Any]) -> None:
    metadata["configuration"]["delta.constraints.own"] = f"{_CALL} IS NULL"


def commit(log: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Commit other metadata, as anybody may who can write to the table."""
    first = (log / f"{0:020}.json").read_text("utf-8").splitlines()
    metadata = next(found for line in first if (found := json.loads(line).get("metaData")))
    change(metadata)
    protocol = {"minReaderVersion": 1, "minWriterVersion": 4}
    info = {"timestamp": 1_800_000_000_000, "operation": "SET TBLPROPERTIES"}
    actions = ({"commitInfo": info}, {"protocol": protocol}, {"metaData": metadata})
    (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, actions)) + "\n", "utf-8")


@pytest.mark.parametrize("change", [generated, constrained])
def test_table_whose_metadata_has_sql_is_not_written(
    spark: SparkSession, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    engine = SparkEngine(spark, Lake(str(tmp_path)))
    engine.create(_TABLE)
    log = tmp_path / _TABLE.path / "_delta_log"
    commit(log, change)
    before = sorted(file.name for file in log.glob("*.json"))
    for write in (
        lambda: engine.write(_TABLE, engine.rows(_TABLE)),
        lambda: engine.write(_TABLE, None, "at IS NOT NULL"),
    ):
        with pytest.raises(TableSchemaError, match=r"SQL.*Drop"):
            write()
    assert sorted(file.name for file in log.glob("*.json")) == before


def test_worker_imports_nothing_of_working_directory(spark: SparkSession) -> None:
    def safe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys  # noqa: PLC0415 - in the worker

        import pyarrow as pa  # noqa: PLC0415 - in the worker

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"safe": [bool(sys.flags.safe_path)]})

    found = spark.range(1).mapInArrow(safe, "safe boolean").collect()
    assert {row["safe"] for row in found} == {True}
