"""Tables that went or are others: delivery stops, the spool keeps the batches, an event says so."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import deltalake
import duckdb
import pytest

from collector import catalogue
from collector.agent.reload import Discovery
from collector.cli import check, run
from collector.config.loader import load
from collector.delivery.delivery import Delivery
from collector.errors import JmxlakeError, LakeReplacedError
from collector.model import Answer, Identity, Reading, Scrape, Series
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

S = 1_000_000
T0 = 1_700_000_040 * S
TABLES = (*tables.BRONZE, *tables.CATALOGUES)
REFUSED = r"bronze/\w+: (the table is missing|another table has replaced).* run --new-lake"
STARTED = [pytest.param(False, id="running"), pytest.param(True, id="restarted")]


class Agent:
    """What of an agent meets the lake: spool, recorder and delivery."""

    def __init__(self, folder: Path, name: str = "broker-1") -> None:
        self.name, self.lake = name, folder / "lake"
        self.spool_path, self._second = folder / f"{name}.db", 0
        self.start()

    def start(self) -> None:
        self.spool = Spool(self.spool_path, 1 << 20)
        self._recorder = Recorder(self.spool, Scope({self.name: "c"}, {}, "hash"), 10 * S)
        self.delivery = Delivery(
            str(self.lake), dict, self.spool, self._recorder, catalogue=catalogue.load
        )

    def restart(self) -> None:
        self.spool.close()
        self.start()

    def read(self) -> None:
        """Seal a batch: two scrapes of two partitions, and so a member set."""
        self._second += 20
        at = T0 + self._second * S
        zeros = frozenset(Series("m.f", "t", number) for number in range(2))
        answer = Answer((Reading("m.f", "gauge", zeros),), 1)
        identity = Identity("c", self.name, "4.3.1", 1)
        self._recorder.record(Scrape("f", at, at, at, 10 * S, "ok", identity, answer))
        self._recorder.flush(at + 5 * S)

    def drain(self) -> None:
        while self.delivery.deliver_next():
            pass

    def delivered(self, table: tables.Table, columns: str) -> list[tuple[Any, ...]]:
        files = deltalake.DeltaTable(f"{self.lake}/{table.path}").file_uris()
        if not files:
            return []
        rows = duckdb.read_parquet(files, hive_partitioning=False)
        return sorted(rows.filter(f"agent = '{self.spool.agent}'").project(columns).fetchall())

    def scrapes(self) -> list[int]:
        starts = self.delivered(tables.SCRAPES, 'epoch_us("start")')
        return [(start - T0) // (20 * S) for (start,) in starts]

    def replaced(self) -> list[tuple[Any, ...]]:
        events = self.delivered(tables.EVENTS, "kind, old, new")
        return [event[1:] for event in events if event[0] == "lake_replaced"]


@contextmanager
def agent_in(folder: Path, name: str = "broker-1") -> Iterator[Agent]:
    agent = Agent(folder, name)
    try:
        yield agent
    finally:
        agent.spool.close()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    """One that has delivered a batch."""
    with agent_in(tmp_path) as agent:
        agent.read()
        agent.drain()
        yield agent


def id_of(agent: Agent, table: tables.Table) -> str:
    return f"{table.name} {deltalake.DeltaTable(f'{agent.lake}/{table.path}').metadata().id}"


def refuse_twice(agent: Agent) -> None:
    waiting = len(agent.spool.waiting(1 << 20))
    agent.read()
    for _ in range(2):
        with pytest.raises(LakeReplacedError, match=REFUSED):
            agent.delivery.deliver_next()
    assert len(agent.spool.waiting(1 << 20)) > waiting, "the spool keeps what was read"


@pytest.mark.edge(17)
@pytest.mark.parametrize("restarted", STARTED)
@pytest.mark.parametrize(
    "gone", ["", "bronze", *(table.path for table in TABLES)], ids=lambda path: path or "lake"
)
def test_folder_gone_stops_delivery_until_it_is_back(
    agent: Agent, tmp_path: Path, gone: str, *, restarted: bool
) -> None:
    """Tables of catalogues are written once, so only the next start opens them again."""
    place, aside = agent.lake / gone, tmp_path / "aside"
    known = id_of(agent, next(one for one in (TABLES[1], *TABLES) if one.path.startswith(gone)))
    place.rename(aside)
    if restarted or gone in {table.path for table in tables.CATALOGUES}:
        agent.restart()
    refuse_twice(agent)
    refuse_twice(agent)
    assert not place.exists(), "nothing is made where a disk is to be mounted"
    aside.rename(place)
    agent.drain()
    assert agent.scrapes() == [1, 2, 3]
    ((old, new),) = agent.replaced()
    assert new == f"{old.split()[0]} gone"
    assert gone != "bronze/runs" or old == known


@pytest.mark.edge(17)
@pytest.mark.parametrize("restarted", STARTED)
@pytest.mark.parametrize("grown", [0, 3], ids=["younger", "as-long"])
def test_lake_of_another_agent_in_its_place_stops_delivery(
    agent: Agent, tmp_path: Path, grown: int, *, restarted: bool
) -> None:
    aside, known = tmp_path / "aside", id_of(agent, tables.MEMBERS)
    agent.lake.rename(aside)
    with agent_in(tmp_path, "broker-2") as other:
        for _ in range(grown):
            other.read()
            other.drain()
        other.delivery.check()
        found = id_of(other, tables.MEMBERS)
    if restarted:
        agent.restart()
    refuse_twice(agent)
    agent.lake.rename(tmp_path / "other")
    aside.rename(agent.lake)
    agent.read()
    agent.drain()
    assert agent.scrapes() == [1, 2, 3]
    assert agent.replaced() == [(known, found)]


@pytest.mark.edge(17)
def test_empty_mount_point_stops_delivery(agent: Agent, tmp_path: Path) -> None:
    aside = tmp_path / "aside"
    agent.lake.rename(aside)
    agent.lake.mkdir()
    refuse_twice(agent)
    assert not list(agent.lake.iterdir())


@pytest.mark.edge(17)
def test_restarts_while_the_lake_is_away_report_it_once(agent: Agent, tmp_path: Path) -> None:
    aside = tmp_path / "aside"
    for _ in range(2):  # it went twice, and each time is an event of its own
        agent.lake.rename(aside)
        for _ in range(2):
            refuse_twice(agent)
            agent.restart()
        aside.rename(agent.lake)
        agent.drain()
    assert len(agent.replaced()) == 2
    assert agent.scrapes() == [1, 2, 3, 4, 5]


@pytest.mark.edge(17)
def test_spool_without_table_ids_takes_them_once(agent: Agent, tmp_path: Path) -> None:
    agent.spool.close()
    with closing(sqlite3.connect(agent.spool_path)) as db, db:
        db.execute("DELETE FROM meta WHERE key LIKE 'table %'")
    agent.start()
    agent.read()
    agent.drain()
    agent.lake.rename(tmp_path / "aside")
    refuse_twice(agent)


@pytest.mark.edge(17)
def test_new_lake_accepted_by_one_agent_stops_the_other(agent: Agent, tmp_path: Path) -> None:
    with agent_in(tmp_path, "broker-2") as other:
        other.read()
        other.drain()
        agent.lake.rename(tmp_path / "aside")
        refuse_twice(agent)
        agent.spool.forget_lake()
        agent.restart()
        agent.read()
        agent.drain()
        assert agent.scrapes() == [2, 3]
        assert len(agent.replaced()) == 1, "the new lake says that it is not the first"
        refuse_twice(other)
    agent.restart()
    agent.read()
    agent.drain()
    assert agent.scrapes() == [2, 3, 4]


def test_brand_new_agent_makes_its_lake(tmp_path: Path) -> None:
    with agent_in(tmp_path) as agent:
        agent.read()
        agent.drain()
        assert agent.replaced() == []


@pytest.mark.edge(17)
def test_run_forgets_tables_with_new_lake_alone(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "agent.yaml"
    config.write_text(
        "source: {node: 1, jmx: {port: 9999}}\n"
        f"lake: {{path: {agent.lake}}}\nspool: {{path: {agent.spool_path}, max_size: 1MiB}}\n"
    )

    def stop(*_: object) -> None:
        raise JmxlakeError("far enough: no JVM is needed to see it")

    monkeypatch.setattr(Discovery, "found", stop)
    known = agent.spool.recall("table runs")
    assert known
    for new_lake, kept in ((False, known), (True, None)):
        agent.spool.close()
        with pytest.raises(JmxlakeError, match="far enough"):
            run._run(config, load(config), None, as_json=False, new_lake=new_lake)
        agent.start()
        assert agent.spool.recall("table runs") == kept


@pytest.mark.edge(17)
def test_check_fails_where_the_lake_is_gone(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(
        "source: {node: 1, jmx: {port: 9999}}\n"
        f"lake: {{path: {agent.lake}}}\nspool: {{path: {agent.spool_path}}}\n"
    )
    config = load(path)
    assert check._lake(config).endswith("/lake")
    (agent.lake / tables.METRIC_DEFINITIONS.path).rename(tmp_path / "aside")
    with pytest.raises(LakeReplacedError, match="metric_definitions: the table is missing"):
        check._lake(config)
