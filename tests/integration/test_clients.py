"""Clients of a real broker: JVMs and librdkafka that are throttled, and names that are odd."""

from __future__ import annotations

import contextlib
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import duckdb
import psutil
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from collector import catalogue
from collector.agent.scrape_attempt import Scraper
from collector.delivery.delivery import Delivery
from collector.errors import IdentityError, SourceError, SourceTimeoutError
from collector.model import Series, SystemClock
from collector.settings import Duration
from collector.sources.base.identity import Expected
from collector.sources.java import jvm
from collector.sources.jmx.attach import AttachSource
from collector.sources.jmx.rmi_source import JmxSource
from collector.sources.librdkafka import Statistics, StatisticsSource
from collector.sources.transports import Attach, Jmx
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from demo.clients import send
from demo.cluster import Cluster
from demo.jars import KAFKA
from demo.java import java_command
from demo.java_admin import Quota, set_quotas
from demo.launcher import Launcher, kill
from demo.ports import free_ports
from demo.topics import create_assigned
from lakehouse.tables import LONGEST_NAME, OTHER
from tests.jmx_sources import jmx_source
from tests.odd_names import HELD, REFUSED
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.catalogue import Family
    from collector.model import Source

pytestmark = [pytest.mark.kafka, pytest.mark.waits]

CATALOGUE = catalogue.load()
PATIENCE = Duration("30s")  # on a busy machine a first answer takes seconds
PRODUCER = 'app:one,"x"\\*?=é😀\nline'
CONSUMER = "app consumer 100%"
STATISTICS = "librdkafka,one"
USERS = ("a b/c", 'q"uo\\te', "*?=,:%41", "é😀", "line\nbreak\x07", "u" * 1500)
MAIN = Path(__file__).parent / "java" / "ThrottledClients.java"
THROTTLED = [
    *(Series(f"kafka.producer.produce_throttle_time.{which}", client_id=PRODUCER)
      for which in ("avg", "max")),
    *(Series(f"kafka.consumer.fetch_throttle_time.{which}", client_id=CONSUMER)
      for which in ("avg", "max")),
]  # fmt: skip
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker of our own: quotas make beans that others do not want."""
    users = " ".join(f'"{_in_jaas("user_" + user)}"="secret"' for user in USERS)
    extra = {
        # By default ".*", which matches no name with a carriage return: Kafka tells nothing of it.
        "metrics.jmx.include": "(?s).*",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": _in_properties(f"{LOGIN} {users};"),
    }
    with Cluster.start(tmp_path_factory.mktemp("clients") / "kafka", 1, extra=extra) as cluster:
        jvm.start(cluster.libs, timeout_seconds=PATIENCE.seconds)
        for topic in ("java", "librdkafka"):
            create_assigned(cluster, topic, [[1]])
        set_quotas(cluster, [
            Quota("producer_byte_rate", 100_000, client_id=PRODUCER),
            Quota("consumer_byte_rate", 50_000, client_id=CONSUMER),
            Quota("producer_byte_rate", 20_000, client_id=STATISTICS),
            Quota("request_percentage", 10_000, client_id="whoever"),
        ])  # fmt: skip
        yield cluster


@pytest.fixture(scope="module")
def broker(cluster: Cluster) -> Iterator[JmxSource]:
    source = jmx_source(cluster.nodes[1], cluster.id)
    yield source
    source.close()


class ClientJvm(NamedTuple):
    """A JVM with throttled clients, and its JMX port."""

    pid: int
    port: int


@pytest.fixture(scope="module")
def client_jvm(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClientJvm]:
    """It is there once its beans say that its clients are throttled."""
    launcher = Launcher()
    (port,) = free_ports(1)
    jmx = "-Dcom.sun.management.jmxremote"
    folder = tmp_path_factory.mktemp("jvm")
    command = java_command(
        *("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+PerfDisableSharedMem"),
        *(f"{jmx}.port={port}", f"{jmx}.rmi.port={port}", f"{jmx}.host=127.0.0.1"),
        *(f"{jmx}.authenticate=false", f"{jmx}.ssl=false", "-Dfile.encoding=UTF-8"),
        *("-Djava.rmi.server.hostname=127.0.0.1", "-Dsun.jnu.encoding=UTF-8"),
        *("-cp", f"{cluster.libs}/*", str(MAIN), cluster.bootstrap, "java"),
    )
    names = {"CLIENTS_PRODUCER": PRODUCER, "CLIENTS_CONSUMER": CONSUMER, "LC_ALL": "C.UTF-8"}
    process = launcher.start(command, folder / "log", names)
    try:
        client = Expected("client", "billing", cluster.id)
        with contextlib.closing(JmxSource(client, Jmx(port, timeout=PATIENCE))) as source:
            wait_for(lambda: process.poll() is not None or _are_throttled(source), 60)
        assert process.poll() is None, (folder / "log").read_text()
        yield ClientJvm(process.pid, port)
    finally:
        kill(process)
        launcher.close()


def _are_throttled(source: JmxSource) -> bool:
    # The port listens before Java's RMI has the object behind it, and both before the clients are.
    with contextlib.suppress(SourceError):
        found = values(source, CATALOGUE.family("client"))
        return all((found.get(one) or 0) > 0 for one in THROTTLED)
    return False


def values(source: Source, family: Family) -> dict[Series, float | None]:
    found: dict[Series, float | None] = {}
    for reading in source.read(family).readings:
        found.update(dict.fromkeys(reading.zeros, 0.0))
        found.update(reading.values)
    return found


def test_throttled_jvms_are_read_over_jmx_and_by_attaching(
    cluster: Cluster, client_jvm: ClientJvm
) -> None:
    billing = Expected("client", "billing", cluster.id)
    over_jmx = JmxSource(billing, Jmx(client_jvm.port, timeout=PATIENCE))
    attached = AttachSource(billing, Attach(main_class=MAIN.name, timeout=PATIENCE))
    family = CATALOGUE.family("client")
    for source in (over_jmx, attached):
        identity = source.identify()
        assert (identity.cluster, identity.node) == (cluster.id, "billing")
        assert identity.kafka_version == KAFKA
        started = psutil.Process(client_jvm.pid).create_time()
        assert abs(identity.started_us / 1e6 - started) < 60
        answer = source.read(family)
        assert answer.dropped_series == 2  # of the one with half a surrogate pair
        found = values(source, family)
        assert {one.client_id for one in found} == {PRODUCER, CONSUMER, OTHER}
        for one in THROTTLED:
            assert (found[one] or 0) > 0, one
        idle = Series("kafka.producer.produce_throttle_time.max", client_id=OTHER)
        assert not found[idle]
        source.close()


def test_client_of_unconfigured_cluster_is_refused(client_jvm: ClientJvm) -> None:
    source = JmxSource(Expected("client", "billing"), Jmx(client_jvm.port, timeout=PATIENCE))
    with pytest.raises(IdentityError, match="has no cluster id; set source"):
        source.identify()
    source.close()


def test_librdkafka_throttling_equals_the_brokers(
    cluster: Cluster, broker: JmxSource, tmp_path: Path
) -> None:
    file = tmp_path / "statistics"
    client = librdkafka(cluster, STATISTICS, file)
    source = StatisticsSource(Expected("client", "billing", cluster.id), Statistics(file))
    family, of_brokers = CATALOGUE.family("client_statistics"), CATALOGUE.family("quotas")
    labels = (("broker", "1"), ("type", "producer"))
    mean, longest = (Series(m.name, client_id=STATISTICS, labels=labels) for m in family.metrics)
    by_broker = Series("kafka.client.produce.throttle_time", client_id=STATISTICS)
    pairs: list[tuple[float, float]] = []

    def agree() -> bool:
        send(client, "librdkafka", 0, 5_000)
        client.poll(0.2)
        with contextlib.suppress(SourceError):  # no statistics yet
            found = values(source, family)
            assert (found.get(mean) or 0) <= (found.get(longest) or 0)
            both = found.get(longest), values(broker, of_brokers).get(by_broker)
            if both[0] and both[1]:
                pairs.append((both[0], both[1]))
        # While one answer is all that both remember they say the same.
        return any(told == pytest.approx(seen, rel=0.02) for told, seen in pairs)

    wait_for(agree, 60)
    source.close()


def test_client_id_breaking_librdkafka_json_is_garbage(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "statistics"
    client = librdkafka(cluster, 'quo"ted', file)
    wait_for(lambda: client.poll(0.1) >= 0 and file.exists(), 60)
    source = StatisticsSource(Expected("client", "billing", cluster.id), Statistics(file))
    why = r"some lines are invalid, as with a quote in a client\.id"
    with pytest.raises(SourceTimeoutError, match=why):
        source.read(CATALOGUE.family("client_statistics"))
    source.close()


def librdkafka(cluster: Cluster, name: str, file: Path) -> Producer:
    def append(line: str) -> None:
        with file.open("a") as opened:
            opened.write(line + "\n")

    return Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "client.id": name,
            "log_level": 0,
            "statistics.interval.ms": 200,
            "stats_cb": append,
        }
    )


def test_odd_client_names_reach_delta_or_are_counted(
    cluster: Cluster, broker: JmxSource, tmp_path: Path
) -> None:
    # Half a surrogate pair cannot be sent; a JVM may have one in its own beans, see above.
    refused = [name for name in REFUSED if name.encode("utf-8", "replace").decode() == name]
    with socket.create_connection(("127.0.0.1", cluster.nodes[1].plan.port)) as connection:
        for name in (*HELD, *refused):
            _ask_for_versions(connection, name.encode())
    family = CATALOGUE.family("client_rates")
    wanted = {Series("kafka.client.request.time", client_id=name) for name in (*HELD, OTHER)}
    wait_for(lambda: values(broker, family).keys() >= wanted, 60)
    lake = tmp_path / "lake"
    dropped = _record(broker, family, lake, tmp_path / "spool.db")
    files = DeltaTable(f"{lake}/bronze/runs").file_uris()
    rows = duckdb.read_parquet(files).project("metric, client_id, value").fetchall()
    told = {name: value for metric, name, value in rows if metric == "kafka.client.request.time"}
    assert {*HELD, OTHER} <= told.keys()
    assert not {name for name in told if name and len(name.encode()) > LONGEST_NAME}
    assert dropped >= len(refused)
    assert dropped % len(refused) == 0  # in each metric the same


def test_odd_users_are_read_as_they_call_themselves(cluster: Cluster, broker: JmxSource) -> None:
    set_quotas(cluster, [Quota("producer_byte_rate", 1e9, user=user) for user in USERS])
    clients: list[Producer] = []
    for user in USERS:
        client = Producer(
            {
                "bootstrap.servers": cluster.sasl_bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": user,
                "sasl.password": "secret",
                "log_level": 0,
            }
        )
        clients.append(client)

    def users() -> set[str | None]:
        for client, user in zip(clients, USERS, strict=True):
            send(client, "librdkafka", 0, 10)
            assert client.flush(60) == 0, user
        answer = broker.read(CATALOGUE.family("client_rates"))
        rates = {one.metric: one for one in answer.readings}["kafka.client.produce.byte_rate"]
        return {one.user for one in rates.zeros | rates.values.keys()}

    # The last is too long; the broker hears of the quotas a little later than the controller.
    wait_for(lambda: {*USERS[:-1]} <= users(), 60)
    assert not any(len(user or "") > LONGEST_NAME for user in users())


def _record(source: Source, family: Family, lake: Path, file: Path) -> int:
    """What an agent does with one scrape; returns how many series it had to fold."""
    scrape = Scraper(source, SystemClock()).attempt(family, 10_000_000)
    assert scrape.answer is not None, scrape.error
    with Spool(file, 1 << 26) as spool:
        recorder = Recorder(spool, Scope({"broker-1": None}, {}, "hash"), 300_000_000)
        recorder.record(scrape)
        recorder.flush(scrape.answered_us + 5_000_000)
        delivery = Delivery(str(lake), dict, spool)
        while delivery.deliver_next():
            pass
    return scrape.answer.dropped_series


def _ask_for_versions(connection: socket.socket, client_id: bytes) -> None:
    """An ApiVersions request of version 0; no library sends all of these names."""
    header = struct.pack(">hhih", 18, 0, 7, len(client_id)) + client_id
    connection.sendall(struct.pack(">i", len(header)) + header)
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        more = connection.recv(size - len(read))
        assert more, "the broker hung up"
        read += more
    return read


def _in_jaas(text: str) -> str:
    return (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\x07", "\\7")
    )


def _in_properties(text: str) -> str:
    """As java.util.Properties reads it: Latin 1, with escapes for the rest."""
    units = text.replace("\\", "\\\\").encode("utf-16-be")
    pairs = (unit for (unit,) in struct.iter_unpack(">H", units))
    return "".join(chr(unit) if unit < 128 else f"\\u{unit:04x}" for unit in pairs)
