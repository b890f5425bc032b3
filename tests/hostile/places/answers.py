"""Answers over HTTP: an exporter's page, Jolokia, Prometheus' API."""

from __future__ import annotations

import gzip
import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.hostile.case import EITHER, REFUSED, SECRET, Case, Codes, Command
from tests.hostile.serving import (
    TIMEOUT,
    Server,
    configured,
    head,
    page,
    partition,
    settings,
    whole,
)  # fmt: skip
from tests.hostile.values import NAMES

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator

    from tests.hostile.case import Room
    from tests.hostile.serving import Answer

_SCRAPE: Final = ("jmxlake-agent", "scrape", "--config", "agent.yaml")
_MEBI: Final = 1 << 20
_PIECE: Final = 65_536


def _sent(raw: bytes) -> Answer:
    return lambda connection: connection.sendall(raw)


def _streamed(first: bytes, piece: bytes, times: int = 1 << 40) -> Answer:
    def answer(connection: socket.socket) -> None:
        connection.sendall(first)
        for _ in range(times):
            connection.sendall(piece)

    return answer


def _dripped(raw: bytes, seconds: float = 0.3) -> Answer:
    def answer(connection: socket.socket) -> None:
        for byte in raw:
            connection.sendall(bytes([byte]))
            time.sleep(seconds)

    return answer


def _silent(_: socket.socket) -> None:
    time.sleep(30)


def _moved(status: str, to: str) -> Answer:
    return _sent(head(status, f"Location: {to}", "Content-Length: 0"))


_ZEROS: Final = gzip.compress(b"\0" * (300 * _MEBI), 9)
_PAGE: Final = page("orders")
_RAW: Final = _PAGE.encode()

TRANSPORT: Final[dict[str, tuple[Answer, Codes]]] = {
    "says nothing": (_silent, REFUSED),
    "closes at once": (lambda _: None, REFUSED),
    "drips its head": (_dripped(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200), REFUSED),
    "drips its body": (_dripped(head("200 OK", "Content-Length: 100000") + b"#" * 200), REFUSED),
    "endless comments": (_streamed(head(), b"# x\n" * 20_000), REFUSED),
    "endless line": (_streamed(head(), b"x" * _PIECE), REFUSED),
    "endless zeros": (_streamed(head("200 OK", "Content-Length: 999999999999"), b"\0" * _PIECE), REFUSED),
    "newlines": (_streamed(head("200 OK", "Content-Length: 67000000"), b"\n" * 1_000_000, 67), EITHER),
    "spaces": (_streamed(head("200 OK", "Content-Length: 67000000"), b" " * 1_000_000, 67), EITHER),
    "carriage returns": (_streamed(head("200 OK", "Content-Length: 66000000"), b"\r" * 1_000_000, 66), EITHER),
    "short lines": (_streamed(head("200 OK", "Content-Length: 66000000"), b"a\n" * 500_000, 66), EITHER),
    "endless head": (_streamed(b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"y" * 60_000 + b"\r\n"), REFUSED),
    "many headers": (_streamed(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 200_000), REFUSED),
    "gzip bomb": (_sent(whole(_ZEROS, "200 OK", "Content-Encoding: gzip")), REFUSED),
    "gzip within gzip": (_sent(whole(gzip.compress(_ZEROS), "200 OK", "Content-Encoding: gzip, gzip")), REFUSED),
    "unknown encoding": (_sent(whole(_RAW, "200 OK", "Content-Encoding: x")), EITHER),
    "redirect to a file": (_moved("302 Found", "file:///etc/passwd"), REFUSED),
    "redirect to a host": (_moved("302 Found", "http://@CANARY@/"), REFUSED),
    "permanent redirect": (_moved("301 Moved Permanently", "https://@CANARY@/x"), REFUSED),
    "redirect that keeps the method": (_moved("308 Permanent Redirect", "http://@CANARY@/x"), REFUSED),
    "redirect to itself": (_moved("302 Found", "/metrics"), REFUSED),
    "redirect of a terminal": (_moved("302 Found", "http://x/\x1b[2J\x1b]0;owned\x07"), REFUSED),
    "refresh": (_sent(whole(_PAGE, "200 OK", "Refresh: 0; url=http://@CANARY@/")), EITHER),
    "length too long": (_sent(head("200 OK", f"Content-Length: {len(_RAW) + 100}") + _RAW), REFUSED),
    "length too short": (_sent(head("200 OK", "Content-Length: 40") + _RAW), EITHER),
    "negative length": (_sent(head("200 OK", "Content-Length: -5") + _RAW), REFUSED),
    "two lengths": (_sent(head("200 OK", "Content-Length: 5", "Content-Length: 6") + _RAW), REFUSED),
    "length of text": (_sent(head("200 OK", "Content-Length: x") + _RAW), REFUSED),
    "bad chunk": (_sent(head("200 OK", "Transfer-Encoding: chunked") + b"ZZZ\r\nabc\r\n"), REFUSED),
    "huge chunk": (_streamed(head("200 OK", "Transfer-Encoding: chunked") + b"FFFFFFFFFFFF\r\n", b"x" * _PIECE), REFUSED),
    "chunk that is cut": (
        _sent(head("200 OK", "Transfer-Encoding: chunked") + b"%x\r\n" % len(_RAW) + _RAW), REFUSED
    ),
    "cut in a line": (_sent(head() + _RAW[:-30]), REFUSED),
    "cut at a line": (_sent(head() + _RAW[: _RAW.rindex(b"kafka_cluster")]), EITHER),
    "reset": (lambda one: one.close(), REFUSED),
    "not HTTP": (_sent(b"SSH-2.0-OpenSSH_9.9\r\n"), REFUSED),
    "HTTP/0.9": (_sent(_RAW), REFUSED),
    "many interim answers": (_streamed(b"HTTP/1.1 100 Continue\r\n\r\n" * 10, b"HTTP/1.1 103 Early Hints\r\n\r\n" * 500), REFUSED),
    "status 401": (_sent(whole("no", "401 Unauthorized", 'WWW-Authenticate: Basic realm="\x1b[2J"')), REFUSED),
    "status 407": (_sent(whole("no", "407 Proxy Authentication Required")), REFUSED),
    "status 404": (_sent(whole("no", "404 Not Found")), REFUSED),
    "status 405": (_sent(whole("no", "405 Method Not Allowed", "Allow: GET")), REFUSED),
    "status 503 with a page": (_sent(whole(_PAGE, "503 Service Unavailable")), REFUSED),
    "status 999": (_sent(whole(_PAGE, "999 \x1b[2J")), REFUSED),
    "cookies": (_sent(whole(_PAGE, "200 OK", *["Set-Cookie: a=" + "b" * 3000] * 10)), EITHER),
    "web page": (_sent(whole("<html><script>fetch('http://@CANARY@/')</script></html>")), REFUSED),
    "wrong character set": (_sent(whole(_RAW + b'x{y="\xff\xfe"} 1\n')), EITHER),
    "byte-order mark": (_sent(whole("\ufeff" + _PAGE)), EITHER),
}  # fmt: skip
"""How a page can be sent, and whether the command must fail."""


def _client(name: str, value: str = "5.0") -> str:
    return f'kafka_server_Produce_throttle_time{{user="",client_id="{name}"}} {value}\n'


def _many(line: Callable[[int], str], count: int) -> Callable[[], bytes]:
    return lambda: whole(_PAGE + "".join(map(line, range(count))))


def _more(text: str) -> Callable[[], bytes]:
    return lambda: whole(_PAGE + text)


CONTENT: Final[dict[str, tuple[Callable[[], bytes], Codes]]] = {
    "many partitions": (_many(lambda one: partition(f"t{one // 50}", one % 50), 300_000), EITHER),
    "many names": (_many(lambda one: f"kafka_x{one} 1\n", 1_000_000), EITHER),
    "many clients": (_many(lambda one: _client(f"client-{one}-{'z' * 20}"), 500_000), EITHER),
    "many labels": (_more("a{" + ",".join(f'l{one}="x"' for one in range(200_000)) + "} 1\n"), EITHER),
    "long label": (_more(_client("y" * (10 * _MEBI))), EITHER),
    "long name": (_more("n" * (10 * _MEBI) + " 1\n"), EITHER),
    "backslashes": (_more(_client("\\" * 1_000_001)), EITHER),
    "open brace": (_more("a{" * 1_000_000), EITHER),
    "open quote": (_more(_client("x")[:-9] + "y" * _MEBI), EITHER),
    "number of digits": (_more(partition("t", 0, "9" * 100_000)), EITHER),
    "not a number": (_more(partition("t", 0, "NaN")), EITHER),
    "infinity": (_more(partition("t", 0, "+Inf") + _client("x", "-Inf")), EITHER),
    "hexadecimal": (_more(partition("t", 0, "0x10")), EITHER),
    "underscores": (_more(partition("t", 0, "1_0")), EITHER),
    "huge partition": (_more(partition("t", "9" * 5_000)), EITHER),
    "negative partition": (_more(partition("t", -7)), EITHER),
    "other digits": (_more(partition("t", "٣")), EITHER),
    "same series twice": (_more(partition("orders", 0, "0.0")), EITHER),
    "timestamps": (_more('kafka_server_Produce_throttle_time{client_id="x"} 1 99999999999999999999\n'), EITHER),
    "started at infinity": (lambda: whole(_PAGE.replace("1.7E12", "1e300")), REFUSED),
    "started at no number": (lambda: whole(_PAGE.replace("1.7E12", "NaN")), REFUSED),
    "started before time": (lambda: whole(_PAGE.replace("1.7E12", "-1e300")), REFUSED),
    "another exporter": (lambda: whole("node_load1 0.3\nprocess_start_time_seconds 1.7e9\n"), REFUSED),
    "another node": (lambda: whole(_PAGE.replace('id="1"', 'id="2; DROP"')), REFUSED),
    "nothing": (lambda: whole(""), REFUSED),
}  # fmt: skip
"""What can stand on a page."""


def cases() -> Iterator[Case]:
    """An exporter by transport, by content and by names; then the two APIs in JSON."""
    for name, (answer, codes) in TRANSPORT.items():
        lay = partial(_lay_exporter, answer=answer)
        yield Case("exporter", name, lay, (Command(_SCRAPE, codes),))
    for name, (make, codes) in CONTENT.items():
        yield Case("exporter", name, partial(_lay_page, make=make), (Command(_SCRAPE, codes),))
    for name, value in NAMES.items():
        body = partial(_named, name=value)
        yield Case("exporter", f"name: {name}", partial(_lay_page, make=body), (_DELIVERING,))
    for name, (jolokia, codes) in _JOLOKIA.items():
        lay = partial(_lay_jolokia, answer=jolokia)
        yield Case("Jolokia", name, lay, (Command(_SCRAPE, codes),))
    for name, (answered, codes) in _PROMETHEUS.items():
        lay = partial(_lay_prometheus, answer=answered)
        yield Case("Prometheus API", name, lay, (Command(_IMPORT, codes),))


_DELIVERING: Final = Command(_SCRAPE, EITHER)


def _named(name: str) -> bytes:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return whole(page(name, more=_client(escaped)))


def filled(room: Room, answer: Answer) -> Answer:
    """An answer that is sent through here, so that it has the places of the room."""

    class Through:
        def __init__(self, connection: socket.socket) -> None:
            self._connection = connection

        def sendall(self, raw: bytes) -> None:
            if b"@CANARY@" in raw:
                raw = raw.replace(b"@CANARY@", room.canary.encode())
            self._connection.sendall(raw)

        def close(self) -> None:
            self._connection.close()

    return lambda connection: answer(Through(connection))  # type: ignore[arg-type]


def _lay_exporter(room: Room, answer: Answer) -> None:
    server = room.stack.enter_context(Server(filled(room, answer)))
    told = settings(room, f"{server.url}/metrics")
    told["source"]["prometheus"] |= {"user": "monitor", "password_env": "HOSTILE_PASSWORD"}
    configured(room, told)


def _lay_page(room: Room, make: Callable[[], bytes]) -> None:
    _lay_exporter(room, _sent(make()))


def _json(content: Any) -> Answer:
    text = content if isinstance(content, str) else json.dumps(content)
    return lambda connection: connection.sendall(whole(text))


def _chosen(names: Iterable[str]) -> dict[str, tuple[Answer, Codes]]:
    return {name: TRANSPORT[name] for name in names}


_OF_ANY: Final = (
    "says nothing", "drips its body", "endless line", "endless zeros", "newlines", "endless head", "gzip bomb",
    "redirect to a host", "redirect to a file", "length too long", "not HTTP", "status 401", "web page",
)  # fmt: skip
_DEEP: Final = 1_000_000
_JOLOKIA: Final[dict[str, tuple[Answer, Codes]]] = {
    **_chosen(_OF_ANY),
    "deep": (_json('[{"more":' + "[" * _DEEP), REFUSED),
    "deep value": (_json('[{"status":200,"value":' + '{"a":' * 100_000), REFUSED),
    "many numbers": (lambda one: one.sendall(whole("[" + "1," * 20_000_000 + "1]")), REFUSED),
    "many objects": (lambda one: one.sendall(whole("[" + "{}," * 15_000_000 + "{}]")), REFUSED),
    "null": (_json("null"), REFUSED),
    "text": (_json('"x"'), REFUSED),
    "NaN": (_json("[NaN]"), REFUSED),
    "huge number": (_json("[" + "9" * 100_000 + "]"), REFUSED),
    "surrogate": (_json('[{"status":500,"error":"\\ud800"}]'), REFUSED),
    "error of a terminal": (_json([{"status": 500, "error": "\x1b[2J\n" * 99}] * 9), REFUSED),
    "class to load": (_json([{"status": 200, "value": {"@type": "javax.script"}}] * 9), REFUSED),
}  # fmt: skip


def _lay_jolokia(room: Room, answer: Answer) -> None:
    server = room.stack.enter_context(Server(filled(room, answer)))
    told = settings(room)
    told["source"] = {"node": 1, "cluster": "abc", "jolokia": {
        "url": f"{server.url}/jolokia/", "timeout": TIMEOUT, "user": "monitor",
        "password_env": "HOSTILE_PASSWORD"}}  # fmt: skip
    configured(room, told)


_IMPORT: Final = (
    "jmxlake-agent", "import", "prometheus", "@SERVER@", "@ROOM@/out/lake",
    "--from", "2026-11-16T10:00", "--to", "2026-11-16T10:10", "--cluster", "abc", "--kafka-version",
    "4.1.0", "--timeout", "3s", "--state", "@ROOM@/out/state", "--user", "u", "--password-file", "password",
)  # fmt: skip


def _success(data: Any, **more: Any) -> Answer:
    return _json({"status": "success", "data": data, **more})


def _up(**labels: str) -> dict[str, str]:
    return {"__name__": "up", "instance": "b-1:1", "job": "kafka", **labels}


_PROMETHEUS: Final[dict[str, tuple[Answer, Codes]]] = {
    **_chosen(_OF_ANY),
    "error": (_json({"status": "error", "error": "\x1b[2J\n" * 99}), REFUSED),
    "deep": (_json('{"data":' * 100_000), REFUSED),
    "null": (_json("null"), REFUSED),
    "data of text": (_success("x"), REFUSED),
    "data of nothing": (_success(None), REFUSED),
    "no series": (_success([]), REFUSED),
    "series of numbers": (_success([1, 2]), REFUSED),
    "label of a query": (_success([_up(instance='x"} or vector(1) or up{a="')]), REFUSED),
    "label of a path": (_success([_up(instance="../../../outside/ran")]), REFUSED),
    "label of a terminal": (_success([_up(instance="\x1b[2J")]), REFUSED),
    "many series": (_success([_up(instance=f"b-{one}") for one in range(200_000)]), REFUSED),
    "matrix for series": (_success({"resultType": "matrix", "result": []}), REFUSED),
}  # fmt: skip


def _lay_prometheus(room: Room, answer: Answer) -> None:
    server = room.stack.enter_context(Server(filled(room, answer)))
    room.write("password", SECRET).chmod(0o600)
    room.places["@SERVER@"] = server.url
