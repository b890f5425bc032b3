"""A mail server that speaks STARTTLS and asks who one is, for one message."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Heard:
    """What a client said.

    Attributes:
        login: User and password, as they came under TLS.
        recipients: To whom it goes.
        message: As it came.
    """

    login: str = ""
    recipients: list[str] = field(default_factory=list)
    message: bytes = b""


class SmtpServer:
    """Listens on a port of its own.

    Args:
        certificate: PEM with key and certificate.
    """

    def __init__(self, certificate: Path) -> None:
        self.heard = Heard()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait for the client to say goodbye."""
        self._thread.join(10)
        self._socket.close()

    def _serve(self) -> None:
        plain, _ = self._socket.accept()
        stream = plain.makefile("rb")
        self._say(plain, "220 ready")
        secure: ssl.SSLSocket | None = None
        for line in stream:
            command = line.decode().strip()
            verb = command.partition(" ")[0].upper()
            if verb == "STARTTLS":
                self._say(plain, "220 go on")
                with suppress(ssl.SSLError):  # the client does not know us, and goes
                    secure = self._context.wrap_socket(plain, server_side=True)
                break
            self._say(plain, "250-here\r\n250 STARTTLS" if verb == "EHLO" else "530 TLS first")
        if secure is not None:
            self._talk(secure)
        plain.close()

    def _talk(self, secure: ssl.SSLSocket) -> None:
        stream = secure.makefile("rb")
        for line in stream:
            command = line.decode().strip()
            verb = command.partition(" ")[0].upper()
            if verb == "AUTH":
                said = base64.b64decode(command.split()[2]).decode()
                self.heard.login = said.strip("\0").replace("\0", " ")
                self._say(secure, "235 welcome")
            elif verb == "RCPT":
                self.heard.recipients.append(command.partition(":")[2].strip("<>"))
                self._say(secure, "250 ok")
            elif verb == "DATA":
                self._say(secure, "354 go on")
                lines = iter(stream.readline, b".\r\n")
                self.heard.message = b"".join(one.removeprefix(b".") for one in lines)
                self._say(secure, "250 taken")
            elif verb == "QUIT":
                self._say(secure, "221 goodbye")
                break
            else:
                self._say(secure, "250-here\r\n250 AUTH PLAIN" if verb == "EHLO" else "250 ok")
        secure.close()

    @staticmethod
    def _say(connection: socket.socket, what: str) -> None:
        connection.sendall(f"{what}\r\n".encode())
