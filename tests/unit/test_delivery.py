"""Delivery into real Delta tables: every batch once, whatever happens at the commit."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import deltalake
import duckdb
import pytest

from collector import delivery as delivery_module
from collector.batches import Batch
from collector.delivery import Delivery
from collector.errors import CommitError, LakeError, LakeSchemaError
from collector.spool import Spool
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MIB = 1 << 20


def event(detail: str) -> tuple[Any, ...]:
    subject = (None, None, None, None, None)
    return (20_000, "c", "broker-1", 1_728_000_000_000_000, "agent_start", *subject, None, detail)


def sealed(spool: Spool, *details: str) -> None:
    for detail in details:
        spool.seal(Batch({"events": [event(detail)], "members": []}), b"")


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
    drain(Delivery(str(lake), {}, spool))
    assert delivered(lake) == ["a", "b", "c"]
    assert spool.oldest() is None
    version = deltalake.DeltaTable(f"{lake}/bronze/events").transaction_version(
        f"{spool.agent}/events"
    )
    assert version == 3


def test_a_crash_after_the_commit_and_before_the_acknowledgement_doubles_nothing(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Spool(tmp_path / "spool.db", MIB) as spool, monkeypatch.context() as patch:
        sealed(spool, "a")
        patch.setattr(spool, "acknowledge", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            drain(Delivery(str(lake), {}, spool))
    with Spool(tmp_path / "spool.db", MIB) as spool:
        drain(Delivery(str(lake), {}, spool))
    assert delivered(lake) == ["a"]


def test_a_commit_whose_answer_is_lost_is_looked_up(
    spool: Spool, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = delivery_module.write_deltalake

    def lands_and_fails(*args: Any, **kwargs: Any) -> None:
        write(*args, **kwargs)
        raise OSError("the answer was lost")

    sealed(spool, "a", "b")
    with monkeypatch.context() as patch:
        patch.setattr(delivery_module, "write_deltalake", lands_and_fails)
        drain(Delivery(str(lake), {}, spool))
    assert delivered(lake) == ["a", "b"]


def test_a_commit_that_did_not_land_stays_in_the_spool(
    spool: Spool, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise OSError("No space left on device")

    sealed(spool, "a")
    delivery = Delivery(str(lake), {}, spool)
    with monkeypatch.context() as patch:
        patch.setattr(delivery_module, "write_deltalake", fails)
        with pytest.raises(CommitError, match="batch 1: No space left on device"):
            delivery.deliver_next()
    drain(delivery)
    assert delivered(lake) == ["a"]


def test_two_processes_with_one_identity_cannot_both_land(
    spool: Spool, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second loaded the table before the first committed: its commit must fail, not double."""
    sealed(spool, "a")
    first, second = Delivery(str(lake), {}, spool), Delivery(str(lake), {}, spool)
    second.check()
    table = second._tables["events"]
    with monkeypatch.context() as patch:
        patch.setattr(spool, "acknowledge", lambda _: None)
        first.deliver_next()
        patch.setattr(type(second), "_load", lambda _self, _table: table)
        with pytest.raises(CommitError):
            second.deliver_next()
    drain(second)
    assert delivered(lake) == ["a"]


def test_a_spool_restored_from_an_old_copy_gets_a_new_identity(tmp_path: Path, lake: Path) -> None:
    path, copy = tmp_path / "spool.db", tmp_path / "copy.db"
    with Spool(path, MIB) as spool:
        sealed(spool, "a")
    shutil.copy(path, copy)
    with Spool(path, MIB) as spool:
        sealed(spool, "b", "c")
        drain(Delivery(str(lake), {}, spool))

    with Spool(copy, MIB) as restored:
        agent = restored.agent
        sealed(restored, "d", "e")  # before the lake was asked for the first time
        drain(Delivery(str(lake), {}, restored))
        assert restored.agent != agent
    assert delivered(lake) == ["a", "b", "c", "d", "e"]


def test_another_lake_gets_the_member_sets_again(spool: Spool, tmp_path: Path) -> None:
    member = ("hash", "c", "partitions", "t", (1, 2), None)
    batch = Batch({"events": [], "members": [member]})
    drained = Delivery(f"{tmp_path}/one", {}, spool)
    spool.seal(batch, b"")
    drain(drained)
    assert spool.known_sets() == {"hash"}
    Delivery(f"{tmp_path}/one", {}, spool).check()
    assert spool.known_sets() == {"hash"}
    shutil.rmtree(tmp_path / "one")
    Delivery(f"{tmp_path}/one", {}, spool).check()
    assert spool.known_sets() == set(), "a lake made anew at the same place"
    spool.seal(batch, b"")
    Delivery(f"{tmp_path}/two", {}, spool)
    assert spool.known_sets() == set()


def test_a_check_says_how_many_tables_it_made(spool: Spool, lake: Path) -> None:
    assert Delivery(str(lake), {}, spool).check() == 4
    assert Delivery(str(lake), {}, spool).check() == 0


def test_a_table_of_another_schema_is_refused_by_name(spool: Spool, lake: Path) -> None:
    other = tables.Table("bronze", "events", "of another tool", (tables.Column("x", "string", ""),))
    deltalake.DeltaTable.create(f"{lake}/bronze/events", schema=delivery_module.arrow.schema(other))
    sealed(spool, "a")
    with pytest.raises(LakeSchemaError, match=r"bronze/events: it has another schema .*\bx\b"):
        Delivery(str(lake), {}, spool).deliver_next()
    assert spool.oldest() is not None


def test_a_lake_that_cannot_be_written_is_one_clear_line(spool: Spool, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(LakeError, match=r"check lake\.path") as caught:
        Delivery(str(tmp_path / "file"), {}, spool).check()
    assert "\n" not in str(caught.value)
