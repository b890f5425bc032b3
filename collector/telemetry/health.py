"""The agent's health, over HTTP (/metrics, /healthz and /readyz) and as datagrams to systemd.

An HTTP request has at most 8 KiB and must arrive within a second, so that slow clients cannot
occupy all connections for long. Each connection serves one request.
"""

import errno
import io
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
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
BEAT_SECONDS: Final = 2.0
"""Interval of the main loop."""
_TIMEOUT_SECONDS: Final = 1.0  # a full socket must not block the main loop


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
            if error.errno == errno.EADDRINUSE:
                why = "another process, such as another agent, uses the port. Set health.port to a"
                why += " free port, or to 0 without a health server"
            else:
                why = f"{error.strerror}. Correct health.host or health.port"
            raise HealthError(f"health: cannot listen on {host}:{port}: {why}") from None
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
        stats = self._stats
        missing = {f"source {name}": why for name, why in stats.silent_sources().items()}
        others = {"spool": stats.spool_error, "lake": stats.lake_problem()}
        return missing | {part: why for part, why in others.items() if why is not None}


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


class Service:
    """Readiness, status and watchdog of the agent as a service.

    Without a service manager it does nothing.

    Args:
        stats: Agent counters.
        environ: Environment with NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID of systemd.
        monotonic: Steady clock (seconds).
    """

    def __init__(
        self,
        stats: AgentStats,
        environ: Mapping[str, str] = os.environ,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stats, self._monotonic = stats, monotonic
        address = environ.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._watchdog_seconds = _watchdog_seconds(environ)
        self._petted: float | None = None
        self._ready = False
        self._status = ""

    def beat(self) -> None:
        """Report the state. The main loop calls it."""
        if not self._ready and self._stats.tried_all():
            # Repeat until it is received: systemd stops a service that is never ready.
            self._ready = self.send(READY=1) or not self._address
        self._tell_status()
        now = self._monotonic()
        due = (
            self._petted is None or now - self._petted >= self._watchdog_seconds / 2 - BEAT_SECONDS
        )
        if self._watchdog_seconds and due and self._stats.stalled_thread() is None:
            self._petted = now
            self.send(WATCHDOG=1)

    def reloading(self) -> None:
        """Report the start of a reload."""
        microseconds = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000  # systemd's clock
        self.send(RELOADING=1, MONOTONIC_USEC=microseconds)

    def reloaded(self) -> None:
        """Report the end of a reload."""
        self.send(READY=1)

    def stopping(self) -> None:
        """Report the stop of the agent."""
        self.send(STOPPING=1, STATUS="delivering the last batches")

    def send(self, **states: str | int) -> bool:
        """Send states such as ``READY=1``. Return False if they were not received."""
        if not self._address:
            return False
        text = "\n".join(f"{name}={value}" for name, value in states.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.settimeout(_TIMEOUT_SECONDS)
                sender.connect(self._address)
                sender.send(text.encode())
        except OSError:
            return False  # the agent works without a service manager
        return True

    def _tell_status(self) -> None:
        # Without ages, which would need a datagram every time.
        unseen = ", ".join(self._stats.silent_sources())
        reading = f"no answer from {unseen}" if unseen else "every source answers"
        status = f"{reading}; {self._stats.delivered} batches delivered"
        if status != self._status and self.send(STATUS=status):  # otherwise repeat, as with READY
            self._status = status


def _watchdog_seconds(environ: Mapping[str, str]) -> float:
    """Return the watchdog interval of this process. 0 without a watchdog."""
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    text = environ.get("WATCHDOG_USEC", "0")
    return int(text) / 1e6 if text.isdecimal() else 0.0
