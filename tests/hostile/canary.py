"""Listeners that nobody may call: TCP and UDP on one port of a loopback address."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator


class Canary:
    """Holds a port; a context manager. Who calls is let wait until the calls are looked at."""

    def __init__(self, host: str = "127.0.0.2") -> None:
        self._tcp = socket.create_server((host, 0), backlog=64)
        self.address: tuple[str, int] = self._tcp.getsockname()
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(self.address)
        for one in (self._tcp, self._udp):
            one.settimeout(0)

    @property
    def where(self) -> str:
        """Host and port."""
        return f"{self.address[0]}:{self.address[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tcp.close()
        self._udp.close()

    def taken(self) -> list[str]:
        """The calls since the last time."""
        return [*self._connections(), *self._datagrams()]

    def _connections(self) -> Iterator[str]:
        while True:
            try:
                connection, _ = self._tcp.accept()
            except BlockingIOError:
                return
            with connection:
                connection.settimeout(0)
                try:
                    yield f"tcp {connection.recv(60)!r}"
                except OSError:  # who calls need not speak
                    yield "tcp"

    def _datagrams(self) -> Iterator[str]:
        while True:
            try:
                yield f"udp {self._udp.recv(60)!r}"
            except BlockingIOError:
                return
