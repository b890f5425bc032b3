"""Servers of one bad answer: raw TCP, and HTTP up to the point where it goes wrong."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

import yaml

from collector import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.hostile.case import Room

    Answer = Callable[[socket.socket], object]

_START: Final = "java_lang_Runtime_StartTime 1.7E12\n"
_INFO: Final = 'kafka_server_app_info_StartTimeMs{id="1"} 1.700000001E12\n'
_READ: Final = ("min_isr", "quotas")
_UNREAD: Final = [one.name for one in catalogue.load().families if one.name not in _READ]
"""Families that are left out: each one costs a timeout where a server says nothing."""
TIMEOUT: Final = "3s"
"""Timeout of every source of an agent here."""


class Server:
    """A server on a free port of loopback; a context manager.

    Args:
        answer: Answers one connection.
        is_http: Whether the head of a request is read first.
    """

    def __init__(self, answer: Answer, *, is_http: bool = True) -> None:
        self._answer, self._is_http = answer, is_http
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # it was closed
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # A client that has had enough closes its end.
        with connection, suppress(OSError):
            connection.settimeout(60)
            if self._is_http:
                _read_request(connection)
            self._answer(connection)


def _read_request(connection: socket.socket) -> None:
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(65_536)
        if not piece:
            raise OSError
        head += piece
    head, _, body = head.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            left = int(line.split(b":")[1]) - len(body)
            while left > 0 and (piece := connection.recv(65_536)):
                left -= len(piece)


def head(status: str = "200 OK", *headers: str) -> bytes:
    """The head of an answer."""
    kind = "Content-Type: text/plain; version=0.0.4; charset=utf-8"
    return "\r\n".join((f"HTTP/1.1 {status}", kind, *headers, "", "")).encode()


def whole(body: str | bytes, status: str = "200 OK", *headers: str) -> bytes:
    """An answer with its length."""
    raw = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    return head(status, f"Content-Length: {len(raw)}", *headers) + raw


def page(*topics: str, more: str = "") -> str:
    """An exporter's page of a broker."""
    counts = "".join(
        f'kafka_server_ReplicaManager_Value{{name="{name}"}} {float(len(topics))}\n'
        for name in ("LeaderCount", "UnderMinIsrPartitionCount")
    )
    return _START + _INFO + counts + "".join(partition(one) for one in topics) + more


def partition(topic: str, number: object = 0, value: object = "1.0") -> str:
    """The lines of one partition."""
    name = topic.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    labels = f'partition="{number}",topic="{name}"'
    return (
        f'kafka_cluster_Partition_Value{{name="InSyncReplicasCount",{labels}}} 2.0\n'
        f'kafka_cluster_Partition_Value{{name="UnderMinIsr",{labels}}} {value}\n'
        f'kafka_cluster_Partition_Value{{name="AtMinIsr",{labels}}} 0.0\n'
    )


def serving(room: Room, body: str) -> str:
    """A server of one page, until the room is left; its URL."""
    answer = whole(body)
    server = room.stack.enter_context(Server(lambda one: one.sendall(answer)))
    return f"{server.url}/metrics"


def settings(room: Room, url: str = "http://127.0.0.1:1/metrics", **more: Any) -> dict[str, Any]:
    """A whole configuration of an agent that reads an exporter."""
    exporter = {"url": url, "exporter": "jmx_exporter", "kafka_version": "4.1.0",
                "timeout": TIMEOUT}  # fmt: skip
    return {
        "source": {"node": 1, "cluster": "abc", "prometheus": exporter},
        "lake": {"path": str(room.path / "out/lake")},
        "spool": {"path": str(room.path / "out/spool.db")},
        "health": {"port": 0},
        "families": {name: {"enabled": False} for name in _UNREAD},
        **more,
    }


def configured(room: Room, content: dict[str, Any]) -> Path:
    """The configuration as a file."""
    return room.write("agent.yaml", yaml.safe_dump(content, allow_unicode=True))
