"""A proxy before a real S3 server: it adds latency, and does to requests what networks do.

Every request goes on unchanged, Host included, because S3 signs that. ``rules.py`` declares the
faults.
"""

from __future__ import annotations

import asyncio
import random
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from tests.rig.s3.link import Link, Servers
from tests.rig.s3.rules import Plan, Rule, Seen
from tests.rig.s3.wire import HEAD_BYTES, Wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rig.s3.link import Reply
    from tests.rig.s3.rules import Request
    from tests.rig.s3.wire import Head

_BACKLOG = 4_096  # hundreds of agents come at once
_NO_RULE = Rule()


class FaultyProxy:
    """Forwards to an S3 server on this machine, on a free port and a thread of its own.

    Args:
        target_endpoint: The server's URL.
        latency: Least and most seconds added to a request, half before and half after it.
        seed: Of the latencies.

    Attributes:
        endpoint: The proxy's URL.
        latency: As above; it may be changed at any time.
        seen: Every request that was answered or dropped, in the order of their ends.
    """

    def __init__(
        self, target_endpoint: str, latency: tuple[float, float] | None = None, seed: int = 1
    ) -> None:
        parts = urlsplit(target_endpoint)
        self._servers = Servers(parts.hostname or "127.0.0.1", parts.port or 80)
        self.latency, self._random = latency, random.Random(seed)
        self._plan = Plan()
        self._clients: set[asyncio.Task[None]] = set()
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self.seen: list[Seen] = []
        self.endpoint = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def plan(self, rule: Rule) -> Callable[[], None]:
        """Put a rule in force from the next request on; what is returned lifts it."""
        handle = self._plan.add(rule)
        return lambda: self._plan.lift(handle)

    def clear(self) -> None:
        """Lift every rule, and forget what was seen."""
        self._plan.clear()
        self.seen.clear()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(
            self._accept, "127.0.0.1", 0, backlog=_BACKLOG, limit=HEAD_BYTES
        )
        self.endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._started.set()
        await self._stop.wait()
        server.close()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        self._servers.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        link = Link(Wire(reader, writer), self._servers)
        try:
            # A client that is killed in the middle of a request is what this is for.
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while (head := await link.client.head()) is not None:
                    if not await self._exchange(link, head):
                        break
        finally:
            link.client.close()
            self._clients.discard(task)

    async def _exchange(self, link: Link, head: Head) -> bool:
        """Carry out what is planned for a request; whether its connection goes on."""
        request = head.request
        rule = self._plan.find(request) or _NO_RULE
        pause = self._random.uniform(*self.latency) / 2 if self.latency else 0.0
        told = None
        try:
            await asyncio.sleep(pause + rule.delay_seconds)
            await _call(rule.before, request)
            reply = await link.ask(head, forward=rule.forward)
            await _call(rule.after, request)
            await asyncio.sleep(pause)
            told = _told(rule, reply)
        finally:
            self.seen.append(Seen(*request, told))  # before the client can know
        if reply is not None and rule.answer is None and not rule.silent:
            await link.pass_on(head, reply)
            return reply.head.keeps_alive
        if reply is not None:
            await link.drop(head, reply)
        if rule.answer is not None:
            await link.answer(head, rule.answer)
            return True
        if rule.hang:
            await link.client.closed_by_peer()
        return False


def _told(rule: Rule, reply: Reply | None) -> int | None:
    if rule.answer is not None:
        return rule.answer.status
    return reply.head.status if reply is not None and not rule.silent else None


async def _call(callback: Callable[[Request], None] | None, request: Request) -> None:
    if callback is not None:
        await asyncio.to_thread(callback, request)
