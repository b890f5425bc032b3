"""Strimzi's metrics reporter in a real broker, read as its beans over JMX are.

It is in a broker of its own: it and jmx_exporter, whose jar has the same classes of client_java in
an older version, do not get along in one JVM.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import pytest

from collector.errors import SourceError
from collector.settings import Duration
from collector.sources.base.identity import Expected
from collector.sources.java import jvm
from collector.sources.prometheus.exporter import PrometheusSource
from collector.sources.transports import Prometheus
from demo.clients import fill
from demo.cluster import Cluster
from demo.jars import KAFKA, strimzi_reporter_jars
from demo.java_admin import Quota, set_quotas
from demo.ports import free_ports
from demo.topics import create_assigned
from tests.broker_plugins import libs_with
from tests.equal_to_jmx import MIN_ISR, equal_to_jmx
from tests.jmx_sources import jmx_source

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.nightly]
ODD = 'q"uo\\te*?'


@dataclass(frozen=True)
class Reported:
    cluster: Cluster
    url: str


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reported]:
    folder = tmp_path_factory.mktemp("reported")
    (port,) = free_ports(1)
    reporters = (
        "org.apache.kafka.common.metrics.JmxReporter",
        "io.strimzi.kafka.metrics.KafkaPrometheusMetricsReporter",
    )
    settings = {
        "metric.reporters": ",".join(reporters),
        "kafka.metrics.reporters": "io.strimzi.kafka.metrics.YammerPrometheusMetricsReporter",
        "prometheus.metrics.reporter.listener": f"http://127.0.0.1:{port}",
    }
    libs = libs_with(folder, jars=strimzi_reporter_jars())
    with Cluster.start(folder / "kafka", 1, extra=settings, libs=libs) as cluster:
        jvm.start(cluster.libs, timeout_seconds=30)
        create_assigned(cluster, "plain", [[1]] * 10)
        create_assigned(cluster, "tiered", [[1]], remote_storage_enable="true")
        names = ("loader", ODD)
        set_quotas(cluster, [Quota("producer_byte_rate", 1e6, client_id=one) for one in names])
        fill(cluster.bootstrap, "plain", 10, 0.1)
        yield Reported(cluster, f"http://127.0.0.1:{port}/metrics")


@pytest.fixture
def section(reported: Reported) -> Prometheus:
    seconds = Duration("30s")  # on a busy machine a first answer takes some
    return Prometheus(reported.url, exporter="strimzi", kafka_version=KAFKA, timeout=seconds)


def source(reported: Reported, section: Prometheus) -> PrometheusSource:
    return PrometheusSource(Expected("broker", "1", reported.cluster.id), section)


def test_strimzi_reporter_equals_jmx(reported: Reported, section: Prometheus) -> None:
    jmx = jmx_source(reported.cluster.nodes[1])
    with contextlib.closing(source(reported, section)) as one, contextlib.closing(jmx):
        shown = equal_to_jmx(one, jmx)
        assert one.identify() == jmx.identify()
    assert {"min_isr", "quotas", "tiered", "log_offsets"} <= shown


def test_family_outside_allowlist_is_refused(reported: Reported, section: Prometheus) -> None:
    narrow = source(reported, msgspec.structs.replace(section, allowlist=("kafka_server_.*",)))
    hides = pytest.raises(SourceError, match=r"rules hide kafka\.partition")
    with contextlib.closing(narrow) as one, hides:
        one.read(MIN_ISR)
