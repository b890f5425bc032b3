"""The proxy of the S3 tests against a small server of its own: what it passes on, and what not."""

from __future__ import annotations

import http.client
import http.server
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.rig.s3 import rules
from tests.rig.s3.proxy import FaultyProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

PATH = "/lake/a%20key?list=1"
KEY = "lake/a key"


class EchoServer(http.server.ThreadingHTTPServer):
    """Says what it was sent, in the way of the framing that is asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Echo)
        self.got: list[tuple[str, str, str | None, bytes]] = []


class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: EchoServer

    def log_message(self, *_: Any) -> None: ...

    def do_PUT(self) -> None:
        body = self._body()
        self.server.got.append((self.command, self.path, self.headers["Host"], body))
        self.send_response(200)
        if self.headers.get("X-Answer") == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in (body[: len(body) // 2], body[len(body) // 2 :], b""):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        else:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    do_HEAD = do_PUT  # noqa: N815 (the base class calls it so)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size + 2)[:-2]
        self.rfile.readline()
        return body


@pytest.fixture
def echo() -> Iterator[EchoServer]:
    with EchoServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def proxy(echo: EchoServer) -> Iterator[FaultyProxy]:
    with FaultyProxy(f"http://127.0.0.1:{echo.server_address[1]}") as proxy:
        yield proxy


@pytest.fixture
def client(proxy: FaultyProxy) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(urlsplit(proxy.endpoint).netloc, timeout=120)
    yield connection
    connection.close()


def put(
    client: http.client.HTTPConnection, body: bytes = b"body", **headers: str
) -> tuple[int, bytes]:
    client.request(
        "PUT", PATH, body, {name.replace("_", "-"): text for name, text in headers.items()}
    )
    answer = client.getresponse()
    return answer.status, answer.read()


def test_bodies_of_any_framing_pass_unchanged(
    client: http.client.HTTPConnection, echo: EchoServer, proxy: FaultyProxy
) -> None:
    big = bytes(range(256)) * 8_000
    assert put(client, big) == (200, big)
    assert put(client, big, X_Answer="chunked") == (200, big)
    client.request("PUT", PATH, iter([big, b"more"]), encode_chunked=True)
    assert client.getresponse().read() == big + b"more"
    client.request("HEAD", PATH)
    assert client.getresponse().read() == b""
    assert put(client) == (200, b"body"), "the connection is still good"
    host = urlsplit(proxy.endpoint).netloc
    assert {(path, named) for _, path, named, _ in echo.got} == {(PATH, host)}
    assert set(proxy.seen) == {rules.Seen("PUT", KEY, 200), rules.Seen("HEAD", KEY, 200)}


def test_client_waiting_for_100_continue_gets_it(
    client: http.client.HTTPConnection, echo: EchoServer
) -> None:
    client.putrequest("PUT", PATH)
    client.putheader("Expect", "100-continue")
    client.putheader("Content-Length", "4")
    client.endheaders()
    client.sock.settimeout(30)
    assert client.sock.recv(100).startswith(b"HTTP/1.1 100")
    client.send(b"body")
    assert client.getresponse().read() == b"body"
    assert [body for *_, body in echo.got] == [b"body"]


def test_an_own_answer_comes_without_the_server_or_in_its_place(
    client: http.client.HTTPConnection, echo: EchoServer, proxy: FaultyProxy
) -> None:
    proxy.plan(rules.refused(503, key="lake/*"))
    proxy.plan(rules.landed_but(500, key="lake/*"))
    status, text = put(client)
    assert (status, len(echo.got)) == (503, 0)
    assert b"<Code>SlowDown</Code>" in text
    assert put(client) == (200, b"body"), "the second rule was about the first request too"
    proxy.clear()
    proxy.plan(rules.landed_but(500, key="lake/*", nth=2))
    assert [put(client)[0] for _ in range(3)] == [200, 500, 200]
    assert len(echo.got) == 4
    assert [seen.status for seen in proxy.seen] == [200, 500, 200]


def test_an_answer_can_be_lost_after_the_server_has_done_it(
    client: http.client.HTTPConnection, echo: EchoServer, proxy: FaultyProxy
) -> None:
    proxy.plan(rules.answer_lost(key="lake/*"))
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        put(client)
    assert len(echo.got) == 1
    assert proxy.seen == [rules.Seen("PUT", KEY, None)]


def test_callbacks_come_before_and_after_the_server_has_got_it(
    client: http.client.HTTPConnection, echo: EchoServer, proxy: FaultyProxy
) -> None:
    counts = []
    note = lambda request: counts.append((request.key, len(echo.got)))  # noqa: E731
    proxy.plan(rules.Rule("PUT", "lake/*", before=note, after=note))
    assert put(client)[0] == 200
    assert counts == [(KEY, 0), (KEY, 1)]


def test_down_holds_until_it_is_lifted(
    client: http.client.HTTPConnection, echo: EchoServer, proxy: FaultyProxy
) -> None:
    up_again = proxy.plan(rules.down())
    for _ in range(2):
        with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
            put(client)
        client.close()
    assert echo.got == []
    up_again()
    assert put(client) == (200, b"body")
