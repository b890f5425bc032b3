"""Listeners that nobody may call: TCP and UDP on one port of a loopback address."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self


class Canary:
    """Counts who calls; a context manager.

    Attributes:
        calls: The first bytes of each call.
    """

    def __init__(self, host: str = "127.0.0.2") -> None:
        self.calls: list[str] = []
        self._tcp = socket.create_server((host, 0), backlog=64)
        self.address: tuple[str, int] = self._tcp.getsockname()
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(self.address)

    @property
    def where(self) -> str:
        """Host and port."""
        return f"{self.address[0]}:{self.address[1]}"

    def __enter__(self) -> Self:
        for serve in (self._accept, self._receive):
            threading.Thread(target=serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._tcp, self._udp):
            with suppress(OSError):  # a socket of datagrams is connected to nobody
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def taken(self) -> list[str]:
        """The calls so far, which count once."""
        calls, self.calls = self.calls, []
        return calls

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._tcp.accept()
            except OSError:
                return
            with connection:
                self.calls.append("tcp")
                connection.settimeout(0.2)
                try:
                    self.calls[-1] = f"tcp {connection.recv(60)!r}"
                except OSError:  # who calls need not speak
                    continue

    def _receive(self) -> None:
        while True:
            try:
                told, _ = self._udp.recvfrom(60)
            except OSError:
                return
            if not told:
                return
            self.calls.append(f"udp {told!r}")
