"""The facts under ``trends``: how objectives went week by week, and when lags will be gone."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import COPY_LAG, DELETE_LAG
from lakehouse.core.objective import Objective
from lakehouse.core.periods import HOUR_US, Period, micros
from lakehouse.engines.gold_reader import Row
from lakehouse.report.facts.gold import SEEN, Gold
from lakehouse.report.facts.kafka.tiered_storage import LastLag, last_lags
from lakehouse.report.facts.records import Bounds
from lakehouse.slo.trends import forecast as forecasts, weeks as weeks_
from lakehouse.slo.trends.changes import Change, Regime, by_chance, change, regimes
from lakehouse.slo.trends.forecast import Forecast
from lakehouse.slo.trends.lag_drain import HOURS, Drain, Point, drain

_KINDS: Final = {COPY_LAG: "copy", DELETE_LAG: "delete"}
_MOST_FORECASTS: Final = 100
"""The worst subjects: each takes some hundredths of a second."""


class SubjectTrend(NamedTuple):
    """The weeks of a subject; a week in which it did not exist is None."""

    topic: str | None
    user: str | None
    client_id: str | None
    group: str | None
    source: str | None
    weeks: list[dict[str, Any] | None]
    change: dict[str, Any] | None
    regimes: list[Regime]
    forecast: list[Forecast]


class ObjectiveTrend(NamedTuple):
    """An objective's subjects that were bad in these weeks, worst first."""

    name: str
    title: str
    target: float
    never_bad: int
    subjects: list[SubjectTrend]


class LagDrain(NamedTuple):
    """How a topic's lag goes on, and the time until nothing waits."""

    topic: str
    kind: str
    last_bytes: float | None
    bytes_per_second: Bounds
    drained_us: Bounds
    verdict: str


class Trends(NamedTuple):
    """The section."""

    weeks: list[str]
    tested: int
    significant_by_chance: float
    forecast_by: str | None
    forecast_level: float
    objectives: list[ObjectiveTrend]
    drains: list[LagDrain]


def trends(gold: Gold, objectives: Sequence[Objective]) -> Trends:
    """The section; its last week is that in which the report's period ends."""
    found = weeks_.read(gold.rows, objectives, gold.period.end, gold.now_us, gold.subjects)
    return section(found, objectives, gold.period.end, drains(gold))


def section(
    every: Sequence[weeks_.Trend],
    objectives: Sequence[Objective],
    end: dt.datetime,
    drains: list[LagDrain],
    forecaster: Callable[[Sequence[weeks_.Week | None]], list[Forecast]] | None = None,
) -> Trends:
    """The section made of trends; worst subjects first.

    Args:
        every: Trends of every objective and subject.
        objectives: In the order of the report.
        end: The end of the report's period.
        drains: Lags at the end of the period.
        forecaster: Forecasts weeks; by default as far as jmxlake[trends] is installed.
    """
    forecaster = forecaster or forecasts.forecaster()
    bad = sorted((trend for trend in every if trend.was_bad), key=_badness, reverse=True)
    rows: defaultdict[str, list[SubjectTrend]] = defaultdict(list)
    good = Counter(trend.objective.name for trend in every if not trend.was_bad)
    changes = [change(trend.known) for trend in bad]
    for place, (trend, changed) in enumerate(zip(bad, changes, strict=True)):
        ahead = forecaster(trend.known) if forecaster and place < _MOST_FORECASTS else []
        rows[trend.objective.name].append(_of_subject(trend, changed, ahead))
    tested = [one.compared for one in changes if one is not None and one.p is not None]
    return Trends(
        [period.start.strftime("%G-W%V") for period in weeks_.weeks_until(end)],
        len(tested),
        round(by_chance(tested), 2),
        forecasts.NAME if forecaster else None,
        forecasts.LEVEL,
        [
            ObjectiveTrend(one.name, one.title, one.target, good[one.name], rows[one.name])
            for one in objectives
        ],
        drains,
    )


def _of_subject(trend: weeks_.Trend, changed: Change | None, ahead: list[Forecast]) -> SubjectTrend:
    return SubjectTrend(
        **trend.subject.names,
        weeks=[None if week is None else _week(week) for week in trend.weeks],
        change=None if changed is None else {**changed._asdict(), "verdict": changed.verdict},
        regimes=regimes(trend.known),
        forecast=ahead,
    )


def _week(week: weeks_.Week) -> dict[str, Any]:
    row = {**week._asdict(), "is_known": week.is_known}
    del row["name"]  # the section has the names of all weeks
    return row


def _badness(trend: weeks_.Trend) -> tuple[int, list[int]]:
    """Bad time of the last week, then of the weeks before it."""
    bad = [0 if week is None else week.bad_us for week in reversed(trend.weeks)]
    return bad[0], bad


def drains(gold: Gold) -> list[LagDrain]:
    """When lags for upload or deletion will be gone, per topic; the longest first."""
    last = {key: lag for key, lag in last_lags(gold).items() if lag.reported > 0}
    if not last:
        return []
    end = gold.period.end
    recent = gold.within(Period(end - dt.timedelta(hours=HOURS), end))
    hours: defaultdict[tuple[str, str], list[Point]] = defaultdict(list)
    for row in recent.by_window(tables.TOPICS, 3600, tuple(_KINDS)):
        if point := _hour(row, micros(end)):
            hours[row["metric"], row["topic"]].append(point)
    longest = sorted(last, key=lambda key: (-last[key].reported, key[1], _KINDS[key[0]]))
    return [_drain(key, last[key], hours[key]) for key in longest]


def _hour(row: Row, end_us: int) -> Point | None:
    """The mean lag of an hour; None if not enough of the hour was seen."""
    series, seen_us = row["series"] or 0, row["observed_us"] or 0
    if not series or seen_us < SEEN * series * HOUR_US:
        return None
    hours = (row["window"] - end_us) / HOUR_US
    return hours, (row["value_seconds"] or 0.0) / (seen_us / 1e6 / series)


def _drain(key: tuple[str, str], lag: LastLag, hours: Sequence[Point]) -> LagDrain:
    metric, topic = key
    # If the lag is not known now, the time until it is gone is not known either.
    one = Drain(lag.reported) if lag.known is None else drain(sorted(hours), lag.known)
    slopes = Bounds(*one[1:])
    return LagDrain(topic, _KINDS[metric], lag.known, slopes, until_gone(one), one.verdict)


def until_gone(lag: Drain) -> Bounds:
    """The time until nothing is left, at the slope and its bounds, microseconds."""
    times = map(lag.seconds, (lag.slope, lag.slope_low, lag.slope_high))
    return Bounds(*(None if seconds is None else round(seconds * 1e6) for seconds in times))
