"""Damaged Delta logs: each is one line that names the version or file, and what to do."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from collector.delivery.bronze_table import BronzeTable
from collector.errors import LakeError
from lakehouse import tables
from lakehouse.core import table_notes
from lakehouse.core.delta_rs import Location, explained, query
from lakehouse.core.lake import Lake
from lakehouse.engines.delta_tables import Store
from lakehouse.errors import (
    EngineError,
    LakehouseError,
    MaintenanceError,
    TableNotFoundError,
    TableSchemaError,
)
from lakehouse.ops.doctor.table_health import damaged_log
from lakehouse.tables import delta_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Damage = Callable[[Path], object]

_NEWEST = 2


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    table = tmp_path / tables.RUNS.path
    for _ in range(_NEWEST + 1):
        write_deltalake(str(table), pa.table({"x": [1], "date": ["2026-11-16"]}), mode="append",
                        partition_by=["date"])  # fmt: skip
    return tmp_path


def commit(log: Path, version: int) -> Path:
    return log / f"{version:020}.json"


def edited(version: int, kind: str, **values: Any) -> Damage:
    def damage(log: Path) -> None:
        file = commit(log, version)
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            action.get(kind, {}).update(values)
        file.write_text("\n".join(map(json.dumps, actions)))

    return damage


def without(kind: str) -> Damage:
    def damage(log: Path) -> None:
        lines = commit(log, 0).read_text().splitlines()
        commit(log, 0).write_text("\n".join(line for line in lines if f'"{kind}"' not in line))

    return damage


def written(version: int, content: bytes) -> Damage:
    return lambda log: commit(log, version).write_bytes(content)


def checkpoint(content: bytes) -> Damage:
    return lambda log: (log / f"{_NEWEST:020}.checkpoint.parquet").write_bytes(content)


def hint(version: int) -> Damage:
    text = json.dumps({"version": version, "size": 1})
    return lambda log: (log / delta_log.LAST_CHECKPOINT).write_text(text)


DAMAGED: dict[str, tuple[Damage, str]] = {
    "truncated": (
        lambda log: os.truncate(commit(log, 1), 40),
        "version 1 of its log is damaged: 00000000000000000001.json has a line 1 that is not valid",
    ),
    "binary": (written(2, bytes(range(256))), "version 2 of its log is damaged: 0000"),
    "no_json": (written(3, b"garbage\n"), "version 3 of its log is damaged: 0000"),
    "not_a_number": (written(3, b'{"add": {"size": NaN}}'), "version 3 of its log is damaged"),
    "no_action": (written(3, b"[1]\n"), "has a line 1 that is not an action; restore it"),
    "huge_number": (edited(1, "add", size=10**30), "version 1 of its log is damaged"),
    "gap": (lambda log: commit(log, 1).unlink(), "its log is damaged: version 1 is missing"),
    "long_gap": (written(7, b"{}"), "versions 3 to 6 are missing; restore its commit files"),
    "no_first": (lambda log: commit(log, 0).unlink(), "version 0 is missing"),
    "junk_checkpoint": (checkpoint(b"junk"), "02.checkpoint.parquet of its log is damaged"),
    "hint_lies": (hint(77), "names version 77, which has no checkpoint; delete that file"),
    "newer_protocol": (
        edited(0, "protocol", minReaderVersion=99),
        "does not support (Unsupported minimum reader version 99): another tool has upgraded it",
    ),
    "feature": (
        edited(0, "protocol", minReaderVersion=3, minWriterVersion=7, readerFeatures=["warp"],
               writerFeatures=["warp"]),
        "(Feature 'warp' is not supported)",
    ),
    "negative_protocol": (edited(0, "protocol", minReaderVersion=-1), "its log is damaged"),
    "no_metadata": (without("metaData"), "(No table metadata found): restore the first commit"),
    "no_protocol": (without("protocol"), "(No protocol found): restore the first commit"),
    "schema_text": (edited(0, "metaData", schemaString="no json"), "its log is damaged (expected"),
    "schema_deep": (edited(0, "metaData", schemaString="[" * 9000), "its log is damaged (invalid"),
    "schema_type": (
        edited(0, "metaData", schemaString='{"type":"struct","fields":[{"name":"x","type":"warp",'
               '"nullable":true,"metadata":{}}]}'),
        "its log is damaged (Unsupported Delta table type: 'warp'",
    ),
    "fifo": (lambda log: os.mkfifo(commit(log, 3)), "00003.json is not a regular file; remove it"),
    "folder": (lambda log: commit(log, 3).mkdir(), "00003.json is not a regular file; remove it"),
    "device": (lambda log: commit(log, 3).symlink_to("/dev/zero"), "is not a regular file"),
    "link_loop": (lambda log: commit(log, 3).symlink_to(commit(log, 3)), "is not a regular file"),
    "dangling": (lambda log: commit(log, 3).symlink_to("nowhere"), "is not a regular file"),
    "hint_fifo": (
        lambda log: os.mkfifo(log / delta_log.LAST_CHECKPOINT),
        "_last_checkpoint in its log is not a regular file; delete it",
    ),
    "checkpoint_fifo": (
        lambda log: os.mkfifo(log / f"{_NEWEST:020}.checkpoint.parquet"),
        "version 2 of its log is damaged: 00000000000000000002.checkpoint.parquet is not",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_log_is_one_line_in_each_reader(lake: Path, kind: str) -> None:
    damage, expected = DAMAGED[kind]
    damage(lake / tables.RUNS.path / "_delta_log")
    said = []
    with pytest.raises(MaintenanceError) as maintained:
        Location(str(lake)).open(tables.RUNS)
    said.append(str(maintained.value))
    with pytest.raises(EngineError) as read:
        Store(Lake(str(lake)), {}, lake / "cache").find(tables.RUNS)
    said.append(str(read.value))
    with pytest.raises(LakeError) as delivered:
        BronzeTable(str(lake), tables.RUNS, dict).load()
    said.append(str(delivered.value))
    for line in said:
        assert expected in line
        assert "\n" not in line
        assert "<unknown>" not in line
        assert "credentials" not in line
        assert len(line) < 450 + len(str(lake))


def test_sound_log_is_given_to_delta_rs(lake: Path) -> None:
    assert Location(str(lake)).open(tables.RUNS).version() == _NEWEST
    log = lake / tables.RUNS.path / "_delta_log"
    Location(str(lake)).open(tables.RUNS).create_checkpoint()
    commit(log, 0).unlink()
    commit(log, 1).unlink()
    (log / "notes.txt").mkdir()
    assert Location(str(lake)).open(tables.RUNS).version() == _NEWEST


def test_empty_commit_is_a_finding(lake: Path) -> None:
    table = lake / tables.RUNS.path
    assert list(damaged_log(tables.RUNS, DeltaTable(table))) == []
    commit(table / "_delta_log", 1).write_bytes(b"")
    (found,) = damaged_log(tables.RUNS, DeltaTable(table))
    assert (found.severity, found.where) == ("error", "bronze/runs")
    assert found.what == "the commit file of version 1 is empty"


def test_log_in_a_store_is_explained_by_its_text() -> None:
    text = "Kernel error: Json error: Truncated record\n   0: <unknown>\n"
    said = delta_log.explain("s3://bucket/lake/bronze/runs", text)
    assert said == (
        "its log is damaged, or is not a Delta log: restore _delta_log from a backup of the lake"
    )
    assert delta_log.explain("s3://bucket/lake/bronze/runs", "access denied") is None
    delta_log.check("s3://bucket/lake/bronze/runs")


def test_commit_during_the_listing_is_not_a_gap(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = lake / tables.RUNS.path / "_delta_log"
    saved = commit(log, 1).read_bytes()
    commit(log, 1).unlink()
    listed = delta_log._listed

    def late(folder: Path) -> Any:
        found = listed(folder)
        commit(log, 1).write_bytes(saved)
        return found

    monkeypatch.setattr(delta_log, "_listed", late)
    delta_log.check(str(lake / tables.RUNS.path))


class PanicException(BaseException):
    """A fake of pyo3's panic, which is not an Exception."""


@pytest.mark.parametrize(
    "error",
    [PanicException("assertion failed\n   0: <unknown>"), ValueError("null"), OverflowError("x")],
)
def test_fault_of_delta_rs_is_an_error_of_the_lake(error: BaseException) -> None:
    with pytest.raises(LakehouseError, match=r"^/lake: \w[^\n<]*$"), explained("/lake"):
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), TypeError("ours")])
def test_exit_and_own_fault_pass_through(error: BaseException) -> None:
    with pytest.raises(type(error)), explained("/lake"):
        raise error


@pytest.mark.parametrize("size", [-5, 2**62])
def test_impossible_file_size_ends_a_query(lake: Path, size: int) -> None:
    """A negative one makes DataFusion allocate until the process is aborted."""
    edited(1, "add", size=size)(lake / tables.RUNS.path / "_delta_log")
    with pytest.raises(MaintenanceError, match=f"a size of {size} bytes"):
        next(query(Location(str(lake)).open(tables.RUNS), "SELECT count(*) AS n FROM lake_table"))


@pytest.mark.parametrize("text", ["junk", "a/b reason", "2026-11-16T00:00:00Z/ x", "; ;x"])
def test_invalid_note_of_a_table_is_an_error_of_the_lake(text: str) -> None:
    with pytest.raises(TableSchemaError, match=r"invalid property jmxlake\.incomplete"):
        table_notes.gaps({table_notes.NOTE: text})


@pytest.mark.parametrize("text", ["", "x", "progress", "progress id many", "progress id -1 2"])
def test_invalid_note_of_progress_names_no_version(text: str) -> None:
    found = table_notes.known_tables([text], "id")
    assert all(noted.version is None for noted in found.values())


@pytest.mark.parametrize(
    ("table", "todo"),
    [
        (tables.EVENTS, "so it was deleted. Restore it from a backup, or restart the agents"),
        (tables.SCRAPES, "so it was deleted"),
        (tables.MEMBERS, "so it was deleted"),
        (tables.METRIC_DEFINITIONS, "Agents create it at their first delivery"),
        (tables.METRIC_TRAITS, "Agents create it at their first delivery"),
        (tables.SUBJECTS, "Run jmxlake rollup first"),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_missing_table_says_what_to_do(lake: Path, table: tables.Table, todo: str) -> None:
    with pytest.raises(TableNotFoundError, match=f"no such table. .*{todo}"):
        Location(str(lake)).open(table)
    with pytest.raises(TableNotFoundError, match=f"no such table. .*{todo}"):
        Store(Lake(str(lake)), {}, lake / "cache").open(table)
