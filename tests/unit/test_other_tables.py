"""A schema or folder that has other tables where gold's would be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import TableSchemaError
from lakehouse.rollup import gold_tables

if TYPE_CHECKING:
    from pathlib import Path


def test_a_table_of_another_is_named_as_no_table_of_jmxlake(tmp_path: Path):
    (tmp_path / "gold").mkdir()
    write_deltalake(str(tmp_path / tables.TOPICS.path), pa.table({"note": ["mine"]}))
    engine = LocalEngine(lakes.Lake(str(tmp_path)))
    with pytest.raises(TableSchemaError, match=r"not a table of jmxlake, .*column note and "):
        gold_tables.is_outdated(engine.lake, tables.TOPICS, engine.detail(tables.TOPICS))
