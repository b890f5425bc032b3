"""The agent's log: one line an event on standard error, for people or as JSON."""

from __future__ import annotations

import logging
import sys

import structlog


def configure(*, as_json: bool) -> None:
    """Set up structlog; libraries that use ``logging`` speak only from warnings on."""
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
