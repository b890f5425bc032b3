"""What a JMX port that means no good can cost: bounded time and memory, and one line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psutil
import pytest

from collector.catalogue import Family, Metric
from collector.errors import SourceError, SourceTimeoutError
from collector.settings import Duration
from collector.sources.base.identity import Expected
from collector.sources.jmx.jmxquery import JmxquerySource
from collector.sources.jolokia import JolokiaSource
from collector.sources.transports import Jmxquery, Jolokia
from demo.jars import jolokia_jar
from demo.java import java_command
from demo.launcher import Launcher, kill, last_lines
from demo.ports import free_ports
from demo.properties import as_text
from tests.hostile_rmi import HostileRmi, say_garbage, say_nothing, tell_an_endless_text
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.model import Source

TIMEOUT: Final = 3.0
_PATIENT: Final = 45.0  # to start a Java takes seconds on a busy machine, and is not what is tested
MOST_MEBIBYTES: Final = 256  # twice the Java heap of an agent
ROOT: Final = Path(__file__).parents[2]
GOOD: Final = "hostile:type=Good"
REFUSED_CLASS: Final = "which the agent does not accept"
_TOO_LATE: Final = f"no answer within {TIMEOUT:g} s"
_TOO_MUCH: Final = (
    f"OutOfMemoryError|{_TOO_LATE}"  # a busy machine may take longer to run out of it
)
BEANS: Final = {
    "Gadget": REFUSED_CLASS,
    "Queue": REFUSED_CLASS,
    "Lookup": REFUSED_CLASS,
    "Array": REFUSED_CLASS,
    "Huge": _TOO_MUCH,
    "Slow": _TOO_LATE,
    "Thrower": r"contains HostileJmx\$OwnException, which the agent does not accept",
    "Exported": r"contains java.rmi.server.UnicastRemoteObject, which",
    "Stub": r"contains javax.management.remote.rmi.RMIServerImpl_Stub, which",
    "Proxy": r"contains java.rmi.registry.Registry, which",
    "Quotes": "not a number",
}


class Ports(NamedTuple):
    """Where the hostile JVM listens."""

    jmx: int
    jolokia: int


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    folder = tmp_path_factory.mktemp("hostile")
    ports = Ports(*free_ports(2))
    config = {"host": "127.0.0.1", "port": str(ports.jolokia), "discoveryEnabled": "false"}
    (folder / "jolokia.properties").write_text(as_text(config))
    option = "-Dcom.sun.management.jmxremote"
    command = java_command(
        *("-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *(f"{option}.port={ports.jmx}", f"{option}.rmi.port={ports.jmx}"),
        *(f"{option}.authenticate=false", f"{option}.ssl=false", f"{option}.host=127.0.0.1"),
        "-Djava.rmi.server.hostname=127.0.0.1",
        f"-javaagent:{jolokia_jar()}=config={folder / 'jolokia.properties'}",
        str(Path(__file__).with_name("java") / "HostileJmx.java"),
    )
    launcher, log = Launcher(), folder / "log"
    process = launcher.start(command, log)
    try:
        wait_for(lambda: "ready" in last_lines(log) or process.poll() is not None, 60)
        assert process.poll() is None, last_lines(log)
        yield ports
    finally:
        kill(process)
        launcher.close()


def test_hostile_jmx_port_costs_bounded_time_and_memory(hostile: Ports) -> None:
    cases: list[tuple[int, str | None]] = [(hostile.jmx, GOOD)]
    for name in BEANS:
        cases += [(hostile.jmx, f"hostile:type={name}"), (hostile.jmx, GOOD)]
    with ExitStack() as fakes:
        silent, noisy, endless = (
            fakes.enter_context(HostileRmi(how)).port
            for how in (say_nothing, say_garbage, tell_an_endless_text)
        )
        cases += [(silent, None), (noisy, None), (endless, None), (hostile.jmx, GOOD)]
        told = {(one["port"], one["bean"]): one for one in _probe(cases)}
    for name, reason in BEANS.items():
        assert re.search(reason, told[hostile.jmx, f"hostile:type={name}"]["error"])
    assert told[silent, None]["outcome"] == "timeout"
    assert told[noisy, None]["outcome"] == "refused"
    assert re.search(_TOO_MUCH, told[endless, None]["error"])


def _probe(cases: list[tuple[int, str | None]]) -> list[dict[str, Any]]:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "hostile_probe.py")],
        input="".join(json.dumps({"port": port, "bean": bean}) + "\n" for port, bean in cases),
        capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(told) == len(cases)
    for one in told:
        assert one["seconds"] < TIMEOUT + 5, one
        assert one["peak"] < MOST_MEBIBYTES, one
        assert (one["outcome"] == "ok") == (one["bean"] == GOOD), one
        assert len(one["error"] or "") < 400
    return told


def _family(*names: str) -> Family:
    metrics = tuple(
        Metric(name=f"hostile.{name}", unit="1", description="", object=f"hostile:type={name}")
        for name in names
    )
    return Family(name="h", via="jmx", cadence_seconds=10, roles=("broker",), metrics=metrics)


def _source(way: str, ports: Ports, seconds: float = TIMEOUT) -> Source:
    expected, timeout = Expected("broker", "1", "c"), Duration(f"{seconds:g}s")
    if way == "jolokia":
        url = f"http://127.0.0.1:{ports.jolokia}/jolokia/"
        return JolokiaSource(expected, Jolokia(url, timeout=timeout))
    return JmxquerySource(expected, Jmxquery(ports.jmx, timeout=timeout))


@pytest.mark.parametrize("way", ["jolokia", "jmxquery"])
def test_bulk_reader_of_hostile_jmx_gets_an_error(hostile: Ports, way: str) -> None:
    told = {
        "jolokia": {
            "Gadget": "hostile:type=Gadget Value failed in the broker|not a number",
            "Huge": "longer than 64 MiB|no answer within|is not from Jolokia",
            "Thrower": "hostile:type=Thrower Value failed in the broker: .*MBeanException",
            "Quotes": 'hostile:type=Quotes Value is a", "attribute" : "b c, not a number',
        },
        "jmxquery": {
            "Gadget": "hostile:type=Gadget Value failed in the broker",
            "Huge": "jmxquery failed|longer than 64 MiB|no answer within|failed in the broker",
            "Thrower": "hostile:type=Thrower Value failed in the broker",
            "Quotes": "has an invalid line",
            "Shy": "jmxquery failed: ",
        },
    }[way]
    source = _source(way, hostile, _PATIENT)
    assert source.read(_family("Good")).readings[0].values
    for name, reason in told.items():
        started = time.monotonic()
        with pytest.raises(SourceError, match=reason) as refused:
            source.read(_family("Good", name))
        assert time.monotonic() - started < _PATIENT + 5
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 400
    assert source.read(_family("Good")).readings[0].values
    source.close()


@pytest.mark.parametrize("way", ["jolokia", "jmxquery"])
def test_slow_attribute_times_out_and_leaves_no_thread(hostile: Ports, way: str) -> None:
    source = _source(way, hostile)
    before = set(threading.enumerate())  # one of an earlier test's may still be ending
    started = time.monotonic()
    with pytest.raises(SourceTimeoutError, match=_TOO_LATE):
        source.read(_family("Good", "Slow"))
    assert time.monotonic() - started < TIMEOUT * 2 + 5  # who answers was asked first
    for thread in set(threading.enumerate()) - before:
        thread.join(60)  # it ends with the read of a socket that it is at
        assert not thread.is_alive()
    assert not _children()
    source.close()


def _children() -> list[int]:
    running = psutil.process_iter(["ppid", "cmdline"])
    ours = [one for one in running if one.info["ppid"] == os.getpid()]
    return [one.pid for one in ours if "jmxquery" in str(one.info["cmdline"])]
