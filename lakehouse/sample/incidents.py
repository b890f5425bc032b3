"""What goes wrong in the cluster of a sample, and when."""

import random
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from lakehouse.core.periods import DAY_US
from lakehouse.sample.cluster import BROKERS, MINUTE_US, SECOND_US, SOURCES

MARGIN_US: Final = 10 * MINUTE_US
"""Time without incidents at the sample's start and end."""

Kind = Literal["killed", "restarted", "slow", "throttled", "behind", "stuck", "remote"]


class Incident(NamedTuple):
    """A fault or a burst of load.

    Attributes:
        kind: A broker is killed or restarted; followers of some partitions of a topic are slow; a
            client wants more than its quota; uploads of a topic fall behind; a group reads too
            late; old records of a topic are read.
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


def usual(seed: int, start_us: int, until_us: int) -> tuple[Incident, ...]:
    """Incidents of some weeks; each week has all kinds, at random times."""
    found: list[Incident] = []
    for day_us in range(start_us // DAY_US * DAY_US, until_us, DAY_US):
        dice = random.Random(f"{seed} {day_us}")  # noqa: S311 - no secret
        weekday = (day_us // DAY_US + 3) % 7
        for minute, kind, name, minutes in _of_day(weekday, dice):
            from_us = day_us + round(minute * 60) * SECOND_US
            found.append(Incident(kind, name, from_us, from_us + round(minutes * 60) * SECOND_US))
    low, high = start_us + MARGIN_US, until_us - MARGIN_US
    return tuple(one for one in found if low <= one.from_us and one.to_us <= high)


def _of_day(weekday: int, dice: random.Random) -> Iterator[tuple[float, Kind, str, float]]:
    """Minute of the day at which each incident begins, and how many minutes it takes."""
    each = dice.uniform
    yield 60 + each(0, 20), "remote", "clicks", each(30, 50)
    yield 660 + each(0, 60), "throttled", "invoicing", each(20, 50)
    if weekday == 1:
        for number, broker in enumerate(BROKERS):
            yield 300 + 6 * number, "restarted", SOURCES[broker], each(1, 1.5)
    elif weekday == 2:
        yield 120 + each(0, 60), "stuck", "audit-archive", each(60, 180)
        yield 800 + each(0, 99), "slow", "orders", each(8, 20)
    elif weekday == 3:
        broker = dice.choice(BROKERS)
        yield 860 + each(0, 99), "killed", SOURCES[broker], each(4, 9)
    elif weekday == 4:
        yield 960 + each(0, 60), "behind", "sessions", each(50, 75)
    elif weekday == 5:
        yield 600 + each(0, 60), "throttled", "nightly", each(5, 15)
