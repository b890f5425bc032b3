"""Instants as truth.json writes them: ISO 8601 UTC with microseconds."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now_iso() -> str:
    """This instant."""
    return iso(time.time())


def iso(seconds: float) -> str:
    """An instant given in seconds since the epoch."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def seconds(instant: str) -> float:
    """An ISO instant as seconds since the epoch."""
    return datetime.fromisoformat(instant).timestamp()
