"""How fast an error budget burns: at rate 1 it lasts exactly as long as the objective's window.

A pair of windows burns while both reach its rate: the long window shows that the burn matters, the
short window that it continues. Lengths and rates are from the Site Reliability Workbook, chapter 5,
"Multiwindow, Multi-Burn-Rate Alerts" (https://sre.google/workbook/alerting-on-slos/). jmxlake sends
no alerts: it reports the rates at the last instant with data, and the time that a pair burnt.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from lakehouse.core.periods import Span

_MINUTES: Final = {"5m": 5, "30m": 30, "1h": 60, "6h": 360, "3d": 4320}
LENGTHS_US: Final = {name: minutes * 60_000_000 for name, minutes in _MINUTES.items()}


class Pair(NamedTuple):
    """A long and a short window, and the rate that both must reach."""

    long: str
    short: str
    rate: float

    def limit_us(self, length: str, target: float) -> float:
        """Return the bad time at which one of its windows reaches the rate, microseconds."""
        return self.rate * (1 - target) * LENGTHS_US[length]


PAIRS: Final = (Pair("1h", "5m", 14.4), Pair("6h", "30m", 6.0), Pair("3d", "6h", 1.0))


class Rate(NamedTuple):
    """A burn rate with its bounds; None without data."""

    rate: float | None = None
    low: float | None = None
    high: float | None = None


class Alert(NamedTuple):
    """The burn rates of one pair of windows.

    Attributes:
        at: The end of both windows, ISO 8601.
        burnt_us: Time of the period that the pair certainly burnt (see ``burnt_us``). None: not
            computed.
    """

    pair: Pair
    long: Rate
    short: Rate
    at: str
    burnt_us: int | None = None

    @property
    def verdict(self) -> str:
        """``burning``, ``calm``, ``uncertain``, or ``no_data`` where either has none."""
        if self.long.rate is None or self.short.rate is None:
            return "no_data"
        rates, limit = (self.long, self.short), self.pair.rate
        if all(rate.low is not None and rate.low >= limit for rate in rates):
            return "burning"
        is_calm = any(rate.high is not None and rate.high < limit for rate in rates)
        return "calm" if is_calm else "uncertain"

    @property
    def may_burn(self) -> bool:
        """Whether it burnt in the period, or there was bad time and it may burn now."""
        may = bool(self.long.rate) and self.verdict in {"burning", "uncertain"}
        return may or bool(self.burnt_us)

    def to_json(self) -> dict[str, Any]:
        """Return the alert as JSON."""
        return {
            "long": self.pair.long,
            "short": self.pair.short,
            "limit": self.pair.rate,
            "at": self.at,
            "verdict": self.verdict,
            "long_rate": self.long._asdict(),
            "short_rate": self.short._asdict(),
            "burnt_us": self.burnt_us,
        }


class BadWindow(NamedTuple):
    """The start of a window or slice, and its least bad time; microseconds."""

    at: int
    low_us: int


def least_us(pairs: Sequence[Pair], target: float) -> float:
    """Return the least bad time at which a pair burns, microseconds."""
    return min(pair.limit_us(pair.long, target) for pair in pairs)


def burnt_us(
    bad: Sequence[BadWindow], size_us: int, within: Span, pair: Pair, target: float
) -> int:
    """Return the time in a span that both windows of a pair burnt, by the end of each window.

    Only certain bad time counts, against the whole of each length: the result is a minimum.

    Args:
        bad: In the order of time, starting one long length before the span.
        size_us: Length of a window or slice.
        within: The span.
        pair: The pair of windows.
        target: The objective's target.

    Returns:
        Microseconds.
    """
    ends = [window.at + size_us for window in bad]
    sums = [0, *accumulate(window.low_us for window in bad)]

    def burns(at: int, length: str) -> bool:
        first, last = bisect_left(ends, at - LENGTHS_US[length] + 1), bisect_left(ends, at + 1)
        return sums[last] - sums[first] >= pair.limit_us(length, target)

    # The short length burns only while it contains bad time.
    after = (at for end in ends for at in range(end, end + LENGTHS_US[pair.short], size_us))
    instants = {at for at in after if within[0] < at <= within[1]}
    return size_us * sum(burns(at, pair.short) and burns(at, pair.long) for at in instants)
