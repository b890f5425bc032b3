"""Trends as facts of a report, in JSON: docs/trends.md describes them."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from lakehouse import tables
from lakehouse.periods import Period, micros
from lakehouse.report.gather import COPY_LAG, DELETE_LAG
from lakehouse.report.sections import last_lags
from lakehouse.trends import forecast as forecasts, weeks as weeks_
from lakehouse.trends.change import by_chance, change
from lakehouse.trends.drain import HOURS, Drain, drain
from lakehouse.trends.regimes import regimes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse.existence import Subject
    from lakehouse.gold_rows import Row
    from lakehouse.report.gather import Gold
    from lakehouse.report.sections import LastLag
    from lakehouse.slo import Objective
    from lakehouse.trends.change import Change
    from lakehouse.trends.drain import Point
    from lakehouse.trends.forecast import Forecast
    from lakehouse.trends.weeks import Trend, Week

_KINDS: Final = {COPY_LAG: "copy", DELETE_LAG: "delete"}
_MOST_FORECASTS: Final = 100
"""The worst subjects: each takes some hundredths of a second."""

_SEEN: Final = 0.95
_HOUR_SECONDS: Final = 3600


def trends(
    gold: Gold, objectives: Sequence[Objective], known: Sequence[Subject], now_us: int
) -> Row:
    """The facts under ``trends``.

    Args:
        gold: The report's cluster and period; the last week is that in which the period ends.
        objectives: What is asked for.
        known: The cluster's subjects.
        now_us: Nothing is expected later than this.
    """
    end = gold.period.end
    found = weeks_.read(gold.rows, objectives, end, now_us, known)
    return {**told(found, objectives, end), "drains": drains(gold)}


def told(
    found: Sequence[Trend],
    objectives: Sequence[Objective],
    end: dt.datetime,
    forecaster: Callable[[Sequence[Week | None]], list[Forecast]] | None = None,
) -> Row:
    """All facts but those of lags, from plain trends; worst subjects first.

    Args:
        found: Of every objective and subject.
        objectives: In the order of the report.
        end: The end of the report's period.
        forecaster: How weeks are forecast; by default as far as jmxlake[trends] is installed.
    """
    forecaster = forecaster or forecasts.forecaster()
    bad = sorted((one for one in found if one.was_bad), key=_badness, reverse=True)
    chosen = {id(one) for one in bad[:_MOST_FORECASTS]}
    changes = {id(one): change(one.known) for one in bad}
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    for one in bad:
        ahead = forecaster(one.known) if forecaster and id(one) in chosen else []
        rows[one.objective.name].append(_subject(one, changes[id(one)], ahead))
    tested = [one for one in changes.values() if one is not None and one.p is not None]
    return {
        "weeks": [period.start.strftime("%G-W%V") for period in weeks_.weeks_until(end)],
        "tested": len(tested),
        "significant_by_chance": round(by_chance(tested), 2),
        "forecast_by": forecasts.NAME if forecaster else None,
        "forecast_level": forecasts.LEVEL,
        "objectives": [
            {
                "name": objective.name,
                "title": objective.title,
                "target": objective.target,
                "never_bad": sum(
                    one.objective.name == objective.name and not one.was_bad for one in found
                ),
                "subjects": rows[objective.name],
            }
            for objective in objectives
        ],
    }


def drains(gold: Gold) -> list[Row]:
    """When what waits for upload or deletion will be gone, per topic; the longest first."""
    last = {key: lag for key, lag in last_lags(gold).items() if lag.told > 0}
    if not last:
        return []
    end = gold.period.end
    recent = gold.within(Period(end - dt.timedelta(hours=HOURS), end))
    hours: defaultdict[tuple[str, str], list[Point]] = defaultdict(list)
    for row in recent.by_window(tables.TOPICS, _HOUR_SECONDS, tuple(_KINDS)):
        point = _hour(row, micros(end))
        if point is not None:
            hours[row["metric"], row["topic"]].append(point)
    longest = sorted(last, key=lambda key: (-last[key].told, key[1], _KINDS[key[0]]))
    return [_drain(key, last[key], hours[key]) for key in longest]


def _hour(row: Row, end_us: int) -> Point | None:
    """What waited in an hour on the mean; None where not enough of it was seen."""
    series, seen_us = row["series"] or 0, row["observed_us"] or 0
    if not series or seen_us < _SEEN * series * _HOUR_SECONDS * 1_000_000:
        return None
    hours = (row["window"] - end_us) / (_HOUR_SECONDS * 1e6)
    return hours, (row["value_seconds"] or 0.0) / (seen_us / 1e6 / series)


def _drain(key: tuple[str, str], lag: LastLag, hours: Sequence[Point]) -> Row:
    metric, topic = key
    # Of what is not known now nobody knows when it will be gone.
    one = Drain(lag.told) if lag.known is None else drain(sorted(hours), lag.known)
    steep, slow = one.seconds(one.slope_low), one.seconds(one.slope_high)
    return {
        "topic": topic,
        "kind": _KINDS[metric],
        "last_bytes": lag.known,
        "bytes_per_second": one.slope,
        "bytes_per_second_low": one.slope_low,
        "bytes_per_second_high": one.slope_high,
        "drained_us": _us(one.seconds(one.slope)),
        "drained_low_us": _us(steep),
        "drained_high_us": _us(slow),
        "verdict": one.verdict,
    }


def _subject(one: Trend, changed: Change | None, ahead: Sequence[Forecast]) -> Row:
    return {
        **one.subject.names,
        "weeks": [None if week is None else _week(week) for week in one.weeks],
        "change": None if changed is None else {**changed._asdict(), "verdict": changed.verdict},
        "regimes": [it._asdict() for it in regimes(one.known)],
        "forecast": [it._asdict() for it in ahead],
    }


def _week(week: Week) -> Row:
    told = {**week._asdict(), "is_known": week.is_known}
    del told["name"]  # that stands above all subjects
    return told


def _badness(one: Trend) -> tuple[int, list[int]]:
    """Worst: bad time of the last week, then of the weeks before it."""
    bad = [0 if week is None else week.bad_us for week in reversed(one.weeks)]
    return bad[0], bad


def _us(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e6)
