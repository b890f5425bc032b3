"""Fakes of a JMX port that mean no good: servers that are no RMI, or RMI with any answer."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    Misbehaviour = Callable[[socket.socket], None]

SECONDS = 30
_PIECE = b"a" * 65_536


def say_nothing(connection: socket.socket) -> None:
    """Accept, and leave it at that."""
    connection.recv(1)
    time.sleep(SECONDS)


def say_garbage(connection: socket.socket) -> None:
    """Random bytes, without end."""
    noise = random.Random(7)
    while True:
        connection.sendall(noise.randbytes(65_536))


def tell_an_endless_text(connection: socket.socket) -> None:
    """Speak RMI, and answer the registry's look-up with a text of 2**40 characters."""
    connection.recv(7)  # JRMI, version, protocol
    host = b"127.0.0.1"
    connection.sendall(b"\x4e" + struct.pack(">H", len(host)) + host + struct.pack(">i", 1))
    connection.recv(4096)  # who they are, and maybe the call
    head = b"\x51" + struct.pack(">HH", 0xACED, 5)  # a return; a stream of objects begins
    unique = b"\x77\x0f\x01" + b"\x00" * 14  # it went well; the answer's id
    connection.sendall(head + unique + b"\x7c" + struct.pack(">q", 1 << 40))
    while True:
        connection.sendall(_PIECE)


class Misled(NamedTuple):
    """An answer that is not what the question was for.

    Attributes:
        question: Which one: a name of ``_METHODS``.
        content: The bytes of an object.
        thrown: Whether it is sent as an exception.
    """

    question: str
    content: bytes
    thrown: bool = False


class FakeJmx:
    """Speaks RMI as a registry and as a JMX server, and gives one answer that it was told to give.

    Args:
        good: The bytes of its other answers by name, as HostileObjects.java writes them.
    """

    def __init__(self, good: dict[str, bytes]) -> None:
        self.good = good
        self.misled: Misled | None = None
        self.given = 0

    def __call__(self, connection: socket.socket) -> None:
        """A misbehaviour of HostileRmi: serve one connection."""
        connection.recv(7)
        host = b"127.0.0.1"
        connection.sendall(b"\x4e" + struct.pack(">H", len(host)) + host + struct.pack(">i", 1))
        while request := connection.recv(65_536):
            at = request.find(b"\xac\xed\x00\x05\x77")
            if at >= 0:
                connection.sendall(self._answer(request[at + 6 :]))
            elif request[:1] == b"\x52":  # a ping
                connection.sendall(b"\x53")

    def _answer(self, call: bytes) -> bytes:
        number, method = struct.unpack(">iq", call[22:34])
        question = _METHODS.get((number, method), "")
        content, thrown = self._usual(question, call), False
        # Who is asked for its own beans is told the truth: else it would not come so far.
        about = question not in ("queryNames", "getAttribute") or b"hostile:" in call
        if self.misled is not None and self.misled.question == question and about:
            content, thrown = self.misled.content, self.misled.thrown
            self.given += 1
        head = b"\x51" + struct.pack(">HH", 0xACED, 5) + b"\x77\x0f" + bytes([1 + thrown])
        return head + b"\x00" * 14 + content

    def _usual(self, question: str, call: bytes) -> bytes:
        if question == "queryNames":
            beans = (name for name in self.good if ":" in name)
            known = (name for name in beans if name.partition("id=")[0].encode() in call)
            return self.good[next(known, "none")]
        if question == "getAttribute":
            for sign, name in ((b"StartTime", "start"), (b"hostile:", "number")):
                if sign in call:
                    return self.good[name]
            return self.good["text"]
        return self.good.get(question, b"")


_METHODS: Final = {
    (2, 4905912898345647071): "lookup",
    (1, -669196253586618813): "dirty",
    (-1, -1089742558549201240): "newClient",
    (-1, 9152567528369059802): "queryNames",
    (-1, -1089783104982388203): "getAttribute",
    (-1, 6285293806596348999): "getAttributes",
    (-1, -5321691879380783377): "addNotificationListeners",
    (-1, -5037523307973544478): "fetchNotifications",
    (-1, -4742752445160157748): "close",
}


class HostileRmi:
    """A running fake; a context manager."""

    def __init__(self, misbehaviour: Misbehaviour) -> None:
        self._misbehaviour = misbehaviour
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self.port = int(self._socket.getsockname()[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for connection in self._connections:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # it was closed
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            self._misbehaviour(connection)
        except OSError:  # the client has had enough
            return
