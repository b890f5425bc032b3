"""From the finest rows straight to every grain, by the calendar."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.oracle.rows import DAY, HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.oracle.plain import Key, Rows

GREATEST = frozenset(
    {"max", "max_concurrent", "max_total", "series", "known_wrong", "interval_us", "seconds_max"}
)


_MINUTE = 60_000_000


def all_grains(finest: Rows, window_us: int) -> Rows:
    """Rows of every grain; the grain, its period and its window stand first in the key."""
    grouped: defaultdict[Key, list[dict[str, Any]]] = defaultdict(list)
    for (cluster, window, *rest), figures in finest.items():
        for grain, period, start in windows(window, window_us):
            grouped[(grain, period, cluster, start, *rest)].append(figures)
    return {key: combined(own) for key, own in grouped.items()}


def grain_name(window_us: int) -> str:
    """``30s`` or ``5m``."""
    minutes, rest = divmod(window_us, _MINUTE)
    return f"{window_us // 1_000_000}s" if rest else f"{minutes}m"


def windows(at: int, window_us: int) -> list[tuple[str, str, int]]:
    """Grain, period and start of the windows that hold a finest one, that one first."""
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=at)
    year, _, weekday = moment.isocalendar()
    midnight = at - at % DAY
    sizes = (window_us, 5 * _MINUTE) if window_us < 5 * _MINUTE else (window_us,)
    return [
        *((grain_name(size), f"{moment:%Y-%m-%d}", at - at % size) for size in sizes),
        ("1h", f"{moment:%Y-%m-%d}", at - at % HOUR),
        ("1d", f"{moment:%Y-%m}", midnight),
        ("1w", str(year), midnight - (weekday - 1) * DAY),
    ]


def combined(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums, least and greatest of rows; what is unknown in some counts for nothing."""
    names = {name for row in rows for name in row}
    found = {name: _one(name, (row.get(name) for row in rows)) for name in names}
    if "value_seconds" in found and "observed_us" in found:
        seconds = found["observed_us"] / 1e6
        told = found["value_seconds"]
        found["mean"] = told / seconds if seconds and told is not None else None
    return found


def _one(name: str, values: Iterable[Any]) -> Any:
    known = [value for value in values if value is not None]
    if not known:
        return None
    if name in GREATEST:
        return max(known)
    return min(known) if name == "min" else sum(known)
