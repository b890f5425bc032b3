"""Bronze against Kafka's own JmxTool: the same beans, the same values, on a quiet cluster.

JmxTool reads every bean of the catalogue several times before and after some load, while the agents
run. A bean must have just that value in bronze; of the few that move by themselves on an idle
cluster (the metadata log's end, idle shares) bronze must hold a value near those that JmxTool saw;
a counter must have risen by as much in both.
"""

from __future__ import annotations

import math
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

import duckdb
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable

from collector import catalogue
from demo.agents import INTERVALS, Agents
from demo.clients import consumer, fill
from demo.cluster import Cluster
from demo.java import java_command
from demo.java_admin import Quota, set_quotas
from demo.topics import create_assigned, create_healthy
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Message

    from collector.catalogue import Metric
    from demo.node import Node

pytestmark = [pytest.mark.kafka, pytest.mark.waits]

_COMPARED = INTERVALS.keys() - {"requests"}  # brokers and agents ask one another all the time
_READINGS = 6
_BROKER = "broker-1"
_RISING = 4  # counters that must have risen for the comparison to say something
_LOADS = 3  # on a busy machine not everything that a load brings about has happened by then
_TIERED = [[1, 2], [2, 1]]
_TIER_KEYS = {
    "remote_storage_enable": "true",
    "segment_bytes": "1048576",
    "local_retention_bytes": "1",
    "retention_ms": "-1",
    "retention_bytes": "2097152",
}
_WITHOUT_BEANS = {
    # Of draft proposals, other versions or a plugin that is not installed.
    "kafka.partition.upload_tier_lag",
    "kafka.partition.delete_tier_lag",
    # Only once such a thing has happened to a broker; on a quiet cluster it has not.
    "kafka.broker.alter_log_dirs_replication.byte_rate",
    "kafka.broker.follower_replication.byte_rate",
    "kafka.broker.produce_errors.not_enough_replicas",
    "kafka.broker.produce_errors.not_enough_replicas_after_append",
    "kafka.topic.remote_copy.errors",
    "kafka.topic.remote_delete.errors",
    "kafka.topic.remote_fetch.errors",
    "kafka.topic.remote_log_aux_state.errors",
    "kafka.topic.remote_log_aux_state.requests",
    "kafka.broker.remote_copy.throttle_time.avg",
    "kafka.broker.remote_copy.throttle_time.max",
    "kafka.broker.remote_fetch.throttle_time.avg",
    "kafka.broker.remote_fetch.throttle_time.max",
    "kafka.partition.remote_list_offsets.expired",
}

_MOVING = {
    # On a cluster without clients the controller still writes to its log, which brokers follow.
    "kafka.broker.leader_replication.byte_rate",
    "kafka.broker.request.exempt_time",
    "kafka.client.request.time",  # of the brokers among themselves, and of the agents
    "kafka.broker.remote_log_manager.tasks_idle",
    "kafka.broker.remote_log_reader.idle",
}

Key = tuple[str, tuple[tuple[str, str], ...]]  # metric, labels


class Seen(NamedTuple):
    """What JmxTool read: values by series, and when the first and the last were read."""

    values: dict[Key, list[float]]
    first_us: int
    last_us: int


class Scene(NamedTuple):
    """The two readings of each source, and the lake."""

    before: dict[str, Seen]
    after: dict[str, Seen]
    lake: Path


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("equal")
    with Cluster.start(folder / "cluster") as cluster:
        create_healthy(cluster, ["plain", "other"])
        create_assigned(cluster, "single", [[1], [2], [1]])
        create_assigned(cluster, "tiered", _TIERED, **_TIER_KEYS)
        set_quotas(cluster, [
            Quota("producer_byte_rate", 500_000, None, "loader"),
            Quota("consumer_byte_rate", 50_000_000, None, "app:one,x"),
            Quota("request_percentage", 50, None, "idler"),
            Quota("controller_mutation_rate", 1_000, None, "creator"),
        ])  # fmt: skip
        _load(cluster)
        agents = Agents(cluster, folder / "lake", folder / "agents")
        nodes = [cluster.nodes[name] for name in cluster.nodes]
        watched = [node for node in nodes if node.plan.name in (_BROKER, "controller-3000")]
        try:
            agents.start()
            agents.await_started()
            agents.await_read()
            before = _read(cluster, watched, agents)
            after = before
            for _ in range(_LOADS):
                _load(cluster)
                agents.await_read()
                after = _read(cluster, watched, agents)
                if sum(1 for rise in _risen(before, after).values() if rise) >= _RISING:
                    break
            agents.await_read()
            agents.stop()
        finally:
            agents.kill()
        yield Scene(before, after, folder / "lake")


def _load(cluster: Cluster) -> None:
    """Write into the tiered topic, past a quota, and read it back from the remote tier."""
    fill(cluster.bootstrap, "tiered", 2, megabytes=2.5)
    segments = cluster.folder.glob
    alone = len(_TIERED) * len(_TIERED[0])  # what is written to in each replica; the rest has left
    wait_for(lambda: len([*segments("broker-?/data/tiered-?/*.log")]) == alone, 120)
    reader = consumer(cluster.bootstrap, "app:one,x", "readers")
    reader.subscribe(["tiered"])
    read: list[Message] = []

    def is_read() -> bool:
        read.extend(reader.consume(100, timeout=1))
        return len(read) >= 100

    wait_for(is_read, 60)
    reader.close()
    creator = AdminClient({"bootstrap.servers": cluster.bootstrap, "client.id": "creator"})
    creator.list_topics(timeout=60)  # a request is lost while it learns the brokers' ids
    for future in creator.create_topics([NewTopic(f"made-{time.time_ns()}", 1, 3)]).values():
        future.result(60)


def _metrics(role: str) -> list[Metric]:
    return [
        metric
        for family in catalogue.load().families
        if family.via == "jmx" and role in family.roles and family.name in _COMPARED
        for metric in family.metrics
    ]


def _read(cluster: Cluster, nodes: list[Node], agents: Agents) -> dict[str, Seen]:
    """What JmxTool reads of each, once nothing changes any more that does not move by itself."""
    for _ in range(_LOADS):
        seen = {node.plan.name: _jmx_tool(cluster, node) for node in nodes}
        if all(_is_quiet(seen[node.plan.name], node.plan.role) for node in nodes):
            break
        agents.await_read()
    return seen


def _is_quiet(seen: Seen, role: str) -> bool:
    gauges = {metric.name for metric in _metrics(role) if metric.kind == "gauge"}
    return not [
        key
        for key, read in seen.values.items()
        if key[0] in gauges and not _moves(key) and len({*map(str, read)}) > 1
    ]


def _jmx_tool(cluster: Cluster, node: Node) -> Seen:
    patterns = {pattern for metric in _metrics(node.plan.role) for pattern in metric.patterns}
    patterns.add("kafka.cluster:type=Partition,name=InSyncReplicasCount,topic=*,partition=*")
    url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{node.jmx_port}/jmxrmi"
    command = java_command(
        "-XX:TieredStopAtLevel=1", "-cp", f"{cluster.libs}/*", "org.apache.kafka.tools.JmxTool",
        "--jmx-url", url, "--jmx-auth-prop", f"monitor={node.jmx_password}",
        "--report-format", "properties", "--reporting-interval", "1000",
        *[part for pattern in sorted(patterns) for part in ("--object-name", pattern)],
    )  # fmt: skip
    values: defaultdict[str, list[float]] = defaultdict(list)
    times: list[int] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tool:
        assert tool.stdout is not None
        for line in tool.stdout:
            name, _, value = line.rstrip("\n").rpartition("=")
            if name == "time":
                times.append(int(value) * 1_000)
                if len(times) > _READINGS:
                    break
            elif name and _number(value) is not None:
                values[name].append(_number(value) or 0.0)
        tool.kill()
    return Seen(_by_series(values, node.plan.role), times[0], times[-1])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _by_series(values: dict[str, list[float]], role: str) -> dict[Key, list[float]]:
    """JmxTool's ``object name:attribute`` as metric and labels, by an own small parser."""
    led = {
        (keys["topic"], keys["partition"])
        for name, read in values.items()
        if "name=InSyncReplicasCount" in name and read[-1] > 0
        for _, keys, _ in [_parse(name)]
    }
    found: dict[Key, list[float]] = {}
    for metric in _metrics(role):
        for pattern in metric.patterns:
            domain, wanted, _ = _parse(f"{pattern}:x")
            for name, read in values.items():
                own_domain, keys, attribute = _parse(name)
                if (own_domain, attribute) != (domain, metric.attribute_name):
                    continue
                columns = metric.labels
                labels = {columns[key]: text for key, text in keys.items() if key in columns}
                fixed = {key: text for key, text in keys.items() if key not in metric.labels}
                if fixed != {k: v for k, v in wanted.items() if k not in metric.labels}:
                    continue
                if set(keys) != set(wanted) and not pattern.endswith(",*"):
                    continue
                if metric.led and (keys["topic"], keys["partition"]) not in led:
                    continue
                for key in metric.url_encoded:
                    column = metric.labels[key]
                    if column in labels:
                        labels[column] = unquote(labels[column])
                found.setdefault((metric.name, tuple(sorted(labels.items()))), read)
    return found


def _parse(name: str) -> tuple[str, dict[str, str], str]:
    """Domain, key properties (unquoted) and attribute of JmxTool's name for a value."""
    domain, _, rest = name.partition(":")
    rest, _, attribute = rest.rpartition(":")
    keys: dict[str, str] = {}
    rest = rest.removesuffix(",*")
    while rest:
        key, _, rest = rest.partition("=")
        if rest.startswith('"'):
            end = rest.index('"', 1)
            keys[key], rest = rest[1:end], rest[end + 2 :]
        else:
            keys[key], _, rest = rest.partition(",")
    return domain, keys, attribute


@pytest.fixture(scope="module")
def bronze(scene: Scene) -> duckdb.DuckDBPyConnection:
    """Bronze runs with folded rows taken apart."""
    connection = duckdb.connect()
    for name in ("runs", "members"):
        files = DeltaTable(f"{scene.lake}/bronze/{name}").file_uris()
        connection.register(name, connection.read_parquet(files))
    connection.execute(
        """
        CREATE TABLE series AS
        SELECT source, metric, "start", "end", value, flags,
               topic, CAST(coalesce(p, "partition") AS VARCHAR) AS "partition",
               coalesce(c."user", r."user") AS "user",
               coalesce(c.client_id, r.client_id) AS client_id
        FROM (
          SELECT r.*, unnest(coalesce(m.partitions, [NULL])) AS p,
                 unnest(coalesce(m.clients, [NULL])) AS c
          FROM runs r LEFT JOIN (SELECT DISTINCT ON ("set") * FROM members) m ON r.members = m."set"
        ) r
        """
    )
    return connection


def _runs(
    connection: duckdb.DuckDBPyConnection, source: str, seen: Seen | None
) -> dict[Key, list[float | None]]:
    during = (
        f'AND epoch_us("end") > {seen.first_us} AND epoch_us("start") <= {seen.last_us}'
        if seen
        else ""
    )
    rows = connection.execute(
        f'SELECT metric, topic, "partition", "user", client_id, value FROM series '  # noqa: S608
        f"WHERE source = '{source}' {during}"
    ).fetchall()
    found: defaultdict[Key, list[float | None]] = defaultdict(list)
    names = ("topic", "partition", "user", "client_id")
    for metric, *labels, value in rows:
        given = {name: text for name, text in zip(names, labels, strict=True) if text is not None}
        found[metric, tuple(sorted(given.items()))].append(value)
    return found


def _moves(key: Key) -> bool:
    of_metadata_log = ("topic", "__cluster_metadata") in key[1] and key[0].startswith("kafka.log.")
    of_tier = any(text.startswith("__remote_log_metadata_client") for _, text in key[1])
    return key[0] in _MOVING or of_metadata_log or (of_tier and key[0].endswith(".byte_rate"))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("role", "source"), [("broker", "broker-1"), ("controller", "controller-3000")]
)
def test_every_gauge_has_the_value_that_jmx_tool_reads(
    scene: Scene, bronze: duckdb.DuckDBPyConnection, when: str, role: str, source: str
) -> None:
    seen: Seen = getattr(scene, when)[source]
    ours = _runs(bronze, source, seen)
    gauges = {metric.name for metric in _metrics(role) if metric.kind == "gauge"}
    wrong = []
    for key, theirs in seen.values.items():
        if key[0] not in gauges:
            continue
        values = [math.nan if value is None else value for value in ours.get(key, [])]
        if _moves(key):
            reach = 0.2 * max(map(abs, theirs))
            same = any(min(theirs) - reach <= value <= max(theirs) + reach for value in values)
        else:
            same = values and {str(value) for value in values} == {str(value) for value in theirs}
        if not same:
            wrong.append((key, theirs, values))
    assert not wrong
    theirs_only = {key for key in seen.values if key[0] in gauges}
    assert not {key for key in ours if key[0] in gauges} - theirs_only


def _risen(before: dict[str, Seen], after: dict[str, Seen]) -> dict[Key, float]:
    """By how much each counter of the broker rose between two readings."""
    counters = {metric.name for metric in _metrics("broker") if metric.kind == "counter"}
    return {
        key: read[-1] - before[_BROKER].values.get(key, [0.0])[-1]
        for key, read in after[_BROKER].values.items()
        if key[0] in counters
    }


def test_every_counter_rises_by_as_much(scene: Scene, bronze: duckdb.DuckDBPyConnection) -> None:
    ours = _runs(bronze, _BROKER, None)
    risen = _risen(scene.before, scene.after)
    told = {key: sum(value or 0 for value in ours.get(key, [])) for key in risen}
    assert told == risen
    assert sum(1 for rise in risen.values() if rise) >= _RISING, "nothing rose"


def test_every_metric_of_the_catalogue_was_compared(scene: Scene) -> None:
    compared = {key[0] for seen in scene.after.values() for key in seen.values}
    expected = {metric.name for role in ("broker", "controller") for metric in _metrics(role)}
    plugin = {name for name in expected if name.startswith("kafka.rsm.")}
    missing = ", ".join(sorted(expected - compared - plugin - _WITHOUT_BEANS))
    assert missing == ""
    assert not compared & _WITHOUT_BEANS
