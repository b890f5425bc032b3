"""The statistics of librdkafka clients, from a file to which their application appends them.

librdkafka hands its statistics as JSON to the application's ``stats_cb`` every
``statistics.interval.ms``; the application writes each as one line. The interval should be half the
family's cadence or less: statistics older than a cadence are of no use and count as unknown.

How long brokers held answers back is in milliseconds, whatever librdkafka's documentation says of
windows in general. Windows count the answers that were held back (older versions count all). A
client that was told to wait is taken to wait as long as it was told, though no answer comes.

A ``client.id`` with a quote or a backslash breaks the JSON, which librdkafka writes unescaped: such
lines are garbage, which is counted.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import msgspec

from collector.errors import IdentityError, SourceError, SourceTimeoutError
from collector.samples import Answer, Identity, Reading, Series
from collector.sources.appended_lines import AppendedLines
from collector.sources.cap import within_cap
from collector.sources.names import told
from collector.sources.unchanged import Unchanged
from collector.sources.values import split

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from collector.catalogue import Family
    from collector.sources.expected import Expected

_AVG: Final = "brokers.*.throttle.avg"
_MAX: Final = "brokers.*.throttle.max"
_ROUNDED_SECONDS: Final = 1.0  # librdkafka tells whole seconds
_LONGEST_SECONDS: Final = 60.0
"""No answer is taken to bind a client for longer; brokers themselves stop at their quota window,
by default 11 s."""


_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class _Window(msgspec.Struct):
    max: _Count = 0
    sum: _Count = 0
    cnt: _Count = 0


class _Broker(msgspec.Struct):
    nodeid: int = -1
    throttle: _Window = msgspec.field(default_factory=_Window)


class _Statistics(msgspec.Struct):
    """One line, as far as it matters; ``time`` in seconds."""

    name: str
    client_id: str
    type: str
    time: int
    brokers: dict[str, _Broker]


class _Key(NamedTuple):
    """Whose answers: several clients of one process may share their id."""

    client_id: str
    type: str
    broker: str


class _Throttle(NamedTuple):
    """What the answers of one broker said: milliseconds, and until when they bind the client."""

    avg: float
    max: float
    until: float


_Throttles = dict[_Key, _Throttle | None]


class StatisticsSource:
    """The clients of one application.

    Args:
        expected: Who they are: the statistics tell neither cluster nor node.
        file: The file that the application appends to.
        clock: The wall clock, in seconds since the epoch.
    """

    def __init__(
        self, expected: Expected, file: Path, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._expected = expected
        self._where = f"statistics {file}"
        self._lines = AppendedLines(file, self._where)
        self._clock = clock
        self._newest: dict[str, _Statistics] = {}
        self._told: _Throttles = {}
        self._unchanged = Unchanged()

    def identify(self) -> Identity:
        """Who is configured.

        Raises:
            SourceError: The file cannot be read, or the configuration does not name the cluster.
        """
        self._lines.open()
        expected = self._expected
        if expected.cluster is None or expected.node is None:
            raise IdentityError(
                f"{self._where}: they do not tell their cluster; name source.cluster"
            )
        return Identity(expected.cluster, expected.node, None, 0)

    def read(self, family: Family) -> Answer:
        """Read what was appended since the last time.

        Raises:
            SourceError: The file cannot be read, or its newest statistics are too old.
        """
        fresh_s = family.cadence_us / 1e6 + _ROUNDED_SECONDS
        before = self._lines.dropped
        windows: dict[_Key, list[_Window]] = {}
        garbage = 0
        for line in self._lines.new():
            found = _decoded(line)
            if found is None:
                garbage += bool(line.strip())
            elif abs(self._clock() - found.time) <= fresh_s:
                self._take(found, windows)
        garbage += self._lines.dropped - before
        self._forget_silent(fresh_s, garbage)
        throttles = self._throttles(windows)
        readings = tuple(self._reading(one.name, one.call, throttles) for one in family.metrics)
        return within_cap(Answer(readings, len(throttles), garbage), family.cap)

    def close(self) -> None:
        """Close the file; what it holds by then is read again, as far as it is fresh."""
        self._lines.close()
        self._newest.clear()
        self._told.clear()

    def _take(self, found: _Statistics, windows: dict[_Key, list[_Window]]) -> None:
        self._newest[found.name] = found
        for name, broker in found.brokers.items():
            if broker.nodeid >= 0 or broker.throttle.cnt:
                windows.setdefault(_key(found, name, broker), []).append(broker.throttle)

    def _forget_silent(self, fresh_s: float, garbage: int) -> None:
        now = self._clock()
        fresh = {n: s for n, s in self._newest.items() if abs(now - s.time) <= fresh_s}
        if not fresh:
            why = " Some lines are garbage; is a quote in a client.id?" if garbage else ""
            raise SourceTimeoutError(
                f"{self._where}: none for {fresh_s:g} s: does the client run, and is its"
                f" statistics.interval.ms at most half the cadence?{why}"
            )
        self._newest = fresh

    def _throttles(self, windows: Mapping[_Key, list[_Window]]) -> _Throttles:
        """By client and broker; None where no answer came and none binds the client any longer."""
        now = self._clock()
        throttles: _Throttles = {}
        for found in self._newest.values():
            for name, broker in found.brokers.items():
                key = _key(found, name, broker)
                if broker.nodeid >= 0 or key in windows:
                    before = self._told.get(key)
                    bound = before if before and now < before.until else None
                    throttles[key] = _merged(windows.get(key, ()), now) or bound
        self._told = throttles
        return throttles

    def _reading(self, metric: str, call: str | None, throttles: _Throttles) -> Reading:
        if call not in (_AVG, _MAX):
            raise SourceError(f"{metric}: statistics have no {call}; they have {_AVG} and {_MAX}")
        values: dict[Series, float | None] = {}
        for key, throttle in throttles.items():
            labels = (("broker", key.broker), ("type", key.type))
            series = Series(metric, client_id=key.client_id, labels=labels)
            values[series] = (throttle.avg if call == _AVG else throttle.max) if throttle else None
        zeros, others = split(values)
        return Reading(metric, "gauge", self._unchanged.same(metric, zeros), others)


def _decoded(line: bytes) -> _Statistics | None:
    try:
        return msgspec.json.decode(line, type=_Statistics)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _key(found: _Statistics, name: str, broker: _Broker) -> _Key:
    # Only brokers that were found by their id have one; what is sent to a coordinator is apart.
    node = str(broker.nodeid) if broker.nodeid >= 0 else told(name)
    return _Key(told(found.client_id), told(found.type), node)


def _merged(windows: Sequence[_Window], now: float) -> _Throttle | None:
    count = sum(window.cnt for window in windows)
    if not count:
        return None
    longest = max(window.max for window in windows)
    mean = sum(window.sum for window in windows) / count
    return _Throttle(mean, float(longest), now + min(longest / 1000, _LONGEST_SECONDS))
