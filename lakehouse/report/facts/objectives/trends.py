"""The section ``trends``: the weeks of each objective."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from lakehouse.core.objective import Objective
from lakehouse.report.facts.fields import (
    CLIENT_ID,
    GROUP,
    OBJECTIVE,
    SOURCE,
    TARGET,
    TITLE,
    TOPIC,
    UNKNOWN,
    USER,
    Means,
)
from lakehouse.report.facts.gold import Gold
from lakehouse.slo import trends as weeks_
from lakehouse.slo.trends import Change, by_chance, change, regimes


class TrendWeek(NamedTuple):
    """A week of a subject; the section has its name."""

    expected_us: Annotated[float, Means("time in which the subject existed, microseconds")]
    bad_us: Annotated[float, Means("time observed bad, microseconds")]
    bad_low_us: Annotated[float, Means("lower bound of bad_us")]
    bad_high_us: Annotated[float, Means("upper bound of bad_us")]
    unknown_us: Annotated[float, UNKNOWN]
    share: Annotated[float | None, Means("bad share of the observed time, 0 to 1")]
    share_low: Annotated[float, Means("lower bound of share")]
    share_high: Annotated[float, Means("upper bound of share")]
    is_over: Annotated[bool | None, Means("1: the week has ended")]
    is_known: Annotated[bool | None, Means("1: it can be compared")]


class TrendChange(NamedTuple):
    """The change to the last week."""

    share_low: Annotated[float, Means("lower bound of the change of the bad share")]
    share_high: Annotated[float, Means("upper bound of the change of the bad share")]
    p: Annotated[float | None, Means(
        "share of all changes, this one included, that are as large, 0 to 1")]  # fmt: skip
    compared: Annotated[float, Means("number of earlier changes")]
    verdict: Annotated[str, Means("worse, better, as_usual, within_bounds or untested")]


class TrendRegime(NamedTuple):
    """A change point."""

    week: Annotated[str, Means("first week of the new level")]
    share_before: Annotated[float, Means("mean bad share of the weeks before, 0 to 1")]
    share_after: Annotated[float, Means("mean bad share from then on, 0 to 1")]
    p: Annotated[float, Means("share of all permutations with such a split, 0 to 1")]


class SubjectTrend(NamedTuple):
    """The weeks of a subject; a week in which it did not exist is None."""

    topic: Annotated[str | None, TOPIC]
    user: Annotated[str | None, USER]
    client_id: Annotated[str | None, CLIENT_ID]
    group: Annotated[str | None, GROUP]
    source: Annotated[str | None, SOURCE]
    weeks: Annotated[list[TrendWeek | None], Means("its weeks, oldest first")]
    change: Annotated[TrendChange | None, Means("change to the last week")]
    regimes: Annotated[list[TrendRegime], Means("change points")]


class ObjectiveTrend(NamedTuple):
    """An objective's subjects that were bad in these weeks, worst first."""

    name: Annotated[str, OBJECTIVE]
    title: Annotated[str, TITLE]
    target: Annotated[float, TARGET]
    never_bad: Annotated[int, Means("number of subjects without bad time in these weeks")]
    subjects: Annotated[list[SubjectTrend], Means("other subjects, worst first")]


class Trends(NamedTuple):
    """The section."""

    weeks: Annotated[list[str], Means("names of the weeks, oldest first")]
    tested: Annotated[int, Means("number of subjects whose last change was tested")]
    significant_by_chance: Annotated[float, Means(
        "number of them that are expected to change significantly by chance")]  # fmt: skip
    objectives: Annotated[list[ObjectiveTrend], Means("objectives")]


def trends(gold: Gold, objectives: Sequence[Objective], weeks: weeks_.Weeks) -> Trends:
    """Return the section; its last week is that in which the report's period ends."""
    return section(weeks_.join(weeks, gold.now_us), objectives, weeks.names)


def section(
    every: Sequence[weeks_.Trend],
    objectives: Sequence[Objective],
    weeks: list[str],
) -> Trends:
    """Return the section, worst subjects first.

    Args:
        every: Trends of every objective and subject.
        objectives: In the order of the report.
        weeks: The names of the weeks.
    """
    bad = sorted((trend for trend in every if trend.was_bad), key=_badness, reverse=True)
    rows: defaultdict[str, list[SubjectTrend]] = defaultdict(list)
    good = Counter(trend.objective.name for trend in every if not trend.was_bad)
    changes = [change(trend.known) for trend in bad]
    for trend, changed in zip(bad, changes, strict=True):
        rows[trend.objective.name].append(_of_subject(trend, changed))
    tested = [one.compared for one in changes if one is not None and one.p is not None]
    return Trends(
        weeks,
        len(tested),
        round(by_chance(tested), 2),
        [
            ObjectiveTrend(one.name, one.title, one.target, good[one.name], rows[one.name])
            for one in objectives
        ],
    )


def _of_subject(trend: weeks_.Trend, changed: Change | None) -> SubjectTrend:
    return SubjectTrend(
        **trend.subject.names,
        weeks=[
            None if week is None else TrendWeek(*week[:-1], week.is_known) for week in trend.weeks
        ],
        change=None if changed is None else TrendChange(*changed, changed.verdict),
        regimes=[TrendRegime(*one) for one in regimes(trend.known)],
    )


def _badness(trend: weeks_.Trend) -> tuple[int, list[int]]:
    """Bad time of the last week, then of the weeks before it."""
    bad = [0 if week is None else week.bad_us for week in reversed(trend.weeks)]
    return bad[0], bad
