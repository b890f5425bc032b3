"""What a faulty proxy does to which requests; one declaration, carried out by ``proxy.py``.

For a matching request the steps of a rule come in this order: wait, call ``before``, forward (or
not), call ``after``, then answer: with the server's answer, with an own one, or not at all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

COMMITS = "*/_delta_log/*.json"
"""Keys of commit files; the listing of a log has the bucket alone as its key."""

DATA = "*.parquet"
"""Keys of data files, and of checkpoints."""


class Request(NamedTuple):
    """What a client asks: the key is ``bucket/path``, decoded, without the query."""

    method: str
    key: str


class Seen(NamedTuple):
    """A request that came, and the status its client was given; None: no answer."""

    method: str
    key: str
    status: int | None


class Answer(NamedTuple):
    """An answer of the proxy's own, with S3's error code."""

    status: int
    code: str


@dataclass(frozen=True)
class Rule:
    """Which requests, and what is done to them.

    Attributes:
        method: Pattern of the method.
        key: Pattern of the key, as ``fnmatch`` knows them.
        nth: The first of the matching requests that is meant, counted from 1.
        times: How many from there on; None: all.
        delay_seconds: Wait this long first.
        before: Called with the request before it is forwarded, on a thread of its own.
        forward: Whether the server gets it at all.
        after: Called with the request when the server has answered.
        answer: What the client gets instead of the server's answer.
        silent: The client gets nothing, and its connection is closed.
        hang: With ``silent``: the connection stays open until the client gives up.
    """

    method: str = "*"
    key: str = "*"
    nth: int = 1
    times: int | None = 1
    delay_seconds: float = 0.0
    before: Callable[[Request], None] | None = None
    forward: bool = True
    after: Callable[[Request], None] | None = None
    answer: Answer | None = None
    silent: bool = False
    hang: bool = False

    def matches(self, request: Request) -> bool:
        """Whether it is about such requests, whichever of them is meant."""
        return fnmatchcase(request.method, self.method) and fnmatchcase(request.key, self.key)

    def means(self, count: int) -> bool:
        """Whether the matching request of this number is one of those meant."""
        return count >= self.nth and (self.times is None or count < self.nth + self.times)


_CODES = {
    403: "AccessDenied",
    404: "NoSuchKey",
    409: "ConditionalRequestConflict",
    412: "PreconditionFailed",
    500: "InternalError",
    503: "SlowDown",
}


def refused(status: int, method: str = "PUT", key: str = COMMITS, **which: Any) -> Rule:
    """The server never sees it; the client gets this status."""
    return Rule(method, key, forward=False, answer=Answer(status, _CODES[status]), **which)


def landed_but(status: int, method: str = "PUT", key: str = COMMITS, **which: Any) -> Rule:
    """The server did it; the client is told that it failed."""
    return Rule(method, key, answer=Answer(status, _CODES[status]), **which)


def answer_lost(method: str = "PUT", key: str = COMMITS, **which: Any) -> Rule:
    """The server did it; the client's connection is closed without an answer."""
    return Rule(method, key, silent=True, **which)


def answer_hangs(method: str = "PUT", key: str = COMMITS, **which: Any) -> Rule:
    """The server did it; the client waits until it gives up."""
    return Rule(method, key, silent=True, hang=True, **which)


def slow(seconds: float, method: str = "PUT", key: str = COMMITS, **which: Any) -> Rule:
    """The request takes so much longer."""
    return Rule(method, key, delay_seconds=seconds, **which)


def down() -> Rule:
    """Every connection is closed as soon as something is asked; lift it to be up again."""
    return Rule(forward=False, silent=True, times=None)


class Plan:
    """The rules in force, asked from the proxy's thread and changed from any."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._counts: dict[int, tuple[Rule, int]] = {}
        self._given = 0

    def add(self, rule: Rule) -> int:
        """Put a rule in force; the handle lifts it."""
        with self._mutex:
            self._given += 1
            self._counts[self._given] = (rule, 0)
            return self._given

    def lift(self, handle: int) -> None:
        """The rule holds no longer."""
        with self._mutex:
            self._counts.pop(handle, None)

    def clear(self) -> None:
        """No rule holds any longer."""
        with self._mutex:
            self._counts.clear()

    def find(self, request: Request) -> Rule | None:
        """The first rule that means this request; every rule counts those that match it."""
        meant = None
        with self._mutex:
            for handle, (rule, count) in self._counts.items():
                if rule.matches(request):
                    self._counts[handle] = (rule, count + 1)
                    if meant is None and rule.means(count + 1):
                        meant = rule
        return meant
