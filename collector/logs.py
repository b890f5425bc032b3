"""The agent's log: one line an event on standard error, for people or as JSON.

Every line has ``event``, ``level`` and ``time``; what libraries and Python itself have to say too.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO, cast

import structlog

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor, WrappedLogger


class _StandardError:
    """Standard error, be it full or gone: what cannot be said must end nobody."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            return sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()


def configure(*, as_json: bool) -> None:
    """Set up the log; libraries that use ``logging`` speak only of errors.

    To be called before deltalake is imported, whose Rust writes lines of its own.
    """
    os.environ.setdefault("RUST_LOG", "off")
    shared: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        _one_line,
    ]
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), timestamp_key="time")
    )
    structlog.configure(
        processors=[*shared, renderer],
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _StandardError())),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[remove_meta, renderer]
        )
    )
    logging.basicConfig(level=logging.ERROR, handlers=[handler], force=True)
    warnings.simplefilter("ignore")  # for developers; a log is for operators
    threading.excepthook = _died


def _one_line(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """A traceback is named by its error, so that a line stays a line and shows no values."""
    failure = event.pop("exc_info", None)
    error = failure[1] if isinstance(failure, tuple) else failure
    if isinstance(error, BaseException):
        event["error"] = " ".join(f"{type(error).__name__}: {error}".split())
    event["event"] = " ".join(str(event["event"]).split())
    return event


def _died(failure: threading.ExceptHookArgs) -> None:
    thread = failure.thread.name if failure.thread else "?"
    error = " ".join(f"{failure.exc_type.__name__}: {failure.exc_value}".split())
    structlog.get_logger().error("a thread ended", thread=thread, error=error)
