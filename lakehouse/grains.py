"""The grains of gold: windows of time, UTC, each an exact union of the next finer ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from lakehouse.errors import PeriodError

if TYPE_CHECKING:
    from pyspark.sql import Column

HOUR: Final = "1h"
DAY: Final = "1d"
WEEK: Final = "1w"
HOUR_SECONDS: Final = 3600
_UNITS: Final = {"s": 1, "m": 60, "h": 3600}
_DEFAULT: Final = 300


def parse_window(text: str) -> int:
    """Seconds of a window such as ``5m`` or ``30s``.

    Raises:
        PeriodError: It is no such text, or does not divide an hour.
    """
    match = re.fullmatch(r"([1-9][0-9]*)([smh])", text)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if seconds == 0 or HOUR_SECONDS % seconds:
        raise PeriodError(f"window {text!r}: write a part of an hour, such as 5m or 30s")
    return seconds


def name(seconds: int) -> str:
    """The grain's name: ``30s``, ``5m``, ``1h``."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def within_hour(window_seconds: int) -> tuple[str, ...]:
    """Grains up to an hour, finest first; 5 minutes are always among them where they fit."""
    sizes = {window_seconds, HOUR_SECONDS}
    if window_seconds < _DEFAULT and _DEFAULT % window_seconds == 0:
        sizes.add(_DEFAULT)
    return tuple(name(size) for size in sorted(sizes))


def hour(of: str = "start") -> Column:
    """The hour in which an instant lies, counted from the epoch."""
    return F.expr(f"unix_micros(`{of}`) div {HOUR_SECONDS * 1_000_000}")


def start(instant: Column, grain: str) -> Column:
    """Start of the window of that grain in which an instant lies."""
    if grain == DAY:
        return F.date_trunc("day", instant)
    if grain == WEEK:
        return F.date_trunc("week", instant)
    micros = parse_window(grain) * 1_000_000
    return F.timestamp_micros(
        F.unix_micros(instant) - F.pmod(F.unix_micros(instant), F.lit(micros))
    )


def period(window: Column, grain: str) -> Column:
    """Value of the partition column ``period`` for a window's start."""
    if grain == WEEK:
        return F.expr("extract(YEAROFWEEK FROM `window`)").cast("string")
    return F.date_format(window, "yyyy-MM" if grain == DAY else "yyyy-MM-dd")
