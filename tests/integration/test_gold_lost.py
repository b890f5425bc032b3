"""A table of gold is lost or replaced: it is recomputed from bronze, and unknown for the rest."""

from __future__ import annotations

import datetime as dt
import shutil
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.core import lake as lakes, table_notes
from lakehouse.core.periods import Period, micros
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.rollup import gold_tables, progress
from lakehouse.rollup.plan import Wanted
from tests.lake_builder import BASE
from tests.rollups import DAY, HOUR, hours, local, rows_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.edge(2)

COMPUTED = table_notes.COMPUTED
NAMES = [
    *(table.name for table in COMPUTED if table not in tables.WINDOWS.values()),
    "topics_windows",
    "coverage_windows",
]
LOST = [NAMES[::2], NAMES[1::2], pytest.param(["topics"], marks=pytest.mark.nightly)]
"""Tables that are lost together: each must be noticed. One is also lost without others."""
OLD = BASE - dt.timedelta(days=40)
AROUND = Period(BASE - dt.timedelta(days=50), BASE + dt.timedelta(days=2))
OF_ROWS = ("subjects", "topics", "coverage", "sources", "sli", "incidents", "readings")
"""Tables that have rows of each hour of the lake."""


@pytest.fixture(scope="module")
def rolled_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of two clusters with an hour of forty days ago, and two of today."""
    root = tmp_path_factory.mktemp("rolled")
    hours(1, 0, HOUR, -40 * DAY).commit(root)
    hours(1, 0, -40 * DAY, cluster="cluster-b", agent="agent-2").commit(root)
    local(root)
    return root


@pytest.fixture(scope="module")
def computed(rolled_lake: Path) -> dict[str, list[str]]:
    """Return the rows of its gold."""
    return rows_of(rolled_lake, COMPUTED)


@pytest.fixture(scope="module")
def expired_lake(rolled_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the lake after bronze of forty days ago has expired."""
    root = shutil.copytree(rolled_lake, tmp_path_factory.mktemp("expired") / "lake")
    expire_bronze(root)
    return root


@pytest.fixture
def lake(rolled_lake: Path, tmp_path: Path) -> Path:
    return shutil.copytree(rolled_lake, tmp_path / "lake")


def named(name: str) -> tables.Table:
    return {table.name: table for table in (*COMPUTED, tables.SLA)}[name]


def lose(root: Path, name: str) -> None:
    shutil.rmtree(root / "gold" / name)


def expire_bronze(root: Path) -> None:
    """Remove the old date, as the maintenance does once it is rolled up."""
    for table in (tables.RUNS, tables.SCRAPES):
        DeltaTable(str(root / table.path)).delete(f"date < '{BASE.date()}'")
    local(root)


def incomplete(root: Path) -> dict[str, list[tuple[int, int, str]]]:
    found: dict[str, list[tuple[int, int, str]]] = {}
    engine = LocalEngine(lakes.at(str(root)))
    for one in gold_tables.incomplete(engine, AROUND, micros(AROUND.end)):
        found.setdefault(one.table, []).append((one.start, one.end, one.reason))
    return found


@pytest.mark.parametrize("names", LOST, ids=lambda names: f"{len(names)} {names[0]}")
def test_lost_tables_are_recomputed_from_bronze(
    lake: Path, computed: dict[str, list[str]], names: list[str]
) -> None:
    for name in names:
        lose(lake, name)
    assert {*incomplete(lake)} == {*names}
    assert local(lake).how == "repaired"
    assert rows_of(lake, COMPUTED) == computed
    assert incomplete(lake) == {}
    assert local(lake).hours == 0


@pytest.mark.parametrize(
    "names",
    [OF_ROWS, pytest.param(("topics",), marks=pytest.mark.nightly)],
    ids=["seven", "one"],
)
def test_lost_tables_are_unknown_beyond_bronze(
    expired_lake: Path, tmp_path: Path, names: tuple[str, ...]
) -> None:
    lake = shutil.copytree(expired_lake, tmp_path / "lake")
    lost = tuple(map(named, names))
    before = rows_of(lake, lost)
    for name in names:
        lose(lake, name)
    local(lake)
    unknown = (micros(OLD), micros(BASE), gold_tables.MISSING + gold_tables.NOT_IN_BRONZE)
    assert incomplete(lake) == {name: [unknown] for name in names}
    after = rows_of(lake, lost)
    for name in {*names} - {tables.SUBJECTS.name}:
        assert after[name] == [row for row in before[name] if f"{micros(OLD)}" not in row]
    # It stays unknown when more comes, and when gold/progress is lost too.
    hours(2, 2 * HOUR).commit(lake)
    lose(lake, "progress")
    local(lake)
    found = incomplete(lake)
    assert {name: found[name] for name in names} == {name: [unknown] for name in names}


@pytest.fixture(scope="module")
def continued(rolled_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the lake after a further hour."""
    root = shutil.copytree(rolled_lake, tmp_path_factory.mktemp("continued") / "lake")
    hours(2, 2 * HOUR).commit(root)
    local(root)
    return root


@pytest.fixture(scope="module")
def of_all(continued: Path) -> dict[str, list[str]]:
    """Return the rows of its gold."""
    return rows_of(continued, COMPUTED)


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return another lake."""
    root = tmp_path_factory.mktemp("another")
    hours(1, 0).commit(root)
    local(root)
    return root


def copied(root: Path, name: str, other: Path) -> None:
    lose(root, name)
    shutil.copytree(other / named(name).path, root / named(name).path)


REPLACED = ("topics", "coverage", "subjects")


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("made by hand", marks=pytest.mark.nightly),
        "older copy",
        pytest.param("of another lake", marks=pytest.mark.nightly),
    ],
)
def test_replaced_tables_are_recomputed_from_bronze(
    continued: Path,
    of_all: dict[str, list[str]],
    rolled_lake: Path,
    another: Path,
    tmp_path: Path,
    way: str,
) -> None:
    lake = shutil.copytree(continued, tmp_path / "lake")
    for name in REPLACED:
        if way == "made by hand":
            lose(lake, name)
            LocalEngine(lakes.at(str(lake))).create(named(name))
        else:
            copied(lake, name, rolled_lake if way == "older copy" else another)
    assert {*incomplete(lake)} == {*REPLACED}
    local(lake)
    assert rows_of(lake, COMPUTED) == of_all
    assert incomplete(lake) == {}


def test_older_copy_is_trusted_before_its_last_week(expired_lake: Path, tmp_path: Path) -> None:
    lake = shutil.copytree(expired_lake, tmp_path / "lake")
    backup = expired_lake
    hours(2, 2 * HOUR).commit(lake)
    local(lake)
    before = rows_of(lake, COMPUTED)
    copied(lake, "topics", backup)
    local(lake)
    assert rows_of(lake, COMPUTED) == before
    assert "topics" not in incomplete(lake)


def test_lost_statements_are_not_claimed_to_be_complete(lake: Path) -> None:
    lose(lake, "sla")
    local(lake)
    ((start, _, reason),) = incomplete(lake)["sla"]
    assert start == micros(OLD)
    assert reason == gold_tables.MISSING + gold_tables.NOT_COMPUTED


def test_lost_progress_keeps_rows_and_window(tmp_path: Path) -> None:
    hours(1, 0, 900, HOUR).commit(tmp_path)
    local(tmp_path, window_seconds=900)
    before = rows_of(tmp_path, COMPUTED)
    lose(tmp_path, "progress")
    assert local(tmp_path).how == "whole"
    assert rows_of(tmp_path, COMPUTED) == before
    row = progress.last(LocalEngine(lakes.at(str(tmp_path)))).row
    assert row is not None
    assert row.window_seconds == 900


def test_tables_that_an_upgrade_brings_are_computed(
    lake: Path, computed: dict[str, list[str]]
) -> None:
    # A version before did not note gold's tables, and had no such tables.
    DeltaTable(f"{lake}/gold/progress").update({"tables": "NULL"})
    for name in ("distributions", "clients", "topics"):
        lose(lake, name)
    local(lake)
    assert rows_of(lake, COMPUTED) == computed
    assert incomplete(lake) == {}


def test_lake_of_the_version_before_is_taken_as_complete(lake: Path) -> None:
    DeltaTable(f"{lake}/gold/progress").update({"tables": "NULL"})
    assert local(lake).hours == 0
    assert incomplete(lake) == {}


class KilledError(Exception):
    pass


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("new table topics", marks=pytest.mark.nightly),
        "topics",
        pytest.param("progress", marks=pytest.mark.nightly),
    ],
)
def test_killed_repair_continues(lake: Path, computed: dict[str, list[str]], step: str) -> None:
    lose(lake, "topics")

    def kill(what: str) -> None:
        if what == step:
            raise KilledError

    with pytest.raises(KilledError):
        local(lake, progress=kill)
    if step != "progress":
        assert "topics" in incomplete(lake)
    local(lake, Wanted(tidy="never", take_over=True))
    assert rows_of(lake, COMPUTED) == computed
    assert incomplete(lake) == {}


def test_since_clears_hours_that_a_restored_bronze_has(
    rolled_lake: Path, expired_lake: Path, computed: dict[str, list[str]], tmp_path: Path
) -> None:
    lake = shutil.copytree(expired_lake, tmp_path / "lake")
    lose(lake, "topics")
    local(lake)
    assert "topics" in incomplete(lake)
    shutil.rmtree(lake / "bronze")
    shutil.copytree(rolled_lake / "bronze", lake / "bronze")
    local(lake, Wanted(since=OLD.date(), tidy="never"))
    assert rows_of(lake, COMPUTED) == computed
    assert incomplete(lake) == {}


@pytest.mark.parametrize("tidy", ["now", "never"])
def test_upkeep_and_moves_do_not_replace_tables(lake: Path, tmp_path: Path, tidy: str) -> None:
    hours(2, 2 * HOUR).commit(lake)
    local(lake, Wanted(tidy=tidy))
    moved = shutil.copytree(lake, tmp_path / "moved")
    assert incomplete(moved) == {}
    assert local(moved).hours == 0
