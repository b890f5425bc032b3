"""Reads real brokers of many releases of Kafka and ends with a JSON line: ``make test-versions``.

Each broker is started from its own jars and put under load. Every family of the catalogue is read
over JMX and through jmx_exporter without rules. A family is ok where it has every metric of its
broker's release by the catalogue (``first`` and ``last``), and the two ways give the same values of
what did not change meanwhile: after the load, and once more when the broker is idle.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from collector import catalogue
from collector.catalogue.entries import version_key
from collector.errors import SourceError
from collector.settings import Duration
from collector.sources.base.identity import Expected
from collector.sources.java import jvm
from collector.sources.prometheus.exporter import PrometheusSource
from collector.sources.transports import Prometheus
from demo.clients import consumer, fill
from demo.cluster import Cluster
from demo.jars import KAFKA, exporter_jars, kafka_libs
from demo.java_admin import Quota, set_quotas
from demo.ports import free_ports
from demo.topics import create_assigned
from tests.equal_to_jmx import values_of
from tests.jmx_sources import jmx_source
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.catalogue import Family
    from collector.model import Series, Source
    from demo.node import NodePlan

VERSIONS: Final = ("3.6.2", "3.7.2", "3.9.1", "4.0.1", "4.1.1", "4.2.2", "4.3.1", KAFKA)
PARTITIONS: Final = 20
IDLE_SECONDS: Final = 5
FAMILIES: Final = [
    one for one in catalogue.load().families if one.via == "jmx" and "broker" in one.roles
]
# As one family: families that are read at once share the exporter's answer, which is a moment old.
COMPARED: Final = replace(
    FAMILIES[0],
    name="compared",
    metrics=tuple(
        metric
        for family in FAMILIES
        if family.name in {"min_isr", "quotas", "tiered", "requests"}
        for metric in family.metrics
    ),
)


class Outcome(NamedTuple):
    """What was seen of one release.

    Attributes:
        said: A word for each family: ok, or why not.
        compared: Values of ``COMPARED`` that did not change while both ways read them.
        different: Those of them that the exporter gave otherwise, in words.
        nonzero: Those of them that were not zero.
    """

    said: dict[str, str]
    compared: int
    different: list[str]
    nonzero: int


def read(version: str, folder: Path) -> Outcome:
    """Start a broker of a release, and read it both ways."""
    (port,) = free_ports(1)
    config = folder / "exporter.yaml"
    config.write_text("{}")
    jar = next(exporter_jars().glob("jmx_prometheus_javaagent-*.jar"))

    def options(plan: NodePlan) -> Sequence[str]:
        return [f"-javaagent:{jar}=127.0.0.1:{port}:{config}"] if plan.role == "broker" else []

    libs = kafka_libs(version)
    with Cluster.start(folder / "kafka", 1, libs=libs, jvm_options=options) as cluster:
        put_under_load(cluster)
        jmx = jmx_source(cluster.nodes[1])
        section = Prometheus(
            f"http://127.0.0.1:{port}/metrics", timeout=Duration("30s"), kafka_version=version
        )
        exported = PrometheusSource(Expected("broker", "1", cluster.id), section)
        try:
            wait_for(lambda: not missing(jmx, version, "tiered"), 60)
            said = {one.name: state(jmx, version, one) for one in FAMILIES}
            loaded = list(compare(jmx, exported))
            time.sleep(IDLE_SECONDS)
            idle = list(compare(jmx, exported))
        finally:
            exported.close()
            jmx.close()
    pairs = [*loaded, *idle]
    different = [
        f"{series}: {one} over JMX, {other} through the exporter"
        for series, one, other in pairs
        if one != other
    ]
    return Outcome(said, len(pairs), different, sum(bool(one) for _, one, _ in pairs))


def put_under_load(cluster: Cluster) -> None:
    """Write more than a quota allows to a tiered topic, and read it."""
    tiered = {"remote_storage_enable": "true", "segment_bytes": "1048576"}
    create_assigned(cluster, "tiered", [[1]] * PARTITIONS, local_retention_bytes="1", **tiered)
    set_quotas(
        cluster,
        [
            Quota("producer_byte_rate", 2_000_000, client_id="loader"),
            Quota("consumer_byte_rate", 2_000_000, client_id="reader"),
            Quota("request_percentage", 100, client_id="other"),
        ],
    )
    fill(cluster.bootstrap, "tiered", PARTITIONS, 1.2)
    reader = consumer(cluster.bootstrap, "reader", "readers")
    reader.subscribe(["tiered"])
    try:
        wait_for(lambda: bool(reader.consume(500, 1)), 60)
    finally:
        reader.close()


def missing(jmx: Source, version: str, name: str) -> list[str]:
    """The metrics of a family that a broker of this release should have, and has not."""
    (family,) = (one for one in FAMILIES if one.name == name)
    there = {one.metric for one in jmx.read(family).readings if one.zeros or one.values}
    return [
        metric.name
        for metric in family.metrics
        if metric.name not in there
        and metric.absent != "zero"
        and metric.needs in {None, "partition", "tiering"}
        and (metric.first is None or version_key(metric.first) <= version_key(version))
        and (metric.last is None or version_key(version) <= version_key(metric.last))
    ]


def state(jmx: Source, version: str, family: Family) -> str:
    """How a family is read there: ok, or why not."""
    try:
        absent = missing(jmx, version, family.name)
    except SourceError as error:
        return str(error)
    return f"absent: {', '.join(absent)}" if absent else "ok"


def compare(
    jmx: Source, exported: Source
) -> Iterator[tuple[Series, float | None, float | str | None]]:
    """Values over JMX that did not change, beside those of the exporter."""
    before, given, again = (values_of(one.read(COMPARED)) for one in (jmx, exported, jmx))
    still = (one for one, value in before.items() if again.get(one, "") == value)
    yield from ((one, before[one], given.get(one, "absent")) for one in still)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    options.add_argument("versions", nargs="*", default=VERSIONS, help="releases, such as 4.1.1")
    jvm.start(kafka_libs())
    outcomes = {}
    for version in options.parse_args().versions:
        folder = Path(tempfile.mkdtemp())
        try:
            outcomes[version] = found = read(version, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        for family, said in found.said.items():
            print(f"{version:8} {family:16} {said}")
        for one in found.different:
            print(f"{version:8} {one}")
        equal = found.compared - len(found.different)
        print(f"{version:8} {equal} of {found.compared} values equal", flush=True)
    compared = sum(one.compared for one in outcomes.values())
    different = sum(len(one.different) for one in outcomes.values())
    figures = {
        "versions": len(outcomes),
        "failed": sum(said != "ok" for one in outcomes.values() for said in one.said.values()),
        "prometheus_values": compared,
        "prometheus_nonzero": sum(one.nonzero for one in outcomes.values()),
        "prometheus_equal_percent": 100 * (1 - different / compared),
    }
    claim = "brokers of these releases are read, and an exporter gives what JMX gives"
    print(json.dumps({"claim": claim, "figures": figures, "ratios": {}}))
    sys.exit(figures["failed"] > 0 or figures["prometheus_equal_percent"] < 100)


if __name__ == "__main__":
    main()
