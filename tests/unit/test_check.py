"""What ``jmxlake-agent check`` says of spool and lake, and how a lake made anew is accepted."""

from __future__ import annotations

import datetime as dt
import errno
import os
import shutil
import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake
from msgspec import structs

from collector.cli import check
from collector.cli.check import Finding
from collector.config.loader import load
from collector.delivery import bronze_table
from collector.delivery.delivery import Delivery
from collector.delivery.store import of_lake
from collector.encoding.bronze_rows import Batch
from collector.errors import HealthError, JmxlakeError, LakeError, SpoolError
from collector.spool.spool import Spool
from collector.spool.spool_file import checksum
from lakehouse import tables
from lakehouse.cli.main import main as jmxlake

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.config.schema import Config


@pytest.fixture
def config(tmp_path: Path) -> Config:
    path = tmp_path / "agent.yaml"
    path.write_text(
        "source: {node: 1, jmx: {port: 9999}}\n"
        f"lake: {{path: {tmp_path}/lake}}\n"
        f"spool: {{path: {tmp_path}/spool/spool.db, max_size: 64MiB}}\n"
    )
    return load(path)


def test_a_lake_that_is_away_is_said_and_not_made_anew_unless_that_is_accepted(
    config: Config, tmp_path: Path
) -> None:
    assert check._lake(config).endswith("/lake (6 tables created)")
    with Spool(config.spool.path, 1 << 20) as spool:
        Delivery(config.lake.path, of_lake(config.lake), spool).check()
        assert check._lake(config).endswith("/lake"), "also while the agent runs"
        shutil.rmtree(tmp_path / "lake")
        with pytest.raises(LakeError, match="--new-lake"):
            check._lake(config)
        assert not (tmp_path / "lake").exists()
        with pytest.raises(JmxlakeError, match="in use by another agent"):
            check._accept(config)
    check._accept(config)
    assert check._lake(config).endswith("/lake (6 tables created)")
    with Spool(config.spool.path, 1 << 20) as spool:
        spool.seal([Batch({tables.EVENTS.name: [], tables.MEMBERS.name: []})], b"")
        assert Delivery(config.lake.path, of_lake(config.lake), spool).check() == 0


@pytest.mark.parametrize("table", tables.CATALOGUES, ids=lambda table: table.name)
def test_unreadable_catalogue_table_fails_the_check(
    config: Config, tmp_path: Path, table: tables.Table
) -> None:
    check._lake(config)
    log = tmp_path / "lake" / table.path / "_delta_log"
    (log / f"{0:020}.json").write_text("no log")
    with pytest.raises(LakeError, match=table.name):
        check._lake(config)


def test_what_the_spool_takes_already_is_room_for_it(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk of which the spool has taken its part."""
    Spool(config.spool.path, 1 << 20).close()
    free = config.spool.max_size - (20 << 20)

    def small_disk(_: Path) -> shutil._ntuple_diskusage:
        return shutil._ntuple_diskusage(1 << 40, 0, free)

    monkeypatch.setattr(shutil, "disk_usage", small_disk)
    with pytest.raises(JmxlakeError, match="Lower it"):
        check._spool(config)
    with config.spool.path.with_name("spool.db-wal").open("wb") as log:
        log.truncate(30 << 20)
    assert "MiB free" in check._spool(config)


def _text(path: Path) -> None:
    path.write_text("root:x:0:0\n")


def _other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE mine (x)")


def _newer(path: Path) -> None:
    Spool(path, 1 << 20).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE meta SET value = '99', crc = ? WHERE key = 'version'",
                   (checksum("99", "version"),))  # fmt: skip
        db.commit()


def _in_a_file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("not a folder")


BAD_SPOOLS: dict[str, tuple[Callable[[Path], object], str]] = {
    "folder": (Path.mkdir, "not a regular file"),
    "pipe": (os.mkfifo, "not a regular file"),
    "device": (lambda path: path.symlink_to("/dev/full"), "not a regular file"),
    "text": (_text, "is not a spool of jmxlake-agent"),
    "other_database": (_other_database, "is not a spool of jmxlake-agent"),
    "newer": (_newer, "another version of jmxlake-agent"),
    "parent_is_a_file": (_in_a_file, "Check the disk and the owner of the folder"),
}


@pytest.mark.parametrize("kind", BAD_SPOOLS)
def test_check_refuses_a_spool_that_run_refuses(config: Config, kind: str) -> None:
    make, expected = BAD_SPOOLS[kind]
    path = config.spool.path
    path.parent.mkdir()
    make(path)
    before = _tree(path.parents[1])
    with pytest.raises(JmxlakeError, match=expected) as checked:
        check._spool(config)
    assert _tree(path.parents[1]) == before
    assert ".jmxlake-check" not in str(checked.value)
    with pytest.raises(SpoolError, match=expected):
        Spool(path, 1 << 20)


def test_check_of_a_good_spool_leaves_nothing(config: Config, tmp_path: Path) -> None:
    before = _tree(tmp_path)
    assert check._spool(config).endswith("MiB free")
    assert _tree(tmp_path) == before, "the folder that run would create is not created"
    with Spool(config.spool.path, 1 << 20) as spool:
        agent = spool.agent
    before = _tree(tmp_path)
    assert check._spool(config).endswith("MiB free")
    assert _tree(tmp_path) == before
    with Spool(config.spool.path, 1 << 20) as spool:
        assert spool.agent == agent


def test_check_reports_a_damaged_spool_and_keeps_it(config: Config, tmp_path: Path) -> None:
    Spool(config.spool.path, 1 << 20).close()
    config.spool.path.write_bytes(b"x" * 5000)
    before = _tree(tmp_path)
    assert check._spool(config).endswith(
        "damaged: the agent will rename it and start an empty spool"
    )
    assert _tree(tmp_path) == before


def test_check_beside_a_running_agent_passes(config: Config) -> None:
    with Spool(config.spool.path, 1 << 20):
        said = check._spool(config)
        assert said.endswith("in use by a running agent")
        with socket.create_server((config.health.host, 0)) as taken:
            port = taken.getsockname()[1]
            health = structs.replace(config.health, port=port)
            check._health(structs.replace(config, health=health), said)


def test_check_refuses_an_address_of_health_in_use(config: Config) -> None:
    with socket.create_server((config.health.host, 0)) as taken:
        health = structs.replace(config.health, port=taken.getsockname()[1])
        with pytest.raises(HealthError, match="cannot listen"):
            check._health(structs.replace(config, health=health), "")
    assert check._health(structs.replace(config, health=health), "").endswith(str(health.port))
    off = structs.replace(config.health, port=0)
    assert check._health(structs.replace(config, health=off), "") == "off"


def test_check_writes_to_the_folder_of_the_lake(config: Config, tmp_path: Path) -> None:
    check._lake(config)
    before = _tree(tmp_path / "lake")
    check._lake(config)
    assert _tree(tmp_path / "lake") == before


def test_lake_that_cannot_be_written_fails_the_check(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fake of a read-only file system: root may write anywhere else."""
    check._lake(config)

    def refuses(**_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(bronze_table, "TemporaryFile", refuses)
    with pytest.raises(LakeError, match="cannot be written: Read-only file system"):
        check._lake(config)


def _tree(root: Path) -> dict[str, tuple[int, int]]:
    """Kinds and sizes of all below a folder."""
    return {
        str(path.relative_to(root)): (path.lstat().st_mode, path.lstat().st_size)
        for path in sorted(root.rglob("*"))
    }


def test_summary_names_what_is_missing_and_counts_the_rest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lost = Finding("missing", 0, "expected")
    missing = [("s", "log", f"kafka.log.x{number}", lost) for number in range(7)]
    found = [
        ("s", "min_isr", "kafka.a", Finding("found", 3, "")),
        ("s", "min_isr", "kafka.b", Finding("wrong", 1, "counts twice")),
        ("s", "quotas", "kafka.c", Finding("absent", 0, "no quota is set")),
        *missing,
        ("s", "offsets", "", Finding("unknown", 0, "admin did not respond")),
        ("s", "leaders", "", Finding("unknown", 0, "admin did not respond")),
    ]  # fmt: skip
    check._print_summary(found)
    assert capsys.readouterr().out.splitlines() == [
        "ok      metrics: 2 have values, 1 are absent for a known reason; --all lists them",
        "MISSING kafka.log.x0, kafka.log.x1, kafka.log.x2, kafka.log.x3, kafka.log.x4 and 2 more:"
        " expected",
        "unknown leaders, offsets: admin did not respond",
    ]
    check._print_summary([*found[:3], ("t", "log", "kafka.x", lost)])
    assert capsys.readouterr().out.splitlines()[1:] == ["MISSING t kafka.x: expected"]


def test_watched_groups_are_checked_as_the_agent_reads_them(config: Config, tmp_path: Path) -> None:
    check._lake(config)
    assert check._watched_groups(config) == "no rows; admin.groups applies"
    lake = tmp_path / "lake"
    options = ["--topic", "clicks", "--group", "audit"]
    ran = CliRunner().invoke(jmxlake, ["watched-groups", str(lake), *options])
    assert ran.exit_code == 0, ran.output
    assert check._watched_groups(config) == "topics in control/watched_groups: 1"
    row = {"topic": ["["], "groups": [["a"]], "set_by": ["me"], "set_at": [dt.datetime.now(dt.UTC)]}
    types = {"set_at": pa.timestamp("us", "UTC")}
    table = pa.table({name: pa.array(one, types.get(name)) for name, one in row.items()})
    write_deltalake(str(lake / tables.WATCHED_GROUPS.path), table, mode="append")
    text = check._watched_groups(config)
    assert text.startswith("topics in control/watched_groups: 1; invalid rows: 1, such as '[': ")
    (log,) = (lake / tables.WATCHED_GROUPS.path / "_delta_log").glob("*1.json")
    log.write_text("no log")
    with pytest.raises(LakeError, match="control/watched_groups"):
        check._watched_groups(config)
