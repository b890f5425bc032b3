"""How fast an error budget burns: 1 is so fast that it lasts just as long as the window.

Two windows each, and both must burn: the long one says that it matters, the short one that it has
not ended. Lengths and rates are those of the Site Reliability Workbook, chapter 5, "Multiwindow,
Multi-Burn-Rate Alerts" (https://sre.google/workbook/alerting-on-slos/). Nothing here alerts: it is
said of the last instant of a period that anything tells of, and for how long of the period it was
so (``burnt``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

_MINUTE_US: Final = 60_000_000
LENGTHS_US: Final = {
    "5m": 5 * _MINUTE_US, "30m": 30 * _MINUTE_US, "1h": 60 * _MINUTE_US, "6h": 360 * _MINUTE_US,
    "3d": 4320 * _MINUTE_US,
}  # fmt: skip


class Pair(NamedTuple):
    """A long and a short window, and the rate from which on both are too much."""

    long: str
    short: str
    rate: float


PAIRS: Final = (Pair("1h", "5m", 14.4), Pair("6h", "30m", 6.0), Pair("3d", "6h", 1.0))


class Rate(NamedTuple):
    """A burn rate with its bounds; None without data."""

    rate: float | None = None
    low: float | None = None
    high: float | None = None

    def exceeds(self, limit: float) -> bool | None:
        """Whether it is the limit or more; None where the bounds do not say."""
        if self.low is None or self.high is None:
            return None
        if self.low >= limit:
            return True
        return False if self.high < limit else None


NO_DATA: Final = Rate()


@dataclass(frozen=True, slots=True)
class Alert:
    """What is said of one pair of windows.

    Attributes:
        at: The instant that the rates end with, ISO 8601.
        burnt_us: For how long of the period it surely burnt (see ``burnt``); None where that was
            not looked at.
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
        both = (self.long.exceeds(self.pair.rate), self.short.exceeds(self.pair.rate))
        if all(both):
            return "burning"
        return "calm" if False in both else "uncertain"

    @property
    def may_burn(self) -> bool:
        """Whether it burnt in the period, or something was bad and it may burn now."""
        may = bool(self.long.rate) and self.verdict in {"burning", "uncertain"}
        return may or bool(self.burnt_us)

    def told(self) -> dict[str, Any]:
        """As JSON has it."""
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
