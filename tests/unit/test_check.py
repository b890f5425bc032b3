"""What ``jmxlake-agent check`` says of spool and lake, and how a lake made anew is accepted."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from collector.cli import check
from collector.config.loader import load
from collector.delivery.delivery import Delivery
from collector.delivery.storage_options import of_lake
from collector.encoding.bronze_rows import Batch
from collector.errors import JmxlakeError, LakeError
from collector.spool.spool import Spool
from lakehouse import tables

if TYPE_CHECKING:
    from pathlib import Path

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
    assert check._lake(config).endswith("/lake (5 tables created)")
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
    assert check._lake(config).endswith("/lake (5 tables created)")
    with Spool(config.spool.path, 1 << 20) as spool:
        spool.seal([Batch({tables.EVENTS.name: [], tables.MEMBERS.name: []})], b"")
        assert Delivery(config.lake.path, of_lake(config.lake), spool).check() == 0


def test_a_table_of_definitions_that_cannot_be_loaded_fails_the_check(
    config: Config, tmp_path: Path
) -> None:
    check._lake(config)
    log = tmp_path / "lake" / tables.METRIC_DEFINITIONS.path / "_delta_log"
    (log / f"{0:020}.json").write_text("no log")
    with pytest.raises(LakeError, match=r"metric_definitions"):
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
    with pytest.raises(JmxlakeError, match="lower it"):
        check._spool(config)
    with config.spool.path.with_name("spool.db-wal").open("wb") as log:
        log.truncate(30 << 20)
    assert "MiB free" in check._spool(config)
