"""Statistics of librdkafka clients, from a file to which their application appends them.

librdkafka passes its statistics as JSON to the application's ``stats_cb`` every
``statistics.interval.ms``, and the application writes each as one line. This interval should be at
most half of the family's scrape interval. Statistics older than a scrape interval are ignored and
count as unknown.

Throttle times are in milliseconds, unlike other windows in librdkafka's documentation.
Windows count throttled responses (older versions count all responses). A throttled client counts
as throttled for the time that the broker set, even if no response arrives.

librdkafka does not escape a ``client.id``, so a quote or a backslash in it makes the JSON invalid.
The source counts invalid lines.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, BinaryIO, Final, NamedTuple

import msgspec

from collector import errors
from collector.catalogue import Family, Metric
from collector.model import Answer, Identity, Reading, Series
from collector.sources.base.identity import Expected
from collector.sources.base.lake_limits import lake_name, within_cap
from collector.sources.base.readings import Readings, split
from collector.sources.transports import Transport

_CALLS: Final = ("brokers.*.throttle.avg", "brokers.*.throttle.max")
"""Supported calls of a metric, in the order of _Throttle."""
_ROUNDED_SECONDS: Final = 1.0  # librdkafka writes whole seconds
_LONGEST_SECONDS: Final = 60.0
"""Limit of a throttle time. Brokers limit it to their quota window, by default 11 s."""


_MOST_OBJECTS: Final = 300_000
"""Limit of JSON objects in all lines of one read. 50 clients of 100 brokers write a third of it."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class _Window(msgspec.Struct):
    max: _Count = 0
    sum: _Count = 0
    cnt: _Count = 0


class _Broker(msgspec.Struct):
    nodeid: int = -1
    throttle: _Window = msgspec.field(default_factory=_Window)


class _Statistics(msgspec.Struct):
    """The relevant fields of one line; ``time`` in seconds."""

    name: str
    client_id: str
    type: str
    time: int
    brokers: dict[str, _Broker]


class _Throttle(NamedTuple):
    """Throttling by one broker: times in milliseconds, and the end of the client's wait."""

    avg: float
    max: float
    until: float


_Throttles = dict[Series, _Throttle | None]
"""Throttling by client and broker, without a metric name. Clients of a process can share an ID."""


class Statistics(Transport, frozen=True):
    """A file to which a librdkafka client appends its statistics, one JSON object per line.

    Attributes:
        file: File.
    """

    opens = "librdkafka:StatisticsSource"
    via = "statistics"
    roles = frozenset({"client"})

    file: Path


class StatisticsSource:
    """The clients of one application.

    Args:
        expected: Configured identity, because the statistics have neither cluster nor node.
        settings: File that the application appends to.
        clock: Wall clock, in seconds since the epoch.
    """

    def __init__(
        self,
        expected: Expected,
        settings: Statistics,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._expected, self._clock = expected, clock
        self._where = f"statistics {settings.file}"
        self._lines = AppendedLines(settings.file, self._where)
        self._newest: dict[str, _Statistics] = {}
        self._throttled: _Throttles = {}
        self._readings = Readings()

    def identify(self) -> Identity:
        """Return the configured identity.

        Raises:
            SourceError: The file cannot be read, or the configuration has no cluster ID.
        """
        self._lines.open()
        expected = self._expected
        if expected.cluster is None or expected.node is None:
            raise errors.IdentityError(
                f"{self._where}: the file does not contain the cluster id; set source.cluster"
            )
        return Identity(expected.cluster, expected.node, None, 0)

    def read(self, family: Family) -> Answer:
        """Read the lines since the last read.

        Raises:
            SourceError: The file cannot be read, or its newest statistics are too old.
        """
        fresh_s = family.cadence_us / 1e6 + _ROUNDED_SECONDS
        windows: dict[Series, list[_Window]] = {}
        garbage, left = 0, _MOST_OBJECTS
        for line in self._lines.new():
            left -= 0 if line is None else line.count(b"{")
            found = None if line is None or left < 0 else _decoded(line)
            if found is None:
                garbage += line is None or bool(line.strip())
            elif abs(self._clock() - found.time) <= fresh_s:
                self._take(found, windows)
        self._drop_silent(fresh_s, garbage)
        throttles = self._throttles(windows)
        readings = tuple(self._reading(one, throttles) for one in family.metrics)
        return within_cap(Answer(readings, len(throttles), garbage), family.cap)

    def close(self) -> None:
        """Close the file. The next read starts with the recent statistics in it."""
        self._lines.close()
        self._newest.clear()
        self._throttled.clear()

    def _take(self, found: _Statistics, windows: dict[Series, list[_Window]]) -> None:
        self._newest[found.name] = found
        for name, broker in found.brokers.items():
            if broker.nodeid >= 0 or broker.throttle.cnt:
                windows.setdefault(_key(found, name, broker), []).append(broker.throttle)

    def _drop_silent(self, fresh_s: float, garbage: int) -> None:
        now = self._clock()
        fresh = {n: s for n, s in self._newest.items() if abs(now - s.time) <= fresh_s}
        if not fresh:
            why = "; some lines are invalid, as with a quote in a client.id" if garbage else ""
            raise errors.SourceTimeoutError(
                f"{self._where}: no statistics for {fresh_s:g} s{why}; check that the client is"
                " running and its statistics.interval.ms is at most half of the scrape interval"
            )
        self._newest = fresh

    def _throttles(self, windows: Mapping[Series, list[_Window]]) -> _Throttles:
        """Return throttling by client and broker. None: no response, and no wait is running."""
        now = self._clock()
        throttles: _Throttles = {}
        for found in self._newest.values():
            for name, broker in found.brokers.items():
                key = _key(found, name, broker)
                if broker.nodeid >= 0 or key in windows:
                    before = self._throttled.get(key)
                    bound = before if before and now < before.until else None
                    throttles[key] = _merged(windows.get(key, ()), now) or bound
        self._throttled = throttles
        return throttles

    def _reading(self, metric: Metric, throttles: _Throttles) -> Reading:
        if metric.call not in _CALLS:
            why = f"statistics do not have {metric.call}"
            raise errors.SourceError(f"{metric.name}: {why}; use one of {', '.join(_CALLS)}")
        at = _CALLS.index(metric.call)
        values = {
            key._replace(metric=metric.name): throttle and throttle[at]
            for key, throttle in throttles.items()
        }
        return self._readings.reading(metric, *split(values))


def _decoded(line: bytes) -> _Statistics | None:
    try:
        return msgspec.json.decode(line, type=_Statistics)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _key(found: _Statistics, name: str, broker: _Broker) -> Series:
    # A broker without an ID is a bootstrap address, or the connection to a coordinator.
    node = str(broker.nodeid) if broker.nodeid >= 0 else lake_name(name)
    labels = (("broker", node), ("type", lake_name(found.type)))
    return Series("", client_id=lake_name(found.client_id), labels=labels)


def _merged(windows: Sequence[_Window], now: float) -> _Throttle | None:
    count = sum(window.cnt for window in windows)
    if not count:
        return None
    longest = max(window.max for window in windows)
    mean = sum(window.sum for window in windows) / count
    return _Throttle(mean, float(longest), now + min(longest / 1000, _LONGEST_SECONDS))


LONGEST_LINE: Final = 16 << 20
"""Size limit of a line in bytes. Statistics of a client with 10,000 partitions have 10 MB."""
MOST_AT_ONCE: Final = 4 * LONGEST_LINE
"""Size limit of one read in bytes."""
_MOST_LINES: Final = 100_000
"""Line limit of one read. Statistics of a client have at least 1,500 bytes."""


class AppendedLines:
    """Follows a file, like ``tail -F``.

    A renamed file is read to its end, then the new file from its start. A truncated file is read
    from its start. A line that is longer than ``LONGEST_LINE`` is dropped. If the file has grown by
    more than ``MOST_AT_ONCE``, only the end is read.

    Args:
        path: File. The application can write half a line at a time.
        where: Start of the error line.
    """

    def __init__(self, path: Path, where: str) -> None:
        self._path, self._where = path, where
        self._file: BinaryIO | None = None
        self._rest = b""
        self._skipping = False

    def open(self) -> BinaryIO:
        """Return the file; open it if necessary.

        Raises:
            SourceRefusedError: The file does not exist, is not readable or is not a regular file.
        """
        if self._file is None:
            try:
                # Without O_NONBLOCK, opening a pipe without a writer would block forever.
                handle = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                raise errors.SourceRefusedError(
                    f"{self._where}: {error.strerror}; check that the client's stats_cb appends to"
                    " this file"
                ) from None
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise errors.SourceRefusedError(
                    f"{self._where}: not a regular file; set source.statistics.file to one"
                )
            self._file = os.fdopen(handle, "rb")
        return self._file

    def new(self) -> Iterator[bytes | None]:
        """Yield the complete lines since the last call, without line ends. None: a dropped line.

        Raises:
            SourceRefusedError: The file does not exist, is not readable or is not a regular file.
        """
        file = self.open()
        yield from self._lines(file)
        if self._is_replaced(file):
            yield from self._lines(file)  # lines between the last read and the renaming
            self.close()
            yield from self._lines(self.open())

    def close(self) -> None:
        """Close the file and drop the position in it."""
        if self._file is not None:
            self._file.close()
        self._file, self._rest, self._skipping = None, b"", False

    def _lines(self, file: BinaryIO) -> Iterator[bytes | None]:
        # Only to the current end, because the application can append faster than the agent reads.
        size = os.fstat(file.fileno()).st_size
        start, at, lines = max(0, size - MOST_AT_ONCE), file.tell(), 0
        if not start <= at <= size:
            at = file.seek(start)
            self._rest, self._skipping = b"", start > 0  # possibly inside a line
        while at < size and (part := file.readline(LONGEST_LINE)):
            at, lines = at + len(part), lines + 1
            if lines > _MOST_LINES:
                at = file.seek(size)
                self._rest, self._skipping = b"", True
                yield None
                return
            if part.endswith(b"\n"):
                line, self._rest = self._rest + part[:-1], b""
                if not self._skipping:
                    yield line
                self._skipping = False
            elif not self._skipping:
                self._rest += part
                if len(self._rest) >= LONGEST_LINE:
                    self._rest, self._skipping = b"", True
                    yield None

    def _is_replaced(self, file: BinaryIO) -> bool:
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(file.fileno()))
        except OSError:
            return False  # renamed, and the new file does not exist yet
