"""Faults and bursts of load of a sample, week by week."""

import random
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from lakehouse.core.periods import DAY_US
from lakehouse.sample.cluster import BROKERS, MINUTE_US, SECOND_US, SOURCES

MARGIN_US: Final = 10 * MINUTE_US
"""Time without incidents at the start and the end of the delivered time."""

Kind = Literal[
    "killed", "restarted", "slow", "throttled", "behind", "late", "stuck", "busy", "remote"
]


class Incident(NamedTuple):
    """A fault or a burst of load.

    Attributes:
        kind: The fault. ``killed`` and ``restarted`` are of a broker. ``slow``: followers of some
            partitions of a topic lag. ``throttled``: a client exceeds its quota. ``behind``:
            uploads of a topic fail and lag. ``late``: a group reads too slowly. ``stuck``:
            retention deletes records that it has not read. ``busy``: a broker responds slowly.
            ``remote``: old records of a topic are read.
        name: Name of the broker, topic, client or group.
    """

    kind: Kind
    name: str
    from_us: int
    to_us: int

    @property
    def broker(self) -> int:
        """Its broker, if it is about one."""
        return next(number for number, name in SOURCES.items() if name == self.name)


Line = tuple[int, float, Kind, str, float]
"""Day of the week, minute of that day, kind, name, and length in minutes."""

# The client's load grows from week to week, its quota does not.
_THROTTLED_A_DAY: Final = (42.0, 38.0, 30.0, 20.0, 13.0, 11.0, 9.0, 8.0, 7.0, 6.0)
RESTART_DAY: Final = 1
RESTART_MINUTE: Final = 300
_RESTARTS: Final[tuple[Line, ...]] = tuple(
    (RESTART_DAY, RESTART_MINUTE + 5 * number, "restarted", SOURCES[broker], 0.8)
    for number, broker in enumerate(BROKERS)
)
_WEEKS: Final[tuple[tuple[Line, ...], ...]] = (
    (
        (0, 570, "busy", "broker-3", 20), (1, 620, "killed", "broker-1", 3.5),
        (1, 830, "slow", "orders", 5), (2, 1080, "late", "warehouse", 70),
        (4, 960, "behind", "clicks", 180), (5, 640, "throttled", "nightly", 25),
    ),
    (
        (0, 570, "busy", "broker-3", 25), *_RESTARTS, (2, 820, "slow", "orders", 13),
        (2, 1080, "late", "warehouse", 80), (3, 860, "killed", "broker-2", 5.5),
        (4, 960, "behind", "clicks", 240), (5, 150, "late", "audit-archive", 510),
        (5, 630, "stuck", "audit-archive", 14), (5, 640, "throttled", "nightly", 45),
    ),
    (
        (1, 1080, "late", "warehouse", 60), (2, 820, "slow", "orders", 4),
        (4, 960, "behind", "clicks", 150), (5, 195, "killed", "broker-3", 6.5),
        (5, 640, "throttled", "nightly", 20),
    ),
    (
        (0, 900, "slow", "orders", 3), (1, 1080, "late", "warehouse", 50),
        (3, 540, "behind", "clicks", 610), (5, 640, "throttled", "nightly", 30),
    ),
    (
        (0, 400, "killed", "broker-2", 3), (4, 960, "behind", "clicks", 60),
        (5, 640, "throttled", "nightly", 135),
    ),
    (*_RESTARTS, (4, 960, "behind", "clicks", 120), (5, 640, "throttled", "nightly", 15)),
    ((3, 860, "killed", "broker-1", 11.2), (5, 640, "throttled", "nightly", 15)),
    ((4, 960, "behind", "clicks", 90), (5, 640, "throttled", "nightly", 10)),
    ((2, 390, "stuck", "audit-archive", 14), (4, 960, "behind", "clicks", 60)),
    (*_RESTARTS, (5, 640, "throttled", "nightly", 12)),
    ((4, 960, "behind", "clicks", 60), (5, 640, "throttled", "nightly", 8)),
)  # fmt: skip
"""The running week, the last whole week, and so on; the last entry is for all earlier weeks."""


def of_weeks(seed: int, monday_us: int, weeks: int) -> list[Incident]:
    """Return the incidents of some weeks and of the week that starts at ``monday_us``."""
    return [one for back in range(weeks, -1, -1) for one in _of_week(seed, monday_us, back)]


def within(incidents: list[Incident], start_us: int, until_us: int) -> tuple[Incident, ...]:
    """Return the incidents in a span, without its margins."""
    low, high = start_us + MARGIN_US, until_us - MARGIN_US
    return tuple(one for one in incidents if low <= one.from_us and one.to_us <= high)


def _of_week(seed: int, running_us: int, back: int) -> Iterator[Incident]:
    start_us = running_us - 7 * back * DAY_US
    dice = [random.Random(f"{seed} {back} {day}") for day in range(7)]  # noqa: S311 - no secret
    shifts = [one.uniform(-10, 10) for one in dice]
    for day, minute, kind, name, minutes in (
        *_daily(back, dice),
        *_WEEKS[min(back, len(_WEEKS) - 1)],
    ):
        from_us = start_us + day * DAY_US + round((minute + shifts[day]) * 60) * SECOND_US
        yield Incident(kind, name, from_us, from_us + round(minutes * 60) * SECOND_US)


def _daily(back: int, dice: list[random.Random]) -> Iterator[Line]:
    minutes = _THROTTLED_A_DAY[min(back, len(_THROTTLED_A_DAY) - 1)]
    for day, each in enumerate(dice):
        yield day, 60, "remote", "clicks", each.uniform(30, 50)
        yield (
            day,
            680 + each.uniform(-15, 15),
            "throttled",
            "invoicing",
            minutes * each.uniform(0.93, 1.07),
        )
