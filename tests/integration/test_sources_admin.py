"""Offsets, commits, quotas and topology as Kafka's Admin API tells them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer

from collector import catalogue
from collector.agent.scrape_attempt import Scraper
from collector.errors import IdentityError, SourceRefusedError, SourceTimeoutError
from collector.model import Commit, Notice, Partition, Series, SystemClock
from collector.sources.admin.admin_connection import AdminConnection, connect, java_admin
from collector.sources.admin.client import KafkaAdmin
from collector.sources.admin.group_answers import of_groups
from collector.sources.admin.source import AdminSource
from collector.sources.base.error_mapping import is_answer
from collector.sources.java import jvm
from demo.cluster import Cluster
from demo.java_admin import Quota, set_quotas
from demo.ports import free_ports
from demo.properties import RACKS
from demo.topics import configure, create_assigned, delete, delete_records
from tests.commits import commit
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from collector.model import Answer

pytestmark = [pytest.mark.kafka, pytest.mark.waits]

CATALOGUE = catalogue.load()


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker of our own, which leads everything and has no quota yet."""
    with Cluster.start(tmp_path_factory.mktemp("single") / "kafka", 1) as cluster:
        jvm.start(cluster.libs, timeout_seconds=30)
        create_assigned(cluster, "plain", [[1], [1]])
        create_assigned(cluster, "compacted", [[1]], cleanup_policy="compact")
        create_assigned(cluster, "tiered", [[1]], remote_storage_enable="true", retention_ms="-1")
        for topic in ("plain", "compacted"):
            _fill(cluster, topic)
        yield cluster


@pytest.fixture
def admin(single: Cluster) -> Iterator[AdminSource]:
    source = AdminSource(1, connect(single.bootstrap, None, 30), single.id)
    yield source
    source.close()


def values_of(answer: Answer, metric: str) -> dict[Series, float | None]:
    reading = next(one for one in answer.readings if one.metric == metric)
    return {**dict.fromkeys(reading.zeros, 0.0), **reading.values}


def test_the_cluster_is_the_one_expected(single: Cluster, admin: AdminSource) -> None:
    assert admin.identify().cluster == single.id
    assert admin.identify() is admin.identify()
    other = AdminSource(1, connect(single.bootstrap, None, 30), "another")
    with pytest.raises(IdentityError, match="responds instead of another"):
        other.identify()
    other.close()


@pytest.mark.usefixtures("single")
def test_unreachable_cluster_ends_in_time(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with pytest.raises(SourceTimeoutError, match=f"Admin of 127.0.0.1:{port}"):
        AdminSource(1, connect(f"127.0.0.1:{port}", None, 1)).identify()
    with pytest.raises(SourceRefusedError, match="cannot read properties_file"):
        AdminSource(1, connect(f"127.0.0.1:{port}", tmp_path / "none")).identify()


def test_a_properties_file_brings_the_security(single: Cluster, tmp_path: Path) -> None:
    secured = tmp_path / "client.properties"
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    for password, refused in (("alice-secret", False), ("wrong", True)):
        secured.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={login} username="alice" password="{password}";\n'
        )
        source = AdminSource(1, connect(single.sasl_bootstrap, secured, 30))
        if refused:
            with pytest.raises(SourceRefusedError, match="file were refused") as error:
                source.identify()
            assert "wrong" not in str(error.value)
        else:
            assert source.identify().cluster == single.id
        source.close()


def test_source_reports_partitions_it_leads_only(admin: AdminSource, single: Cluster) -> None:
    told = values_of(admin.read(CATALOGUE.family("leaders")), "kafka.partition.leaderless")
    assert {("plain", 0), ("plain", 1), ("tiered", 0)} <= {(s.topic, s.partition) for s in told}
    assert set(told.values()) == {0.0}
    another = AdminSource(2, connect(single.bootstrap, None, 30))
    assert another.read(CATALOGUE.family("leaders")).beans == 0
    another.close()


def test_offsets_and_commits_are_read_together(admin: AdminSource, single: Cluster) -> None:
    offsets = admin.read(CATALOGUE.family("offsets")).offsets
    assert offsets is not None
    assert offsets.commits_after == {}, "there is no group yet"
    commit(single, "readers", {("plain", 0): 4, ("compacted", 0): 2})
    delete_records(single, "plain", 7)
    answer = admin.read(CATALOGUE.family("offsets"))
    assert answer.offsets is not None
    assert answer.offsets.log_starts[Partition("plain", 0)] == 7
    assert Partition("compacted", 0) not in answer.offsets.log_starts
    commits = {c: at for c, at in answer.offsets.commits_after.items() if c.group == "readers"}
    assert commits == {Commit("readers", "plain", 0): 4, Commit("readers", "plain", 1): None}
    assert answer.offsets.commits_before == answer.offsets.commits_after
    lag = {one.topic: value for one, value in values_of(answer, "kafka.group.lag").items()}
    assert lag == {"plain": 3, "compacted": 8}, "from the log's start, or from the commit"
    (single,) = (
        value
        for one, value in values_of(answer, "kafka.group.partition_lag").items()
        if (one.topic, one.partition, one.group) == ("plain", 0, "readers")
    )
    assert single == 3


def test_untiered_records_are_of_tiered_topics_only(admin: AdminSource, single: Cluster) -> None:
    family = CATALOGUE.family("tiered_offsets")
    (metric,) = (one.name for one in family.metrics)
    assert values_of(admin.read(family), metric) == {Series(metric, "tiered", 0): 0}
    _fill(single, "tiered")
    assert values_of(admin.read(family), metric) == {Series(metric, "tiered", 0): 11}, "10, rounded"


def test_lag_age_of_group_counts_from_its_last_catch_up(
    admin: AdminSource, single: Cluster
) -> None:
    create_assigned(single, "late", [[1]])
    _fill(single, "late")
    for group, position in (("on-time", 10), ("stranger", 4)):
        commit(single, group, {("late", 0): position})

    def read() -> dict[str | None, tuple[float | None, float | None]]:
        answer = admin.read(CATALOGUE.family("offsets"))
        low, high = (
            {one.group: value for one, value in values_of(answer, metric).items()
             if one.topic == "late"}
            for metric in ("kafka.group.time_lag.low", "kafka.group.time_lag.high")
        )  # fmt: skip
        return {group: (low[group], high[group]) for group in low}

    assert read() == {"on-time": (0, None), "stranger": (0, None)}
    _fill(single, "late")
    time.sleep(1)
    for _ in range(2):
        found = read()
    assert found["stranger"] == (0, None), "it was behind when we came"
    low, high = found["on-time"]
    assert low == 0
    assert high is not None
    assert 1 < high <= 60, "what it has to read came after the first scrape"


def test_an_assigned_group_counts_before_its_first_commit(
    admin: AdminSource, single: Cluster
) -> None:
    consumer = Consumer({"bootstrap.servers": single.bootstrap, "group.id": "newcomers"})
    consumer.subscribe(["plain"])
    while not consumer.assignment():
        consumer.poll(0.2)
    answer = admin.read(CATALOGUE.family("offsets"))
    consumer.close()
    assert answer.offsets is not None
    commits = {c: at for c, at in answer.offsets.commits_before.items() if c.group == "newcomers"}
    assert commits == {Commit("newcomers", "plain", number): None for number in (0, 1)}


@pytest.mark.usefixtures("single")
def test_failed_group_is_omitted_and_named() -> None:
    future, errors = (
        jvm.java("org.apache.kafka.common.internals.KafkaFutureImpl"),
        "org.apache.kafka.common.errors",
    )
    well, gone, forbidden = future(), future(), future()
    well.complete("told")
    gone.completeExceptionally(jvm.java(f"{errors}.GroupIdNotFoundException")("gone"))
    forbidden.completeExceptionally(jvm.java(f"{errors}.GroupAuthorizationException")("secret"))
    found = of_groups({"well": well, "gone": gone, "forbidden": forbidden}, str)
    assert found == ({"well": "told", "gone": "None"}, {"forbidden": "GroupAuthorizationException"})
    with pytest.raises(jvm.java("java.util.concurrent.ExecutionException")) as refused:
        of_groups({"forbidden": forbidden}, str)
    assert is_answer(refused.value), "so the client is kept"


def test_large_cluster_lists_topics_once_a_minute(
    single: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.sources.admin.client._LARGE_CLUSTER", 0)
    now = 0.0
    client = KafkaAdmin(java_admin(single.bootstrap, None, 30), 30, clock=lambda: now)
    before = client.topics(held_by=1)
    create_assigned(single, "newcomer", [[1]])
    asker = single.admin()
    wait_for(lambda: "newcomer" in asker.list_topics(timeout=60).topics, 20)  # a broker learns late
    assert client.topics(held_by=1) == before
    assert client.topics(held_by=2) == before, "it holds nothing, so nothing is asked"
    now = 60
    (found, _), (known, _) = client.topics(held_by=2), before
    assert found.keys() - known.keys() == {"newcomer"}
    delete(single, "newcomer")
    wait_for(lambda: client.topics(held_by=1) == before, 20)
    assert client.topics() == before
    client.close()


class Recorded:
    """A Java Admin client, and when it was asked what."""

    def __init__(self, admin: Any) -> None:
        self._admin = admin
        self.calls: list[tuple[int, str]] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append((SystemClock().wall_us(), name))
        return getattr(self._admin, name)


def test_whatever_an_answer_rests_on_was_asked_within_its_scrape(single: Cluster) -> None:
    """Else a change would be told with bounds that do not hold it (an answer kept for others)."""
    recorded = Recorded(java_admin(single.bootstrap, None, 30))
    connection = AdminConnection(lambda: KafkaAdmin(recorded, 30), "Admin", 30)
    scraper = Scraper(AdminSource(1, connection, single.id), SystemClock())
    topics = {"listTopics", "describeTopics"}
    rests_on = {
        "leaders": {"describeCluster", *topics},
        "topology": {"describeCluster", *topics, "describeConfigs"},
        "quota_limits": {"describeCluster", "describeClientQuotas"},
        "tiered_offsets": {*topics, "describeConfigs", "listOffsets"},
    }
    for name, wanted in [*rests_on.items()] * 2:
        recorded.calls.clear()
        scrape = scraper.attempt(CATALOGUE.family(name), 60_000_000)
        assert scrape.outcome == "ok", scrape.error
        assert wanted <= {call for _, call in recorded.calls}, name
        assert all(scrape.asked_us <= at <= scrape.answered_us for at, _ in recorded.calls)
    connection.close()


def test_topology_has_topics_and_their_changes(admin: AdminSource, single: Cluster) -> None:
    answer = admin.read(CATALOGUE.family("topology"))
    ((node, alive),) = values_of(answer, "kafka.cluster.node.fenced").items()
    assert (dict(node.labels), alive) == ({"node": "broker-1", "rack": RACKS[0]}, 0)
    assert (
        values_of(answer, "kafka.topic.partitions")[Series("kafka.topic.partitions", "plain")] == 2
    )
    tiered = values_of(answer, "kafka.topic.remote_storage_enabled")
    assert {series.topic for series, value in tiered.items() if value} == {"tiered"}
    kept = values_of(answer, "kafka.topic.retention_time")
    assert kept[Series("kafka.topic.retention_time", "tiered")] == -1
    assert answer.notices == ()
    configure(single, "plain", {"min.insync.replicas": "1", "retention.ms": "12345"})
    admin.close()  # what was read before outlives the connection, what is cached does not
    change = "config_change", Series("", "plain"), "retention.ms=604800000", "retention.ms=12345"
    noticed: list[Notice] = []

    def is_noticed() -> bool:  # the broker hears of it a little later than the controller
        noticed.extend(admin.read(CATALOGUE.family("topology")).notices)
        return Notice(*change) in noticed

    wait_for(is_noticed, 20, lambda: noticed)


def test_quotas_are_read_with_their_changes(admin: AdminSource, single: Cluster) -> None:
    family = CATALOGUE.family("quota_limits")
    assert admin.read(family).beans == 0
    set_quotas(single, [Quota("producer_byte_rate", 5000, client_id="a,b")])
    set_quotas(single, [Quota("request_percentage", 50, user="alice")])
    answers: list[Answer] = []

    def both_are_told() -> bool:  # the broker hears of them a little later than the controller
        answers.append(admin.read(family))
        return answers[-1].beans == 2

    wait_for(both_are_told, 20, lambda: answers[-1])
    answer = answers[-1]
    limit = "kafka.quota.produce.byte_rate"
    assert values_of(answer, limit) == {Series(limit, client_id="a,b"): 5000}
    percentage = "kafka.quota.request.percentage"
    assert values_of(answer, percentage) == {Series(percentage, user="alice"): 50}
    told = [(n.kind, n.subject.client_id, n.old, n.new) for one in answers for n in one.notices]
    assert sorted(told, key=str) == [
        ("quota_change", "a,b", None, "producer_byte_rate=5000.0"),
        ("quota_change", None, None, "request_percentage=50.0"),
    ]
    assert admin.read(family).notices == ()


def _fill(cluster: Cluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(10):
        producer.produce(topic, b"x", key=str(number), partition=0)
    assert producer.flush(30) == 0
