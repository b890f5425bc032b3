"""Fakes of a JMX port that mean no good: TCP servers that are no RMI, or RMI up to a point."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Self

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
