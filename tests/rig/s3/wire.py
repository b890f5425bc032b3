"""HTTP/1.1 messages as they lie on the wire, passed on byte for byte so that signatures hold."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote

from tests.rig.s3.rules import Request

_END = b"\r\n\r\n"
HEAD_BYTES = 1 << 18
"""The longest head that is taken."""

_PIECE = 1 << 18
_BODYLESS = (204, 304)


@dataclass(frozen=True)
class Head:
    """The first line and the headers; names in lower case."""

    raw: bytes
    first: list[str]
    headers: dict[str, str]

    @classmethod
    def parse(cls, raw: bytes) -> Head:
        first, *lines = raw.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines if line)
        return cls(
            raw, first.split(" ", 2), {name.lower(): value.strip() for name, _, value in pairs}
        )

    @property
    def request(self) -> Request:
        """What is asked for, of a request."""
        return Request(self.first[0], unquote(self.first[1].partition("?")[0]).strip("/"))

    @property
    def status(self) -> int:
        """Of an answer."""
        return int(self.first[1])

    @property
    def keeps_alive(self) -> bool:
        """Whether another message may follow on the connection."""
        return self.headers.get("connection", "").lower() != "close"

    @property
    def expects_continue(self) -> bool:
        """Whether the body comes only after an interim answer."""
        return self.headers.get("expect", "").lower() == "100-continue"


class Wire:
    """One connection, of which heads and bodies are read and to which bytes are written."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, host: str, port: int) -> Wire:
        """A new connection."""
        return cls(*await asyncio.open_connection(host, port, limit=HEAD_BYTES))

    @property
    def ended(self) -> bool:
        """Whether the other side has closed it."""
        return self._reader.at_eof() or self._writer.is_closing()

    async def head(self) -> Head | None:
        """The next message's head; None: the other side has closed the connection."""
        try:
            return Head.parse(await self._reader.readuntil(_END))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def body(self, head: Head, target: Wire | None, *, answer_to: str | None = None) -> None:
        """Pass a message's body on, or drop it where there is no target.

        Args:
            head: The message's head.
            target: Where the body goes.
            answer_to: The method of the request, where the message is an answer.
        """
        if answer_to == "HEAD" or (answer_to and head.status in _BODYLESS):
            return
        if head.headers.get("transfer-encoding", "").lower() == "chunked":
            await self._chunks(target)
        elif (length := head.headers.get("content-length")) is not None:
            await self._bytes(int(length), target)
        elif answer_to and not head.keeps_alive:
            while piece := await self._reader.read(_PIECE):
                await _pass(piece, target)

    async def send(self, data: bytes) -> None:
        """Write, and wait while the other side is slow to read."""
        self._writer.write(data)
        await self._writer.drain()

    async def closed_by_peer(self) -> None:
        """Wait until the other side has had enough."""
        with suppress(ConnectionError):
            while await self._reader.read(_PIECE):
                pass

    def close(self) -> None:
        """Let go of it at once."""
        self._writer.transport.abort()

    async def _bytes(self, count: int, target: Wire | None) -> None:
        while count:
            piece = await self._reader.read(min(count, _PIECE))
            if not piece:
                raise ConnectionResetError("closed within a body")
            count -= len(piece)
            await _pass(piece, target)

    async def _chunks(self, target: Wire | None) -> None:
        size = -1
        while size:
            line = await self._reader.readuntil(b"\r\n")
            size = int(line.partition(b";")[0], 16)
            await _pass(line, target)
            if size:
                await self._bytes(size + 2, target)
        while (trailer := await self._reader.readuntil(b"\r\n")) != b"\r\n":
            await _pass(trailer, target)
        await _pass(trailer, target)


async def _pass(piece: bytes, target: Wire | None) -> None:
    if target is not None:
        await target.send(piece)
