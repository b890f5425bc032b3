"""A fake agent that means no good: an HTTP server that answers as a test wants it to."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Misbehaviour = Callable[["Request"], None]

PIECE = b"x" * 65_536


class Request:
    """One request to the fake: what was asked, and the ways to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler, asked: list[dict[str, Any]]) -> None:
        self.asked = asked
        self._handler = handler

    def send(self, data: bytes) -> None:
        self._handler.wfile.write(data)

    def close(self) -> None:
        self._handler.close_connection = True

    def answer(self, body: bytes, status: str = "200 OK", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
        self.send("\r\n".join(lines).encode() + body)

    def stream(self, pieces: Iterator[bytes], length: int = 1 << 50) -> None:
        self.send(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode())
        for piece in pieces:
            self.send(piece)

    def drip(self, data: bytes) -> None:
        for byte in data:
            self.send(bytes([byte]))
            time.sleep(0.05)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        return  # the client has had enough


class HostileHttp:
    """A running fake; a context manager.

    Attributes:
        requests: What was asked of it, and the headers it came with.
    """

    def __init__(self, misbehaviour: Misbehaviour) -> None:
        self.requests: list[dict[str, str]] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                fake.requests.append(dict(self.headers))
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                misbehaviour(Request(self, asked))

            def do_GET(self) -> None:
                fake.requests.append(dict(self.headers))
                misbehaviour(Request(self, []))

            def log_message(self, *_: object) -> None:
                return

        Handler.protocol_version = "HTTP/1.1"
        self._server = _Server(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/jolokia/"

    def __enter__(self) -> Self:
        serve = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        serve.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.socket.close()  # server_close would wait for those whom we keep waiting


def like_a_broker(request: Request, beans: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers as the agent of a broker would give them; ``beans`` are values by pattern."""
    known: dict[str, Any] = {
        "java.lang:type=Runtime": {"StartTime": 1_700_000_000_000},
        "kafka.server:type=app-info,id=*": {
            "kafka.server:type=app-info,id=1": {"Version": "4.3.1"}
        },
        "kafka.server:type=KafkaServer,name=ClusterId": {"Value": "c"},
        **beans,
    }
    version = {"config": {"maxCollectionSize": "0", "maxObjects": "0"}}
    return [
        {"status": 200, "value": version if one["type"] == "version" else known[one["mbean"]]}
        if one["type"] == "version" or one["mbean"] in known
        else {"status": 404, "error_type": "javax.management.InstanceNotFoundException"}
        for one in request.asked
    ]
