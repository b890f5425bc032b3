"""What the agent tells of itself over HTTP: /metrics, /healthz and /readyz.

A plain server: a request has 8 KiB at most and comes within a second, so that those who are slow
cannot hold all places for long; it is answered once and closed.
"""

from __future__ import annotations

import errno
import io
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from socketserver import TCPServer
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from prometheus_client.exposition import choose_encoder

from collector.errors import HealthError

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry

    from collector.vitals import Vitals

_ASKERS: Final = 64
_REQUEST_BYTES: Final = 8192
_REQUEST_SECONDS: Final = 1.0
_REPLY_SECONDS: Final = 5.0
_LOOPBACK_NAMES: Final = ("localhost", "localhost.", "ip6-localhost")


class _Reply(NamedTuple):
    status: HTTPStatus
    kind: str
    body: bytes


class Health:
    """Serves the agent's health until it is closed.

    Args:
        host: The address to listen at.
        port: The port; 0 takes any that is free.
        vitals: What the agent counts.
        registry: What /metrics shows.

    Raises:
        HealthError: The address cannot be had.
    """

    def __init__(self, host: str, port: int, vitals: Vitals, registry: CollectorRegistry) -> None:
        self._vitals, self._registry = vitals, registry
        try:
            self._server = _Server(host, port, self._reply)
        except OSError as error:
            raise HealthError(_refused(host, port, error)) from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.2,), name="health", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it listens at."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _reply(self, path: str, accept: str) -> _Reply:
        if path == "/metrics":
            encode, kind = choose_encoder(accept)
            return _Reply(HTTPStatus.OK, kind, encode(self._registry))
        if path == "/healthz":
            sick = self._vitals.sick()
            status = HTTPStatus.SERVICE_UNAVAILABLE if sick else HTTPStatus.OK
            return _Reply(status, "text/plain; charset=utf-8", f"{sick or 'ok'}\n".encode())
        if path == "/readyz":
            missing = self._missing()
            status = HTTPStatus.SERVICE_UNAVAILABLE if missing else HTTPStatus.OK
            body = json.dumps({"ready": not missing, "missing": missing}) + "\n"
            return _Reply(status, "application/json", body.encode())
        text = b"There is /metrics, /healthz and /readyz.\n"
        return _Reply(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", text)

    def _missing(self) -> dict[str, str]:
        missing = {f"source {name}": why for name, why in self._vitals.unseen().items()}
        if not self._vitals.spool_writable:
            missing["spool"] = "the last write failed"
        if (why := self._vitals.missing_lake()) is not None:
            missing["lake"] = why
        return missing


class _Server(TCPServer):
    """Takes connections; more than there are places are closed unheard."""

    allow_reuse_address = True
    request_queue_size = 16

    def __init__(self, host: str, port: int, reply: Callable[[str, str], _Reply]) -> None:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, address = found[0][0], found[0][4]
        self.reply = reply
        self.loopback = ip_address(str(address[0])).is_loopback
        self._askers = ThreadPoolExecutor(_ASKERS, thread_name_prefix="health")
        self._free = threading.Semaphore(_ASKERS)
        super().__init__(address, _Handler)  # type: ignore[arg-type]

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        self._askers.submit(self._serve, request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """An asker that goes away meanwhile is no news."""

    def server_close(self) -> None:
        super().server_close()
        self._askers.shutdown(wait=False)

    def _serve(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except Exception:  # noqa: BLE001 - as socketserver does: an asker must not end a thread
            self.handle_error(request, client_address)
        finally:
            self.shutdown_request(request)
            self._free.release()


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: _Server
    server_version = "jmxlake-agent"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(io.BytesIO(_head(self.connection)))
        self.connection.settimeout(_REPLY_SECONDS)

    def do_GET(self) -> None:
        """Answer, with a body."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer without it."""
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as it is called there
        """Askers come every few seconds: not a line each."""

    def _answer(self, *, with_body: bool) -> None:
        if self.server.loopback and not _is_loopback_name(self.headers.get("Host")):
            # A page in somebody's browser may have its own name point at us (DNS rebinding).
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "ask by a name of loopback")
            return
        reply = self.server.reply(urlsplit(self.path).path, self.headers.get("Accept", ""))
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.kind)
        self.send_header("Content-Length", str(len(reply.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if with_body:
            self.wfile.write(reply.body)


def _head(connection: socket.socket) -> bytes:
    """The request line and headers; nothing where they are too long, or more comes with them."""
    until, head = time.monotonic() + _REQUEST_SECONDS, b""
    while b"\r\n\r\n" not in head and b"\n\n" not in head and len(head) < _REQUEST_BYTES:
        connection.settimeout(max(0.001, until - time.monotonic()))
        part = connection.recv(_REQUEST_BYTES - len(head))
        if not part:
            return b""
        head += part
    return head if head.endswith((b"\r\n\r\n", b"\n\n")) else b""


def _is_loopback_name(host: str | None) -> bool:
    if host is None:
        return True  # no browser leaves it out
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name in _LOOPBACK_NAMES


def _refused(host: str, port: int, error: OSError) -> str:
    where = f"health: cannot listen at {host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return f"{where}, somebody else does: give health.port another number, or 0 for none"
    return f"{where}: {error.strerror}: change health.host or health.port"
