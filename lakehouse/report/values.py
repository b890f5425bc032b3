"""The values of a timeline as the page's script reads them: what a reader can ask of an instant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse.report.spans import Known, Spans

_PARTS: Final = 1000
"""Of one: what is told of a value that is no whole number."""


@dataclass(frozen=True, slots=True)
class Values:
    """A drawing's values, in the steps and the unit in which it is drawn.

    Attributes:
        within: First and last instant, seconds since the epoch.
        spans: ``start,length,value,low,high`` of each span, joined by ``;``; both bounds are left
            out where they are the value. Start and length are seconds, the start counts from the
            first instant. Where no span is, the figure is not known.
        unit: What stands behind a value.
    """

    within: str
    spans: str
    unit: str


def values(figure: Spans, most: int) -> Values:
    """Those of a timeline, in about ``most`` spans at most."""
    scaled, unit = figure.coarser(most).scaled()
    first, last = scaled.within
    told = ";".join(_span(one, first) for one in scaled.known)
    return Values(f"{_seconds(first)} {_seconds(last)}", told, unit)


def _span(one: Known, first: datetime) -> str:
    value, low, high = one.values
    start, end = _seconds(one.start), _seconds(one.end)
    told = [round(value * _PARTS)]
    if not low == value == high:
        told += [math.floor(low * _PARTS), math.ceil(high * _PARTS)]  # outwards, as all bounds
    numbers = (start - _seconds(first), end - start, *(part / _PARTS for part in told))
    return ",".join(f"{number:.3f}".rstrip("0").rstrip(".") for number in numbers)


def _seconds(instant: datetime) -> int:
    return round(instant.timestamp())
