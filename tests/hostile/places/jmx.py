"""Answers over JMX: what a bean's value is made of, and ports that are no RMI."""

from __future__ import annotations

import inspect
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from demo.java import java_command
from demo.launcher import Launcher, kill, last_lines
from demo.ports import free_ports
from tests import hostile_rmi
from tests.hostile import shared
from tests.hostile.case import EITHER, REFUSED, Case, Command, Found
from tests.hostile.serving import TIMEOUT, configured, settings
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack

    from tests.hostile.case import Outcome, Room

_SOURCE: Final = Path(__file__).parents[2] / "integration/java/HostileJmx.java"
_SCRAPE: Final = ("jmxlake-agent", "scrape", "--config", "agent.yaml")
_PRINTED: Final = ("Gadget", "Quotes")
_HARMLESS: Final = ("Good",)
_NO_HOST: Final = "broker.invalid"
_OPENS: Final = tuple(
    f"--add-opens=java.rmi/{package}=ALL-UNNAMED"
    for package in (
        "java.rmi", "java.rmi.dgc", "java.rmi.registry", "java.rmi.server", "java.rmi.activation",
        "sun.rmi.registry", "sun.rmi.server", "sun.rmi.transport", "sun.rmi.transport.tcp",
    )
)  # fmt: skip


def beans() -> list[str]:
    """The beans of the hostile JVM, as its source registers them."""
    found = re.findall(r"hostile:type=(\w+)", _SOURCE.read_text("utf-8"))
    return sorted(set(found))


def ports() -> list[str]:
    """The ways in which a port of ``tests/hostile_rmi.py`` means no good."""
    return [
        name
        for name, one in inspect.getmembers(hostile_rmi, inspect.isfunction)
        if one.__module__ == hostile_rmi.__name__
        and [*inspect.signature(one).parameters] == ["connection"]
    ]


def cases() -> Iterator[Case]:
    """Each bean and each port, read by an agent."""
    for name in beans():
        # jmxquery starts a Java process for each family, and reads what it prints.
        for way in ("jmx", "jmxquery") if name in _PRINTED else ("jmx",):
            codes = EITHER if name in _HARMLESS else REFUSED
            lay = partial(_lay_bean, name=name, way=way)
            yield Case("JMX", f"{way} {name}", lay, (Command(_SCRAPE, codes | {0}, seconds=90),))
    for name in ports():
        lay = partial(_lay_port, name=name)
        yield Case("JMX", f"port: {name}", lay, (Command(_SCRAPE, REFUSED, seconds=90),))
    named = Command(_SCRAPE, REFUSED, judged=_names_the_host, seconds=90)
    yield Case("JMX", "stub of another host", _lay_stub, (named,))


def _lay_bean(room: Room, name: str, way: str) -> None:
    port = shared.once("hostile JVM", partial(_started, host="127.0.0.1"))
    room.write("beans/hostile.yaml", yaml.safe_dump({
        "family": "hostile", "via": "jmx", "cadence_seconds": 10, "roles": ["broker"],
        "metrics": {"hostile.value": {
            "object": f"hostile:type={name}", "unit": "1", "description": "A value."}},
    }))  # fmt: skip
    _configure(room, port, way, catalogue=str(room.path / "beans"))


def _lay_port(room: Room, name: str) -> None:
    misbehaviour = getattr(hostile_rmi, name)
    server = room.stack.enter_context(hostile_rmi.HostileRmi(misbehaviour))
    _configure(room, server.port, "jmx")


def _lay_stub(room: Room) -> None:
    _configure(room, shared.once("stub JVM", partial(_started, host=_NO_HOST)), "jmx")


def _configure(room: Room, port: int, way: str, **more: Any) -> None:
    told = settings(room, **more)
    reached = {
        "host": "127.0.0.1",
        "port": port,
        "timeout": "20s" if way == "jmxquery" else TIMEOUT,
    }
    told["source"] = {"node": 1, "cluster": "c", way: reached}
    configured(room, told)


def _names_the_host(_: Room, outcome: Outcome) -> Iterator[Found]:
    if _NO_HOST not in outcome.err + outcome.out:
        yield Found("wrong_codes", f"the host of the stub is not named: {outcome.err[-200:]}")


def _started(folder: Path, stack: ExitStack, host: str) -> int:
    """Start the hostile JVM; its port."""
    (port,) = free_ports(1)
    option = "-Dcom.sun.management.jmxremote"
    command = java_command(
        "-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *_OPENS,
        f"{option}.port={port}", f"{option}.rmi.port={port}", f"{option}.authenticate=false",
        f"{option}.ssl=false", f"{option}.host=127.0.0.1", f"-Djava.rmi.server.hostname={host}",
        str(_SOURCE),
    )  # fmt: skip
    launcher, log = Launcher(), folder / "log"
    process = launcher.start(command, log)
    stack.callback(launcher.close)
    stack.callback(kill, process)
    wait_for(lambda: "ready" in last_lines(log) or process.poll() is not None, 120)
    assert process.poll() is None, last_lines(log)
    return port
