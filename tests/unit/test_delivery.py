"""Delivery into real Delta tables: every batch exactly once, with any failure of a commit."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import duckdb
import pytest
from arro3.core import Array, DataType

from collector import catalogue
from collector.delivery import arrow, bronze_table
from collector.delivery.bronze_table import BronzeTable
from collector.delivery.delivery import Delivery
from collector.encoding.bronze_rows import (
    AttemptSpan,
    Batch,
    Origin,
    Run,
    SealedRows,
    batches_of as batches_of_sealed,
)
from collector.errors import CommitError, LakeError, LakeSchemaError
from collector.model import Event, Series
from collector.spool.spool import Spool
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.spool.spool_file import Dropped

MIB = 1 << 20


def event(detail: str) -> tuple[Any, ...]:
    subject = (None, None, None, None, None)
    return (20_000, "c", "broker-1", 1_728_000_000_000_000, "agent_start", *subject, None, detail)


def run(number: int, topic: str | None, members: str | None = None) -> tuple[Any, ...]:
    day = 20_000 + number % 2
    start = day * 86_400_000_000 + number * 1_000_000
    subject = (topic, None, None, None, None, None)
    return (day, "c", "broker-1", "m", *subject, start, start + 1, 0, 0, 1.0, 1, 1, members, None)


def full_batch(number: int) -> Batch:
    """Return a batch with a row for each of the four tables."""
    start = 1_728_000_000_000_000 + number
    scrape = (20_000, "c", "broker-1", "f", start, start + 1, "ok", 1, 1, 0, 0.1, 0.1, 1, 1, "h")
    return Batch(
        {
            "runs": [run(number, "t", f"set-{number}")],
            "members": [(f"set-{number}", "c", "partitions", "t", (1, 2), None)],
            "scrapes": [(*scrape, None, None)],
            "events": [event(str(number))],
        }
    )


def batches_of(lake: Path, table: tables.Table) -> list[int]:
    """Return the batch numbers of a table with one row per batch."""
    files = deltalake.DeltaTable(f"{lake}/{table.path}").file_uris()
    rows = duckdb.read_parquet(files, hive_partitioning=False)
    return sorted(row[0] for row in rows.project("batch").fetchall())


def brought(lake: Path, table: tables.Table) -> list[int]:
    """Return the batches whose row is in a table. A set can be in it more than once."""
    if table is not tables.MEMBERS:
        return batches_of(lake, table)
    rows = duckdb.read_parquet(deltalake.DeltaTable(f"{lake}/{table.path}").file_uris())
    return sorted({int(row[0].removeprefix("set-")) for row in rows.project('"set"').fetchall()})


def sealed(spool: Spool, *details: str) -> None:
    for detail in details:
        spool.seal([Batch({"events": [event(detail)], "members": []})], b"")


def delivered(lake: Path) -> list[str]:
    table = deltalake.DeltaTable(f"{lake}/bronze/events")
    rows = duckdb.read_parquet(table.file_uris())
    return sorted(row[0] for row in rows.project("new").fetchall())


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with Spool(tmp_path / "spool.db", MIB) as spool:
        yield spool


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def drain(delivery: Delivery) -> None:
    while delivery.deliver_next():
        pass


def test_batches_arrive_in_order_and_leave_the_spool(spool: Spool, lake: Path) -> None:
    sealed(spool, "a", "b", "c")
    drain(Delivery(str(lake), dict, spool))
    assert delivered(lake) == ["a", "b", "c"]
    assert spool.waiting(0) == []
    version = deltalake.DeltaTable(f"{lake}/bronze/events").transaction_version(
        f"{spool.agent}/events"
    )
    assert version == 3


def test_crash_between_commit_and_acknowledgement_no_duplicate(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Spool(tmp_path / "spool.db", MIB) as spool, monkeypatch.context() as patch:
        sealed(spool, "a")
        patch.setattr(spool, "acknowledge", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            drain(Delivery(str(lake), dict, spool))
    with Spool(tmp_path / "spool.db", MIB) as spool:
        drain(Delivery(str(lake), dict, spool))
    assert delivered(lake) == ["a"]


def test_commit_with_lost_response_is_read_back(
    spool: Spool, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = bronze_table.write_deltalake

    def lands_and_fails(*args: Any, **kwargs: Any) -> None:
        write(*args, **kwargs)
        raise OSError("the answer was lost")

    sealed(spool, "a", "b")
    with monkeypatch.context() as patch:
        patch.setattr(bronze_table, "write_deltalake", lands_and_fails)
        drain(Delivery(str(lake), dict, spool))
    assert delivered(lake) == ["a", "b"]


def test_failed_commit_stays_in_the_spool(
    spool: Spool, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise OSError("No space left on device")

    sealed(spool, "a")
    delivery = Delivery(str(lake), dict, spool)
    with monkeypatch.context() as patch:
        patch.setattr(bronze_table, "write_deltalake", fails)
        with pytest.raises(CommitError, match=r"events: .* No space left on device.*keeps batch 1"):
            delivery.deliver_next()
    drain(delivery)
    assert delivered(lake) == ["a"]


def test_batch_dropped_before_the_write_is_not_duplicated(
    tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next batch has the rest of the dropped one, which the loaded batch does not show."""
    with Spool(tmp_path / "spool.db", 1) as spool, monkeypatch.context() as patch:
        sealed(spool, "a")
        delivery, commit = Delivery(str(lake), dict, spool), Delivery._commit
        delivery.check()

        def fills_up(*args: Any) -> None:
            patch.undo()
            sealed(spool, "b")
            commit(*args)

        patch.setattr(Delivery, "_commit", fills_up)
        with pytest.raises(CommitError, match="dropped a batch"):
            delivery.deliver_next()
        drain(delivery)
        assert spool.depth().batches == 0
    assert delivered(lake) == ["b"]


@pytest.mark.parametrize("step", ["_write", "_reload_number"])
def test_copy_of_a_running_spool_gets_a_new_id(
    tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """One copy commits after the other has compared, so that their number is of another agent."""
    with Spool(tmp_path / "one.db", MIB) as one:
        sealed(one, "before")
        drain(Delivery(str(lake), dict, one))
    shutil.copy(tmp_path / "one.db", tmp_path / "two.db")
    with Spool(tmp_path / "one.db", MIB) as one, Spool(tmp_path / "two.db", MIB) as two:
        first, second = Delivery(str(lake), dict, one), Delivery(str(lake), dict, two)
        first.check()
        second.check()
        theirs = first._tables[-1]
        rows = arrow.to_arrow(tables.EVENTS, [(*event("first"), one.agent, 2)])
        two.seal([Batch({**full_batch(2).rows, "events": [event("second")]})], b"")
        work = getattr(second, step)

        def comes_late(bronze: BronzeTable, *rest: Any) -> Any:
            if bronze.table is tables.EVENTS:
                theirs.append(rows, one.agent, 2)
            return work(bronze, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(second, step, comes_late)
            with pytest.raises(CommitError, match="a copy of this spool"):
                second.deliver_next()
        assert two.is_empty()
        sealed(two, "third")
        drain(second)
        assert one.agent != two.agent
        assert two.is_empty()
    assert delivered(lake) == ["before", "first", "third"], "once each"


def test_late_commit_of_the_agent_is_recognized(
    spool: Spool, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An abandoned request arrives after the next attempt has compared."""
    write, asked = bronze_table.write_deltalake, []

    def on_its_way(table: deltalake.DeltaTable, *args: Any, **kwargs: Any) -> None:
        asked.append(lambda: write(deltalake.DeltaTable(table.table_uri), *args, **kwargs))
        raise OSError("no answer in time")

    def arrives_first(*args: Any, **kwargs: Any) -> None:
        asked.pop()()
        write(*args, **kwargs)

    sealed(spool, "a")
    agent, delivery = spool.agent, Delivery(str(lake), dict, spool)
    with monkeypatch.context() as patch:
        patch.setattr(bronze_table, "write_deltalake", on_its_way)
        with pytest.raises(CommitError):
            delivery.deliver_next()
        patch.setattr(bronze_table, "write_deltalake", arrives_first)
        assert delivery.deliver_next() == 1
    assert delivered(lake) == ["a"]
    assert spool.agent == agent


def test_commits_of_others_are_read_in_one_reload(
    spool: Spool, tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failed commits would read them one by one."""
    delivery, write, retries = Delivery(str(lake), dict, spool), Delivery._write, []
    spool.seal([full_batch(1)], b"")
    delivery.check()
    with Spool(tmp_path / "other.db", MIB) as other, monkeypatch.context() as patch:
        theirs = Delivery(str(lake), dict, other)

        def others_are_fast(own: Delivery, bronze: BronzeTable, *rest: Any) -> None:
            write(own, bronze, *rest)
            if own is delivery and bronze.table is tables.MEMBERS:
                for number in range(3):
                    other.seal([full_batch(number)], b"")
                    drain(theirs)

        patch.setattr(Delivery, "_write", others_are_fast)
        drain(delivery)
    for table in (tables.RUNS, tables.SCRAPES, tables.EVENTS):
        (last,) = deltalake.DeltaTable(f"{lake}/{table.path}").history(1)
        retries.append(last["operationMetrics"]["num_retries"])
    assert retries == [0, 0, 0]


@pytest.mark.parametrize("url", ["{}", "file://{}"])
def test_acknowledged_batches_are_on_the_disk(
    tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Every file and folder, including commits of a process that stopped right after."""
    brought, fsync = set[Path](), os.fsync

    def noted(file: int) -> None:
        fsync(file)
        brought.add(Path(f"/proc/self/fd/{file}").readlink())

    with Spool(tmp_path / "spool.db", MIB) as spool, monkeypatch.context() as patch:
        spool.seal([full_batch(1)], b"")
        patch.setattr(spool, "acknowledge", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            drain(Delivery(url.format(lake), dict, spool))
    with Spool(tmp_path / "spool.db", MIB) as spool, monkeypatch.context() as patch:
        patch.setattr(os, "fsync", noted)
        delivery = Delivery(url.format(lake), dict, spool)
        drain(delivery)
        everything = {lake, lake.parent, *lake.rglob("*")}
        assert brought >= everything
        spool.seal([full_batch(2)], b"")
        drain(delivery)
        new = set(lake.rglob("*")) - everything
        assert len([one for one in new if one.is_file()]) == 8, "a file and a commit a table"
        assert brought >= new


def test_failed_fsync_keeps_batches_in_the_spool(
    spool: Spool, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty_fsync(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    sealed(spool, "a")
    delivery = Delivery(str(lake), dict, spool)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", faulty_fsync)
        with pytest.raises(LakeError, match="Input/output error"):
            delivery.deliver_next()
        assert spool.depth().batches == 1
    drain(delivery)
    assert spool.depth().batches == 0
    assert delivered(lake) == ["a"]


def test_panic_of_delta_rs_is_a_lake_error(
    spool: Spool, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real panic of the same Rust raises a BaseException, which would end the thread."""

    def panics(*_: Any, **__: Any) -> None:
        Array([1], DataType.int64()).slice(10, 5)

    sealed(spool, "a")
    delivery = Delivery(str(lake), dict, spool)
    delivery.check()
    with monkeypatch.context() as patch:
        patch.setattr(bronze_table, "write_deltalake", panics)
        with pytest.raises(LakeError, match="internal error of delta-rs: the offset"):
            delivery.deliver_next()
    drain(delivery)
    assert delivered(lake) == ["a"]


_ENDS = [
    ("load", 6, "before"),
    ("_compare", 7, "after"),
    *(("_write", nth, "after") for nth in (1, 2, 3, 4)),
    ("_write", 1, "before"),
    ("_acknowledge", 1, "before"),
    ("_acknowledge", 1, "after"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("step", "nth", "when"), _ENDS)
def test_stop_at_any_step_delivers_exactly_once(
    tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch, step: str, nth: int, when: str
) -> None:
    """All four tables, two batches before the stop and one after, so that the group differs."""
    owner = BronzeTable if step == "load" else Delivery
    work, calls = getattr(owner, step), iter(range(1, 1000))

    def ends(*args: Any) -> Any:
        last = next(calls) == nth
        if last and when == "before":
            raise KeyboardInterrupt
        result = work(*args)
        if last:
            raise KeyboardInterrupt
        return result

    with Spool(tmp_path / "spool.db", MIB) as spool, monkeypatch.context() as patch:
        patch.setattr(owner, step, ends)
        for number in (1, 2):
            spool.seal([full_batch(number)], b"")
        with pytest.raises(KeyboardInterrupt):
            drain(Delivery(str(lake), dict, spool))
    with Spool(tmp_path / "spool.db", MIB) as spool:
        spool.seal([full_batch(3)], b"")
        drain(Delivery(str(lake), dict, spool))
        assert spool.is_empty()
    for table in tables.BRONZE:
        assert brought(lake, table) == [1, 2, 3], table.name


@pytest.mark.slow
def test_day_of_outage_is_few_commits_without_delay(spool: Spool, lake: Path) -> None:
    for number in range(1, 289):
        spool.seal([full_batch(number)], b"")
    delivery, rounds = Delivery(str(lake), dict, spool), 0
    while delivery.deliver_next():
        rounds += 1
        if rounds <= 3:
            spool.seal([full_batch(288 + rounds)], b"")  # a window that ends meanwhile
    assert rounds <= 10
    for table in tables.BRONZE:
        assert brought(lake, table) == list(range(1, 292)), "each row has the number of its batch"
        assert deltalake.DeltaTable(f"{lake}/{table.path}").version() == rounds


def test_rows_of_a_commit_are_sorted_nulls_first(spool: Spool, lake: Path) -> None:
    """Rows of two dates are in the order of their columns, not of their arrival."""
    for number in range(40):
        spool.seal([Batch({"runs": [run(number, topic) for topic in (None, "b", "a")]})], b"")
    drain(Delivery(str(lake), dict, spool))
    files = deltalake.DeltaTable(f"{lake}/bronze/runs").file_uris()
    assert len(files) == 2, "a file for each date"
    for file in files:
        columns = ", ".join(f'"{name}"' for name in tables.RUNS.sort_by if name != "start")
        rows = duckdb.read_parquet(file).project(f'{columns}, epoch_us("start")').fetchall()
        keys = [[(value is not None, value or 0) for value in row] for row in rows]
        assert len(rows) == 60
        assert keys == sorted(keys)


def test_removed_tables_are_created_only_if_accepted(spool: Spool, lake: Path) -> None:
    delivery = Delivery(str(lake), dict, spool)
    spool.seal([full_batch(1)], b"")
    drain(delivery)
    shutil.rmtree(lake)
    spool.seal([full_batch(2)], b"")
    with pytest.raises(LakeError, match="the table is missing"):
        delivery.deliver_next()
    for again in (delivery, Delivery(str(lake), dict, spool)):
        with pytest.raises(LakeError, match=r"members: the table is missing.* --new-lake"):
            again.deliver_next()
        assert not lake.exists()
    spool.forget_lake()
    drain(Delivery(str(lake), dict, spool))
    for table in tables.BRONZE:
        assert batches_of(lake, table) == [2]


def test_unmounted_lake_stops_delivery_until_mounted(tmp_path: Path, lake: Path) -> None:
    """The folder exists and is empty. Some tables can be on another file system."""
    away = tmp_path / "away"
    with Spool(tmp_path / "spool.db", MIB) as spool:
        spool.seal([full_batch(1)], b"")
        drain(Delivery(str(lake), dict, spool))
    with Spool(tmp_path / "spool.db", MIB) as spool:
        spool.seal([full_batch(2)], b"")
        delivery = Delivery(str(lake), dict, spool)
        for folder in (lake, lake / "bronze/events"):
            folder.rename(away)
            folder.mkdir()
            with pytest.raises(LakeError, match="check that its disk is mounted"):
                delivery.deliver_next()
            assert not list(folder.iterdir())
            folder.rmdir()
            away.rename(folder)
        drain(delivery)
    for table in tables.BRONZE:
        assert batches_of(lake, table) == [1, 2]


def test_recreated_larger_table_is_detected_within_an_hour(
    tmp_path: Path, spool: Spool, lake: Path
) -> None:
    now = 0.0
    delivery = Delivery(str(lake), dict, spool, monotonic=lambda: now)
    spool.seal([full_batch(1)], b"")
    drain(delivery)
    shutil.rmtree(lake)
    with Spool(tmp_path / "other.db", MIB) as other:
        theirs = Delivery(str(lake), dict, other)
        for number in range(3):
            other.seal([full_batch(number)], b"")
            drain(theirs)
    now = 4000.0
    spool.seal([full_batch(2)], b"")
    with pytest.raises(LakeError, match=r"another table has replaced the table.* --new-lake"):
        delivery.deliver_next()
    spool.forget_lake()
    drain(Delivery(str(lake), dict, spool))
    assert batches_of(lake, tables.RUNS) == [1, 2, 2, 3]


def test_agents_create_a_lake_at_the_same_time(tmp_path: Path, lake: Path) -> None:
    def agent(number: int) -> int:
        with Spool(tmp_path / f"spool-{number}.db", MIB) as spool:
            sealed(spool, str(number))
            delivery = Delivery(str(lake), dict, spool)
            barrier.wait(60)
            made = delivery.check()
            drain(delivery)
            return made

    barrier = threading.Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(agent, range(8)))
    assert sum(made) == 6, "each table was made once"
    assert delivered(lake) == sorted(map(str, range(8)))
    assert deltalake.DeltaTable(f"{lake}/bronze/runs").version() == 0


def test_restored_spool_gets_a_new_id(tmp_path: Path, lake: Path) -> None:
    path, copy = tmp_path / "spool.db", tmp_path / "copy.db"
    with Spool(path, MIB) as spool:
        sealed(spool, "a")
    shutil.copy(path, copy)
    with Spool(path, MIB) as spool:
        sealed(spool, "b", "c")
        drain(Delivery(str(lake), dict, spool))

    with Spool(copy, MIB) as restored:
        agent = restored.agent
        sealed(restored, "d")  # before the first request to the lake
        drain(Delivery(str(lake), dict, restored))
        assert restored.agent != agent
        sealed(restored, "e")
        drain(Delivery(str(lake), dict, restored))
    assert delivered(lake) == ["a", "b", "c", "e"], "d can be in the original"


def test_another_lake_gets_the_member_sets_again(spool: Spool, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for _ in range(2):
        spool.seal([with_set("s")], b"")
        drain(Delivery(str(one), dict, spool))
    assert batches_of(one, tables.MEMBERS) == [1], "once is enough for a lake"
    shutil.rmtree(one)
    spool.forget_lake()
    spool.seal([with_set("s")], b"")
    drain(Delivery(str(one), dict, spool))
    assert batches_of(one, tables.MEMBERS) == [3], "a lake created again at the same path"
    spool.seal([with_set("s")], b"")
    drain(Delivery(str(two), dict, spool))
    assert batches_of(two, tables.MEMBERS) == [4]


def test_same_set_of_another_cluster_is_written(spool: Spool, lake: Path) -> None:
    """Readers look up sets by cluster, so equal sets of two clusters are two rows."""
    for cluster in ("c", "d", "c"):
        spool.seal([with_set("s", cluster)], b"")
        drain(Delivery(str(lake), dict, spool))
    assert batches_of(lake, tables.MEMBERS) == [1, 2]


def test_set_is_sent_with_each_batch_until_delivered(spool: Spool, lake: Path) -> None:
    """The first batch with the set can be dropped or refused."""
    delivery = Delivery(str(lake), dict, spool)
    delivery.check()
    spool.seal([with_set("s")], b"")
    spool.seal([with_set("s")], b"")
    spool.refuse(1, "for the test")
    drain(delivery)
    assert batches_of(lake, tables.MEMBERS) == [2]
    assert batches_of(lake, tables.RUNS) == [2]


def with_set(key: str, cluster: str = "c") -> Batch:
    one = list(run(1, "t", key))
    one[1] = cluster
    return Batch({"members": [(key, cluster, "partitions", "t", (1, 2), None)], "runs": [(*one,)]})


def test_check_returns_the_number_of_created_tables(spool: Spool, lake: Path) -> None:
    assert Delivery(str(lake), dict, spool).check() == 6
    assert Delivery(str(lake), dict, spool).check() == 0


def test_comments_are_in_tables_and_not_in_files(spool: Spool, lake: Path) -> None:
    sealed(spool, "a")
    drain(Delivery(str(lake), dict, spool))
    for table in tables.BRONZE:
        delta = deltalake.DeltaTable(f"{lake}/{table.path}")
        found = {one.name: one.metadata for one in delta.schema().fields}
        assert found == {one.name: {"comment": one.comment} for one in table.columns}
        for file in delta.file_uris():
            assert b"comment" not in Path(file).read_bytes()


def test_table_with_another_schema_is_refused(spool: Spool, lake: Path) -> None:
    other = tables.Table("bronze", "events", "of another tool", (tables.Column("x", "string", ""),))
    deltalake.DeltaTable.create(f"{lake}/bronze/events", schema=arrow.schema(other))
    sealed(spool, "a")
    why = r"bronze/events: another version or tool created it with other columns .*\bx\b"
    with pytest.raises(LakeSchemaError, match=why):
        Delivery(str(lake), dict, spool).deliver_next()
    assert spool.depth().batches == 1


@pytest.mark.parametrize("feature", ["clustering", "rowTracking", "ofTheFuture"])
def test_unsupported_protocol_is_refused(spool: Spool, lake: Path, feature: str) -> None:
    Delivery(str(lake), dict, spool).check()
    log = lake / "bronze/runs/_delta_log/00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            features = ["changeDataFeed", feature]
            action["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 7}
            action["protocol"]["writerFeatures"] = features
    log.write_text("\n".join(map(json.dumps, actions)))
    sealed(spool, "a")
    with pytest.raises(
        LakeSchemaError, match=rf"bronze/runs: .* Delta features .* \({feature}\); drop"
    ):
        Delivery(str(lake), dict, spool).deliver_next()
    assert spool.depth().batches == 1


def test_unwritable_lake_is_a_one_line_error(spool: Spool, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(LakeError, match=r"check lake\.path") as caught:
        Delivery(str(tmp_path / "file"), dict, spool).check()
    assert "\n" not in str(caught.value)


def overflowing(number: int) -> Batch:
    """Return a batch with a scrape of more MBeans than fit into a bigint."""
    batch = full_batch(number)
    (row,) = batch.rows["scrapes"]
    batch.rows["scrapes"] = [(*row[:8], 1 << 63, *row[9:])]
    return batch


class FakeRecorder:
    """Keeps the reports of a delivery."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, str, str]] = []

    def report(self, *what: str) -> None:
        self.reported.append(what)  # type: ignore[arg-type]

    def refused(self, batches: Dropped, why: str) -> None:
        self.reported.append(("batch_refused", f"{batches.first}..{batches.last}", why))


@pytest.mark.parametrize("fault", ["overflow", "null", "damage"])
def test_unconvertible_batch_is_set_aside(tmp_path: Path, lake: Path, fault: str) -> None:
    path = tmp_path / "spool.db"
    with Spool(path, MIB) as spool:
        bad = overflowing(2) if fault == "overflow" else full_batch(2)
        if fault == "null":
            bad.rows["events"] = [(*event("2")[:4], None, *event("2")[5:])]
        for batch in (full_batch(1), bad, full_batch(3)):
            spool.seal([batch], b"")
        if fault == "damage":
            with closing(sqlite3.connect(path)) as db:
                db.execute("UPDATE batches SET rows = x'00' WHERE number = 2")
                db.commit()
        recorder = FakeRecorder()
        drain(Delivery(str(lake), dict, spool, recorder))  # type: ignore[arg-type]
        ((kind, number, why),) = recorder.reported
        assert (kind, number) == ("batch_refused", "2..2")
        assert why
        assert (spool.depth().batches, spool.depth().refused) == (1, 1)
        assert spool.is_empty()
    for table in tables.BRONZE:
        assert brought(lake, table) == [1, 3], table.name


def test_later_batches_of_a_refused_seal_are_refused(spool: Spool, lake: Path) -> None:
    """Its scrapes would cover the time of the refused runs."""
    spool.seal([full_batch(1), overflowing(2), full_batch(3)], b"")
    spool.seal([full_batch(4)], b"")
    drain(Delivery(str(lake), dict, spool))
    assert spool.depth().refused == 2
    assert brought(lake, tables.SCRAPES) == [1, 4]


def test_lost_commits_are_reported_once(spool: Spool, lake: Path) -> None:
    """A store lets a second writer overwrite a version, or a bucket was restored."""
    recorder = FakeRecorder()
    delivery = Delivery(str(lake), dict, spool, recorder)  # type: ignore[arg-type]
    spool.seal([with_set("s")], b"")
    drain(delivery)
    copy = shutil.copytree(lake, lake.with_name("copy"))
    for _ in range(2):
        spool.seal([with_set("s"), full_batch(7)], b"")
        drain(delivery)
    for name in ("runs", "members"):
        shutil.rmtree(lake / "bronze" / name)
        shutil.copytree(copy / "bronze" / name, lake / "bronze" / name)
    delivery = Delivery(str(lake), dict, spool, recorder)  # type: ignore[arg-type]
    for _ in range(2):
        spool.seal([with_set("s")], b"")
        drain(delivery)
    assert recorder.reported == [
        ("lake_lost_commits", "members 3", "members 1"),
        ("lake_lost_commits", "runs 5", "runs 1"),
    ]
    assert batches_of(lake, tables.RUNS) == [1, 6, 7]
    assert batches_of(lake, tables.MEMBERS) == [1, 6], "it may have lost the set"


@pytest.mark.slow
def test_many_rows_are_delivered_in_parts_scrapes_last(spool: Spool, lake: Path) -> None:
    """One batch would need more memory than an agent may use, at every attempt."""
    runs = [
        Run(Series("m", "t", at), at, at + 1, 0, 0, 1.0, 1, 1, None, ()) for at in range(50_000)
    ]
    account = AttemptSpan("f", "ok", 0, 50_001, 1, 1, scrapes=1)
    sealed = SealedRows(runs, [account], [Event(5, "k", Series(""))])
    spool.seal(batches_of_sealed([(sealed, Origin("c", "s", "h"))]), b"")
    assert [sum(map(len, one.batch.rows.values())) for one in spool.waiting(1 << 40)] == [
        20_000, 20_000, 10_002,
    ]  # fmt: skip
    delivery, rounds = Delivery(str(lake), dict, spool), 0
    while delivery.deliver_next():
        rounds += 1
        accounts = deltalake.DeltaTable(f"{lake}/bronze/scrapes").version()
        assert accounts == (rounds == 3), "a scrape is written after all its runs"
    assert rounds == 3
    assert len(batches_of(lake, tables.RUNS)) == 50_000
    assert batches_of(lake, tables.SCRAPES) == [3]


def defined(lake: Path) -> list[tuple[Any, ...]]:
    table = deltalake.DeltaTable(f"{lake}/{tables.METRIC_DEFINITIONS.path}")
    rows = duckdb.read_parquet(table.file_uris(), hive_partitioning=False)
    return rows.project("metric, family, memory_us").order("metric").fetchall()


def traits(lake: Path) -> list[tuple[Any, ...]]:
    table = deltalake.DeltaTable(f"{lake}/{tables.METRIC_TRAITS.path}")
    rows = duckdb.read_parquet(table.file_uris(), hive_partitioning=False)
    return rows.project("metric, family, trait, value").order("ALL").fetchall()


def test_definitions_are_written_once_per_catalogue(tmp_path: Path, lake: Path) -> None:
    shipped = catalogue.load()
    (quotas,) = (one for one in shipped.families if one.name == "quotas")
    less = catalogue.Catalogue((quotas,))
    rows, commits = [], []
    for name, own in (("one", shipped), ("two", shipped), ("two", less), ("one", less)):
        with Spool(tmp_path / f"{name}.db", MIB) as spool:
            sealed(spool, "a")
            drain(Delivery(str(lake), dict, spool, catalogue=partial(copy, own)))
        rows.append(len(defined(lake)))
        table = deltalake.DeltaTable(f"{lake}/{tables.METRIC_DEFINITIONS.path}")
        commits.append(table.version())
    whole = len([*shipped.definitions()])
    assert rows == [whole, whole, whole + len(quotas.metrics), whole + len(quotas.metrics)]
    assert commits == [1, 1, 2, 2]
    throttled = ("kafka.client.fetch.throttle_time", "quotas", 60_000_000)
    assert defined(lake).count(throttled) == 2
    reported = ("kafka.client.controller_mutation.throttle_time", "quotas", "reported_by")
    assert traits(lake).count((*reported, "controllers")) == 2
    assert len(traits(lake)) == len([*shipped.traits()]) + 1


def test_new_catalogue_is_written_by_a_running_delivery(spool: Spool, lake: Path) -> None:
    in_force = catalogue.Catalogue(())
    delivery = Delivery(str(lake), dict, spool, catalogue=lambda: in_force)
    sealed(spool, "a")
    drain(delivery)
    in_force = catalogue.load()
    sealed(spool, "b")
    drain(delivery)
    assert len(defined(lake)) == len([*in_force.definitions()])
    assert len(traits(lake)) == len([*in_force.traits()])
    assert delivered(lake) == ["a", "b"]


def test_lake_of_an_older_agent_gets_the_table_of_traits(spool: Spool, lake: Path) -> None:
    sealed(spool, "a")
    drain(Delivery(str(lake), dict, spool, catalogue=catalogue.load))
    shutil.rmtree(lake / tables.METRIC_TRAITS.path)
    spool.remember(f"table {tables.METRIC_TRAITS.name}", "")  # an older agent does not know it
    sealed(spool, "b")
    drain(Delivery(str(lake), dict, spool, catalogue=catalogue.load))
    assert traits(lake)
    assert delivered(lake) == ["a", "b"]


def test_catalogue_without_traits_commits_no_rows(spool: Spool, lake: Path) -> None:
    family = catalogue.load().family("min_isr")
    for name in ("a", "b"):
        sealed(spool, name)
        delivery = Delivery(
            str(lake), dict, spool, catalogue=lambda: catalogue.Catalogue((family,))
        )
        drain(delivery)
    assert deltalake.DeltaTable(f"{lake}/{tables.METRIC_TRAITS.path}").version() == 0


def test_open_requests_options_once(lake: Path) -> None:
    """They are compared and used. A second request can return other vended credentials."""
    asked = []
    bronze = BronzeTable(str(lake), tables.RUNS, lambda: asked.append("") or {})
    bronze.load()
    assert bronze.created
    assert len(asked) == 1
    bronze.forget()
    bronze.load()
    assert len(asked) == 2


def test_failure_reopens_definitions_with_new_options(
    spool: Spool, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, opened = list[str](), BronzeTable._open

    def open_(bronze: BronzeTable, options: dict[str, str]) -> deltalake.DeltaTable:
        asked.append(bronze.table.name)
        return opened(bronze, options)

    def refuse(*_: object) -> None:
        raise LakeError("the credentials have expired")

    monkeypatch.setattr(BronzeTable, "_open", open_)
    delivery = Delivery(str(lake), dict, spool, catalogue=catalogue.load)
    sealed(spool, "a")
    with monkeypatch.context() as patch:
        patch.setattr(BronzeTable, "append", refuse)
        with pytest.raises(LakeError, match="have expired"):
            delivery.deliver_next()
    asked.clear()
    drain(delivery)
    assert tables.METRIC_DEFINITIONS.name in asked
    assert delivered(lake) == ["a"]
