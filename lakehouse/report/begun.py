"""What was first seen just after a period, and may have begun in it: its upper bounds take it in.

Gold adds a lead that reaches back over the start of a window to that window's upper bound, for no
window knows the next one. The window after a period is not summed up, so its leads are asked of
bronze.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import tables
from lakehouse.metrics import LEADERLESS, UNAVAILABLE, UNDER_MIN_ISR, is_counter
from lakehouse.periods import Period, micros
from lakehouse.pieces import lead_edge
from lakehouse.report.gather import COPY_LAG, DELETE_LAG
from lakehouse.report.quotas import THROTTLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.report.gather import Gold

Row = dict[str, Any]

_METRICS: Final = (
    UNDER_MIN_ISR,
    LEADERLESS,
    COPY_LAG,
    DELETE_LAG,
    *(f"kafka.client.{kind}.throttle_time" for kind in THROTTLES),
)
_ZERO: Final = dict.fromkeys(("positive_us", "positive_low_us", "positive_high_us"), 0)


@dataclass(frozen=True, slots=True)
class Begun:
    """What may have begun in the period, microseconds.

    Attributes:
        rows: Of runs above zero that begin with the window after the period (``spilled_us`` is 0:
            they went on), or whose lead reaches back to before it.
    """

    rows: Sequence[Row]

    def raised(self, rows: Iterable[Row], keys: Sequence[str]) -> list[Row]:
        """Sums of gold with upper bounds that take it in.

        Args:
            rows: Of gold/topics, gold/partitions or gold/clients, ``metric`` among them.
            keys: What tells their subjects apart, but for the metric. Of a partition gold has no
                row while it was zero; then there is one here.
        """
        mine = self._by(keys)
        found = [_raised(row, mine.pop(_key(row, keys), [])) for row in rows]
        if "partition" in keys:
            found += [
                _raised({**dict(zip(("metric", *keys), key, strict=True)), **_ZERO}, own)
                for key, own in mine.items()
                if key[-1] is not None and _together(own)
            ]
        return found

    def _by(self, keys: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
        found: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in self.rows:
            found[_key(row, keys)].append(row)
            if row["metric"] in (UNDER_MIN_ISR, LEADERLESS):
                found[_key({**row, "metric": UNAVAILABLE}, keys)].append(row)
        return dict(found)


def begun(gold: Gold) -> Begun:
    """Asked of one window of bronze, of what a report's bounds are about."""
    end_us = micros(gold.period.end)
    offset = F.unix_micros("start") - end_us
    spilled = F.expr(lead_edge()) - offset
    end, window = gold.period.end, dt.timedelta(seconds=gold.window_seconds)
    rows = gold.bronze(tables.RUNS, Period(end, end + window)).where(
        F.col("metric").isin(*_METRICS) & (F.col("value") > 0) & ~is_counter()
    )
    rows = rows.where((offset == 0) | (spilled > 0))
    names = ("metric", "topic", "partition", "user", "client_id", "source")
    told = rows.select(*names, F.when(offset == 0, 0).otherwise(spilled).alias("spilled_us"))
    return Begun([row.asDict() for row in told.collect()])


def _key(row: Row, keys: Sequence[str]) -> tuple[Any, ...]:
    return (row["metric"], *(row[name] for name in keys))


def _raised(row: Row, own: Sequence[Row]) -> Row:
    if not own:
        return row
    more = {"any_high_us": _most(own), "positive_high_us": _together(own)}
    return row | {name: row[name] + us for name, us in more.items() if row.get(name) is not None}


def _together(own: Sequence[Row]) -> int:
    """Summed over partitions, or over the sources that tell of the subject itself."""
    each: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in own:
        one = ("", row["source"]) if row["partition"] is None else (row["partition"], "")
        each[one].append(row)
    return sum(map(_most, each.values()))


def _most(own: Sequence[Row]) -> int:
    """What spills counts once, and not where something went on over the period's end."""
    spilled = [int(row["spilled_us"]) for row in own]
    return max(spilled) if min(spilled) > 0 else 0
