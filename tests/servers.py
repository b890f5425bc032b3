"""Real servers on this machine that take mail and messages, with certificates of our own."""

from __future__ import annotations

import json
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

if TYPE_CHECKING:
    from collections.abc import Iterator

USER, PASSWORD = "jmxlake", "pass word:1"


@dataclass(frozen=True)
class Authority:
    """Who signs certificates, for a file that makes it trusted."""

    file: Path
    ca: trustme.CA = field(default_factory=trustme.CA)

    @classmethod
    def made(cls, folder: Path, name: str = "ca.pem") -> Authority:
        one = cls(folder / name)
        one.ca.cert_pem.write_to_path(str(one.file))
        return one

    def context(self, host: str = "localhost") -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(host).configure_cert(context)
        return context


@dataclass
class Mailbox:
    """What a mail server took; ``refuses`` are addresses it takes nothing for."""

    refuses: frozenset[str] = frozenset()
    got: list[tuple[str, tuple[str, ...], bytes, bool]] = field(default_factory=list)
    port: int = 0

    async def handle_RCPT(  # noqa: N802 - aiosmtpd names it
        self, server: SMTP, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        del server, session, options
        if address in self.refuses:
            return "550 no such\tmailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:  # noqa: N802
        del session
        encrypted = server.transport.get_extra_info("ssl_object") is not None
        self.got.append(
            (envelope.mail_from, tuple(envelope.rcpt_tos), envelope.original_content, encrypted)
        )
        return "250 taken"


def _authenticate(
    server: Any, session: Any, envelope: Any, mechanism: str, data: Any
) -> AuthResult:
    del server, session, envelope, mechanism
    right = isinstance(data, LoginPassword) and data == LoginPassword(
        USER.encode(), PASSWORD.encode()
    )
    return AuthResult(success=right, handled=False)


class _AnyPort(Controller):
    """On a free port, of which aiosmtpd's own check of a start does not know."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextmanager
def mail_server(
    box: Mailbox, security: str, authority: Authority | None = None, host: str = "localhost"
) -> Iterator[Mailbox]:
    """A mail server on a port of its own: ``starttls``, ``tls`` or ``none``."""
    context = None if authority is None else authority.context(host)
    options: dict[str, Any] = {"hostname": "127.0.0.1", "port": 0, "ready_timeout": 60}
    if security == "starttls":
        options |= {"tls_context": context, "require_starttls": True}
    if security == "tls":
        options |= {"ssl_context": context}
    if security != "none":
        options |= {
            "authenticator": _authenticate, "auth_required": True,
            "auth_require_tls": security == "starttls",
        }  # fmt: skip
    controller = _AnyPort(box, **options)
    controller.start()
    box.port = controller.port
    try:
        yield box
    finally:
        controller.stop()


@dataclass
class Room:
    """A chat: what was posted, and how it answers."""

    status: int = 200
    answer: bytes = b"ok"
    location: str | None = None
    got: list[tuple[str, Any]] = field(default_factory=list)
    url: str = ""


@contextmanager
def chat(room: Room, authority: Authority | None = None) -> Iterator[Room]:
    """An HTTP server, with TLS where an authority signs its certificate."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            room.got.append((self.path, json.loads(body)))
            self.send_response(room.status)
            if room.location is not None:
                self.send_header("Location", room.location)
            self.send_header("Content-Length", str(len(room.answer)))
            self.end_headers()
            self.wfile.write(room.answer)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign] # a client that leaves
        if authority is not None:
            server.socket = authority.context().wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        scheme = "http" if authority is None else "https"
        room.url = f"{scheme}://localhost:{server.server_port}/services/SECRET/PATH"
        try:
            yield room
        finally:
            server.shutdown()
