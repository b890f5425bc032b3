"""Lengths of gold's finest windows, as a person writes them."""

from __future__ import annotations

import re
from typing import Final

from lakehouse.errors import PeriodError

_UNITS: Final = {"s": 1, "m": 60, "h": 3600}


def parse_window(text: str) -> int:
    """Seconds of a window such as ``5m`` or ``30s``.

    Raises:
        PeriodError: It is no such text, or does not divide an hour.
    """
    match = re.fullmatch(r"([1-9][0-9]*)([smh])", text)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if seconds == 0 or _UNITS["h"] % seconds:
        raise PeriodError(f"window {text!r}: write a part of an hour, such as 5m or 30s")
    return seconds


def name(seconds: int) -> str:
    """The text for it: ``30s``, ``5m``, ``1h``."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
