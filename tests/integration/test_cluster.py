from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import psutil
import pytest
from confluent_kafka import KafkaException

from demo.clients import producer
from demo.clock import seconds
from demo.cluster import Cluster
from demo.errors import DemoError
from demo.java import java_command
from demo.metadata_log import partition_truth, read_log
from demo.topics import create_assigned, replicas_in_sync
from tests.waiting import wait_for

pytestmark = pytest.mark.kafka

STARTS_AND_WAITS = """
import json, sys, time
from pathlib import Path
from demo.cluster import Cluster
with Cluster.start(Path(sys.argv[1]), brokers=1) as cluster:
    print(json.dumps([node.pid for node in cluster.nodes.values()]), flush=True)
    time.sleep(600)
"""


def jmx_tool(cluster, node, *options):
    """Kafka's own JMX client, once, for the state of a broker."""
    url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{node.jmx_port}/jmxrmi"
    return subprocess.run(
        java_command(
            *("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-cp", f"{cluster.libs}/*", "org.apache.kafka.tools.JmxTool", "--jmx-url", url),
            *("--object-name", "kafka.server:type=KafkaServer,name=BrokerState", "--one-time"),
            *options,
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


def processes_with(text):
    """Ids of the processes whose command line names this, the demo's own apart."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if "-cp" in (words := process.info["cmdline"] or []) and text in " ".join(words)
    ]


def test_cluster_starts_with_three_brokers_and_addresses(cluster):
    metadata = cluster.admin().list_topics(timeout=60)

    assert sorted(metadata.brokers) == [1, 2, 3]
    assert metadata.cluster_id == cluster.id
    facts = json.loads(json.dumps(cluster.describe()))
    assert [node["name"] for node in facts["nodes"]] == [
        "controller-3000",
        "broker-1",
        "broker-2",
        "broker-3",
    ]
    assert all(psutil.pid_exists(node["pid"]) for node in facts["nodes"])


def test_jmx_asks_for_the_password(cluster):
    node = cluster.nodes[1]

    stranger = jmx_tool(cluster, node)
    known = jmx_tool(cluster, node, "--jmx-auth-prop", f"monitor={node.jmx_password}")

    assert "Credentials required" in stranger.stdout + stranger.stderr
    assert known.stdout.splitlines()[-1].endswith(",3"), known.stderr  # 3: running
    assert node.password_file.stat().st_mode & 0o777 == 0o600


def test_every_port_is_on_loopback_only(cluster):
    for node in cluster.nodes.values():
        listening = [
            connection.laddr
            for connection in psutil.Process(node.pid).net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
        ]
        wanted = {node.plan.port, node.plan.sasl_port, node.jmx_port} - {None}
        assert wanted <= {address.port for address in listening}
        others = [a for a in listening if not a.ip.removeprefix("::ffff:").startswith("127.")]
        # The JVM's agent for attaching listens everywhere and answers this host only.
        assert not wanted & {address.port for address in others}


@pytest.mark.parametrize(("password", "arrives"), [("alice-secret", True), ("wrong", False)])
def test_sasl_accepts_the_right_password_only(cluster, password, arrives):
    client = producer(
        cluster.sasl_bootstrap,
        "sasl-test",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username="alice",
        sasl_password=password,
    )

    if arrives:
        assert client.list_topics(timeout=60).brokers
    else:
        with pytest.raises(KafkaException):
            client.list_topics(timeout=3)


def test_killed_broker_returns_and_its_absence_is_logged(cluster):
    create_assigned(cluster, "missed", [[1, 2]], min_insync_replicas="2")
    create_assigned(cluster, "alone", [[2]])
    wait_for(lambda: replicas_in_sync(cluster, "missed") == 2, 30)
    node = cluster.nodes[2]
    old_pid, killed_at = node.pid, time.time()

    node.kill()
    assert not psutil.pid_exists(old_pid)
    wait_for(lambda: replicas_in_sync(cluster, "missed") == 1, 30)
    missed_at = time.time()
    node.restart()
    cluster.wait_ready()
    wait_for(lambda: replicas_in_sync(cluster, "missed") == 2, 30)
    whole_at = time.time()

    assert node.pid != old_pid
    records = read_log(cluster.libs, cluster.controller.plan.log_dir)
    truth = partition_truth(records, killed_at, whole_at + 1)
    (under,) = [fact for fact in truth["under_min_isr"] if fact["topic"] == "missed"]
    (leaderless,) = [fact for fact in truth["leaderless"] if fact["topic"] == "alone"]
    # The session timeout of 6 s runs from a heartbeat that is at most a second older.
    assert killed_at + 4 < seconds(under["start"]) <= missed_at
    assert missed_at < seconds(under["end"]) <= whole_at
    assert killed_at + 4 < seconds(leaderless["start"]) < seconds(leaderless["end"]) <= whole_at
    assert not [fact for fact in truth["under_min_isr"] if fact["topic"] == "alone"]


def test_paused_broker_is_silent_until_resumed(cluster):
    node = cluster.nodes[3]

    node.pause()
    wait_for(lambda: psutil.Process(node.pid).status() == psutil.STATUS_STOPPED, 30)
    node.resume()

    wait_for(lambda: psutil.Process(node.pid).status() != psutil.STATUS_STOPPED, 30)
    cluster.wait_ready()


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.nightly),
        pytest.param(signal.SIGTERM, marks=pytest.mark.nightly),
        signal.SIGKILL,
    ],
)
def test_leaves_no_process_behind(tmp_path, number):
    parent = subprocess.Popen(
        [sys.executable, "-c", STARTS_AND_WAITS, str(tmp_path / "cluster")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with parent:
        pids = json.loads(parent.stdout.readline())
        assert all(psutil.pid_exists(pid) for pid in pids)

        parent.send_signal(number)
        parent.wait(120)

    assert len(pids) == 2
    wait_for(lambda: not any(psutil.pid_exists(pid) for pid in pids), 30)


def test_interrupted_demo_leaves_no_process_behind(tmp_path):
    folder = tmp_path / "demo"
    demo = subprocess.Popen(
        [sys.executable, "-m", "demo", "--skip-report", "--folder", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with demo:
        next(line for line in demo.stdout if line.startswith("Creating topics"))
        started = processes_with(str(folder))
        demo.send_signal(signal.SIGINT)
        _, errors = demo.communicate(timeout=180)

    assert len(started) >= 4
    assert demo.returncode == 130
    assert "Traceback" not in errors
    assert processes_with(str(folder)) == []


def test_failed_node_start_shows_the_end_of_its_log(tmp_path):
    with pytest.raises(DemoError, match=r"(?s)broker-1 .*num\.io\.threads"):
        Cluster.start(tmp_path / "cluster", brokers=1, extra={"num.io.threads": "none"})


def test_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "mine").touch()

    with pytest.raises(DemoError, match="not empty"):
        Cluster.start(tmp_path)
