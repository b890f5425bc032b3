"""The agent's log: one line an event on standard error, for people or as JSON.

Every line has ``event``, ``level`` and ``time``; what libraries and Python itself have to say too.
"""

import json
import logging
import sys
import threading
import warnings
from datetime import UTC, datetime
from functools import partial
from typing import Final

from collector.errors import places
from lakehouse.tables.error_text import printable, unexpected

_LOGGER: Final = logging.getLogger("jmxlake")


def configure(*, as_json: bool, level: str = "info") -> None:
    """Set up the log; libraries that use ``logging`` speak only of errors.

    Args:
        as_json: A JSON object a line.
        level: The least that is written: ``error``, ``warning``, ``info``, or ``debug``, which
            brings tracebacks.
    """
    logging.raiseExceptions = False  # standard error may be full or gone, which ends no agent
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(as_json=as_json))
    logging.basicConfig(level=logging.ERROR, handlers=[handler], force=True)
    _LOGGER.setLevel(level.upper())
    warnings.simplefilter("ignore")  # for developers; a log is for operators
    threading.excepthook = _died


def _say(level: int, event: str, /, **fields: object) -> None:
    line = " ".join(event.split())
    shown = [f"{key}={value}" for key, value in fields.items()]
    _LOGGER.log(level, " ".join([line, *shown]), extra={"fields": {"event": line, **fields}})


debug = partial(_say, logging.DEBUG)
"""Log a detail that helps to find a fault, with fields."""
info = partial(_say, logging.INFO)
"""Log normal operation."""
warning = partial(_say, logging.WARNING)
"""Log a failure that is retried."""
error = partial(_say, logging.ERROR)
"""Log a failure that a person must look at."""


def trace(failure: Exception) -> None:
    """Log the calls that led to an unexpected error, at level debug."""
    debug("traceback", error=type(failure).__name__, places=places(failure))


class DedupLog:
    """Logs a failure once, and once more when it works again."""

    def __init__(self) -> None:
        self._reported: dict[str, str | None] = {}

    def report(self, what: str, error: str | None) -> None:
        """Log the result of ``what``, an error or None, if it differs from the last one."""
        if self._reported.get(what) == error:
            return
        self._reported[what] = error
        if error is None:
            info("works again", what=what)
        else:
            warning("failed", what=what, error=" ".join(error.split()))


class _Formatter(logging.Formatter):
    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")
        level, text = record.levelname.lower(), " ".join(record.getMessage().split())
        # A traceback is named by its error, so that a line stays a line and shows no values.
        failure = record.exc_info[1] if record.exc_info else None
        why = {"error": unexpected(failure)} if failure else {}
        if self._as_json:
            fields = getattr(record, "fields", {"event": text})
            line = {**fields, **why, "level": level, "time": at.replace("+00:00", "Z")}
            return json.dumps(line, default=str)
        more = "".join(f" {key}={value}" for key, value in why.items())
        return printable(f"{at.replace('+00:00', 'Z')} [{level}] {text}{more}")


def _died(failure: threading.ExceptHookArgs) -> None:
    thread = failure.thread.name if failure.thread else "?"
    error("a thread ended", thread=thread, error=unexpected(failure.exc_value or SystemExit()))
