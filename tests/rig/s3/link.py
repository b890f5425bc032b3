"""A client's connection, and those to the server that its requests go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.rig.s3.wire import Head, Wire

if TYPE_CHECKING:
    from tests.rig.s3.rules import Answer

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Reply(NamedTuple):
    """The head of a server's answer, and the connection on which its body comes."""

    head: Head
    server: Wire


class Servers:
    """Connections to the server that are not in use, for whoever asks next.

    Args:
        host: Where it listens.
        port: Where it listens.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._idle: list[Wire] = []

    async def take(self) -> Wire:
        """One that the server has not closed, or a new one."""
        while self._idle:
            wire = self._idle.pop()
            if not wire.ended:
                return wire
            wire.close()
        return await Wire.connect(self._host, self._port)

    def give(self, reply: Reply) -> None:
        """Its answer was read to the end."""
        if reply.head.keeps_alive:
            self._idle.append(reply.server)
        else:
            reply.server.close()

    def close(self) -> None:
        """Let go of all."""
        while self._idle:
            self._idle.pop().close()


class Link:
    """Takes requests of one client to the server, one after the other, and answers back.

    Args:
        client: The client's connection.
        servers: The server's.
    """

    def __init__(self, client: Wire, servers: Servers) -> None:
        self.client = client
        self._servers = servers

    async def ask(self, head: Head, *, forward: bool) -> Reply | None:
        """Take a request and forward it; what the server answers, None where it does not.

        Raises:
            ConnectionError: The client or the server closed its connection on the way.
        """
        if head.expects_continue:
            await self.client.send(_CONTINUE)
        if not forward:
            await self.client.body(head, None)
            return None
        server = await self._servers.take()
        try:
            await server.send(head.raw)
            await self.client.body(head, server)
            answer = await server.head()
            while answer is not None and answer.status < 200:
                answer = await server.head()
        except BaseException:
            server.close()  # half a request is on it
            raise
        if answer is None:
            server.close()
            return None
        return Reply(answer, server)

    async def pass_on(self, head: Head, reply: Reply) -> None:
        """Give the client the server's answer."""
        await self.client.send(reply.head.raw)
        await self._finish(head, reply, self.client)

    async def drop(self, head: Head, reply: Reply) -> None:
        """Keep the server's answer from the client."""
        await self._finish(head, reply, None)

    async def answer(self, head: Head, own: Answer) -> None:
        """Give the client an answer of our own."""
        body = b"" if head.request.method == "HEAD" else _error(own)
        await self.client.send(
            b"HTTP/1.1 %d Said by the proxy\r\nContent-Type: application/xml\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (own.status, len(body), body)
        )

    async def _finish(self, head: Head, reply: Reply, target: Wire | None) -> None:
        try:
            await reply.server.body(reply.head, target, answer_to=head.request.method)
        except BaseException:
            reply.server.close()
            raise
        self._servers.give(reply)


def _error(answer: Answer) -> bytes:
    text = f"<Error><Code>{answer.code}</Code><Message>{answer.code}</Message></Error>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode()
