"""The sources against real brokers; what all ways have in common is in test_source_contract."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from collector import catalogue
from collector.errors import (
    IdentityError,
    SourceError,
    SourceRefusedError,
    SourceTimeoutError,
)
from collector.model import Notice, Series
from collector.settings import Duration
from collector.sources.admin.admin_connection import connect
from collector.sources.admin.source import AdminSource
from collector.sources.base.identity import Expected
from collector.sources.java import jvm
from collector.sources.jmx.attach import AttachSource, find_pid
from collector.sources.jmx.rmi_source import JmxSource
from collector.sources.transports import Attach, Jmx
from demo.cluster import Cluster
from demo.java import java_command
from demo.java_admin import Quota, set_quotas
from demo.launcher import Launcher, kill, last_lines
from demo.ports import free_ports
from demo.topics import create_assigned
from lakehouse.tables import FLAG_KNOWN_WRONG
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.model import Answer, Reading
    from demo.node import Node

pytestmark = [pytest.mark.kafka, pytest.mark.waits]

TIMEOUT = Duration("30s")  # on a busy machine a first answer takes seconds
ADMIN_SECONDS = 10  # of which what a stopped broker is asked for takes some
CATALOGUE = catalogue.load()
ODD_USER = "a b/c"
ODD_CLIENT = "app:one,x"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two brokers of our own: they are paused, and get quotas and users that others do not want."""
    users = {
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{LOGIN} "user_{ODD_USER}"="odd-secret";'
        )
    }
    with Cluster.start(tmp_path_factory.mktemp("pair") / "kafka", 2, extra=users) as cluster:
        jvm.start(cluster.libs, timeout_seconds=TIMEOUT.seconds)
        for node in cluster.nodes.values():  # the JVM makes a hash of its own at the first login
            _password(node).write_text(f"{node.jmx_password}\n")
        create_assigned(cluster, "both", [[1, 2], [2, 1], [1, 2]], min_insync_replicas="2")
        create_assigned(cluster, "second-only", [[2]])
        create_assigned(cluster, "tiered", [[1]], remote_storage_enable="true")
        yield cluster


@pytest.fixture
def opened() -> Iterator[Callable[[JmxSource], JmxSource]]:
    sources: list[JmxSource] = []

    def keep(source: JmxSource) -> JmxSource:
        sources.append(source)
        return source

    yield keep
    for source in sources:
        source.close()


def jmx(node: Node, password_file: Path | None = None) -> JmxSource:
    expected = Expected("broker" if node.plan.role == "broker" else "controller", str(node.plan.id))
    assert node.jmx_port is not None
    file = password_file or _password(node)
    return JmxSource(
        expected, Jmx(node.jmx_port, user="monitor", password_file=file, timeout=TIMEOUT)
    )


def _password(node: Node) -> Path:
    return node.plan.folder / "our.password"


def reading(answer: Answer, metric: str) -> Reading:
    return next(reading for reading in answer.readings if reading.metric == metric)


def values_of(answer: Answer) -> dict[Series, float | None]:
    found: dict[Series, float | None] = {}
    for one in answer.readings:
        found.update(dict.fromkeys(one.zeros, 0.0))
        found.update(one.values)
    return found


def test_a_controller_is_read_too(pair: Cluster, opened: Callable[[JmxSource], JmxSource]) -> None:
    source = opened(jmx(pair.controller))
    assert (source.identify().cluster, source.identify().node) == (pair.id, "3000")
    answer = source.read(CATALOGUE.family("controller"))
    told = {series.metric: value for series, value in values_of(answer).items()}
    assert told["kafka.controller.active_brokers"] == 2
    assert told["kafka.controller.active"] == 1


def test_a_password_file_that_is_not_there_is_named(pair: Cluster, tmp_path: Path) -> None:
    with pytest.raises(SourceRefusedError, match="cannot read the password file"):
        jmx(pair.nodes[1], tmp_path / "none").identify()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("monitor 2rrNVSMra= /ujlX3sF= SHA3-512\n", "contains a hash"),
        ("monitor {}\n", None),
        ("\n# who may read\nmonitor {}\n", None),
    ],
)
def test_a_password_file_in_the_form_of_the_jvm(
    pair: Cluster, tmp_path: Path, content: str, told: str | None
) -> None:
    file = tmp_path / "password"
    file.write_text(content.format(_password(pair.nodes[1]).read_text().strip()))
    source = jmx(pair.nodes[1], file)
    if told is None:
        assert source.identify().node == "1"
        source.close()
    else:
        with pytest.raises(SourceRefusedError, match=told):
            source.identify()


def test_port_without_jmx_is_refused(pair: Cluster) -> None:
    with pytest.raises(SourceError, match=f"JMX of 127.0.0.1:{pair.nodes[1].plan.port}"):
        JmxSource(Expected("broker"), Jmx(pair.nodes[1].plan.port, timeout=TIMEOUT)).identify()


@pytest.mark.usefixtures("pair")
def test_registry_redirecting_to_other_host_gets_no_password(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    option, password = "-Dcom.sun.management.jmxremote", tmp_path / "password"
    password.write_text("secret\n")
    command = java_command(
        *(f"{option}.port={port}", f"{option}.rmi.port={port}", f"{option}.ssl=false"),
        *(f"{option}.authenticate=false", "-Djava.rmi.server.hostname=192.0.2.1"),
        *("-XX:TieredStopAtLevel=1", str(Path(__file__).with_name("java") / "HostileJmx.java")),
    )
    launcher, log = Launcher(), tmp_path / "log"
    process = launcher.start(command, log)
    source = JmxSource(Expected("broker"), Jmx(port, user="monitor", password_file=password))
    try:
        wait_for(lambda: "ready" in last_lines(log), 60)
        with pytest.raises(IdentityError, match=r"192\.0\.2\.1, which would get the password; set"):
            source.identify()
    finally:
        source.close()
        kill(process)
        launcher.close()


def test_a_process_that_is_not_there_cannot_be_attached_to(pair: Cluster, tmp_path: Path) -> None:
    for node in pair.nodes.values():  # other clusters may run on this host
        (tmp_path / str(node.pid)).symlink_to(f"/proc/{node.pid}")
    with pytest.raises(SourceRefusedError, match=r"0 processes that .* are JVMs and run"):
        find_pid("999999")
    assert find_pid("2", proc=tmp_path) == pair.nodes[2].pid
    with pytest.raises(SourceError, match="attaching to process 4194305"):
        AttachSource(Expected("broker"), Attach(4194305, timeout=TIMEOUT)).identify()


def test_a_quiet_scrape_hands_over_the_same_objects(
    pair: Cluster, opened: Callable[[JmxSource], JmxSource]
) -> None:
    source = opened(jmx(pair.nodes[1]))
    for name in ("min_isr", "tiered"):
        family = CATALOGUE.family(name)

        def same(family: catalogue.Family = family) -> bool:
            first, second = (source.read(family) for _ in range(2))
            assert any(one.zeros for one in first.readings)
            pairs = zip(first.readings, second.readings, strict=True)
            return all(one.zeros is other.zeros for one, other in pairs)

        wait_for(same, 30)  # topics that others of these tests made may still get their beans


def test_only_led_partitions_count(pair: Cluster, opened: Callable[[JmxSource], JmxSource]) -> None:
    sources = {number: opened(jmx(pair.nodes[number])) for number in (1, 2)}

    def led(number: int) -> set[tuple[str | None, int | None]]:
        answer = sources[number].read(CATALOGUE.family("min_isr"))
        one = reading(answer, "kafka.partition.under_min_isr")
        assert not one.values
        return {(series.topic, series.partition) for series in one.zeros}

    wait_for(lambda: {("both", 0), ("both", 2), ("tiered", 0)} <= led(1), 30)
    wait_for(lambda: {("both", 1), ("second-only", 0)} <= led(2), 30)
    assert not led(1) & led(2)


def test_a_tiered_topic_has_its_beans_and_known_faults(
    pair: Cluster, opened: Callable[[JmxSource], JmxSource]
) -> None:
    source = opened(jmx(pair.nodes[1]))
    answer = source.read(CATALOGUE.family("tiered"))
    assert all(series.topic is not None for series in values_of(answer))
    assert reading(answer, "kafka.topic.remote_copy_lag.bytes").flags == ()
    assert reading(answer, "kafka.topic.remote_delete_lag.bytes").flags == (FLAG_KNOWN_WRONG,)
    assert not reading(answer, "kafka.partition.upload_tier_lag").zeros


def test_class_refused_by_serial_filter_fails_one_scrape(
    pair: Cluster, opened: Callable[[JmxSource], JmxSource], tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text(
        "family: own\nvia: jmx\nroles: [broker]\nmetrics:\n  own.value:\n    {unit: '1',"
        " description: d, object: 'java.lang:type=Runtime', attribute: SystemProperties}\n"
    )
    source = opened(jmx(pair.nodes[1]))
    with pytest.raises(SourceError, match=r"JMX of 127\.0\.0\.1"):
        source.read(catalogue.load(tmp_path).family("own"))
    assert source.read(CATALOGUE.family("min_isr")).beans > 0


def test_missing_attribute_is_absent(
    pair: Cluster, opened: Callable[[JmxSource], JmxSource], tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text(
        "family: own\nvia: jmx\nroles: [broker]\nmetrics:\n  own.value:\n    {unit: '1',"
        " description: d, object: 'java.lang:type=Runtime', attribute: None1, filter: positive}\n"
        "  own.plain:\n    {unit: '1', description: d, object: 'java.lang:type=Runtime',"
        " attribute: None2}\n"
    )
    answer = opened(jmx(pair.nodes[1])).read(catalogue.load(tmp_path).family("own"))
    assert values_of(answer) == {}
    assert answer.beans == 0


def test_client_beans_appear_with_quota_and_decoded_names(
    pair: Cluster, opened: Callable[[JmxSource], JmxSource]
) -> None:
    source = opened(jmx(pair.nodes[1]))
    family = CATALOGUE.family("quotas")

    def clients(metric: str) -> dict[Series, float | None]:
        one = reading(source.read(family), metric)
        return {**dict.fromkeys(one.zeros, 0.0), **one.values}

    throttle, rate = "kafka.client.produce.throttle_time", "kafka.client.produce.byte_rate"
    plain = {"bootstrap.servers": pair.bootstrap, "client.id": ODD_CLIENT}
    odd = {
        "bootstrap.servers": pair.sasl_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": ODD_USER,
        "sasl.password": "odd-secret",
    }
    _produce(plain, 10)
    assert clients(throttle) == {}
    assert Series("kafka.broker.produce.queue_size") in values_of(source.read(family))
    set_quotas(
        pair,
        [
            Quota("producer_byte_rate", 1000, client_id=ODD_CLIENT),
            Quota("producer_byte_rate", 1e9, user=ODD_USER),
        ],
    )
    throttled = Series(throttle, client_id=ODD_CLIENT)
    idle = Series(throttle, user=ODD_USER)

    def are_known() -> bool:  # the broker hears of quotas late, and forgets within four seconds
        _produce(odd, 1000)
        _produce(plain, 6_000)
        found = clients(throttle)
        return found.keys() == {throttled, idle} and (found[throttled] or 0) > 100

    wait_for(are_known, 60, lambda: clients(throttle))
    assert clients(throttle)[idle] is None
    rates = reading(source.read(CATALOGUE.family("client_rates")), rate)
    assert {(series.user, series.client_id) for series in {*rates.zeros, *rates.values}} == {
        (None, ODD_CLIENT),
        (ODD_USER, None),
    }
    wait_for(lambda: clients(throttle)[throttled] is None, 30)
    first, second = (reading(source.read(family), throttle) for _ in range(2))
    assert first.values == second.values


def test_partitions_of_stopped_broker_are_read_from_others(
    pair: Cluster, opened: Callable[[JmxSource], JmxSource]
) -> None:
    other = opened(jmx(pair.nodes[1]))
    admin = AdminSource(1, connect(f"127.0.0.1:{pair.nodes[1].plan.port}", None, ADMIN_SECONDS))
    family = CATALOGUE.family("min_isr")
    before = reading(other.read(family), "kafka.partition.under_min_isr").zeros
    wait_for(lambda: _leaderless_now(admin) == set(), 30)
    pair.nodes[2].pause()
    try:
        _both_under_min_isr(other)
        wait_for(lambda: _leaderless_now(admin) == {("second-only", 0)}, 20)
        wait_for(lambda: _fenced_now(admin) == {"broker-1": 0.0, "broker-2": 1.0}, 20)
    finally:
        pair.nodes[2].resume()
    wait_for(lambda: _leaderless_now(admin) == set(), 30)
    wait_for(lambda: not reading(other.read(family), "kafka.partition.under_min_isr").values, 30)
    assert before <= reading(other.read(family), "kafka.partition.under_min_isr").zeros
    admin.close()


def test_leader_without_the_listener_is_unknown_and_an_event(
    pair: Cluster, opened: Callable[[JmxSource], JmxSource]
) -> None:
    """A listener of its own is rolled out, broker by broker: broker 2 has not got it yet."""
    (port,), node = free_ports(1), pair.nodes[1]
    properties = node.plan.folder / "server.properties"
    text = properties.read_text()
    for setting, more in (
        ("listeners=", f"MONITOR://127.0.0.1:{port},"),
        ("listener.security.protocol.map=", "MONITOR:PLAINTEXT,"),
    ):
        text = text.replace(f"\n{setting}", f"\n{setting}{more}")
    properties.write_text(text)
    node.restart()
    pair.wait_ready()
    before = AdminSource(1, connect(f"127.0.0.1:{node.plan.port}", None, ADMIN_SECONDS))
    wait_for(lambda: _leaderless_now(before) == set(), 30)
    admin = AdminSource(1, connect(f"127.0.0.1:{port}", None, TIMEOUT.seconds))
    answer = admin.read(CATALOGUE.family("leaders"))
    assert _leaderless(answer) == {}
    assert Notice("broker_without_listener", Series(""), "", "broker-2") in answer.notices
    under = "kafka.partition.under_min_isr"
    led = reading(opened(jmx(pair.nodes[2])).read(CATALOGUE.family("min_isr")), under)
    assert Series(under, "second-only", 0) in led.zeros, "its leader says that all is well"
    admin.close()
    before.close()


def _both_under_min_isr(source: JmxSource) -> None:
    def under() -> set[tuple[str | None, int | None]]:
        answer = source.read(CATALOGUE.family("min_isr"))
        one = reading(answer, "kafka.partition.under_min_isr")
        assert not one.zeros & one.values.keys()
        assert set(one.values.values()) <= {1.0}
        return {(series.topic, series.partition) for series in one.values}

    wait_for(lambda: {("both", 0), ("both", 1), ("both", 2)} <= under(), 20)


def _leaderless(answer: Answer) -> dict[Series, float | None]:
    return dict(reading(answer, "kafka.partition.leaderless").values)


def _leaderless_now(admin: AdminSource) -> set[tuple[str | None, int | None]] | None:
    """None: it asked a broker that is stopped, and will ask another."""
    with suppress(SourceTimeoutError):
        told = _leaderless(admin.read(CATALOGUE.family("leaders")))
        return {(series.topic, series.partition) for series in told}
    return None


def _fenced_now(admin: AdminSource) -> dict[str, float | None] | None:
    """None as well."""
    with suppress(SourceTimeoutError):
        return {
            dict(series.labels)["node"]: value
            for series, value in values_of(admin.read(CATALOGUE.family("topology"))).items()
            if series.metric == "kafka.cluster.node.fenced"
        }
    return None


def _produce(settings: dict[str, str], size: int) -> None:
    producer = Producer({**settings, "linger.ms": 0, "log_level": 0})
    for _ in range(3):
        producer.produce("both", b"x" * size, partition=0)
        producer.flush(60)
    assert producer.flush(60) == 0
