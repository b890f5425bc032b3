"""A broker is killed, hung, replaced and brought back under a real agent, and the agent is killed.

Of every moment the lake must then know who vouches for it: what was seen is told once, and what was
not seen is unknown, with an outcome that says why. The story notes what was done when, and the
tests ask bronze alone.
"""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import duckdb
import pytest
import yaml
from deltalake import DeltaTable

from collector import catalogue
from demo.agents import agent_config, script
from demo.cluster import Cluster
from demo.launcher import end, kill, last_lines
from demo.node import Node
from demo.topics import create_assigned
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.waits]

MAX_GAP_US = 2_500_000  # lakehouse.tables.MAX_GAP_INTERVALS of the cadence, a second
CALM_SECONDS = 4
FAULT_SECONDS = 6  # longer than max_gap: some of it is unknown by any rule
SLACK_US = 8_000_000  # within which an agent that is up has found a broker that is
KEPT_US = 2_000_000  # of an agent that is killed its last attempt on disk is known, and no more
BEANS = ("min_isr", "quotas", "tiered", "remote_reads")
ADMIN = ("leaders", "topology")
ALWAYS = {
    "min_isr": "kafka.broker.led_partitions",
    "remote_reads": "kafka.broker.remote_log_reader.idle",
}
"""Metrics that every scrape of a family brings."""

STRANGERS = ("of-the-other-node", "of-the-other-cluster")
"""Topics of the brokers that stand in for ours."""


class Span(NamedTuple):
    """Microseconds from an instant up to another, and what is told of them."""

    start: int
    end: int
    outcome: str = ""
    error: str | None = None


@dataclass
class Story:
    """What was done when, by name, and the lake that must tell it."""

    lake: Path
    cluster: str
    faults: dict[str, Span] = field(default_factory=dict)
    started: dict[str, int] = field(default_factory=dict)
    """When an agent that had been killed had started again: until then nobody tells anything."""

    @contextmanager
    def fault(self, name: str) -> Iterator[None]:
        """The broker cannot answer for itself from before this until after it."""
        start = _now_us()
        yield
        self.faults[name] = Span(start, _now_us())

    def has_error(self, text: str) -> bool:
        """Return True if a delivered scrape has an error with this text; the log can be late."""
        scrapes = DeltaTable(f"{self.lake}/bronze/scrapes").to_pyarrow_table(columns=["error"])
        return any(text in error for error in scrapes["error"].to_pylist() if error)


class Agent:
    """The agent of the first broker; it can be killed and started again."""

    def __init__(self, cluster: Cluster, lake: Path, folder: Path) -> None:
        self._cluster, self._log = cluster, folder / "agent.log"
        config = agent_config(cluster, cluster.nodes[1], lake, folder)
        config["source"]["jmx"]["timeout"] = "1s"
        for family in BEANS:
            config["families"][family]["interval"] = "1s"
        self._config = folder / "agent.yaml"
        folder.mkdir()
        self._config.write_text(yaml.safe_dump(config))
        self._starts = 0
        self.start()

    def start(self) -> None:
        self._starts += 1
        command = [script("jmxlake-agent"), "run", "--config", str(self._config)]
        self._process = self._cluster.launcher.start(command, self._log)

    def kill(self) -> None:
        kill(self._process)

    def stop(self) -> None:
        assert end(self._process, 180) == 0, last_lines(self._log)

    def await_calm(self) -> None:
        """Wait until it reads everything well, then let it do so for a while."""
        wait_for(self._reads_well, 60, lambda: last_lines(self._log))
        time.sleep(CALM_SECONDS)

    def await_started(self) -> None:
        """Wait until the life that was begun last is under way: a busy machine takes its time."""
        wait_for(self._has_started, 60, lambda: last_lines(self._log))

    def _has_started(self) -> bool:
        return self._log.read_text().count("agent_started") == self._starts

    def _reads_well(self) -> bool:
        assert self._process.poll() is None, f"the agent ended: {last_lines(self._log)}"
        # Until it has started anew, the last that its log says is of the life before.
        last_life = self._log.read_text().rpartition("agent_started")[2]
        outages = last_life.count("scrape_failed") - last_life.count("scrape_recovered")
        return self._has_started() and not outages


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("chaos")
    with ExitStack() as stack, ThreadPoolExecutor(2) as starting:
        started = [
            starting.submit(Cluster.start, folder / name, brokers)
            for name, brokers in (("ours", 2), ("other", 1))
        ]
        cluster, other = (stack.enter_context(one.result()) for one in started)
        create_assigned(cluster, "orders", [[1, 2], [2, 1], [1, 2]], min_insync_replicas="2")
        create_assigned(cluster, STRANGERS[0], [[2]])
        create_assigned(other, STRANGERS[1], [[1]])
        other.nodes[1].kill()
        story = Story(folder / "lake", cluster.id)
        agent = Agent(cluster, story.lake, folder / "agent")
        try:
            _play(story, cluster, other, agent)
            agent.stop()
        finally:
            agent.kill()
        yield story


def _play(story: Story, cluster: Cluster, other: Cluster, agent: Agent) -> None:
    broker, neighbour = cluster.nodes[1], cluster.nodes[2]
    agent.await_calm()
    with story.fault("killed"):
        broker.kill()
        time.sleep(FAULT_SECONDS)
        broker.start()
    agent.await_calm()
    with story.fault("hung"):
        broker.pause()
        time.sleep(FAULT_SECONDS)
        with story.fault("agent killed while hung"):
            agent.kill()
            time.sleep(FAULT_SECONDS / 2)
            agent.start()
        time.sleep(FAULT_SECONDS / 2)
    broker.resume()
    agent.await_started()
    story.started["agent killed while hung"] = _now_us()
    agent.await_calm()
    with story.fault("agent killed"):
        agent.kill()
        time.sleep(FAULT_SECONDS)
        agent.start()
    agent.await_started()
    story.started["agent killed"] = _now_us()
    agent.await_calm()
    with story.fault("other node"):
        broker.kill()
        neighbour.kill()
        _stand_in(neighbour, broker, story, "node 2 responds")
    with story.fault("other cluster"):
        _stand_in(other.nodes[1], broker, story, f"cluster {other.id} responds")
        broker.start()
    neighbour.start()
    agent.await_calm()


def _now_us() -> int:
    return time.time_ns() // 1_000


def _stand_in(stranger: Node, broker: Node, story: Story, refusal: str) -> None:
    """Let a stranger listen on the broker's JMX port, with its password, until it is refused."""
    plan = replace(stranger.plan, jmx_port=broker.jmx_port)
    stranger.password_file.write_text(broker.password_file.read_text())
    impostor = Node(plan, stranger._libs, stranger._launcher)
    impostor.start()
    try:
        wait_for(lambda: story.has_error(refusal), 60, lambda: refusal)
        time.sleep(CALM_SECONDS)
    finally:
        impostor.kill()


@pytest.fixture(scope="module")
def bronze(story: Story) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name in ("runs", "members", "scrapes", "events"):
        files = DeltaTable(f"{story.lake}/bronze/{name}").file_uris()
        connection.read_parquet(files).create_view(name)
    connection.execute(
        """
        CREATE VIEW series AS
        SELECT metric, runs.topic, unnest(coalesce(partitions, [partition])) AS partition,
            user, client_id, "group", labels::VARCHAR AS labels,
            epoch_us(start) AS start, epoch_us("end") AS "end", value, flags
        FROM runs LEFT JOIN members ON members = "set" AND kind = 'partitions'
        """
    )
    return connection


def spans(bronze: duckdb.DuckDBPyConnection, family: str) -> list[Span]:
    """The account of a family, without the ticks at which nothing was asked."""
    rows = bronze.execute(
        """
        SELECT epoch_us(start), epoch_us("end"), outcome, error FROM scrapes
        WHERE family = ? AND outcome <> 'skipped' ORDER BY start
        """,
        [family],
    ).fetchall()
    return [Span(*row) for row in rows]


def union(found: list[Span]) -> list[Span]:
    """The same time, with spans that touch made one."""
    joined: list[Span] = []
    for span in sorted(found):
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(Span(span.start, span.end))
    return joined


def surely_unknown(fault: Span) -> tuple[int, int]:
    """Where not even the last scrape before the fault vouches any longer."""
    return fault.start + MAX_GAP_US, fault.end


BROKER_FAULTS = ("killed", "hung", "other node", "other cluster")
AGENT_FAULTS = ("agent killed while hung", "agent killed")


@pytest.mark.parametrize("name", [*BROKER_FAULTS, *AGENT_FAULTS])
def test_fault_beyond_longest_gap_has_no_runs(
    story: Story, bronze: duckdb.DuckDBPyConnection, name: str
) -> None:
    start, until = surely_unknown(story.faults[name])
    assert until > start
    metrics = [m.name for family in BEANS for m in catalogue.load().family(family).metrics]
    found = bronze.execute(
        """SELECT * FROM series WHERE start < ? AND "end" > ? AND list_contains(?, metric)""",
        [until, start, metrics],
    ).fetchall()
    assert found == []


@pytest.mark.parametrize("family", BEANS)
@pytest.mark.parametrize(
    ("name", "outcomes"),
    [
        ("killed", {"refused", "error", "timeout", "down"}),
        ("hung", {"timeout"}),
        ("other node", {"refused", "error", "timeout", "down"}),
        ("other cluster", {"refused", "error", "timeout", "down"}),
    ],
)
def test_attempt_during_a_fault_has_its_error(
    story: Story, bronze: duckdb.DuckDBPyConnection, name: str, outcomes: set[str], family: str
) -> None:
    start, until = surely_unknown(story.faults[name])
    told = [span for span in spans(bronze, family) if span.start < until and span.end > start]
    assert told
    assert {span.outcome for span in told} <= outcomes
    assert all(span.error for span in told)


@pytest.mark.parametrize("family", BEANS)
def test_coverage_has_gaps_for_faults_only(
    story: Story, bronze: duckdb.DuckDBPyConnection, family: str
) -> None:
    account = spans(bronze, family)
    for one, following in itertools.pairwise(account):
        assert one.end <= following.start, "told twice"
    covered = union(account)
    holes = [Span(one.end, following.start) for one, following in itertools.pairwise(covered)]
    for hole in holes:
        assert any(
            fault.start - (KEPT_US if name in AGENT_FAULTS else 0) <= hole.start
            and hole.end <= max(fault.end, story.started.get(name, 0)) + SLACK_US
            for name, fault in story.faults.items()
        ), f"{(hole.end - hole.start) / 1e6} s of which nothing is told"
    whole = covered[-1].end - covered[0].start
    assert sum(span.end - span.start for span in [*account, *holes]) == whole


@pytest.mark.parametrize("family", ALWAYS)
def test_permanent_series_is_observed_while_scrapes_are_ok(
    bronze: duckdb.DuckDBPyConnection, family: str
) -> None:
    rows = bronze.execute(
        'SELECT start, "end" FROM series WHERE metric = ? ORDER BY 1', [ALWAYS[family]]
    ).fetchall()
    well = [span for span in spans(bronze, family) if span.outcome == "ok"]
    assert union([Span(*row) for row in rows]) == union(well)


def test_runs_of_a_series_do_not_overlap(bronze: duckdb.DuckDBPyConnection) -> None:
    doubled = bronze.execute(
        """
        SELECT * FROM (
            SELECT *, max("end") OVER (
                PARTITION BY metric, topic, partition, user, client_id, "group", labels
                ORDER BY start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS told_until FROM series
        ) WHERE told_until > start
        """
    ).fetchall()
    assert doubled == []


def test_foreign_broker_on_the_port_leaves_no_rows(
    story: Story, bronze: duckdb.DuckDBPyConnection
) -> None:
    assert bronze.execute("SELECT DISTINCT cluster, source FROM runs").fetchall() == [
        (story.cluster, "broker-1")
    ]
    beans = bronze.execute(
        "SELECT DISTINCT topic FROM series WHERE topic IS NOT NULL AND metric <> ALL (?)",
        [[metric.name for family in ADMIN for metric in catalogue.load().family(family).metrics]],
    ).fetchall()
    assert ("orders",) in beans
    assert not {topic for (topic,) in beans} & set(STRANGERS)
    refusals = {
        "other node": "node 2 responds instead of 1",
        "other cluster": f"responds instead of {story.cluster}",
    }
    for name, refusal in refusals.items():
        start, until = surely_unknown(story.faults[name])
        errors = [
            s.error or "" for s in spans(bronze, "min_isr") if start < s.end and s.start < until
        ]
        assert any(refusal in error for error in errors), errors


def test_broker_return_and_agent_start_are_events(
    bronze: duckdb.DuckDBPyConnection,
) -> None:
    found = bronze.execute("SELECT kind, count(*) FROM events GROUP BY kind").fetchall()
    counts = dict(found)
    assert counts["source_restart"] == 2  # killed, and back after the others
    assert counts["agent_start"] == 3
