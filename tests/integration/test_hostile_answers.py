"""Each class of RMI that can be sent, at each place where a JMX server answers.

A fake JMX server sends the objects that HostileObjects.java makes. Whatever they are, the agent
opens no port, calls nobody but the server, and goes on reading.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from collector.sources.java.serial_filter import VALUES
from demo.java import java_command
from demo.ports import free_ports
from tests.hostile_rmi import FakeJmx, HostileRmi, Misled

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
GOOD: Final = "hostile:type=Good"
NOBODY: Final = "127.0.0.2"
LONGEST: Final = 500
_OPENED: Final = (
    *("java.rmi/java.rmi", "java.rmi/java.rmi.server", "java.rmi/sun.rmi.registry"),
    *("java.rmi/sun.rmi.server", "java.rmi/sun.rmi.transport", "java.rmi/sun.rmi.transport.tcp"),
    *("java.management/javax.management.openmbean", "java.base/java.lang"),
    "java.management.rmi/javax.management.remote.rmi",
)
_STUBS: Final = ("RMIServerImpl_Stub", "RMIConnectionImpl_Stub")
_QUESTIONS: Final = (
    *("lookup", "newClient", "queryNames", "getAttribute", "getAttributes"),
    *("addNotificationListeners", "fetchNotifications"),
)
_ASKED_AGAIN: Final = "getAttributes"
"""Where its answer is refused, attributes are read one by one."""


class Sent(NamedTuple):
    """An object of HostileObjects.java."""

    kind: str
    name: str
    content: bytes


class Probe:
    """A process that reads as an agent does, one case after another."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests" / "hostile_probe.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def read(self, port: int, bean: str | None = GOOD, **more: object) -> dict[str, Any]:
        """What one read told; a connection of its own."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"port": port, "bean": bean, "fresh": True, **more}) + "\n")
        stdin.flush()
        told: dict[str, Any] = json.loads(stdout.readline())
        return told

    def listening(self) -> list[str]:
        """The TCP sockets that it listens at, as /proc has them."""
        folder = Path(f"/proc/{self._process.pid}")
        open_files = {str(one.readlink()) for one in (folder / "fd").iterdir() if one.is_symlink()}
        lines = [
            line.split()
            for file in ("tcp", "tcp6")
            for line in (folder / "net" / file).read_text().splitlines()[1:]
        ]
        return [
            line[1] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in open_files
        ]

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        with self._process.stdout:
            assert self._process.wait(60) == 0


class World:
    """The fake server, the process that reads it, and who must not be called."""

    def __init__(self, stack: ExitStack, password_file: Path) -> None:
        self._canary = stack.enter_context(socket.create_server((NOBODY, 0)))
        self._canary.settimeout(0)
        (closed,) = free_ports(1)
        self.fake = FakeJmx({})
        self.port = stack.enter_context(HostileRmi(self.fake)).port
        opened = (
            f"--add-{how}={one}=ALL-UNNAMED" for one in _OPENED for how in ("opens", "exports")
        )
        program = str(Path(__file__).with_name("java") / "HostileObjects.java")
        places = (NOBODY, *map(str, (self._canary.getsockname()[1], closed, self.port)))
        ran = subprocess.run(
            java_command(*opened, program, *places), capture_output=True, text=True, check=True
        )
        lines = [line.split("\t") for line in ran.stdout.splitlines()]
        self.unmade = [line for line in lines if line[0] == "unmade"]
        sent = [Sent(a, b, bytes.fromhex(c)) for a, b, c in lines if a != "unmade"]
        self.fake.good |= {one.name: one.content for one in sent if one.kind == "good"}
        self.hostile = [one for one in sent if one.kind != "good"]
        self.password_file = password_file
        password_file.touch(0o600)
        password_file.write_text("secret")
        self.probe = Probe()
        assert self.reads_on()

    def called(self) -> bool:
        """Whether somebody was called who must not be."""
        try:
            self._canary.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def told(self, misled: Misled, **more: object) -> dict[str, Any]:
        """What a read told when one answer was this; nobody was called, and no port is open."""
        self.fake.misled, self.fake.given = misled, 0
        told = self.probe.read(self.port, **more)
        assert self.fake.given, misled.question
        assert not self.probe.listening(), told
        error = told["error"] or ""
        assert len(error) < LONGEST
        assert "\n" not in error
        return told

    def redirect(self, name: str) -> bytes:
        """A stub that leads elsewhere."""
        return next(one.content for one in self.hostile if one[:2] == ("redirect", name))

    def reads_on(self) -> bool:
        """Whether the server is read as before once its answers are good."""
        self.fake.misled = None
        return self.probe.read(self.port)["outcome"] == "ok"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ExitStack() as stack:
        made = World(stack, tmp_path_factory.mktemp("hostile") / "password")
        stack.callback(made.probe.close)
        yield made


def _is_for(sent: Sent, question: str) -> bool:
    """Whether it is what the question is for; where such a stub leads has tests of its own."""
    return question in ("lookup", "newClient") and sent.name.endswith(_STUBS)


def _attributes(question: str) -> dict[str, object]:
    return {"attributes": ("Value", "Other")} if question == "getAttributes" else {}


@pytest.mark.parametrize("thrown", [False, True], ids=["returned", "thrown"])
@pytest.mark.parametrize("question", _QUESTIONS)
def test_rmi_objects_open_no_port_and_call_nobody(
    world: World, question: str, *, thrown: bool
) -> None:
    assert not world.unmade
    kinds = ("class", "proxy") if thrown else ("class", "proxy", "carried", "stub", "bomb")
    tried = 0
    for sent in world.hostile:
        if sent.kind not in kinds or (not thrown and _is_for(sent, question)):
            continue
        tried += 1
        told = world.told(Misled(question, sent.content, thrown), **_attributes(question))
        assert not world.called(), (sent.kind, sent.name)
        refused = sent.kind in ("class", "proxy") and sent.name not in VALUES
        if refused and question != _ASKED_AGAIN:
            assert sent.name in told["error"], (told, sent.name)
    assert tried > 30
    assert world.reads_on()


ELSEWHERE: Final = pytest.mark.parametrize("name", ["elsewhere", "elsewhere by TLS"])


@ELSEWHERE
def test_password_is_not_sent_to_a_redirected_registry(world: World, name: str) -> None:
    told = world.told(
        Misled("lookup", world.redirect(name)), password_file=str(world.password_file)
    )
    assert "elsewhere.invalid, which would get the password; set" in told["error"]


@ELSEWHERE
def test_login_is_not_sent_to_a_redirected_host(world: World, name: str) -> None:
    told = world.told(Misled("newClient", world.redirect(name)))
    assert "the login names another host, elsewhere.invalid; set" in told["error"]


def test_without_a_password_errors_name_where_a_registry_sends(world: World) -> None:
    told = world.told(Misled("lookup", world.redirect("plain")))
    where = rf"\(its registry names {NOBODY}:\d+: java.rmi.server.hostname\): no answer"
    assert re.search(where, told["error"])
    assert world.called()
    told = world.told(Misled("lookup", world.redirect("elsewhere")))
    assert "java.rmi.server.hostname): the host name cannot be resolved" in told["error"]
