"""A data file that a Delta log names is gone: which dates of which table, and what repairs it."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.core.delta_rs import TABLE, locate, query
from lakehouse.core.periods import Period, micros
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import MissingFilesError
from lakehouse.ops.doctor.all_checks import Diagnosis
from lakehouse.rollup import gold_tables
from lakehouse.rollup.plan import Wanted
from lakehouse.tables.gold import LOST
from tests.lake_builder import BASE
from tests.rollups import DAY, HOUR, hours, local, rows_of

if TYPE_CHECKING:
    from lakehouse.ops.doctor.finding import Finding

pytestmark = pytest.mark.edge(16)

DAYS = BASE.date() - dt.timedelta(days=2)
"""The date of the lake's first hour."""

COMPUTED = (tables.SUBJECTS, *tables.OF_HOURS)
QUIET = Wanted(tidy="never")
DATED = (
    tables.TOPICS,
    *(
        pytest.param(one, marks=pytest.mark.nightly)
        for one in (tables.COVERAGE, tables.SOURCES, tables.WINDOWS["topics"])
    ),
)
UNDATED = (
    tables.PROGRESS,
    *(pytest.param(one, marks=pytest.mark.nightly) for one in (tables.SUBJECTS, tables.LEASE)),
)
OF_BRONZE = (tables.RUNS, pytest.param(tables.SCRAPES, marks=pytest.mark.nightly))
AROUND = Period(BASE - dt.timedelta(days=9), BASE + dt.timedelta(days=2))


@pytest.fixture(scope="module")
def rolled_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with an hour of two days ago, and two of today."""
    root = tmp_path_factory.mktemp("rolled")
    hours(1, 0, HOUR, -2 * DAY).commit(root)
    local(root)
    return root


@pytest.fixture
def lake(rolled_lake: Path, tmp_path: Path) -> Path:
    return shutil.copytree(rolled_lake, tmp_path / "lake")


def named(table: tables.Table) -> str:
    return table.name


def lose(root: Path, table: tables.Table, of: str = "") -> None:
    """Remove the files of a table with a text in their path."""
    uris = DeltaTable(str(root / table.path)).file_uris()
    for uri in uris:
        if of in uri:
            Path(uri.removeprefix("file://")).unlink()


def engine_of(root: Path) -> LocalEngine:
    return LocalEngine(lakes.at(str(root)))


def incomplete(root: Path) -> list[gold_tables.Incomplete]:
    return gold_tables.incomplete(engine_of(root), AROUND, micros(AROUND.end))


def gone(root: Path, check: str = "files_gone") -> list[Finding]:
    found = Diagnosis(locate(str(root), None), BASE, 7, dt.timedelta(hours=1), "0")
    found.run()
    return [one for one in found.findings if one.check == check]


def read_by_duckdb(root: Path, table: tables.Table) -> None:
    rows_of(root, (table,))


def read_by_delta_rs(root: Path, table: tables.Table) -> None:
    list(query(locate(str(root), None).open(table), f"SELECT * FROM {TABLE}"))  # noqa: S608 - a constant


@pytest.mark.parametrize("read", [read_by_duckdb, read_by_delta_rs])
@pytest.mark.parametrize("table", [tables.TOPICS, tables.SUBJECTS, tables.RUNS], ids=named)
def test_reader_of_lost_file_names_table_dates_and_repair(
    lake: Path, table: tables.Table, read: object
) -> None:
    lose(lake, table, f"{DAYS}" if table.partition_by else "")
    with pytest.raises(MissingFilesError) as refused:
        read(lake, table)  # type: ignore[operator]
    text = str(refused.value)
    assert table.path in text
    assert "\n" not in text
    assert "jmxlake rollup LAKE" in text
    assert (f"{DAYS}" in text) == bool(table.partition_by)


@pytest.mark.edge(16)
@pytest.mark.parametrize("table", [tables.TOPICS, tables.SUBJECTS, tables.RUNS], ids=named)
@pytest.mark.parametrize("content", [b"", b"no Parquet", None], ids=["empty", "garbage", "short"])
def test_doctor_finds_damaged_files(lake: Path, table: tables.Table, content: bytes | None) -> None:
    assert gone(lake, "files_damaged") == []
    uri = DeltaTable(str(lake / table.path)).file_uris()[0]
    file = Path(uri.removeprefix("file://"))
    file.write_bytes(file.read_bytes()[:-1] if content is None else content)
    (found,) = gone(lake, "files_damaged")
    assert (found.severity, found.where) == ("error", table.path)
    assert file.name[:11] in found.what
    assert ("jmxlake rollup LAKE" in found.todo) == (table.layer == "gold")


@pytest.mark.parametrize("table", DATED, ids=named)
def test_since_recomputes_dates_of_lost_files(lake: Path, table: tables.Table) -> None:
    before = rows_of(lake, COMPUTED)
    lose(lake, table, f"{DAYS}")
    (found,) = gone(lake)
    assert (found.severity, found.where) == ("error", table.path)
    assert f"--since {DAYS}" in found.todo
    # A later date is enough: the whole table is compared with the store.
    local(lake, Wanted(since=BASE.date(), tidy="never"))
    assert rows_of(lake, COMPUTED) == before
    assert incomplete(lake) == []
    assert gone(lake) == []


@pytest.mark.parametrize("table", UNDATED, ids=named)
def test_tidy_recomputes_lost_files_without_dates(lake: Path, table: tables.Table) -> None:
    before = rows_of(lake, COMPUTED)
    lose(lake, table)
    (found,) = gone(lake)
    assert found.where == table.path
    assert "--tidy now" in found.todo
    local(lake, Wanted(tidy="now"))
    assert rows_of(lake, COMPUTED) == before
    assert incomplete(lake) == []
    assert gone(lake) == []


@pytest.mark.parametrize("table", DATED, ids=named)
def test_rollup_that_meets_lost_file_repairs_it(lake: Path, table: tables.Table) -> None:
    lose(lake, table, f"{BASE.date()}")
    hours(2, 300).commit(lake)
    local(lake, QUIET)
    rolled = rows_of(lake, COMPUTED)
    shutil.rmtree(lake / "gold")
    local(lake, QUIET)
    assert rows_of(lake, COMPUTED) == rolled


def test_lost_file_is_unknown_where_bronze_expired(lake: Path) -> None:
    for table in (tables.RUNS, tables.SCRAPES):
        DeltaTable(str(lake / table.path)).delete(f"date < '{BASE.date()}'")
    local(lake, QUIET)
    lose(lake, tables.TOPICS, f"{DAYS}")
    local(lake, Wanted(since=DAYS, tidy="never"))
    (found,) = incomplete(lake)
    start = micros(BASE) - 2 * 24 * 3_600_000_000
    assert found[:3] == ("topics", start, start + 3_600_000_000)
    assert gone(lake) == []


@pytest.mark.parametrize("table", OF_BRONZE, ids=named)
def test_lost_bronze_is_accepted_once_and_stays_unknown(lake: Path, table: tables.Table) -> None:
    before = rows_of(lake, (tables.COVERAGE, tables.TOPICS))
    known = {*DeltaTable(str(lake / table.path)).file_uris()}
    hours(2, 2 * HOUR, 3 * HOUR).commit(lake)
    (new,) = {*DeltaTable(str(lake / table.path)).file_uris()} - known
    lose(lake, table, Path(new).name)
    (found,) = gone(lake)
    assert found.where == table.path
    assert f"{BASE.date()}" in found.what
    assert "--accept-lost" in found.todo
    with pytest.raises(MissingFilesError, match=f"{table.path}: 1 data file .*--accept-lost"):
        local(lake, QUIET)
    local(lake, Wanted(tidy="never", accept_lost=True))
    hours(3, 4 * HOUR).commit(lake)
    local(lake, QUIET)
    local(lake, Wanted(since=DAYS, tidy="never"))
    engine = engine_of(lake)
    seen = {row["epoch_hour"] for row in engine.collect(engine.rows(tables.COVERAGE)).to_pylist()}
    first = micros(BASE) // 3_600_000_000
    assert {first + 2, first + 3} & seen == set()
    assert {first, first + 1, first + 4} <= seen
    lost = [row for row in rows_of(lake, (tables.REJECTED,))["rejected"] if LOST in row]
    assert len(lost) == 2
    after = rows_of(lake, (tables.COVERAGE, tables.TOPICS))
    assert all({*before[name]} <= {*after[name]} for name in before)
    assert gone(lake) == []


@pytest.mark.parametrize("table", OF_BRONZE, ids=named)
def test_hours_that_gold_has_survive_lost_bronze(lake: Path, table: tables.Table) -> None:
    before = rows_of(lake, (tables.COVERAGE, tables.TOPICS, tables.SLI))
    lose(lake, table)
    local(lake, Wanted(tidy="never", accept_lost=True))
    local(lake, Wanted(since=DAYS, tidy="never"))
    assert rows_of(lake, (tables.COVERAGE, tables.TOPICS, tables.SLI)) == before
    assert gone(lake) == []
