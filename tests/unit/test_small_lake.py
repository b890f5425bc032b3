"""The small lake of the benchmarks: a function of its seed, with something of everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from deltalake import DeltaTable

from bench import small_lake
from bench.small_lake import Written
from bench.small_world import World
from collector import catalogue
from lakehouse import tables
from lakehouse.core.periods import micros

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

Lake = tuple["Path", Written]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    root = tmp_path_factory.mktemp("small") / "lake"
    return root, small_lake.write(root)


def rows(root: Path, table: tables.Table, columns: str = "*", where: str = "true") -> list[Any]:
    delta = DeltaTable(str(root / table.path))
    files = [uri.removeprefix("file://") for uri in delta.file_uris()]
    read = duckdb.read_parquet(files, hive_partitioning=True)
    return sorted(read.filter(where).select(columns).fetchall(), key=repr)


def test_it_is_as_large_as_said(lake: Lake) -> None:
    root, written = lake
    assert abs(written.runs - 26_900) < 0.05 * 26_900
    assert len(rows(root, tables.RUNS)) == written.runs
    sources = {one for (one,) in rows(root, tables.RUNS, "source")}
    assert sources == {"broker-1", "broker-2", "broker-3", "controller-4"}


def delivered(world: World) -> list[Any]:
    """Return what the agent of a broker delivers."""
    agent = small_lake._Agent(world, small_lake.BROKERS[0], micros(small_lake.START))
    return [batch.rows for batch in agent.batches()]


def test_rows_follow_from_the_seed_alone() -> None:
    first = delivered(World())
    assert delivered(World()) == first
    assert delivered(World(7)) != first


def test_every_family_of_brokers_and_controllers_is_read(lake: Lake) -> None:
    wanted = {
        one.name
        for one in catalogue.load().families
        if {"broker", "controller"} & {*one.roles} and (one.enabled or one.name == "log_offsets")
    }
    assert {one for (one,) in rows(lake[0], tables.SCRAPES, "family")} == wanted
    outcomes = {one for (one,) in rows(lake[0], tables.SCRAPES, "outcome")}
    assert outcomes == {"ok", "refused", "timeout"}


@pytest.mark.parametrize(
    "what",
    [
        "metric = 'kafka.partition.under_min_isr' AND value > 0",
        "metric = 'kafka.partition.leaderless' AND value > 0",
        "metric = 'kafka.client.produce.throttle_time' AND value > 0",
        "metric = 'kafka.quota.produce.byte_rate' AND value > 0",
        "metric = 'kafka.group.non_consumed.high' AND value > 0",
        "metric = 'kafka.topic.remote_copy_lag.bytes' AND value > 0",
        "metric = 'kafka.cluster.node.fenced' AND value > 0",
        "metric = 'kafka.controller.offline_partitions' AND value > 0",
        "members IS NOT NULL",
        "list_contains(flags, 'gap')",
        "list_contains(flags, 'increase')",
    ],
)
def test_something_of_everything_happens(lake: Lake, what: str) -> None:
    assert rows(lake[0], tables.RUNS, where=what)


def test_events_tell_of_it(lake: Lake) -> None:
    kinds = {one for (one,) in rows(lake[0], tables.EVENTS, "kind")}
    assert kinds == {"agent_start", "leader_change", "source_restart"}
