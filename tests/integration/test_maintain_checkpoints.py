"""Superseded checkpoints: which go, that nothing else does, and that readers do not notice."""

from __future__ import annotations

import datetime as dt
import shutil
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.core import delta_rs
from lakehouse.errors import MaintenanceConflictError, MaintenanceError
from lakehouse.ops.maintain.actions import HOURS, NEWEST, Executor, slot
from lakehouse.ops.maintain.plan import Expire
from lakehouse.ops.maintain.table_state import CHECKED, mark
from tests import bronze_commits
from tests.checkpointing import APART, checkpoint
from tests.lake_builder import BASE
from tests.rig.s3.server import S3Server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

TWO_DAYS = 2 * 144
MIDNIGHT = BASE.replace(hour=0, minute=0)


class Lake:
    """A lake, and the folder in which its files end."""

    def __init__(self, root: str, options: dict[str, str], folder: Path) -> None:
        self.root, self.options, self.folder = root, options, folder
        self.log = folder / tables.RUNS.path / "_delta_log"
        bronze_commits.make(root, options)

    def opened(self, version: int | None = None) -> DeltaTable:
        url = f"{self.root}/{tables.RUNS.path}"
        return DeltaTable(url, version=version, storage_options=self.options)

    def filled(self, first: int, last: int) -> None:
        delta = self.opened()
        for number in range(first, last + 1):
            bronze_commits.append(delta, tables.RUNS, "a", number)

    def checkpointed(self, numbers: Sequence[int]) -> list[int]:
        return checkpoint(self.root, self.options, numbers)

    def checkpoints(self) -> list[int]:
        return sorted(int(one.name[:20]) for one in self.log.glob("*.checkpoint.parquet"))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"), {}, tmp_path / "lake")


@pytest.fixture(params=["folder", "s3"])
def any_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    if request.param == "folder":
        yield Lake(str(tmp_path / "lake"), {}, tmp_path / "lake")
        return
    with S3Server.start(tmp_path / "s3") as server:
        folder = tmp_path / "s3" / "buckets" / "lake" / "jmx"
        yield Lake(server.url("lake/jmx"), server.options, folder)


def kept_of(instants: Sequence[dt.datetime]) -> list[int]:
    """Which of the checkpoints made at these instants are there after the last."""
    marks: dict[str, int] = defaultdict(lambda: -1)
    live: list[int] = []
    for version, at in enumerate(instants):
        written, superseded = slot(version, at, marks.__getitem__)
        live = [one for one in live if one != superseded] + [version]
        marks |= written
    return live


def test_kept_checkpoints_are_newest_hourly_and_daily() -> None:
    instants = [MIDNIGHT + number * APART for number in range(40 * 144)]
    days = [number for number in range(40 * 144) if number % 144 == 0]
    hours = [number for number in range(39 * 144, 40 * 144) if number % 6 == 0]
    newest = [40 * 144 - 3, 40 * 144 - 2, 40 * 144 - 1]
    assert kept_of(instants) == sorted({*days, *hours, *newest})


def test_after_any_checkpoint_the_newest_three_are_there() -> None:
    instants = [MIDNIGHT + number * APART for number in range(TWO_DAYS)]
    for count in range(3, TWO_DAYS):
        assert kept_of(instants[:count])[-3:] == [count - 3, count - 2, count - 1]


def test_few_checkpoints_are_all_kept_for_a_day() -> None:
    instants = [MIDNIGHT + number * 7 * APART for number in range(20)]
    assert kept_of(instants) == [*range(20)]


def test_clock_step_keeps_more_checkpoints() -> None:
    ahead = [MIDNIGHT + dt.timedelta(days=3000) + number * APART for number in range(6)]
    after = [MIDNIGHT + number * APART for number in range(TWO_DAYS)]
    kept = kept_of([*ahead, *after])
    assert kept[-3:] == [len(ahead) + TWO_DAYS - back for back in (3, 2, 1)]
    assert {6, 6 + 144} <= {*kept}, "the first of each day after the clock was put right"


def test_log_keeps_slots_and_the_first_of_the_day(any_lake: Lake) -> None:
    any_lake.filled(1, 3)
    made = any_lake.checkpointed(range(12))
    first, second, third = made[0], made[6], made[-3]
    assert any_lake.checkpoints() == [first, second, *range(third, made[-1] + 1)]
    delta = any_lake.opened()
    slots = {mark(delta, app) for app in (*NEWEST, *HOURS)} - {-1}
    assert slots == {*any_lake.checkpoints()} - {first}


def test_every_version_is_read_as_before(any_lake: Lake) -> None:
    """Versions whose checkpoint is gone are those of the one before, and the commits since."""
    any_lake.filled(1, 2)
    at: dict[int, int] = {}
    for number in range(8):
        (version,) = any_lake.checkpointed([number])
        at[version] = 2 + number
        any_lake.filled(3 + number, 3 + number)
    assert [one for one in at if one not in any_lake.checkpoints()]
    for version, batches in at.items():
        delta = any_lake.opened(version)
        assert (delta.version(), len(delta.file_uris())) == (version, batches)
        assert delta.transaction_version("a/runs") == batches
    read = bronze_commits.read(any_lake.root, any_lake.options, tables.RUNS)
    assert read == [("a", number, 3) for number in range(1, 11)]


def test_checkpoints_of_others_are_left_alone(lake: Lake) -> None:
    lake.filled(1, 2)
    lake.opened(1).create_checkpoint()
    parts = lake.log / f"{2:020}.checkpoint.{1:010}.{2:010}.parquet"
    shutil.copy(lake.log / f"{1:020}.checkpoint.parquet", parts)
    lake.checkpointed(range(12))
    assert parts.exists()
    parts.unlink()
    assert lake.checkpoints()[0] == 1


def test_missing_checkpoint_is_not_an_error(any_lake: Lake) -> None:
    """What is left when maintenance is killed between deleting one and noting the next."""
    made = any_lake.checkpointed(range(4))
    (any_lake.log / f"{made[1]:020}.checkpoint.parquet").unlink()
    assert any_lake.checkpoints() == [made[0], *made[2:]]
    made += any_lake.checkpointed(range(4, 6))
    assert any_lake.checkpoints() == [made[0], *made[3:]]


def test_last_checkpoint_is_never_deleted(lake: Lake) -> None:
    """A checkpoint that was left without its hint: delta-rs does not write the hint again."""
    made = lake.checkpointed(range(4))
    hint = (lake.log / "_last_checkpoint").read_bytes()
    version = lake.opened().version()
    lake.opened().create_checkpoint()
    for left in (hint, b"", b"[1]"):
        (lake.log / "_last_checkpoint").write_bytes(left)
        before = lake.checkpoints()
        with pytest.raises(MaintenanceConflictError, match="keeps the old checkpoint") as caught:
            lake.checkpointed([4])
        assert "\n" not in str(caught.value)
        assert lake.checkpoints() == before
        assert mark(lake.opened(), CHECKED) == version
        version = lake.opened().version()
        lake.opened().create_checkpoint()
    lake.filled(1, 1)
    assert mark(lake.opened(), NEWEST[0]) == made[1]
    lake.checkpointed([5])
    assert made[1] not in lake.checkpoints(), "the next puts it right"


def test_undeletable_checkpoint_leaves_new_ones_made(lake: Lake) -> None:
    made = lake.checkpointed(range(4))
    stuck = lake.log / f"{made[1]:020}.checkpoint.parquet"
    away = stuck.rename(lake.folder / "away")
    (stuck / "x").mkdir(parents=True)
    with pytest.raises(MaintenanceError, match="bronze/runs") as caught:
        lake.checkpointed([4])
    assert "\n" not in str(caught.value)
    assert mark(lake.opened(), CHECKED) == made[-1] + 1
    shutil.rmtree(stuck)
    away.rename(stuck)
    lake.checkpointed([5])
    assert not stuck.exists(), "it kept its slot, and goes when it can"


def test_the_first_of_a_day_goes_with_the_log(lake: Lake) -> None:
    lake.filled(1, 3)
    made = lake.checkpointed(range(5))
    bronze_commits.age(lake.folder, 40)
    place = delta_rs.locate(lake.root, None)
    Executor(place, "x").run(tables.RUNS, lake.opened(), Expire(made[-1]))
    assert lake.checkpoints() == made[-1:]
    assert min(int(one.stem) for one in lake.log.glob("*.json")) == made[-1]
    assert len(lake.opened().file_uris()) == 3
