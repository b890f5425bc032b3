"""HTTP that ends in time, however the other side behaves, and takes no more than it may.

The timeouts of HTTP clients hold for one read of a socket, so a server that sends a byte now and
then could hold them for days. Here every wait ends at the deadline of the whole call.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any, Final

import httpcore
import httpx

from collector.errors import SourceError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

MAX_BYTES: Final = 64 * 1024 * 1024
"""More than the beans of 100,000 partitions take."""


class Deadline:
    """When the call that is under way must have ended, in seconds of the monotonic clock."""

    def __init__(self) -> None:
        self._at = 0.0

    def set(self, seconds: float) -> None:
        """A call begins that may take so long."""
        self._at = time.monotonic() + seconds

    def left(self, error: type[httpcore.TimeoutException]) -> float:
        """Seconds that are left.

        Raises:
            httpcore.TimeoutException: There are none; of the given kind.
        """
        left = self._at - time.monotonic()
        if left <= 0:
            raise error
        return left


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        self._acknowledge_at_once()
        return self._stream.read(max_bytes, self._deadline.left(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._stream.write(buffer, self._deadline.left(httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        left = self._deadline.left(httpcore.ConnectTimeout)
        inner = self._stream.start_tls(ssl_context, server_hostname, left)
        return _Stream(inner, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def _acknowledge_at_once(self) -> None:
        # Java's HTTP server writes head and body one by one and waits with the second until the
        # first was acknowledged, which Linux puts off by 40 ms: 45 ms for an answer, not 4.
        if hasattr(socket, "TCP_QUICKACK"):
            tcp = self._stream.get_extra_info("socket")
            tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


class _Backend(httpcore.NetworkBackend):
    def __init__(self, deadline: Deadline) -> None:
        self._backend = httpcore.SyncBackend()
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = self._deadline.left(httpcore.ConnectTimeout)
        stream = self._backend.connect_tcp(host, port, left, local_address, socket_options)
        return _Stream(stream, self._deadline)


class BoundedTransport(httpx.HTTPTransport):
    """One connection that stays open, and every wait on it ends at the deadline.

    Args:
        context: Whom to trust, where the server speaks TLS.
        deadline: Of the call that is under way.
    """

    def __init__(self, context: ssl.SSLContext, deadline: Deadline) -> None:
        super().__init__(verify=context)
        # httpx gives no other way to say how bytes are read; its version is pinned for this.
        self._pool = httpcore.ConnectionPool(
            ssl_context=context, max_connections=1, network_backend=_Backend(deadline)
        )


def body_of(response: httpx.Response, where: str) -> bytearray:
    """The body of a streamed response, just as it was sent.

    Raises:
        SourceError: It is larger than anything that a broker could have to say.
        httpx.HTTPError: It did not come, or not in time.
    """
    body = bytearray()
    for piece in response.iter_raw():
        body += piece
        if len(body) > MAX_BYTES:
            raise SourceError(
                f"{where}: the answer is longer than {MAX_BYTES >> 20} MiB; is that a broker?"
            )
    return body
