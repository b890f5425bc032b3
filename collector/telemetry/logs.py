"""The agent's log, and a dump of its threads.

The log is one line per event on standard error, as logfmt or JSON. Every line has ``time``,
``level`` and ``event``, including the lines of libraries and Python. The dump has the stacks of all
Python and Java threads.
"""

import json
import logging
import os
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from collector.model import Clock, Read, Scrape
from collector.sources.java.jvm import started_jvm
from lakehouse.tables.error_text import printable, unexpected

_LOGGER: Final = logging.getLogger("jmxlake")
_BARE: Final = re.compile(r'[^\s"=\\]+')  # a value that logfmt does not quote
_QUIET_US: Final = 300_000_000


def configure(*, as_json: bool, level: str = "info") -> None:
    """Configure the log. Libraries that use ``logging`` log errors only.

    Args:
        as_json: True for one JSON object per line.
        level: Lowest level: ``error``, ``warning``, ``info``, or ``debug`` with tracebacks.
    """
    logging.raiseExceptions = False  # a full or closed standard error must not stop the agent
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(as_json=as_json))
    logging.basicConfig(level=logging.ERROR, handlers=[handler], force=True)
    _LOGGER.setLevel(level.upper())
    warnings.simplefilter("ignore")  # they are for developers, and the log is for operators
    threading.excepthook = _died


def _say(level: int, event: str, /, **fields: object) -> None:
    named = {"event": " ".join(event.split()), **fields}
    _LOGGER.log(level, "%s", logfmt(named), extra={"fields": named})


debug = partial(_say, logging.DEBUG)
"""Log a detail that helps to find the cause of an error."""
info = partial(_say, logging.INFO)
"""Log normal operation."""
warning = partial(_say, logging.WARNING)
"""Log a failure that is retried."""
error = partial(_say, logging.ERROR)
"""Log a failure that a person must look at."""


def trace(failure: Exception) -> None:
    """Log the call stack of an unexpected error at level debug."""
    debug("traceback", error=type(failure).__name__, places=_places(failure))


def _places(error: BaseException) -> str:
    """Return the call stack of an error in one line, outermost call first."""
    frames = traceback.extract_tb(error.__traceback__)
    return " > ".join(
        f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames
    )


def logfmt(fields: Mapping[str, object]) -> str:
    """Return fields that are not None as ``key=value`` pairs, and values with spaces in quotes."""
    return " ".join(f"{key}={_text(value)}" for key, value in fields.items() if value is not None)


def _text(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    is_bare = _BARE.fullmatch(text) and text.isprintable()
    return text if is_bare else json.dumps(text, ensure_ascii=False)


class DedupLog:
    """Logs an error of a job once, and its end once."""

    def __init__(self) -> None:
        self._reported: dict[tuple[str, ...], str | None] = {}

    def report(self, job: str, error: str | None, **fields: str) -> None:
        """Log the result of a job, an error or None, if it differs from the last result.

        Args:
            job: Name of the job, which starts the name of the event.
            error: Error. None: the job succeeded.
            fields: More fields of the line. The job has a separate result for each.
        """
        key = (job, *fields.values())
        if self._reported.get(key) == error:
            return
        self._reported[key] = error
        if error is None:
            info(f"{job}_recovered", **fields)
        else:
            warning(f"{job}_failed", **fields, error=" ".join(error.split()))


@dataclass(slots=True)
class _Outage:
    """Failures of a source with one cause.

    Attributes:
        source: Name of the source.
        start_us: Time of the first failure, of a steady clock.
        logged: Logged errors.
        next_us: Time from which another error is logged, by transport.
        failed: Families that have not responded since their failure.
        families: Every family that failed, in the order of the failures.
        silent: Transports without a response since their failure.
    """

    source: str
    start_us: int
    logged: set[str] = field(default_factory=set)
    next_us: dict[str, int] = field(default_factory=dict)
    failed: set[Read] = field(default_factory=set)
    families: dict[str, None] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)

    def includes(self, read: Read, via: str, now_us: int) -> bool:
        """Return True if a failure of a family and its transport belongs to the outage."""
        if self.source != read[0]:
            return False
        is_known = read in self.failed or via in self.silent
        return is_known or now_us - self.start_us < _QUIET_US


class OutageLog:
    """Logs when a source stops responding, and when it responds again.

    A source that is down fails every family of every transport, each at its next scrape. The log
    has one line for all of them. A failure joins the outage of its source in the first five
    minutes, or while its transport has not responded since the start of the outage. Later failures
    are an outage of their own, so that a family that always fails does not hide an outage of its
    source. One failed scrape of a family is not an outage, unless its source does not respond at
    all.

    Another error during an outage is logged after five minutes at the earliest. The outage must be
    twice as old for each further error of the same transport. Any thread may call any method.

    Args:
        clock: Clock of durations.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._families: Mapping[Read, tuple[str, str]] = {}
        self._outages: list[_Outage] = []

    def expect(self, families: Mapping[Read, tuple[str, str]]) -> None:
        """Set the families to scrape. A removed family does not keep an outage open.

        Args:
            families: Transport and connection, by source and family. The connection is the
                transport, or the family if it has its own.
        """
        with self._lock:
            self._families = families
            for outage in self._outages:
                outage.failed &= families.keys()
            self._outages = [outage for outage in self._outages if outage.failed]

    def scraped(self, scrape: Scrape) -> None:
        """Log the result of a scrape if an outage starts or ends with it."""
        with self._lock:
            if scrape.read not in self._families:
                return  # a reload removed it during the scrape
            if scrape.error is None:
                self._end(scrape.read)
            else:
                self._fail(scrape)

    def _fail(self, scrape: Scrape) -> None:
        read, now_us = scrape.read, self._clock.steady_us()
        via, connection = self._families[read]
        included = [outage for outage in self._outages if outage.includes(read, via, now_us)]
        outage = included[0] if included else _Outage(scrape.source, now_us)
        self._outages += [] if included else [outage]
        # A family with its own connection does not show that the others fail.
        is_silent = scrape.identity is None and connection == via
        if is_silent:
            outage.silent.add(via)
        failed = self._reads(scrape.source, via) if is_silent else [read]
        outage.failed.update(failed)
        names = [family for _, family in failed]
        outage.families |= dict.fromkeys(names)
        if not included and not is_silent:
            return  # the next scrape shows which families fail
        error = scrape.error or scrape.outcome
        is_due = now_us >= outage.next_us.get(via, outage.start_us + _QUIET_US)
        if error not in outage.logged and (is_due or not outage.logged):
            outage.logged.add(error)
            outage.next_us[via] = now_us + max(_QUIET_US, now_us - outage.start_us)
            where = {"source": scrape.source, "transport": via, "families": names}
            warning("scrape_failed", **where, error=error)

    def _end(self, read: Read) -> None:
        source, via = read[0], self._families[read][0]
        for outage in [*self._outages]:
            if outage.source != source:
                continue
            # After a response of the transport, each family that fails again is a new failure.
            ended = self._reads(source, via) if via in outage.silent else [read]
            outage.silent.discard(via)
            outage.failed.difference_update(ended)
            if outage.failed:
                continue
            self._outages.remove(outage)
            if outage.logged:
                down_s = round((self._clock.steady_us() - outage.start_us) / 1e6)
                families = [*outage.families]
                info("scrape_recovered", source=source, families=families, down_s=down_s)

    def _reads(self, source: str, transport: str) -> list[Read]:
        """Return the families of a source and transport, in the order of the catalogue."""
        return [
            read
            for read, (via, _) in self._families.items()
            if (read[0], via) == (source, transport)
        ]


class _Formatter(logging.Formatter):
    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")
        fields = getattr(record, "fields", {"event": " ".join(record.getMessage().split())})
        # Only the error of a traceback: it fits on the line and contains no values.
        failure = record.exc_info[1] if record.exc_info else None
        why = {"error": unexpected(failure)} if failure else {}
        place = {"time": at.replace("+00:00", "Z"), "level": record.levelname.lower()}
        line = {**place, **fields, **why}
        return json.dumps(line, default=str) if self._as_json else printable(logfmt(line))


def _died(failure: threading.ExceptHookArgs) -> None:
    thread = failure.thread.name if failure.thread else "?"
    error("thread_died", thread=thread, error=unexpected(failure.exc_value or SystemExit()))


def threads_file(spool: Path) -> Path:
    """Return the path of an agent's thread dump, next to its spool."""
    return spool.with_name(f"{spool.name}.threads")


def write_threads(path: Path) -> None:
    """Write a thread dump that only its owner can read. Log any error."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w", encoding="utf-8", errors="backslashreplace") as out:
            out.write("\n".join([*_python_stacks(), *_java_stacks()]))
        new.replace(path)
    except Exception as failure:  # noqa: BLE001 - a diagnosis must not stop the agent
        warning("thread_dump_failed", path=str(path), error=unexpected(failure))
    else:
        info("thread_dump_written", path=str(path))


def _python_stacks() -> list[str]:
    frames = sys._current_frames()  # noqa: SLF001 - documented for debuggers
    return [
        f"Python thread {thread.name}\n{''.join(traceback.format_stack(frames[thread.ident]))}"
        for thread in threading.enumerate()
        if thread.ident in frames
    ]


def _java_stacks() -> list[str]:
    java = started_jvm()
    stacks = java("java.lang.Thread").getAllStackTraces() if java is not None else {}
    return [
        "\n    at ".join([f"Java thread {thread}", *map(str, frames)]) + "\n"
        for thread, frames in stacks.items()
    ]
