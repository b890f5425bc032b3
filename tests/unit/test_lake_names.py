"""How a lake's tables are called: by path, by URI, by catalog and schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest
from pyspark.errors import AnalysisException

from lakehouse import tables
from lakehouse.cli.options import LakeOptions
from lakehouse.cli.views import register_tables
from lakehouse.core import lake as lakes
from lakehouse.engines.spark_engine import STAGING
from lakehouse.errors import LakeNotFoundError, TableNotFoundError

if TYPE_CHECKING:
    from pathlib import Path

ROOT = "s3://bucket/kafka"


class FakeSpark:
    """A session over a lake with some tables, as far as ``register_tables`` needs it."""

    def __init__(self, *present: tables.Table) -> None:
        self._paths = {one.name: f"{ROOT}/{one.path}" for one in present}
        self._asked = ""

    def sql(self, text: str) -> FakeSpark:
        self._asked = text
        if text.startswith("SELECT") and text.split("`")[1] not in self._paths.values():
            raise AnalysisException("no such path", "DELTA_PATH_DOES_NOT_EXIST", {})
        return self

    def select(self, _: str) -> FakeSpark:
        return self

    def collect(self) -> list[dict[str, str]]:
        name = self._asked.rpartition(".")[2].strip("`")
        return [{"location": self._paths[name]}]


def test_a_uri_is_the_name_that_agents_use():
    lake = lakes.at("s3://bucket/kafka/")
    assert lake.name(tables.RUNS) == "delta.`s3://bucket/kafka/bronze/runs`"
    assert lake.name(tables.TOPICS) == "delta.`s3://bucket/kafka/gold/topics`"


def test_gold_may_be_a_schema_and_bronze_a_path():
    lake = lakes.at("abfss://lake@account/kafka", "main.kafka-gold")
    assert lake.name(tables.RUNS) == "delta.`abfss://lake@account/kafka/bronze/runs`"
    assert lake.name(tables.TOPICS) == "`main`.`kafka-gold`.`topics`"


def test_both_may_be_schemas():
    lake = lakes.at("main.kafka_bronze", "main.kafka_gold")
    assert lake.name(tables.RUNS) == "`main`.`kafka_bronze`.`runs`"
    assert lake.name(tables.TOPICS) == "`main`.`kafka_gold`.`topics`"


def test_a_reader_of_golds_schema_sees_only_tables_for_people():
    lake = lakes.at("main.kafka_bronze", "main.kafka_gold")
    schemas: dict[str | None, set[str]] = {}
    for table in (*tables.GOLD, *tables.ROLLUP_STATE, STAGING):
        schemas.setdefault(lake.schema_of(table), set()).add(table.name)
    assert schemas == {
        "main.kafka_gold": {
            *(one.name for one in tables.HOURS), "distributions", "incidents", "sla", "subjects",
            *(one.name for one in tables.DIMENSIONS),
        },
        "main.kafka_gold_windows": {*(one.name for one in tables.EXPIRING)},
        "main.kafka_gold_state": {
            "lease", "progress", "readings", "rejected", "staging", "stretches",
        },
    }  # fmt: skip
    assert lake.name(tables.PROGRESS) == "`main`.`kafka_gold_state`.`progress`"
    assert lakes.at("s3://bucket/kafka").schema_of(tables.PROGRESS) is None


def test_tables_of_gold_are_external_below_a_root_that_is_given():
    named = ("main.kafka_bronze", "main.kafka_gold")
    assert lakes.at(*named).location(tables.TOPICS) == ""
    lake = lakes.at(*named, "s3://bucket/it's/gold/")
    assert lake.location(tables.TOPICS) == r" LOCATION 's3://bucket/it\'s/gold/topics'"
    assert lake.location(tables.LAGS).endswith("/gold/lags'")
    assert lakes.at("s3://bucket/kafka", named[1], lake.gold_root).gold_root == lake.gold_root


def test_bronze_by_name_needs_golds_name():
    with pytest.raises(LakeNotFoundError, match="--gold"):
        lakes.at("main.kafka_bronze")


def test_a_folder_goes_before_a_schema_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "main.kafka" / tables.RUNS.path / "_delta_log").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    lake = lakes.at("main.kafka", "main.kafka_gold")
    assert lake.name(tables.RUNS) == f"delta.`{tmp_path}/main.kafka/{tables.RUNS.path}`"


def test_no_name_leaves_its_quotes():
    lake = lakes.Lake("/lake`; DROP TABLE t", "main.gold`; DROP TABLE t")
    assert lake.name(tables.RUNS) == "delta.`/lake``; DROP TABLE t/bronze/runs`"
    assert lake.name(tables.TOPICS) == "`main`.`gold``; DROP TABLE t`.`topics`"


def registered(*present: tables.Table) -> list[str]:
    return register_tables(FakeSpark(*present), ROOT, "main.bronze")


def test_what_a_lake_has_is_registered():
    """Agents make bronze/events with the first event, and older ones make no definitions."""
    every = (*tables.BRONZE, *tables.CATALOGUES)
    assert registered(*every) == [f"`main`.`bronze`.`{one.name}`" for one in every]
    some = (tables.RUNS, tables.MEMBERS, tables.SCRAPES)
    assert registered(*some) == [f"`main`.`bronze`.`{one.name}`" for one in some]


def test_without_runs_there_is_nothing_to_register():
    with pytest.raises(TableNotFoundError, match=f"{ROOT}/bronze/runs: no table"):
        registered(tables.SCRAPES)


def test_a_root_of_gold_without_its_schema_is_wrong_usage(tmp_path: Path):
    named = LakeOptions(str(tmp_path), None, None, None, "s3://bucket/gold")
    with pytest.raises(click.UsageError, match="--gold-root requires --gold"):
        named.engine()
