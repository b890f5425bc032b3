"""Delivery into real Delta tables: every batch once, whatever happens at the commit."""

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
from collector.encoding.attempts import AttemptSpan
from collector.encoding.bronze_rows import Batch, Origin, batches_of as batches_of_sealed
from collector.encoding.closed_runs import Run
from collector.encoding.encoder import SealedRows
from collector.errors import CommitError, LakeError, LakeSchemaError
from collector.model import Event, Series
from collector.spool.spool import Spool
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.spool.batch_tables import Dropped

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
    """A row for each of the four tables."""
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
    """The batch numbers of a table's rows, which have one row a batch."""
    files = deltalake.DeltaTable(f"{lake}/{table.path}").file_uris()
    rows = duckdb.read_parquet(files, hive_partitioning=False)
    return sorted(row[0] for row in rows.project("batch").fetchall())


def brought(lake: Path, table: tables.Table) -> list[int]:
    """The batches of which a table has the row; a set may stand there more than once."""
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


def test_batches_arrive_in_order_and_are_forgotten(spool: Spool, lake: Path) -> None:
    sealed(spool, "a", "b", "c")
    drain(Delivery(str(lake), dict, spool))
    assert delivered(lake) == ["a", "b", "c"]
    assert spool.waiting(0) == []
    version = deltalake.DeltaTable(f"{lake}/bronze/events").transaction_version(
        f"{spool.agent}/events"
    )
    assert version == 3


def test_a_crash_after_the_commit_and_before_the_acknowledgement_doubles_nothing(
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


def test_a_commit_whose_answer_is_lost_is_looked_up(
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


def test_a_commit_that_did_not_land_stays_in_the_spool(
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


def test_a_batch_that_is_dropped_just_before_it_is_written_is_not_told_twice(
    tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it leaves to the next batch is in that one, and not only in what was read before."""
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
def test_of_two_live_copies_of_a_spool_one_begins_anew(
    tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """One commits when the other has compared: what bears their number then is another's."""
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


def test_a_commit_of_our_own_that_lands_late_is_our_own(
    spool: Spool, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that was given up arrives when the next attempt has compared."""
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


def test_what_others_committed_meanwhile_is_read_at_once(
    spool: Spool, tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not commit by commit as it tries to put its own after them."""
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
def test_what_is_acknowledged_is_on_the_disk_of_a_lake_in_a_folder(
    tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Each file and each folder, also of what a process committed that died right after."""
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


def test_what_the_disk_of_the_lake_does_not_take_stays_in_the_spool(
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


def test_a_panic_within_delta_rs_is_an_error_of_the_lake(
    spool: Spool, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real one of the same Rust: what it raises is no Exception, and would end the thread."""

    def panics(*_: Any, **__: Any) -> None:
        Array([1], DataType.int64()).slice(10, 5)

    sealed(spool, "a")
    delivery = Delivery(str(lake), dict, spool)
    delivery.check()
    with monkeypatch.context() as patch:
        patch.setattr(bronze_table, "write_deltalake", panics)
        with pytest.raises(LakeError, match="delta-rs has a fault of its own: the offset"):
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
def test_an_end_at_any_step_loses_and_doubles_nothing(
    tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch, step: str, nth: int, when: str
) -> None:
    """All four tables, two batches before it and one after; the group is another one then."""
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
def test_a_day_of_outage_is_a_few_commits_and_does_not_keep_new_data_waiting(
    spool: Spool, lake: Path
) -> None:
    for number in range(1, 289):
        spool.seal([full_batch(number)], b"")
    delivery, rounds = Delivery(str(lake), dict, spool), 0
    while delivery.deliver_next():
        rounds += 1
        if rounds <= 3:
            spool.seal([full_batch(288 + rounds)], b"")  # a window that ends meanwhile
    assert rounds <= 10
    for table in tables.BRONZE:
        assert brought(lake, table) == list(range(1, 292)), "each row bears its own batch"
        assert deltalake.DeltaTable(f"{lake}/{table.path}").version() == rounds


def test_the_rows_of_a_commit_lie_sorted_with_nulls_first(spool: Spool, lake: Path) -> None:
    """Of two dates, in the order of what they are of and not of when they came."""
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


def test_tables_removed_under_the_agent_are_made_anew_only_when_that_is_accepted(
    spool: Spool, lake: Path
) -> None:
    delivery = Delivery(str(lake), dict, spool)
    spool.seal([full_batch(1)], b"")
    drain(delivery)
    shutil.rmtree(lake)
    spool.seal([full_batch(2)], b"")
    with pytest.raises(LakeError, match="it is not there"):
        delivery.deliver_next()
    for again in (delivery, Delivery(str(lake), dict, spool)):
        with pytest.raises(LakeError, match=r"members: it is not there.* --new-lake"):
            again.deliver_next()
        assert not lake.exists()
    spool.forget_lake()
    drain(Delivery(str(lake), dict, spool))
    for table in tables.BRONZE:
        assert batches_of(lake, table) == [2]


def test_a_lake_whose_file_system_is_away_waits_for_it(tmp_path: Path, lake: Path) -> None:
    """Its folder is there, and empty; some of its tables may be of another file system."""
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
            with pytest.raises(LakeError, match="is its disk mounted"):
                delivery.deliver_next()
            assert not list(folder.iterdir())
            folder.rmdir()
            away.rename(folder)
        drain(delivery)
    for table in tables.BRONZE:
        assert batches_of(lake, table) == [1, 2]


def test_a_table_made_anew_that_has_grown_is_noticed_within_an_hour(
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
    with pytest.raises(LakeError, match=r"another in its place.* --new-lake"):
        delivery.deliver_next()
    spool.forget_lake()
    drain(Delivery(str(lake), dict, spool))
    assert batches_of(lake, tables.RUNS) == [1, 2, 2, 3]


def test_agents_that_make_a_lake_at_the_same_time_do_not_disturb_each_other(
    tmp_path: Path, lake: Path
) -> None:
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


def test_a_spool_restored_from_an_old_copy_begins_anew(tmp_path: Path, lake: Path) -> None:
    path, copy = tmp_path / "spool.db", tmp_path / "copy.db"
    with Spool(path, MIB) as spool:
        sealed(spool, "a")
    shutil.copy(path, copy)
    with Spool(path, MIB) as spool:
        sealed(spool, "b", "c")
        drain(Delivery(str(lake), dict, spool))

    with Spool(copy, MIB) as restored:
        agent = restored.agent
        sealed(restored, "d")  # before the lake was asked for the first time
        drain(Delivery(str(lake), dict, restored))
        assert restored.agent != agent
        sealed(restored, "e")
        drain(Delivery(str(lake), dict, restored))
    assert delivered(lake) == ["a", "b", "c", "e"], "nobody knows whether d was in the original"


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
    assert batches_of(one, tables.MEMBERS) == [3], "a lake made anew at the same place"
    spool.seal([with_set("s")], b"")
    drain(Delivery(str(two), dict, spool))
    assert batches_of(two, tables.MEMBERS) == [4]


def test_a_set_of_another_cluster_is_another_set(spool: Spool, lake: Path) -> None:
    """The same partitions of a topic of the same name: readers look for them by cluster, too."""
    for cluster in ("c", "d", "c"):
        spool.seal([with_set("s", cluster)], b"")
        drain(Delivery(str(lake), dict, spool))
    assert batches_of(lake, tables.MEMBERS) == [1, 2]


def test_a_set_goes_with_each_batch_until_one_has_landed(spool: Spool, lake: Path) -> None:
    """A batch that brought it first may be dropped or refused."""
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


def test_a_check_says_how_many_tables_it_made(spool: Spool, lake: Path) -> None:
    assert Delivery(str(lake), dict, spool).check() == 6
    assert Delivery(str(lake), dict, spool).check() == 0


def test_tables_are_made_with_comments_and_files_without(spool: Spool, lake: Path) -> None:
    sealed(spool, "a")
    drain(Delivery(str(lake), dict, spool))
    for table in tables.BRONZE:
        delta = deltalake.DeltaTable(f"{lake}/{table.path}")
        found = {one.name: one.metadata for one in delta.schema().fields}
        assert found == {one.name: {"comment": one.comment} for one in table.columns}
        for file in delta.file_uris():
            assert b"comment" not in Path(file).read_bytes()


def test_a_table_of_another_schema_is_refused_by_name(spool: Spool, lake: Path) -> None:
    other = tables.Table("bronze", "events", "of another tool", (tables.Column("x", "string", ""),))
    deltalake.DeltaTable.create(f"{lake}/bronze/events", schema=arrow.schema(other))
    sealed(spool, "a")
    with pytest.raises(LakeSchemaError, match=r"bronze/events: it has another schema .*\bx\b"):
        Delivery(str(lake), dict, spool).deliver_next()
    assert spool.depth().batches == 1


@pytest.mark.parametrize("feature", ["clustering", "rowTracking", "ofTheFuture"])
def test_a_protocol_that_agents_cannot_write_is_refused_by_name(
    spool: Spool, lake: Path, feature: str
) -> None:
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
    with pytest.raises(LakeSchemaError, match=rf"bronze/runs: .* features {feature}, which"):
        Delivery(str(lake), dict, spool).deliver_next()
    assert spool.depth().batches == 1


def test_a_lake_that_cannot_be_written_is_one_clear_line(spool: Spool, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(LakeError, match=r"check lake\.path") as caught:
        Delivery(str(tmp_path / "file"), dict, spool).check()
    assert "\n" not in str(caught.value)


def overflowing(number: int) -> Batch:
    """An account of more beans than a bigint holds."""
    batch = full_batch(number)
    (row,) = batch.rows["scrapes"]
    batch.rows["scrapes"] = [(*row[:8], 1 << 63, *row[9:])]
    return batch


class FakeRecorder:
    """Notes what a delivery reports."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, str, str]] = []

    def report(self, *what: str) -> None:
        self.reported.append(what)  # type: ignore[arg-type]

    def refused(self, batches: Dropped, why: str) -> None:
        self.reported.append(("batch_refused", f"{batches.first}..{batches.last}", why))


@pytest.mark.parametrize("fault", ["overflow", "null", "damage"])
def test_a_batch_that_cannot_be_converted_is_put_aside_and_blocks_nobody(
    tmp_path: Path, lake: Path, fault: str
) -> None:
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


def test_what_was_sealed_with_a_refused_batch_and_comes_later_is_not_told_either(
    spool: Spool, lake: Path
) -> None:
    """Its accounts would say that the time of the others' runs is known."""
    spool.seal([full_batch(1), overflowing(2), full_batch(3)], b"")
    spool.seal([full_batch(4)], b"")
    drain(Delivery(str(lake), dict, spool))
    assert spool.depth().refused == 2
    assert brought(lake, tables.SCRAPES) == [1, 4]


def test_commits_that_a_lake_has_lost_are_said_once_and_delivery_goes_on(
    spool: Spool, lake: Path
) -> None:
    """As a store does that lets a second writer overwrite a version, or a bucket put back."""
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
def test_many_rows_are_delivered_in_parts_and_accounts_last(spool: Spool, lake: Path) -> None:
    """As one batch they took more memory than an agent may have, again and again."""
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
        assert accounts == (rounds == 3), "an account says that all its runs are there"
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


def test_what_metrics_mean_is_written_once_for_each_catalogue(tmp_path: Path, lake: Path) -> None:
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
    whole = len(shipped.metrics)
    assert rows == [whole, whole, whole + len(quotas.metrics), whole + len(quotas.metrics)]
    assert commits == [1, 1, 2, 2]
    throttled = ("kafka.client.fetch.throttle_time", "quotas", 60_000_000)
    assert defined(lake).count(throttled) == 2
    reported = ("kafka.client.controller_mutation.throttle_time", "quotas", "reported_by")
    assert traits(lake).count((*reported, "controllers")) == 2
    assert len(traits(lake)) == len([*shipped.traits()]) + 1


def test_a_new_catalogue_is_written_by_the_same_delivery(spool: Spool, lake: Path) -> None:
    in_force = catalogue.Catalogue(())
    delivery = Delivery(str(lake), dict, spool, catalogue=lambda: in_force)
    sealed(spool, "a")
    drain(delivery)
    in_force = catalogue.load()
    sealed(spool, "b")
    drain(delivery)
    assert len(defined(lake)) == len(in_force.metrics)
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


def test_opening_a_table_asks_for_its_options_once(lake: Path) -> None:
    """They are compared and used: vended ones may be others a moment later."""
    asked = []
    bronze = BronzeTable(str(lake), tables.RUNS, lambda: asked.append("") or {})
    bronze.load()
    assert bronze.created
    assert len(asked) == 1
    bronze.forget()
    bronze.load()
    assert len(asked) == 2


def test_after_a_failure_the_table_of_definitions_is_opened_with_new_options(
    spool: Spool, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, opened = list[str](), BronzeTable._open

    def open_(bronze: BronzeTable, options: dict[str, str]) -> deltalake.DeltaTable:
        asked.append(bronze.table.name)
        return opened(bronze, options)

    def refuse(*_: object) -> None:
        raise LakeError("its credentials are too old")

    monkeypatch.setattr(BronzeTable, "_open", open_)
    delivery = Delivery(str(lake), dict, spool, catalogue=catalogue.load)
    sealed(spool, "a")
    with monkeypatch.context() as patch:
        patch.setattr(BronzeTable, "append", refuse)
        with pytest.raises(LakeError, match="too old"):
            delivery.deliver_next()
    asked.clear()
    drain(delivery)
    assert tables.METRIC_DEFINITIONS.name in asked
    assert delivered(lake) == ["a"]
