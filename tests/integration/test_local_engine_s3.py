"""The local engine on a lake in a real S3 server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
import yaml
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake

from collector.delivery import arrow
from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import lake as lakes
from lakehouse.core.periods import Period
from lakehouse.engines.engine import LeaseRow, ask
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import EngineError
from lakehouse.kernel import arrow_types
from tests import bronze_commits
from tests.lake_builder import BASE, Batch
from tests.rig.s3.server import S3Server
from tests.rollups import hours

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with S3Server.start(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="module")
def engine(server: S3Server) -> LocalEngine:
    lake = server.url("lake/local engine")
    for number in range(3):
        batch = Batch(number=number)
        batch.run("kafka.topic.bytes_in", number * 86_400, number * 86_400 + 10, 1.0, topic="t")
        delta = DeltaTable.create(
            f"{lake}/{tables.RUNS.path}", schema=arrow.schema(tables.RUNS), mode="ignore",
            partition_by=["date"], configuration=tables.RUNS.properties,
            raise_if_key_not_exists=False, storage_options=server.options,
        )  # fmt: skip
        runs = [tuple(row[name] for name in tables.RUNS.column_names) for row in batch.runs]
        write_deltalake(delta, arrow.to_arrow(tables.RUNS, runs), mode="append")
    return LocalEngine(lakes.at(lake), server.options)


def test_files_are_read_as_of_a_version_and_by_date(engine: LocalEngine) -> None:
    counted = "SELECT count(*), min(r.batch) FROM {r} r"
    assert ask(engine, counted, r=engine.rows(tables.RUNS, 2)) == [(2, 0)]
    day = Period(BASE.replace(day=17, hour=0), BASE.replace(day=18, hour=0))
    assert ask(engine, counted, r=engine.rows(tables.RUNS, between=day)) == [(1, 1)]
    assert ask(engine, counted, r=engine.rows(tables.RUNS, inserted=range(3, 4))) == [(1, 2)]


def test_gold_is_written_and_one_of_several_gets_the_lease(
    engine: LocalEngine, server: S3Server
) -> None:
    engine.create(tables.LEASE)
    engine.create(tables.SUBJECTS)
    values = ("c", "topic", "t", *(None,) * 4, 1, 2, *(None,) * 5)
    row = arrow_types.rows(arrow_types.of_table(tables.SUBJECTS), [values])
    engine.write(tables.SUBJECTS, row)
    engine.write(tables.SUBJECTS, row, "cluster IN ('c')")
    assert engine.collect(engine.rows(tables.SUBJECTS)).num_rows == 1
    engines = [LocalEngine(engine.lake, server.options) for _ in range(4)]

    def take(one: LocalEngine) -> bool:
        return one.swap(LeaseRow(), LeaseRow(f"{id(one)}", until=1), first=True)

    with ThreadPoolExecutor(len(engines)) as pool:
        assert sorted(pool.map(take, engines)) == [False, False, False, True]


def test_wrong_credentials_are_one_line(engine: LocalEngine, server: S3Server) -> None:
    wrong = LocalEngine(engine.lake, {**server.options, "aws_secret_access_key": "wrong"})
    with pytest.raises(EngineError, match="credentials") as caught:
        wrong.rows(tables.RUNS)
    assert "\n" not in str(caught.value)


def test_commands_take_storage_options_from_a_file(server: S3Server, tmp_path: Path) -> None:
    lake, batch = server.url("lake/weekly"), hours(1, 0.0)
    bronze_commits.make(lake, server.options)
    every = (tables.RUNS, batch.runs), (tables.SCRAPES, batch.scrapes)
    for table, rows in (*every, (tables.MEMBERS, batch.members)):
        ordered = [tuple(row[name] for name in table.column_names) for row in rows]
        write_deltalake(
            f"{lake}/{table.path}", arrow.to_arrow(table, ordered), mode="append",
            storage_options=server.options,
        )  # fmt: skip
    file = tmp_path / "options.yaml"
    file.write_text(yaml.safe_dump(server.options), encoding="utf-8")
    span = ("--from", "2026-11-16T10:00:00Z", "--to", "2026-11-16T10:05:00Z")
    for command in (
        ("weekly", lake, *span, "--engine", "local"),
        ("slo", "publish", lake, *span),
        ("report", lake, *span),
        ("explain", lake, "t", "--week", "2026-W47"),
    ):
        run = CliRunner().invoke(main, [*command, "--options-file", str(file)])
        assert run.exit_code == 0, run.stderr
        assert "Spark reads" not in run.stderr
