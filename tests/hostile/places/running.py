"""An agent that runs: requests to its health port, and what stands at the place of its spool."""

from __future__ import annotations

import lzma
import os
import socket
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from demo.ports import free_ports, is_listening
from tests.hostile.case import EITHER, TAKEN, Case, Command, Found
from tests.hostile.serving import configured, page, serving, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.hostile.case import Outcome, Room

_RUN: Final = ("jmxlake-agent", "run", "--config", "agent.yaml", "--json")
_CHECK: Final = ("jmxlake-agent", "check", "--config", "agent.yaml")
_OLD_SPOOL: Final = Path(__file__).parents[2] / "unit/spool-2.db.xz"
_ASKED: Final = "GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"


def _get(path: str = "/metrics", host: str = "localhost", more: str = "") -> bytes:
    return _ASKED.format(path=path, host=host, more=more).encode("latin1", "replace")


REQUESTS: Final[dict[str, tuple[bytes, bytes]]] = {
    "host of others": (_get(host="evil.example"), b"421"),
    "host like ours": (_get(host="localhost.evil.example"), b"421"),
    "host of a terminal": (_get(host="\x1b[2J"), b""),
    "two hosts": (_get(more="Host: evil.example\r\n"), b""),
    "whole address": (_get("http://@CANARY@/metrics"), b""),
    "method POST": (b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", b""),
    "method CONNECT": (b"CONNECT 127.0.0.2:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", b""),
    "method of SQL": (b"'; COPY /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", b""),
    "parents": (_get("/../../../../etc/hostname"), b"404"),
    "encoded parents": (_get("/%2e%2e/%2e%2e/etc/hostname"), b"404"),
    "NUL": (_get("/metrics\x00"), b""),
    "long path": (_get("/" + "x" * 60_000), b""),
    "long head": (_get(more="X: " + "y" * 1_000_000 + "\r\n"), b""),
    "many headers": (_get(more="X: y\r\n" * 50_000), b""),
    "pipelined": (_get() * 500, b""),
    "not HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 50, b""),
    "HTTP/0.9": (b"GET /metrics\r\n\r\n", b""),
    "version of others": (b"GET /metrics HTTP/9.9\r\nHost: localhost\r\n\r\n", b""),
    "upgrade": (_get(more="Upgrade: h2c\r\nConnection: Upgrade\r\n"), b""),
    "script in the path": (_get("/<script>alert(1)</script>"), b"404"),
}  # fmt: skip
"""A request, and the status that must come (empty: any, or none)."""


def cases() -> Iterator[Case]:
    """Each request to a running agent, then each spool."""
    for name, (request, status) in REQUESTS.items():
        beside = partial(_ask, request=request, status=status)
        yield Case("health port", name, _lay, (_running(beside),))
    for name, beside in {"slow askers": _ask_slowly, "many askers": _ask_at_once}.items():
        yield Case("health port", name, _lay, (_running(beside),))
    for name, make in SPOOLS.items():
        lay = partial(_lay_spool, make=make)
        own = ("spool.db*", "elsewhere/text.lock")
        # It tries the configured health port, as `run` does: one port for a moment, on loopback.
        check = Command(_CHECK, EITHER, listens=1, writes=own, judged=_only_health)
        run = Command(_RUN, EITHER, listens=1, meanwhile=_until_up, writes=own)
        yield Case("spool", name, lay, (check, run))


def _only_health(room: Room, outcome: Outcome) -> Iterator[Found]:
    """Every other port than the health port."""
    own = f"0100007F:{room.places['@PORT@']}"
    if others := sorted(outcome.ports - {own}):
        yield Found("ports_opened", ", ".join(others))


def _running(beside: Callable[[Room, Callable[[], bool]], list[Found]]) -> Command:
    return Command(_RUN, TAKEN, listens=1, meanwhile=beside)


def _lay(room: Room) -> None:
    told = settings(room, serving(room, page("orders")))
    (port,) = free_ports(1)
    room.places["@PORT@"] = str(port)
    told["health"] = {"port": port}
    configured(room, told)


def _until_up(room: Room, runs: Callable[[], bool]) -> list[Found]:
    """Until its health port answers, or it has ended."""
    port = int(room.places["@PORT@"])
    until = time.monotonic() + 40
    while runs() and not is_listening(port):
        if time.monotonic() > until:
            return [Found("hangs", "the health port does not answer")]
        time.sleep(0.1)
    return []


def _asked(room: Room, request: bytes, seconds: float = 20) -> bytes:
    with socket.create_connection(("127.0.0.1", int(room.places["@PORT@"])), seconds) as one:
        try:
            one.sendall(request)
            return one.recv(65_536)
        except OSError:  # refused in the middle of it
            return b""


def _ask(room: Room, runs: Callable[[], bool], request: bytes, status: bytes) -> list[Found]:
    found = _until_up(room, runs)
    answer = _asked(room, request.replace(b"@CANARY@", room.canary.encode()))
    if status and status not in answer.split(b"\r\n")[0]:
        found.append(Found("wrong_codes", f"answered {answer[:80]!r}"))
    if b"<script>alert" in answer:
        found.append(Found("code_run", "the answer has markup of the request"))
    return [*found, *_still_up(room)]


def _still_up(room: Room) -> list[Found]:
    answer = _asked(room, _get("/healthz"))
    up = answer.startswith(b"HTTP/1.") and b" 200 " in answer.split(b"\r\n")[0]
    return [] if up else [Found("hangs", f"the health port answers {answer[:80]!r} afterwards")]


def _ask_slowly(room: Room, runs: Callable[[], bool]) -> list[Found]:
    """Askers that never end their requests."""
    found = _until_up(room, runs)
    address = ("127.0.0.1", int(room.places["@PORT@"]))
    askers = [socket.create_connection(address, 10) for _ in range(30)]
    for one in askers:
        one.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
    found += _still_up(room)
    for one in askers:
        one.close()
    return found


def _ask_at_once(room: Room, runs: Callable[[], bool]) -> list[Found]:
    found = _until_up(room, runs)
    address = ("127.0.0.1", int(room.places["@PORT@"]))
    askers = []
    for _ in range(300):
        one = socket.socket()
        one.setblocking(False)  # noqa: FBT003 - as the library has it
        one.connect_ex(address)
        askers.append(one)
    for one in askers:
        one.close()
    return [*found, *_still_up(room)]


def _old(place: Path) -> bytes:
    raw = lzma.decompress(_OLD_SPOOL.read_bytes())
    place.write_bytes(raw)
    return raw


def _cut(place: Path) -> None:
    place.write_bytes(_old(place)[:5000])


def _overwritten(place: Path) -> None:
    raw = _old(place)
    place.write_bytes(raw[:8192] + os.urandom(len(raw) - 8192))


def _of_another(place: Path) -> None:
    _old(place)
    os.chown(place, 65_534, 65_534)
    place.chmod(0o666)


def _linked(place: Path) -> None:
    place.with_name("elsewhere").mkdir()
    place.with_name("elsewhere").joinpath("text").write_text("hello\n")
    place.symlink_to("elsewhere/text")


def _with_log(place: Path) -> None:
    _old(place)
    place.with_name("spool.db-wal").write_bytes(os.urandom(50_000))


SPOOLS: Final[dict[str, Callable[[Path], object]]] = {
    "directory": Path.mkdir,
    "text": lambda place: place.write_text("hello\n" * 1000),
    "SQL": lambda place: place.write_text("ATTACH '/dev/null' AS x;"),
    "random": lambda place: place.write_bytes(b"SQLite format 3\0" + os.urandom(50_000)),
    "empty": lambda place: place.write_bytes(b""),
    "old": _old,
    "cut": _cut,
    "overwritten": _overwritten,
    "log of random": _with_log,
    "file of another": _of_another,
    "link to a text file": _linked,
    "link to full": lambda place: place.symlink_to("/dev/full"),
    "link to zeros": lambda place: place.symlink_to("/dev/zero"),
    "link to itself": lambda place: place.symlink_to(place.name),
    "pipe": os.mkfifo,
}
"""What can stand at the spool's place."""


def _lay_spool(room: Room, make: Callable[[Path], object]) -> None:
    _lay(room)
    told = settings(room, serving(room, page("orders")))
    told["spool"] = {"path": str(room.path / "spool.db")}
    told["health"] = {"port": int(room.places["@PORT@"])}
    configured(room, told)
    make(room.path / "spool.db")
