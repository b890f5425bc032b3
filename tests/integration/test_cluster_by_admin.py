"""A real cluster without any JMX, read by one agent over its Admin API alone, up to its report."""

from __future__ import annotations

import json
import subprocess
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import jpype
import pytest
import yaml
from confluent_kafka import KafkaException, Producer

from collector import catalogue
from collector.errors import SourceRefusedError
from collector.sources.admin.admin_connection import AdminConnection, connect
from collector.sources.admin.group_answers import get
from collector.sources.admin.source import AdminSource
from collector.sources.java import jvm
from demo.agents import INTERVALS, script
from demo.cluster import Cluster
from demo.jars import msk_iam_jar
from demo.java_admin import Quota, set_quotas
from demo.ports import free_ports
from demo.topics import create_assigned, delete_records
from lakehouse.core import lake as lakes
from lakehouse.core.periods import Period
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts import build as reports
from lakehouse.report.page.page import render
from lakehouse.slo.openslo import objective_files
from tests import page_reader, rollups
from tests.commits import commit
from tests.running import RunningAgent
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from confluent_kafka.admin import AdminClient

    from collector.sources.admin.client import KafkaAdmin

pytestmark = [pytest.mark.kafka, pytest.mark.waits]

SECOND: Final = 1_000_000
ADMIN: Final = ("partitions", "offsets", "tiered_offsets", "quota_limits", "topology")
OUT_OF_REACH: Final = "Not collected: the Admin API does not provide it"


class Story(NamedTuple):
    """What happened, as another client of the cluster saw it, and the report on it.

    Attributes:
        under: From when to when a poll saw a partition under its min ISR, and the longest time
            between two polls; microseconds.
        leaderless: The same of one without a leader.
    """

    under: tuple[int, int, int]
    leaderless: tuple[int, int, int]
    facts: dict[str, Any]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers, none of which has a JMX port."""
    with Cluster.start(tmp_path_factory.mktemp("managed") / "kafka", jmx=False) as running:
        create_assigned(running, "held", [[1, 3], [1, 2]], min_insync_replicas="2")
        create_assigned(running, "alone", [[3], [1]])
        create_assigned(running, "read", [[1], [2]])
        create_assigned(running, "tiered", [[1]], remote_storage_enable="true", retention_ms="-1")
        set_quotas(running, [Quota("producer_byte_rate", 1024.0, user="alice")])
        producer = Producer({"bootstrap.servers": running.bootstrap})
        for topic in ("read", "tiered"):
            for number in range(20):
                producer.produce(topic, str(number), partition=0)
        assert producer.flush(60) == 0
        commit(running, "readers", {("read", 0): 4})
        yield running


@pytest.fixture
def settings(cluster: Cluster, tmp_path: Path) -> dict[str, Any]:
    """For one reading: on a busy machine a first one, which connects, may take some seconds."""
    unhurried = {name: {"interval": "20s"} for name in ADMIN}
    return {**settings_of(cluster, tmp_path), "families": unhurried}


def settings_of(cluster: Cluster, folder: Path) -> dict[str, Any]:
    return {
        "source": {"node": "all", "role": "cluster"},
        "admin": {"bootstrap": cluster.bootstrap, "libs": str(cluster.libs), "timeout": "20s"},
        "lake": {"path": str(folder / "lake"), "commit_interval": "5s"},
        "spool": {"path": str(folder / "spool.db")},
        "health": {"port": free_ports(1)[0]},
        "window": "1m",
        "families": {name: {"interval": INTERVALS.get(name, "2s")} for name in ADMIN},
    }


@pytest.fixture(scope="module")
def story(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The broker that leads a partition alone is killed and comes back; a group loses 6 offsets."""
    folder = tmp_path_factory.mktemp("story")
    started = time.time()
    with RunningAgent(settings_of(cluster, folder), folder) as agent:
        for family in ADMIN:
            wait_for(partial(_has_read_more, agent, family, 0), 120, agent.log.read_text)
        delete_records(cluster, "read", 10)
        wait_for(partial(_has_read_more, agent, "offsets", agent.scrapes("offsets")), 60)
        (node,) = (one for one in cluster.brokers if one.plan.id == 3)
        node.kill()
        try:
            watch = Watch(cluster.admin())
            wait_for(lambda: watch.look() == {"under", "leaderless"}, 60)
            until = time.monotonic() + 15
            while time.monotonic() < until:
                watch.look()
        finally:
            node.start()
        wait_for(lambda: not watch.look(), 120)
        for family in ("partitions", "offsets"):
            wait_for(partial(_has_read_more, agent, family, agent.scrapes(family)), 60)
        assert agent.stop() == 0, agent.log.read_text()
    lake = folder / "lake"
    rollups.local(lake)
    period = Period.of((int(started) * SECOND, int(time.time()) * SECOND))
    told = reports.facts(LocalEngine(lakes.at(str(lake))), objective_files.load(), period)
    return Story(watch.times("under"), watch.times("leaderless"), told)


def _has_read_more(agent: RunningAgent, family: str, than: float) -> bool:
    """Twice, so that one of the readings was asked for after this was."""
    return agent.scrapes(family) >= than + 2


class Watch:
    """Asks a broker again and again which of two partitions is bad."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client
        self._polls: list[tuple[int, int, frozenset[str]]] = []

    def look(self) -> frozenset[str]:
        """What is bad now: under min ISR, or without a leader."""
        try:
            return self._poll()
        except KafkaException:  # it asked a broker that had just died, and has heard of that now
            return self._poll()

    def _poll(self) -> frozenset[str]:
        asked = time.time_ns() // 1000
        topics = self._client.list_topics(timeout=60).topics
        held, alone = topics["held"].partitions[0], topics["alone"].partitions[0]
        found = {"under"} if len(held.isrs) < 2 else set()
        found |= {"leaderless"} if alone.leader == -1 else set()
        self._polls.append((asked, time.time_ns() // 1000, frozenset(found)))
        time.sleep(0.1)
        return frozenset(found)

    def times(self, what: str) -> tuple[int, int, int]:
        """When it was bad first and last, and the longest time between two polls."""
        bad = [(asked, answered) for asked, answered, found in self._polls if what in found]
        longest = max(b[1] - a[0] for a, b in zip(self._polls, self._polls[1:], strict=False))
        return bad[0][0], bad[-1][1], longest


def call(settings: dict[str, Any], folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    path = folder / "agent.yaml"
    path.write_text(yaml.safe_dump(settings))
    command, *others = options
    return subprocess.run(
        [script("jmxlake-agent"), command, "--config", str(path), *others],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_check_needs_no_jvm_to_read(
    settings: dict[str, Any], cluster: Cluster, tmp_path: Path
) -> None:
    ran = call(settings, tmp_path, "check", "--json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    (admin,) = (row for row in rows if row["check"] == "admin")
    assert admin["found"] == f"cluster {cluster.id}, all brokers"
    assert {row["family"] for row in rows if row["check"] == "metric"} == set(ADMIN)
    assert all(row["ok"] for row in rows), rows
    assert "kafka.cluster.node.fenced" not in ran.stdout, "no broker is expected to be read"


def test_once_reads_partitions_of_every_leader(settings: dict[str, Any], tmp_path: Path) -> None:
    ran = call(settings, tmp_path, "scrape", "--json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    values = {
        (row["metric"], row.get("topic"), row.get("user")): row["value"]
        for row in rows if "metric" in row
    }  # fmt: skip
    assert values["kafka.topic.partitions", "alone", None] == 2, "broker 3 leads its first"
    assert values["kafka.quota.produce.byte_rate", None, "alice"] == 1024
    assert values["kafka.partition.untiered_records", "tiered", None] in {20, 22}
    assert values["kafka.group.lag", "read", None] >= 10


def test_top_counts_partitions_without_leader(settings: dict[str, Any], tmp_path: Path) -> None:
    ran = call(settings, tmp_path, "top", "-n", "1")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "no leader 0   under min ISR 0" in ran.stdout, ran.stdout
    assert "fenced" not in ran.stdout


IAM: Final = """security.protocol=SASL_PLAINTEXT
sasl.mechanism=AWS_MSK_IAM
sasl.jaas.config=software.amazon.msk.auth.iam.IAMLoginModule required;
sasl.client.callback.handler.class={handler}
"""


@pytest.mark.parametrize(
    ("handler", "with_jar", "said"),
    [
        ("software.amazon.msk.auth.iam.IAMClientCallbackHandler", True,
         "file were refused"),  # a broker of ours has no such mechanism, and is asked for it
        ("software.amazon.msk.auth.iam.IAMClientCallbackHandler", False,
         "software.amazon.msk.auth.iam.IAMClientCallbackHandler"),
        pytest.param("software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler", True,
         "only classes of Kafka and", marks=pytest.mark.nightly),
    ],
)  # fmt: skip
def test_msk_login_is_that_of_aws_and_off_by_default(
    settings: dict[str, Any], cluster: Cluster, tmp_path: Path, handler: str, said: str,
    *, with_jar: bool,
) -> None:  # fmt: skip
    (tmp_path / "client.properties").write_text(IAM.format(handler=handler))
    (tmp_path / "client.properties").chmod(0o400)
    settings["admin"] |= {
        "bootstrap": cluster.sasl_bootstrap,
        "properties_file": str(tmp_path / "client.properties"),
        **({"iam_jar": str(msk_iam_jar())} if with_jar else {}),
    }
    ran = call(settings, tmp_path, "check")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    line = next(line for line in ran.stdout.splitlines() if line.startswith("FAILED  admin"))
    assert said in line, ran.stdout
    assert "Traceback" not in ran.stdout + ran.stderr


def test_a_jar_that_is_not_there_is_a_wrong_configuration(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    settings["admin"]["iam_jar"] = str(tmp_path / "none.jar")
    ran = call(settings, tmp_path, "check")
    assert ran.returncode == 78, ran.stdout + ran.stderr
    assert f"admin.iam_jar: {tmp_path}/none.jar does not exist" in ran.stderr


def test_unsupported_request_is_one_line(cluster: Cluster) -> None:
    """A fake refuses the quotas with Java's own exception, as Kafka's client does it."""
    jvm.start(cluster.libs, timeout_seconds=30)
    connection = connect(cluster.bootstrap, None, 20)
    make = connection._make

    def refusing() -> KafkaAdmin:
        made = make()
        made.quotas = lambda: get(_refused())  # type: ignore[method-assign]
        return made

    source = AdminSource(None, AdminConnection(refusing, connection.where, 20))
    families = {one.name: one for one in catalogue.load().preferring("partitions").families}
    with pytest.raises(SourceRefusedError, match=r"does not support this request.*QUOTAS"):
        source.read(families["quota_limits"])
    assert source.read(families["partitions"]).beans > 0, "the others are read"
    source.close()


def _refused() -> Any:
    future = jpype.JClass("java.util.concurrent.CompletableFuture")()
    kind = jpype.JClass("org.apache.kafka.common.errors.UnsupportedVersionException")
    future.completeExceptionally(kind("The broker does not support DESCRIBE_CLIENT_QUOTAS"))
    return future


def test_min_isr_and_leaders_equal_a_second_client(story: Story) -> None:
    topics = {row["topic"]: row for row in story.facts["min_isr"]["topics"]}
    partitions = {
        (row["topic"], row["partition"]): row for row in story.facts["min_isr"]["partitions"]
    }
    bounds = partitions["held", 0]
    for of, bound, (first, last, longest) in (
        (bounds, "under", story.under),
        (partitions["alone", 0], "leaderless", story.leaderless),
    ):
        least, most = last - first, last - first + 2 * longest
        assert of[f"{bound}_low_us"] <= most, "bounds hold what happened"
        assert of[f"{bound}_high_us"] >= least, "bounds hold what happened"
        assert of[f"{bound}_low_us"] >= 10 * SECOND, "and say something"
        assert of[f"{bound}_high_us"] <= most + 20 * SECOND
    assert ("held", 1) not in partitions
    assert ("alone", 1) not in partitions
    assert topics["held"]["max_concurrent"] == 1
    assert topics["read"]["unavailable_any_us"] == 0, "seen to be well"
    for name in ("held", "alone", "read"):
        assert topics[name]["unknown_us"] < 30 * SECOND, "all partitions are claimed"


def test_lag_and_loss_of_a_group(story: Story) -> None:
    (lost,) = story.facts["lost_before_read"]["groups"]
    assert (lost["group"], lost["topic"], lost["partition"]) == ("readers", "read", 0)
    assert lost["offsets_low"] == 6
    assert lost["offsets_high"] == (None if lost["unknown_us"] else 6)
    (lag,) = (one for one in story.facts["consumer_lag"]["groups"] if one["group"] == "readers")
    assert 13 < lag["most"]["records_low"] <= 16, "before the loss"
    if lag["unknown_us"]:
        assert lag["most"]["records_high"] is None, "the lag may have been greater meanwhile"
    else:
        assert 16 <= lag["most"]["records_high"] < 20
    assert lag["last"]["records_high"] is None or lag["last"]["records_high"] >= 10, "16 less 6"
    assert lag["unknown_us"] < 30 * SECOND, "no broker beside is waited for"


def test_expected_source_is_the_single_agent(story: Story) -> None:
    rows = story.facts["coverage"]["sources"]
    assert {row["source"] for row in rows} == {"cluster-all"}
    assert {row["family"] for row in rows} == set(ADMIN)
    assert story.facts["coverage"]["percent"] > 50


def test_questions_for_beans_only_are_unknown(story: Story) -> None:
    page = page_reader.read(render(story.facts))
    lines = {
        fold.one("div").attributes["id"]: fold.one("summary").text for fold in page.all("details")
    }
    for anchor in ("d-throttling", "d-tiered", "d-requests"):
        assert OUT_OF_REACH in lines[anchor], anchor
    for anchor in ("d-availability", "d-loss", "d-lag"):
        assert OUT_OF_REACH not in lines[anchor], anchor
    verdicts = {row["objective"]: row["verdict"] for row in story.facts["verdicts"]}
    for name in ("produce-throttling", "fetch-throttling", "request-throttling", "copy-lag"):
        assert verdicts[name] == "no_data", verdicts
    assert verdicts["min-isr"] == "missed"
