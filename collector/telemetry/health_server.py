"""The agent's health over HTTP: /metrics, /healthz and /readyz.

A request has at most 8 KiB and must arrive within a second, so that slow clients cannot occupy all
connections for long. Each connection serves one request.
"""

import io
import json
import socket
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Final
from urllib.parse import urlsplit

from prometheus_client.exposition import choose_encoder

from collector.errors import HealthError
from collector.settings import is_loopback
from collector.sources.java import jvm
from collector.telemetry.agent_stats import AgentStats

_ASKERS: Final = 64
_REQUEST_BYTES: Final = 8192
_REQUEST_SECONDS: Final = 1.0
_REPLY_SECONDS: Final = 5.0


class HealthServer(ThreadingMixIn, TCPServer):
    """Serves the agent's health until it is closed. Excess connections are closed at once.

    Args:
        host: Address to listen on.
        port: Port to listen on. 0: any free port.
        stats: Agent counters, with the registry for /metrics.

    Attributes:
        loopback: True if only this host can connect.

    Raises:
        HealthError: The address cannot be used.
    """

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 16

    def __init__(self, host: str, port: int, stats: AgentStats) -> None:
        self._stats, self._places = stats, threading.Semaphore(_ASKERS)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            self.address_family, address = found[0][0], found[0][4]
            super().__init__(address, _Handler)  # type: ignore[arg-type]
        except OSError as error:
            why = f"health: cannot listen on {host}:{port}: {error.strerror}"
            advice = "Change health.host or health.port (0 disables the server)."
            raise HealthError(f"{why}. {advice}") from None
        self.loopback = is_loopback(str(address[0]))
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, name="health", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._is_closed = True
        self.socket.shutdown(socket.SHUT_RDWR)  # this ends the wait for the next connection
        self._thread.join()
        self.server_close()

    def reply(self, path: str, accept: str) -> tuple[HTTPStatus, str, bytes]:
        """Return status, content type and content."""
        kind, trouble = "text/plain; charset=utf-8", False
        if path == "/metrics":
            encode, kind = choose_encoder(accept)
            body = encode(self._stats.registry)
        elif path == "/healthz":
            stalled = self._stats.stalled_thread()
            trouble, body = bool(stalled), f"{stalled or 'ok'}\n".encode()
        elif path == "/readyz":
            missing, kind = self._missing(), "application/json"
            text = json.dumps({"ready": not missing, "missing": missing})
            trouble, body = bool(missing), f"{text}\n".encode()
        else:
            return HTTPStatus.NOT_FOUND, kind, b"Not found. Use /metrics, /healthz or /readyz.\n"
        return HTTPStatus.SERVICE_UNAVAILABLE if trouble else HTTPStatus.OK, kind, body

    def process_request(self, request: Any, client_address: Any) -> None:
        """Accept a connection below the limit."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a request and release its connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            jvm.detach()  # reading its heap attaches this thread
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: clients may disconnect."""

    def _serve(self) -> None:
        # ``serve_forever`` would wake up twice a second.
        while not self._is_closed:
            self.handle_request()

    def _missing(self) -> dict[str, str]:
        missing = {f"source {name}": why for name, why in self._stats.silent_sources().items()}
        if not self._stats.spool_writable:
            missing["spool"] = "the last write failed"
        if (why := self._stats.lake_problem()) is not None:
            missing["lake"] = why
        return missing


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: HealthServer
    server_version = "jmxlake-agent"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(io.BytesIO(_head(self.connection)))
        self.connection.settimeout(_REPLY_SECONDS)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as it is called there
        """Log nothing: clients connect every few seconds."""

    def do_GET(self) -> None:
        """Send a response. A HEAD request gets no body."""
        if self.server.loopback and not _is_loopback_name(self.headers.get("Host")):
            # A web page can resolve its host name to loopback (DNS rebinding).
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "use localhost or a loopback address")
            return
        accept = self.headers.get("Accept", "")
        status, kind, body = self.server.reply(urlsplit(self.path).path, accept)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - as it is called there


def _head(connection: socket.socket) -> bytes:
    """Return the request line and headers. Empty if they are too long or a body follows."""
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
        return True  # every browser sends it
    name = urlsplit(f"//{host}").hostname or ""
    return is_loopback(name) or name in ("localhost.", "ip6-localhost")
