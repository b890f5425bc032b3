"""Weeks from gold/sli, the change between the last two, and new regimes.

A week without any observed time is unknown, not zero, and nothing replaces it.

Both comparisons are tests of chance on the scale of weeks. Weeks are not independent, and both
tests account for that: the last change is compared with earlier changes, which have the same
dependence, and the level for regimes is strict. A change is significant only if it is significant
for every value of each week within its bounds.
"""

import datetime as dt
import math
import random
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Final, NamedTuple, Self

from lakehouse.core.objective import Objective
from lakehouse.core.periods import Period, micros, week_of
from lakehouse.core.subjects import Subject
from lakehouse.engines.gold_reader import GoldRows
from lakehouse.slo import attainment
from lakehouse.slo.sla_statement import Statement
from lakehouse.slo.sli_query import Key

WEEKS: Final = 13
"""The number of weeks of a trend, with the week of the report: a quarter."""

_HALF: Final = dt.timedelta(days=3.5)
_UNIT: Final = 10 / 604_800
_MOST_UNKNOWN: Final = 0.5


class Week(NamedTuple):
    """One week of one subject; shares are of its time, between 0 and 1.

    Attributes:
        expected_us: Time in which the subject existed.
        bad_us: Time in which it was observed to be bad.
        bad_low_us: Lower bound of the bad time.
        bad_high_us: Upper bound of the bad time.
        unknown_us: Time in which it was not fully observed.
        share: Bad time by observed time; None without observed time.
        share_low: Lower bound of the bad share.
        share_high: Upper bound, with unknown time as bad.
        is_over: Whether it has ended.
        name: Its name in ISO 8601, such as ``2026-W47``.
    """

    expected_us: int
    bad_us: int
    bad_low_us: int
    bad_high_us: int
    unknown_us: int
    share: float | None
    share_low: float
    share_high: float
    is_over: bool = True
    name: str = ""

    @property
    def is_known(self) -> bool:
        """Whether it can be compared: it has ended, and at least half of it was observed."""
        seen = self.unknown_us <= _MOST_UNKNOWN * self.expected_us
        return self.is_over and self.share is not None and seen


class Trend(NamedTuple):
    """The weeks of a subject, oldest first; None where it did not exist."""

    objective: Objective
    subject: Subject
    weeks: tuple[Week | None, ...]

    @property
    def known(self) -> list[Week | None]:
        """The weeks; None where one cannot be compared."""
        return [week if week is not None and week.is_known else None for week in self.weeks]

    @property
    def was_bad(self) -> bool:
        """Whether it was bad in any of them."""
        return any(week is not None and week.bad_us > 0 for week in self.weeks)


def scale(share: float) -> float:
    """Return a share on the scale on which weeks are compared.

    Incidents last seconds or days: their sizes differ by factors, not by sums. The logarithm counts
    in units of ten seconds a week, about the shortest time that can be observed.
    """
    return math.log1p(share / _UNIT)


class Weeks(NamedTuple):
    """The weeks of a trend, oldest first, and the statements of each."""

    periods: Sequence[Period]
    statements: Sequence[Sequence[Statement]]

    @property
    def names(self) -> list[str]:
        """The weeks in ISO 8601, such as ``2026-W47``."""
        return [name_of(period) for period in self.periods]

    def before(self, number: int) -> Self:
        """Return so many weeks before the last one."""
        past = slice(-number - 1, -1)
        return type(self)(self.periods[past], self.statements[past])


NO_WEEKS: Final = Weeks((), ())


def name_of(week: Period) -> str:
    """Return the name in ISO 8601 of a week of any time zone."""
    return f"{week.start + _HALF:%G-W%V}"  # its Monday may start on a Sunday, UTC


def weeks_until(end: dt.datetime, zone: dt.tzinfo = dt.UTC) -> list[Period]:
    """Return the weeks of a trend, oldest first; the last one contains the instant before ``end``.

    Args:
        end: Any instant.
        zone: The time zone of the weeks. They are widened to whole hours, because gold keeps only
            these of all weeks.
    """
    weeks = [week_of(end - dt.timedelta(microseconds=1), zone)]
    while len(weeks) < WEEKS:
        weeks.insert(0, week_of(weeks[0].start - dt.timedelta(microseconds=1), zone))
    return [week.aligned(3600) for week in weeks]


def is_plain(objective: Objective) -> bool:
    """Return True if an objective has weeks: it is in GoodSeconds of its subjects' own level."""
    return objective.method == "GoodSeconds" and objective.kind == objective.level


def read_weeks(
    gold: GoldRows,
    objectives: Sequence[Objective],
    periods: Sequence[Period],
    now_us: int,
    known: Sequence[Subject],
    each: Callable[..., Iterable[list[Statement]]] = map,
) -> Weeks:
    """Return the statements of weeks under the objectives for which ``is_plain`` holds.

    Args:
        gold: Reads gold.
        objectives: The objectives.
        periods: The weeks.
        now_us: The present; nothing is expected later.
        known: The subjects, of one cluster.
        each: Applies a function to each week, perhaps several at a time.
    """
    plain = [one for one in objectives if is_plain(one)]
    first_us = min((one.first_us for one in known), default=now_us)
    how = attainment.Options(window_seconds=gold.window_us // 1_000_000)

    def of_week(week: Period) -> list[Statement]:
        if micros(week.end) <= first_us:  # nothing existed yet
            return []
        return attainment.read(gold.engine, plain, week, now_us, known, how)

    return Weeks(periods, [*each(of_week, periods)])


def join(weeks: Weeks, now_us: int) -> list[Trend]:
    """Return the statements of each week as one trend per objective and subject."""
    rows: dict[tuple[str, Key], list[Week | None]] = {}
    last: dict[tuple[str, Key], Statement] = {}
    for number, (of_week, period) in enumerate(zip(weeks.statements, weeks.periods, strict=True)):
        for statement in of_week:
            key = (statement.objective.name, statement.subject.key)
            last[key] = statement
            row = rows.setdefault(key, [None] * len(weeks.periods))
            row[number] = _week(statement, period, now_us) if statement.whole_us else None
    return [Trend(last[key].objective, last[key].subject, tuple(row)) for key, row in rows.items()]


def _week(statement: Statement, period: Period, now_us: int) -> Week:
    attained, low, high = statement.attainment, statement.attainment_low, statement.attainment_high
    times = (statement.whole_us, *statement.times[1:], statement.unknown_us)
    share = None if attained is None else 1 - attained
    bounds = (0.0 if high is None else 1 - high, 1.0 if low is None else 1 - low)
    return Week(*times, share, *bounds, micros(period.end) <= now_us, name_of(period))


LEVEL: Final = 0.1
"""The least p of thirteen weeks is 1/12: this week's change is the largest of twelve."""

_LEAST_CHANGES: Final = 9
"""With fewer changes to compare with, no change could be significant, so none is tested."""

_REGIME_LEVEL: Final = 0.01
_PERMUTATIONS: Final = 399
_LEAST_WEEKS: Final = 3
"""Weeks on either side: fewer are an exception, not a regime."""

_SEED: Final = 164
"""Fixed, so that the same weeks always have the same regimes."""


class Change(NamedTuple):
    """The change from one week to the next; shares of time, more is worse.

    Attributes:
        share_low: The least increase of the share.
        share_high: The greatest increase.
        p: Share of the changes, including this change, that are as large, 0 to 1; None: untested.
        compared: Number of earlier changes.
    """

    share_low: float
    share_high: float
    p: float | None
    compared: int

    @property
    def verdict(self) -> str:
        """``worse``, ``better``, ``as_usual``, ``within_bounds`` or ``untested``."""
        if self.share_low <= 0 <= self.share_high:
            return "within_bounds"
        if self.p is None:
            return "untested"
        if self.p > LEVEL:
            return "as_usual"
        return "worse" if self.share_low > 0 else "better"


def change(weeks: Sequence[Week | None]) -> Change | None:
    """Return the change from the last week but one to the last.

    It is a rank test: its ``p`` is the rank of this change among earlier changes between
    neighbouring weeks, so it needs no assumption on the distribution of incidents.

    Args:
        weeks: Oldest first; None where one is not known.

    Returns:
        None where one of the two is not known.
    """
    if len(weeks) < 2 or weeks[-1] is None or weeks[-2] is None:
        return None
    before, now = weeks[-2], weeks[-1]
    shares = [None if week is None else week.share for week in weeks[:-1]]
    scaled = [None if share is None else scale(share) for share in shares]
    earlier = [abs(b - a) for a, b in pairwise(scaled) if a is not None and b is not None]
    low, high = now.share_low - before.share_high, now.share_high - before.share_low
    p = None
    if len(earlier) >= _LEAST_CHANGES:
        # The smallest change that the bounds of both weeks allow.
        up = scale(now.share_low) - scale(before.share_high)
        down = scale(before.share_low) - scale(now.share_high)
        least = max(0.0, up, down)
        p = (1 + sum(size >= least for size in earlier)) / (1 + len(earlier))
    return Change(low, high, p, len(earlier))


def by_chance(compared: Iterable[int]) -> float:
    """Return the expected number of significant changes if all were by chance.

    Args:
        compared: Number of earlier changes of each tested change.
    """
    return sum(int(LEVEL * (earlier + 1)) / (earlier + 1) for earlier in compared)


class Regime(NamedTuple):
    """A new regime: from some week on all weeks have another size; shares of time.

    Attributes:
        week: The name of its first week.
        share_before: Mean share of the weeks before, back to the regime before.
        share_after: Mean share from then on.
        p: Share of all permutations of these weeks that have a cut as good, 0 to 1.
    """

    week: str
    share_before: float
    share_after: float
    p: float


def regimes(weeks: Sequence[Week | None]) -> list[Regime]:
    """Return the new regimes, oldest first; unknown weeks are left out.

    Weeks are cut where the means of both sides differ most, relative to their spread and number
    (CUSUM). A permutation test decides whether the cut is more than chance; then each side is cut
    in the same way.
    """
    known = [week for week in weeks if week is not None and week.share is not None]
    cuts = sorted(_cuts(known, 0, len(known)))
    edges = [0, *(number for number, _ in cuts), len(known)]
    result = []
    for nth, (number, p) in enumerate(cuts):
        sides = (known[edges[nth] : number], known[number : edges[nth + 2]])
        before, after = (fmean(week.share or 0.0 for week in side) for side in sides)
        result.append(Regime(known[number].name, before, after, p))
    return result


def _cuts(weeks: Sequence[Week], first: int, end: int) -> list[tuple[int, float]]:
    part = weeks[first:end]
    if len(part) < 2 * _LEAST_WEEKS:
        return []
    values = [scale(week.share or 0.0) for week in part]
    best, at = _best_cut(values)
    if not best or not _means_differ(part[:at], part[at:]):
        return []
    generator = random.Random(_SEED)  # noqa: S311 - no secret
    as_good = 0
    for _ in range(_PERMUTATIONS):
        generator.shuffle(values)
        as_good += _best_cut(values)[0] >= best
    p = (1 + as_good) / (1 + _PERMUTATIONS)
    if p > _REGIME_LEVEL:
        return []
    middle = first + at
    return [*_cuts(weeks, first, middle), (middle, p), *_cuts(weeks, middle, end)]


def _best_cut(values: Sequence[float]) -> tuple[float, int]:
    """Return the strength of the best cut of the values and its position, by CUSUM."""
    count, total = len(values), math.fsum(values)
    best, at, running = 0.0, 0, math.fsum(values[: _LEAST_WEEKS - 1])
    for number in range(_LEAST_WEEKS, count - _LEAST_WEEKS + 1):
        running += values[number - 1]
        off = abs(running - total * number / count) / math.sqrt(number * (count - number) / count)
        if off > best * (1 + 1e-12):
            best, at = off, number
    return best, at


def _means_differ(before: Sequence[Week], after: Sequence[Week]) -> bool:
    """Return True if the means differ for every value of each week within its bounds."""
    lows, highs = (
        [fmean(getattr(week, bound) for week in side) for side in (before, after)]
        for bound in ("share_low", "share_high")
    )
    return lows[0] > highs[1] or lows[1] > highs[0]
