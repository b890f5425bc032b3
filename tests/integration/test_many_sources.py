"""One agent reads a whole cluster from outside: bronze has what an agent for each node would give.

Two brokers and the controller are named or found, and a third broker hangs for a while.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb
import pytest
import yaml
from confluent_kafka import ElectionType
from deltalake import DeltaTable

from demo.agents import agent_config, script
from demo.cluster import Cluster
from demo.node import JMX_ROLE, Node
from demo.ports import free_ports
from demo.topics import create_assigned
from tests.combined_node import CLUSTER, combined_node
from tests.running import RunningAgent
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demo.properties import NodePlan

pytestmark = pytest.mark.kafka

S: Final = 1_000_000
HUNG: Final = "broker-3"
OTHERS: Final = ("broker-1", "broker-2", "controller-3000")


def settings_of(cluster: Cluster, folder: Path, *nodes: Node) -> dict[str, Any]:
    """One agent for these nodes."""
    each = [agent_config(cluster, node, folder / "lake", folder) for node in nodes]
    settings = {**each[0], "health": {"port": free_ports(1)[0]}}
    settings["lake"]["commit_interval"] = "5s"
    settings["families"] |= {"log": {"enabled": False}, "log_offsets": {"enabled": False}}
    settings["families"] |= {name: {"interval": "1s"} for name in ("min_isr", "controller")}
    if len(nodes) > 1:
        del settings["source"]
        settings["sources"] = [one["source"] for one in each]
    return settings


def query(lake: Path, text: str, *values: int) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name in ("scrapes", "runs", "events"):
            files = DeltaTable(f"{lake}/bronze/{name}").file_uris()
            connection.register(name, connection.read_parquet(files))
        return connection.execute(text, values).fetchall()


@pytest.fixture(scope="module")
def topics(cluster: Cluster) -> Iterator[Cluster]:
    create_assigned(cluster, "many", [[1, 2], [2, 3], [3, 1]], min_insync_replicas="2")
    yield cluster
    for node in cluster.brokers:
        node.resume()


class Story(NamedTuple):
    """The folder of an agent that was killed once, and when one of its brokers hung."""

    folder: Path
    hung_us: int
    until_us: int

    @property
    def lake(self) -> Path:
        return self.folder / "lake"


@pytest.fixture(scope="module")
def story(topics: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("many")
    nodes = [*topics.brokers, topics.controller]
    settings = settings_of(topics, folder, *nodes)

    def read(agent: RunningAgent, source: str) -> float:
        value = agent.value
        return (
            value("jmxlake_agent_scrapes_total", source=source, family=FAMILY[source], outcome="ok")
            or 0
        )

    with RunningAgent(settings, folder / "first") as agent:
        agent.wait_ready()
        wait_for(lambda: all(read(agent, f"{n.plan.name}") >= 5 for n in nodes), 60)
        commits = agent.value("jmxlake_agent_commits_total")
        wait_for(lambda: (agent.value("jmxlake_agent_commits_total") or 0) > (commits or 0), 120)
        agent.process.kill()
        agent.process.wait(60)
    with RunningAgent(settings, folder / "second") as agent:
        agent.wait_ready()
        before = {name: read(agent, name) for name in OTHERS}
        start_us = time.time_ns() // 1000
        topics.nodes[3].pause()
        wait_for(lambda: all(read(agent, name) > before[name] + 30 for name in OTHERS), 90)

        def missing() -> set[str]:
            body = json.loads(agent.ask("/readyz")[1])
            return {name for name in body["missing"] if "admin" not in name}

        # On a busy machine another may miss a tick, for a moment.
        wait_for(lambda: missing() == {f"source {HUNG} jmx"}, 30, lambda: str(missing()))
        assert agent.ask("/readyz")[0] == 503
        hung_us = start_us, time.time_ns() // 1000
        topics.nodes[3].resume()
        hung = read(agent, HUNG)
        wait_for(lambda: read(agent, HUNG) > hung, 60)
        assert agent.stop() == 0
    return Story(folder, *hung_us)


FAMILY: Final = dict.fromkeys(("broker-1", "broker-2", HUNG), "min_isr") | {
    "controller-3000": "controller"
}


def test_a_hung_broker_disturbs_no_other(story: Story) -> None:
    """As an agent starts, all is read at once, and a busy machine misses ticks of everybody."""
    rows = query(
        story.lake,
        "SELECT source, outcome, SUM(scrapes) FROM scrapes"
        " WHERE family IN ('min_isr', 'controller')"
        ' AND epoch_us("end") > $1 AND epoch_us("start") < $2 GROUP BY ALL',
        story.hung_us,
        story.until_us,
    )
    found = {(source, outcome): number for source, outcome, number in rows}
    assert found[HUNG, "timeout"] >= 1
    for source in OTHERS:
        read = found[source, "ok"]
        assert read > 30
        missed = sum(n for (of, outcome), n in found.items() if of == source and outcome != "ok")
        assert missed <= 0.1 * read, "a busy machine may miss a few"


def test_killed_agent_covers_each_instant_once(
    story: Story,
) -> None:
    doubled = query(
        story.lake,
        """
        SELECT source, family, "start" FROM (
          SELECT *, MAX("end") OVER (PARTITION BY source, family ORDER BY "start", "end"
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
          FROM scrapes WHERE outcome != 'skipped')
        WHERE "start" < before
        """,
    )
    assert doubled == []
    doubled = query(
        story.lake,
        """
        SELECT source, metric, "start", COUNT(*) FROM runs
        WHERE metric = 'kafka.broker.led_partitions' GROUP BY ALL HAVING COUNT(*) > 1
        """,
    )
    assert doubled == []
    starts = query(
        story.lake,
        "SELECT source, COUNT(*) FROM events WHERE kind = 'agent_start' GROUP BY source",
    )
    assert dict(starts) == dict.fromkeys((*OTHERS, HUNG), 2)


def test_all_sources_share_their_commits(story: Story) -> None:
    rows = query(story.lake, "SELECT DISTINCT agent, batch, source FROM scrapes")
    assert len({agent for agent, _, _ in rows}) == 1
    sources = Counter(batch for _, batch, _ in rows)
    assert max(sources.values()) == 4, "a batch has the rows of all"
    for table in ("runs", "scrapes"):
        commits = DeltaTable(f"{story.lake}/bronze/{table}").version()
        assert commits <= len(sources) + 1


def test_bronze_equals_that_of_an_agent_for_each(topics: Cluster, tmp_path: Path) -> None:
    """What was read of each source, every series, and the partitions that it stands for."""
    _give_leaders_back(topics)
    nodes = [*topics.brokers, topics.controller]
    one = RunningAgent(settings_of(topics, tmp_path / "one", *nodes), tmp_path / "one")
    each = [
        RunningAgent(settings_of(topics, tmp_path / n.plan.name, n), tmp_path / n.plan.name)
        for n in nodes
    ]
    threads = dict.fromkeys(("offsets", "tiered_offsets", "topology", "quota_limits"), 2)
    with ExitStack() as running:
        for agent in (one, *each):
            running.enter_context(agent)
        for agent in (one, *each):
            agent.wait_ready()
            for family, least in threads.items():
                wait_for(lambda a=agent, f=family, n=least: _read(a, f) >= n, 60)
        for agent in (one, *each):  # on a busy machine the first attempt may time out
            wait_for(lambda a=agent: not _unread(a), 90, lambda a=agent: str(_unread(a)))
        for agent in (one, *each):
            assert agent.stop() == 0
    found = _content(tmp_path / "one" / "lake")
    wanted = [row for node in nodes for row in _content(tmp_path / node.plan.name / "lake")]
    difference = set(wanted) ^ set(found)
    assert difference == set(), "; ".join(map(str, sorted(difference, key=str)))
    assert len(found) > 100, "of four sources"


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Cluster, int]]:
    """Two brokers and a controller that have JMX at one port, each at an address of its own.

    Broker N is 127.0.1.N there, as if each had a host; nobody needs a password.
    """
    (port,), jmx = free_ports(1), "-Dcom.sun.management.jmxremote"

    def options(plan: NodePlan) -> tuple[str, ...]:
        host = "127.0.2.1" if plan.role == "controller" else f"127.0.1.{plan.id}"
        return (
            jmx, f"{jmx}.host={host}", f"{jmx}.port={port}", f"{jmx}.rmi.port={port}",
            f"-Djava.rmi.server.hostname={host}", f"{jmx}.authenticate=false", f"{jmx}.ssl=false",
        )  # fmt: skip

    with Cluster.start(tmp_path / "kafka", 2, jmx=False, jvm_options=options) as running:
        yield running, port


@pytest.mark.nightly
def test_listed_brokers_and_controller_id_are_found(
    hosts: tuple[Cluster, int], tmp_path: Path
) -> None:
    cluster, port = hosts
    brokers, controller = ("broker-1", "broker-2"), "controller-3000"
    settings = settings_of(cluster, tmp_path, cluster.brokers[0])
    del settings["source"]
    every = {"node": "every", "jmx": {"host": "127.0.1.{node}", "port": port}}
    auto = {"node": "auto", "role": "controller", "jmx": {"host": "127.0.2.1", "port": port}}
    settings["sources"] = [every, auto]

    def names(agent: RunningAgent) -> set[str]:
        answered = 'jmxlake_agent_last_answer_seconds{source="%s",via="jmx"}'
        _, text = agent.ask("/metrics")
        return {one for one in (*brokers, controller) if answered % one in text}

    with RunningAgent(settings, tmp_path / "first") as agent:
        agent.wait_ready()
        wait_for(lambda: names(agent) == {*brokers, controller}, 60)
        agent.configure({**settings, "sources": [every]})
        agent.reload()
        wait_for(lambda: names(agent) == set(brokers), 60)
        assert agent.stop() == 0
    # While the cluster answers nobody, those are read who were there.
    settings["admin"]["bootstrap"] = f"127.0.0.1:{free_ports(1)[0]}"
    with RunningAgent(settings, tmp_path / "second") as agent:
        agent.wait_ready()
        wait_for(lambda: names(agent) == {*brokers, controller}, 60)
        missing = json.loads(agent.ask("/readyz")[1])["missing"]
        assert any(name.startswith("source broker every") for name in missing), missing
        assert agent.stop() == 0
    events = query(tmp_path / "lake", "SELECT source FROM events WHERE kind = 'agent_start'")
    found = Counter(source for (source,) in events)
    assert found == dict.fromkeys((*brokers, controller), 2)


def test_a_node_of_both_roles_is_two_sources_in_one_agent(
    tmp_path: Path,
) -> None:
    with combined_node(tmp_path, {}) as node:
        _read_both_roles(node, tmp_path)


def _read_both_roles(node: Node, tmp_path: Path) -> None:
    jmx = {
        "port": node.jmx_port, "user": JMX_ROLE, "password_file": str(node.password_file),
    }  # fmt: skip
    settings = {
        "source": {"node": "auto", "role": "combined", "jmx": jmx},
        "lake": {"path": str(tmp_path / "lake")},
        "spool": {"path": str(tmp_path / "spool.db")},
        "health": {"port": free_ports(1)[0]},
    }
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump(settings))

    def rows_of(command: str) -> list[dict[str, Any]]:
        options = ["--json", "--config", str(tmp_path / "agent.yaml")]
        ran = subprocess.run(
            [script("jmxlake-agent"), command, *options],
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        return [json.loads(line) for line in ran.stdout.splitlines()]

    def read() -> dict[tuple[str, str], str]:
        rows = rows_of("scrape")
        return {(row["source"], row["family"]): row["outcome"] for row in rows if "outcome" in row}

    def hints() -> list[str]:
        return [row["found"] for row in rows_of("check") if row["check"] == "warning"]

    both = {("broker-7", "min_isr"): "ok", ("controller-7", "controller"): "ok"}
    wait_for(lambda: both.items() <= read().items(), 120)
    assert hints() == []
    one_role = {**settings, "source": {**settings["source"], "role": "broker"}}
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump(one_role))
    assert hints() == ["the process is also a controller. Set role: combined to read both roles"]
    with RunningAgent(settings, tmp_path) as agent:
        agent.wait_ready()
        value = agent.value
        for source, family in both:
            labels = {"source": source, "family": family, "outcome": "ok"}
            wait_for(lambda of=labels: value("jmxlake_agent_scrapes_total", **of) or 0, 90)
        assert agent.stop() == 0
    rows = query(tmp_path / "lake", "SELECT DISTINCT source, cluster FROM runs ORDER BY 1")
    assert rows == [("broker-7", CLUSTER), ("controller-7", CLUSTER)]


def _give_leaders_back(cluster: Cluster) -> None:
    """Wait until the first replica of every partition leads it and all replicas are in sync.

    Otherwise the controller moves leaders while agents run, and not all of them observe it.
    """

    def is_at_rest() -> bool:
        admin = cluster.admin()  # kept in a name: without it the future fails
        topics = admin.list_topics(timeout=60).topics.values()
        partitions = [one for topic in topics for one in topic.partitions.values()]
        if all(
            one.leader == one.replicas[0] and len(one.isrs) == len(one.replicas)
            for one in partitions
        ):
            return bool(partitions)
        admin.elect_leaders(ElectionType.PREFERRED, None).result(120)
        return False

    wait_for(is_at_rest, 120)


def _read(agent: RunningAgent, family: str) -> float:
    """How often every source of the agent was read for a family, at least; many: it has none."""
    sources = agent.settings.get("sources") or [agent.settings["source"]]
    brokers = [one["node"] for one in sources if one["role"] == "broker"]
    done = [
        agent.value(
            "jmxlake_agent_scrapes_total", source=f"broker-{n}", family=family, outcome="ok"
        )
        for n in brokers
    ]
    return min((number or 0 for number in done), default=9)


def _unread(agent: RunningAgent) -> set[tuple[str, str]]:
    """Sources and families that the agent reads and that have not answered yet."""

    def of(metric: str, **labels: str) -> set[tuple[str, str]]:
        samples = agent.samples(f"jmxlake_agent_{metric}", **labels)
        return {(one.labels["source"], one.labels["family"]) for one in samples if one.value}

    return of("interval_seconds") - of("scrapes_total", outcome="ok")


def _content(lake: Path) -> list[tuple[Any, ...]]:
    """All series of runs, with the sets of partitions that they stand for; and what was read.

    But not whether a value was above zero before or after: rates decay, and agents look in turn.
    Nor whether a counter rose over a gap: a busy machine misses a scrape of one agent.
    Nor beans that a broker makes when it first replicates, or gives an answer of a new code.
    """
    return query(
        lake,
        """
        SELECT DISTINCT source, cluster, metric, topic, "partition", "user", client_id, "group",
          labels::VARCHAR, members,
          [f FOR f IN flags IF f NOT LIKE '%_positive' AND f != 'gap']::VARCHAR FROM runs
          WHERE metric NOT LIKE '%_replication.byte_rate' AND metric NOT LIKE '%.answers'
        UNION ALL SELECT DISTINCT source, cluster, family, outcome, interval_us, kafka_version,
          catalogue, NULL, NULL, max_gap_us::VARCHAR, NULL FROM scrapes WHERE outcome = 'ok'
        """,
    )
