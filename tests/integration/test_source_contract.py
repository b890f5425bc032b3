"""What all ways to read a JVM must have in common, tried on the same real broker."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil
import pytest
from confluent_kafka import Producer
from msgspec.structs import replace

from bench.peers.exporter import write
from collector import catalogue
from collector.errors import IdentityError, SourceError, SourceRefusedError, SourceTimeoutError
from collector.model import Series
from collector.settings import Duration
from collector.sources.base.identity import Expected
from collector.sources.java import jvm
from collector.sources.jmx.attach import AttachSource
from collector.sources.jmx.jmxquery import JmxquerySource
from collector.sources.jmx.rmi_source import JmxSource
from collector.sources.jolokia import JolokiaSource
from collector.sources.prometheus import exporter_rules
from collector.sources.prometheus.exporter import PrometheusSource
from collector.sources.transports import Attach, Jmx, Jmxquery, Jolokia, Prometheus
from demo.cluster import Cluster
from demo.jars import KAFKA, exporter_jars
from demo.java_admin import Quota, set_quotas
from demo.ports import free_ports
from demo.topics import create_assigned
from lakehouse.tables import OTHER
from tests.equal_to_jmx import (
    EVERYTHING,
    MIN_ISR,
    equal_to_jmx,
    values_of,
    while_no_bean_comes,
)
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from collector.model import Answer, Source
    from demo.node import NodePlan

    Opener = Callable[..., Source]

pytestmark = [pytest.mark.kafka, pytest.mark.waits]

PATIENCE: Final = 30.0
"""For an answer that must come: on a busy machine a first one, or a JVM's start, takes seconds."""
TIMEOUT: Final = 10.0
"""For one that does not come, of a source that has answered."""
RULES: Final = Path(__file__).parents[1] / "exporter_rules"
USUAL: Final = ("confluent", "strimzi")
"""Rules of ``make test``; ``make test-truth-kafka`` reads all of them."""
WAYS: Final = ("jmx", "attach", "jolokia", "prometheus", "jmxquery")
OF_ALL_TYPES: Final = tuple(way for way in WAYS if way != "prometheus")
"""Those that read texts and whole composites."""
REMOTE: Final = ("jmx", "jolokia", "jmxquery")
"""Those with a port and a password."""
ODD_USER: Final = "a b/c"
ODD_CLIENTS: Final = ("app:one,x", 'q"uo\\te*?', "é\t%41")
ODD_NAMES: Final = {*((client, None) for client in ODD_CLIENTS), (None, ODD_USER)}
THROTTLE: Final = "kafka.client.produce.throttle_time"
LOGIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
# A composite of which two items are read, and texts that stand for a number.
HEAP: Final = catalogue.load().family("jvm")
COMPOSITE: Final = replace(
    HEAP, name="composite", metrics=tuple(one for one in HEAP.metrics if one.item)
)
TEXTS: Final = replace(
    HEAP,
    name="texts",
    metrics=(
        replace(
            HEAP.metrics[0], name="jvm.spec.is_java", object="java.lang:type=Runtime", labels={},
            kind="gauge", attribute="SpecName", states={"Java Virtual Machine Specification": 7},
        ),
        replace(
            HEAP.metrics[0], name="jvm.spec.other", object="java.lang:type=Runtime", labels={},
            kind="gauge", attribute="SpecName", states={"something else": 1, "*": 3},
        ),
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that has lost a broker: the one that is left leads what is under min ISR."""
    users = {
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{LOGIN} "user_{ODD_USER}"="odd-secret";'
        )
    }
    folder = tmp_path_factory.mktemp("contract") / "kafka"
    with Cluster.start(folder, 2, jolokia=True, extra=users, jvm_options=exporter) as cluster:
        jvm.start(cluster.libs, timeout_seconds=PATIENCE)
        create_assigned(cluster, "both", [[1, 2], [2, 1], [1, 2]], min_insync_replicas="2")
        create_assigned(cluster, "alone", [[1], [1]])
        create_assigned(cluster, "tiered", [[1]], remote_storage_enable="true")
        quotas = [Quota("producer_byte_rate", 2000, client_id=one) for one in ODD_CLIENTS]
        set_quotas(cluster, [*quotas, Quota("producer_byte_rate", 1e9, user=ODD_USER)])
        _await_throttled(cluster)
        cluster.nodes[2].kill()
        _await_settled(cluster)
        yield cluster


def _await_throttled(cluster: Cluster) -> None:
    """Let clients with odd names produce; the broker hears of their quotas a little later."""
    user = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": ODD_USER,
        "sasl.password": "odd-secret",
    }
    source = _source("jmx", cluster)

    def are_throttled() -> bool:
        for client in ODD_CLIENTS:
            _produce({"bootstrap.servers": cluster.bootstrap, "client.id": client})
        _produce({"bootstrap.servers": cluster.sasl_bootstrap, **user})
        return _throttled(values_of(source.read(EVERYTHING))) >= ODD_NAMES

    wait_for(are_throttled, 60)
    source.close()


def _await_settled(cluster: Cluster) -> None:
    """Wait for all that the tests read, of which some appears late, and for the broker's loss."""
    last = [
        Series("kafka.log.local_retention_size_percent", "tiered", 0),
        Series("kafka.partition.under_min_isr", "both", 1),  # its leader was the other broker
        Series("kafka.broker.under_min_isr_partitions"),
    ]
    source = _source("jmx", cluster)

    def settled() -> bool:
        found = values_of(source.read(EVERYTHING))
        return all(one in found for one in last) and (found[last[2]] or 0) >= 3

    wait_for(settled, 60)
    source.close()


EXPORTER_PORTS: dict[int, int] = {}


def exporter_file(plan: NodePlan) -> Path:
    return plan.folder.with_suffix(".exporter.yaml")


def exporter(plan: NodePlan) -> Sequence[str]:
    """jmx_exporter in the broker, with no rules of its own."""
    config = exporter_file(plan)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("{}")
    (EXPORTER_PORTS[plan.id],) = free_ports(1)
    jar = next(exporter_jars().glob("jmx_prometheus_javaagent-*.jar"))
    return [f"-javaagent:{jar}=127.0.0.1:{EXPORTER_PORTS[plan.id]}:{config}"]


@pytest.fixture
def opened(kafka: Cluster) -> Iterator[Opener]:
    sources: list[Source] = []

    def open_source(way: str, **changed: Any) -> Source:
        sources.append(_source(way, kafka, **changed))
        return sources[-1]

    yield open_source
    for source in sources:
        source.close()


def _source(
    way: str,
    kafka: Cluster,
    expected: Expected = Expected("broker", "1"),  # noqa: B008 - frozen
    password: Path | None = None,
    port: int | None = None,
    seconds: float = PATIENCE,
) -> Source:
    node = kafka.nodes[1]
    if way == "attach":
        return AttachSource(expected, Attach(node.pid, timeout=Duration(f"{seconds:g}s")))
    login: dict[str, Any] = {
        "user": "monitor",
        "password_file": password or node.password_file,
        "timeout": Duration(f"{seconds:g}s"),
    }
    if way == "jolokia":
        url = f"http://127.0.0.1:{port or node.plan.jolokia_port}/jolokia/"
        return JolokiaSource(expected, Jolokia(url, **login))
    if way == "prometheus":
        url = f"http://127.0.0.1:{port or EXPORTER_PORTS[node.plan.id]}/metrics"
        known = Expected(expected.role, expected.node, expected.cluster or kafka.id)
        return PrometheusSource(
            known, Prometheus(url, timeout=login["timeout"], kafka_version=KAFKA)
        )
    port = port or node.jmx_port or 0
    if way == "jmx":
        return JmxSource(expected, Jmx(port, **login))
    return JmxquerySource(expected, Jmxquery(port, **login, allow_password_in_argv=True))


def test_every_way_reads_the_same_to_the_last_bean(opened: Opener) -> None:
    told = {way: opened(way) for way in WAYS}

    def read_by_all() -> tuple[Answer, dict[str, Answer], Answer]:
        first = told["jmx"].read(EVERYTHING)
        answers = {way: told[way].read(EVERYTHING) for way in WAYS}
        return first, answers, told["jmx"].read(EVERYTHING)

    first, answers, last = while_no_bean_comes(read_by_all)
    before, again = values_of(first), values_of(last)
    still = {series for series, value in before.items() if again[series] == value}
    assert len(still) > 100
    for way, answer in answers.items():
        found = values_of(answer)
        assert found.keys() == before.keys(), way
        assert {one: found[one] for one in still} == {one: before[one] for one in still}, way
        assert answer.beans == first.beans == len(found)
        for one, other in zip(answer.readings, first.readings, strict=True):
            assert (one.metric, one.kind, one.flags) == (other.metric, other.kind, other.flags)
    _has_all_that_is_odd(before)


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=file.stem, marks=() if file.stem in USUAL else pytest.mark.nightly)
        for file in sorted(RULES.glob("*.y*ml"))
    ],
)
def test_exporter_with_published_rules_equals_jmx(
    kafka: Cluster, opened: Opener, file: Path
) -> None:
    """Of all families that these rules show; what they hide is refused, and never zero."""
    with exported_by(kafka, file) as source:
        assert {"min_isr", "tiered", "log_offsets"} <= equal_to_jmx(source, opened("jmx"))


@contextlib.contextmanager
def exported_by(kafka: Cluster, file: Path) -> Iterator[Source]:
    """The exporter of the first broker with these rules; it takes them up when its file changes."""
    text = file.read_text()
    (found,) = (one for one in exporter_rules.configurations(text) if "rules" in one)
    alone = ("startDelaySeconds", "hostPort", "jmxUrl", "ssl")  # of a server of its own
    own = exporter_file(kafka.nodes[1].plan)
    write(own, {key: value for key, value in found.items() if key not in alone})
    url = f"http://127.0.0.1:{EXPORTER_PORTS[1]}/metrics"
    timeout = Duration(f"{PATIENCE:g}s")  # the first answer by a hundred rules takes seconds
    source = PrometheusSource(
        Expected("broker", "1", kafka.id),
        Prometheus(url, timeout=timeout, rules_file=file, kafka_version=KAFKA),
    )
    try:
        yield source
    finally:
        source.close()
        write(own, {})


def _throttled(found: dict[Series, float | None]) -> set[tuple[str | None, str | None]]:
    return {(one.client_id, one.user) for one in found if one.metric == THROTTLE}


def _has_all_that_is_odd(found: dict[Series, float | None]) -> None:
    assert _throttled(found) == ODD_NAMES
    assert found[Series(THROTTLE, user=ODD_USER)] is None
    under = "kafka.partition.under_min_isr"
    assert {one[1:3]: value for one, value in found.items() if one.metric == under} | {
        ("both", 0): 1.0, ("both", 1): 1.0, ("both", 2): 1.0, ("alone", 0): 0.0, ("alone", 1): 0.0,
        ("tiered", 0): 0.0,
    } == {one[1:3]: value for one, value in found.items() if one.metric == under}  # fmt: skip


def test_every_transport_has_the_same_identity(kafka: Cluster, opened: Opener) -> None:
    told = {opened(way).identify() for way in WAYS}
    assert len(told) == 1
    process = psutil.Process(kafka.nodes[1].pid)
    identity = told.pop()
    assert (identity.cluster, identity.node, identity.kafka_version) == (kafka.id, "1", KAFKA)
    assert abs(identity.started_us / 1e6 - process.create_time()) < 60


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("expected", "told"),
    [
        (Expected("broker", "7"), "node 1 responds instead of 7"),
        (Expected("broker", "1", "another"), "responds instead of another"),
    ],
)
def test_unexpected_node_or_cluster_is_refused(
    opened: Opener, way: str, expected: Expected, told: str
) -> None:
    if way == "prometheus" and expected.cluster:
        pytest.skip("an exporter does not give its cluster's id: it is believed")
    with pytest.raises(IdentityError, match=told):
        opened(way, expected=expected).read(MIN_ISR)


@pytest.mark.parametrize("way", REMOTE)
def test_wrong_password_is_refused_without_printing_it(
    opened: Opener, way: str, tmp_path: Path
) -> None:
    wrong = tmp_path / "password"
    wrong.write_text("not-the-password\n")
    with pytest.raises(SourceRefusedError, match="the user or the password was refused") as refused:
        opened(way, password=wrong).identify()
    assert "not-the-password" not in str(refused.value)
    assert "127.0.0.1:" in str(refused.value)


@pytest.mark.parametrize("way", REMOTE)
def test_closed_port_is_refused_at_once(opened: Opener, way: str) -> None:
    (port,) = free_ports(1)
    started = time.monotonic()
    with pytest.raises(SourceRefusedError, match=f"127.0.0.1:{port}: nothing listens there"):
        opened(way, port=port).identify()
    assert time.monotonic() - started < PATIENCE


@pytest.mark.parametrize("way", WAYS)
def test_a_quiet_scrape_hands_over_the_same_objects(opened: Opener, way: str) -> None:
    source = opened(way)
    first, second = source.read(MIN_ISR), source.read(MIN_ISR)
    assert any(one.zeros for one in first.readings)
    for one, other in zip(first.readings, second.readings, strict=True):
        assert one.zeros is other.zeros, one.metric


def test_beyond_the_cap_every_way_folds_and_counts_the_same(opened: Opener) -> None:
    answers = [opened(way).read(replace(MIN_ISR, cap=5)) for way in WAYS]
    assert answers[0].dropped_series == answers[0].beans - 5
    assert any(one.topic == OTHER for one in values_of(answers[0]))
    for answer in answers[1:]:
        assert (answer.beans, answer.dropped_series) == (
            answers[0].beans,
            answers[0].dropped_series,
        )
        assert values_of(answer) == values_of(answers[0])


@pytest.mark.parametrize("way", WAYS)
def test_absent_bean_is_absent_and_text_value_is_refused(
    opened: Opener, way: str, tmp_path: Path
) -> None:
    source = opened(way)
    absent = _own(tmp_path, "java.lang:type=Runtime", "None1", "kafka.nothing:type=A", "Value")
    answer = source.read(absent)
    assert (values_of(answer), answer.beans) == ({}, 0)
    text = _own(tmp_path, "java.lang:type=Runtime", "VmName")
    if way == "prometheus":  # an exporter leaves texts out
        assert source.read(text).beans == 0
    else:
        with pytest.raises(SourceError, match=r"java\.lang:type=Runtime VmName is OpenJDK"):
            source.read(text)
    truth = _own(tmp_path, "java.lang:type=Memory", "Verbose", "java.lang:type=Threading",
                 "ThreadCpuTimeEnabled")  # fmt: skip
    assert list(values_of(source.read(truth)).values()) == [0, 1]


def _own(folder: Path, *pairs: str) -> catalogue.Family:
    metrics = "".join(
        f"  own.metric{at}:\n    {{unit: '1', description: d, object: '{name}',"
        f" attribute: {attribute}}}\n"
        for at, (name, attribute) in enumerate(zip(pairs[::2], pairs[1::2], strict=True))
    )
    (folder / "own.yaml").write_text(f"family: own\nvia: jmx\nroles: [broker]\nmetrics:\n{metrics}")
    return catalogue.load(folder).family("own")


def test_stopped_broker_times_out_and_is_read_when_resumed(kafka: Cluster, opened: Opener) -> None:
    sources = [opened(way, seconds=TIMEOUT) for way in WAYS]
    for source in sources:
        wait_for(partial(_is_read, source), 60)

    def twice_in_time(source: Source) -> None:
        for _ in range(2):  # connected, then connecting
            started = time.monotonic()
            with pytest.raises(SourceTimeoutError, match="no answer"):
                source.read(MIN_ISR)
            assert time.monotonic() - started < 2 * TIMEOUT, "and not as long as Java waits"

    kafka.nodes[1].pause()
    try:
        with ThreadPoolExecutor(len(sources)) as pool:
            list(pool.map(twice_in_time, sources))
    finally:
        kafka.nodes[1].resume()
    for source in sources:
        wait_for(partial(_is_read, source), 60)


def test_restart_is_one_error_and_a_later_start(kafka: Cluster, opened: Opener) -> None:
    sources = {way: opened(way) for way in WAYS}
    before = {way: source.identify() for way, source in sources.items()}
    kafka.nodes[1].restart()
    kafka.nodes[2].start()
    kafka.wait_ready()
    for way, source in sources.items():
        with pytest.raises(SourceError):  # never passes for the one that answered before
            source.read(MIN_ISR)
        again = opened(way) if way == "attach" else source  # another process, another pid
        wait_for(partial(_is_read, again), 60)
        identity = again.identify()
        assert identity.started_us > before[way].started_us, way


def _is_read(source: Source) -> bool:
    try:
        return source.read(MIN_ISR).beans > 0
    except SourceError:  # it is left alone for a while after a failure
        return False


def _produce(settings: dict[str, str]) -> None:
    producer = Producer({**settings, "linger.ms": 0, "log_level": 0})
    for partition in (0, 1):
        producer.produce("alone", b"x" * 1000, partition=partition)
    assert producer.flush(60) == 0


@pytest.mark.parametrize("way", WAYS)
def test_items_of_a_composite_are_read_as_numbers(way: str, opened: Opener) -> None:
    (used,), (most,) = _values(opened(way), COMPOSITE)
    assert 0 < used <= most
    assert most > 2**24


@pytest.mark.parametrize("way", OF_ALL_TYPES)
def test_texts_are_read_as_numbers(way: str, opened: Opener) -> None:
    assert _values(opened(way), TEXTS) == [[7], [3]]


def test_exporter_has_no_texts_and_no_absent_items(opened: Opener) -> None:
    source = opened("prometheus")
    with pytest.raises(SourceError, match=r"hide jvm\.spec\.is_java and 1 more of texts"):
        source.read(TEXTS)
    absent = replace(COMPOSITE.metrics[0], item="no such item")
    assert _values(source, replace(COMPOSITE, metrics=(absent,))) == [[]]


def _values(source: Source, family: catalogue.Family) -> list[list[float | None]]:
    found = {one.metric: one.values for one in source.read(family).readings}
    return [[*dict(found[one.name]).values()] for one in family.metrics]


@pytest.mark.parametrize("way", OF_ALL_TYPES)
@pytest.mark.parametrize("changes", [{"item": "no such item"}, {"item": None}])
def test_a_composite_without_that_item_is_one_clear_line(
    way: str, changes: dict[str, Any], opened: Opener
) -> None:
    source = opened(way)
    metrics = tuple(replace(one, **changes) for one in COMPOSITE.metrics[:1])
    with pytest.raises(SourceError, match="not a number; correct or remove jvm") as e:
        source.read(replace(COMPOSITE, metrics=metrics))
    assert len(str(e.value).splitlines()) == 1
