"""The last weeks of each objective: the section ``trends``, and the history of each row.

A history has the worst subject and the number of subjects that missed the objective, by week. An
earlier week is its result in gold/sla, or otherwise the statement that trends use. Objectives in
slices, on events, on partitions or over other windows than a week have only published weeks. A week
with too little coverage is ``no_data``.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from lakehouse import tables
from lakehouse.core import display, periods
from lakehouse.core.objective import ISO_WEEK, Objective
from lakehouse.core.periods import Period, Span
from lakehouse.core.subjects import SUBJECT_COLUMNS, with_names
from lakehouse.engines.gold_reader import is_same
from lakehouse.engines.relation import select, text
from lakehouse.report.facts import fields
from lakehouse.report.facts.fields import Bounds, Means, names_of
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.objectives.statement_rows import (
    Status,
    WeekOfObjective,
    observed_percent,
    or_no_data,
    verdict,
)
from lakehouse.report.figures import Row
from lakehouse.slo import trends as weeks_
from lakehouse.slo.report_calendar import Calendar
from lakehouse.slo.sla_statement import Statement
from lakehouse.slo.trends import Change, Weeks, by_chance, change, regimes

WEEKS: Final = 8
"""Weeks of a history, including this week."""


class _Past(NamedTuple):
    """An objective over one of its windows: the worst subject, counts of verdicts, and sums."""

    worst: Row
    counts: Mapping[str, int]
    expected_us: int
    bad_us: int
    unknown_us: int

    def week(self, name: str, floor: float, *, restated: bool = False) -> WeekOfObjective:
        """Return it as a week of that name."""
        sums = {"expected_us": self.expected_us, "unknown_us": self.unknown_us}
        status = or_no_data(verdict(self.worst), observed_percent([sums]), floor)
        return _week(name, status, self.worst, self.counts)._replace(restated=restated)


def history(
    gold: Gold,
    objectives: Sequence[Objective],
    weeks: Weeks,
    calendar: Calendar,
    floor: float,
) -> dict[str, list[WeekOfObjective]]:
    """Return the weeks of each objective before the report's own, oldest first.

    If the period of the report is not a week, the week in which it ends is the last.

    Args:
        gold: The cluster's gold over the report's period.
        objectives: The objectives.
        weeks: The weeks of trends.
        calendar: The time zone of the weeks.
        floor: Minimum coverage, percent; a week below it is ``no_data``.
    """
    is_week = periods.week_name(gold.period, calendar.zone) is not None
    last = [*zip(weeks.names, weeks.statements, strict=True)][-WEEKS:]
    past = last[:-1] if is_week else last
    first_us = min((one.first_us for one in gold.subjects), default=None)
    windows = {
        (one.name, name): _window(one, periods.week(name, calendar.zone), gold)
        for one in objectives
        for name, _ in past
    }
    spans = {span for span in windows.values() if first_us is not None and span[1] > first_us}
    published = _published(gold, spans)
    found: dict[str, list[WeekOfObjective]] = {one.name: [] for one in objectives}
    for name, statements in past:
        computed = _computed(statements)
        for one in objectives:
            stated = published.get((one.name, *windows[one.name, name]))
            plain = computed.get(one.name) if one.window == ISO_WEEK else None
            found[one.name].append(_of_week(name, stated, plain, floor))
    return found


def _of_week(
    name: str, stated: _Past | None, computed: _Past | None, floor: float
) -> WeekOfObjective:
    if stated is None:
        return WeekOfObjective(name, "no_data") if computed is None else computed.week(name, floor)
    sums = {(one.bad_us, one.unknown_us) for one in (stated, computed) if one is not None}
    return stated.week(name, floor, restated=len(sums) > 1)


def _window(objective: Objective, week: Period, gold: Gold) -> Span:
    """Return the span of an objective's window in a report on a week, microseconds."""
    window = week if objective.window == ISO_WEEK else objective.window.of(week)
    until = Period(window.start, min(window.end, week.end))
    return until.aligned(gold.window_seconds).span


def _computed(statements: Iterable[Statement]) -> dict[str, _Past]:
    """Return the worst subject, counts and sums of each objective in a week."""
    by_name: defaultdict[str, list[Statement]] = defaultdict(list)
    for one in statements:
        if one.whole_us:
            by_name[one.objective.name].append(one)
    return {
        name: _Past(
            _row(min(own, key=_place)),
            Counter(one.verdict for one in own),
            sum(one.whole_us for one in own),
            sum(one.times.bad_us for one in own),
            sum(one.unknown_us for one in own),
        )
        for name, own in by_name.items()
    }


def _place(one: Statement) -> tuple[int, int, str]:
    return -display.rank(one.verdict), -one.times.bad_us, str(one.subject.key)


def _row(one: Statement) -> Row:
    return {**one.subject.names, **one.figures(), "partition": one.subject.partition}


_KEY: Final = ("objective", "period_start", "period_end")
_RANK: Final = (
    "CASE r.verdict "
    + " ".join(f"WHEN {text(name)} THEN {place}" for place, name in enumerate(display.VERDICTS))
    + " END"
)


def _published(gold: Gold, spans: Iterable[Span]) -> dict[tuple[str, int, int], _Past]:
    """Return what was published last of each objective over some times, after these were over."""
    over = [f"(r.period_start = {start} AND r.period_end = {end})" for start, end in sorted(spans)]
    if not over:
        return {}
    detail = gold.engine.detail(tables.SLA)  # older tables lack some columns
    names = [
        name for name in (*SUBJECT_COLUMNS, "partition_id") if detail and name in detail.columns
    ]
    subject = ", ".join(f"r.{name}" for name in (*_KEY, *names))
    named = ", ".join(f"r.{name} NULLS FIRST" for name in names)
    own = f"PARTITION BY {', '.join(f'r.{name}' for name in _KEY)}"
    newest = select(
        "SELECT r.*, row_number() OVER "
        f"(PARTITION BY {subject} ORDER BY r.statement DESC) AS newest FROM {{rows}} r "
        f"WHERE {is_same('r.cluster', gold.cluster)} "
        f"AND r.stated_at >= r.period_end AND ({' OR '.join(over)})",
        rows=gold.engine.rows(tables.SLA),
    )
    counts = ", ".join(
        f"CAST(count(CASE WHEN {is_same('r.verdict', name)} THEN 1 END) OVER ({own}) AS BIGINT) "
        f"AS count_{name}"
        for name in display.VERDICTS
    )
    sums = ", ".join(
        f"CAST(sum(r.{name}) OVER ({own}) AS BIGINT) AS sum_{name}"
        for name in ("expected_us", "bad_us", "unknown_us")
    )
    placed = select(
        f"SELECT r.*, {counts}, {sums}, row_number() OVER ({own} "
        f"ORDER BY {_RANK}, r.bad_us DESC, {named}) AS place "
        "FROM {rows} r WHERE r.newest = 1",
        rows=newest,
    )
    rows = gold.ask("SELECT r.* FROM {rows} r WHERE r.place = 1", rows=placed)
    return {
        (row["objective"], row["period_start"], row["period_end"]): _Past(
            with_names(row),
            {name: row[f"count_{name}"] for name in display.VERDICTS},
            *(row[f"sum_{name}"] for name in ("expected_us", "bad_us", "unknown_us")),
        )
        for row in rows
    }


def this_week(objective: Row, name: str) -> WeekOfObjective:
    """Return an objective in the week of its report.

    Args:
        objective: As in the facts, with its status.
        name: The name of the week.
    """
    subjects = objective["subjects"]
    if not subjects:
        return WeekOfObjective(name, objective["status"], None, subjects=0)
    statuses = Counter(row["status"] for row in subjects)
    return _week(name, objective["status"], subjects[0], statuses)


def _week(name: str, status: Status, worst: Row, counts: Mapping[str, int]) -> WeekOfObjective:
    """Return a week by its worst subject, and the number of subjects of each status."""
    return WeekOfObjective(
        name,
        status,
        names_of(worst),
        bad_time(worst),
        worst.get("unknown_us"),
        worst.get("attainment"),
        sum(counts.values()),
        missed=counts.get("missed", 0),
        uncertain=counts.get("uncertain", 0),
        no_data=counts.get("no_data", 0),
    )


def bad_time(row: Row) -> Bounds:
    """Return the bad time of a row; without any observed time it is not known, and not 0."""
    if row.get("attainment", row.get("share")) is None:
        return Bounds()
    return Bounds(row["bad_us"], row["bad_low_us"], row["bad_high_us"])


class TrendWeek(NamedTuple):
    """A week of a subject; the section has its name."""

    expected_us: Annotated[float, Means("time in which the subject existed, microseconds")]
    bad_us: Annotated[float, Means("time observed bad, microseconds")]
    bad_low_us: Annotated[float, Means("lower bound of bad_us")]
    bad_high_us: Annotated[float, Means("upper bound of bad_us")]
    unknown_us: Annotated[float, fields.UNKNOWN]
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

    topic: Annotated[str | None, fields.TOPIC]
    user: Annotated[str | None, fields.USER]
    client_id: Annotated[str | None, fields.CLIENT_ID]
    group: Annotated[str | None, fields.GROUP]
    source: Annotated[str | None, fields.SOURCE]
    weeks: Annotated[list[TrendWeek | None], Means("its weeks, oldest first")]
    change: Annotated[TrendChange | None, Means("change to the last week")]
    regimes: Annotated[list[TrendRegime], Means("change points")]


class ObjectiveTrend(NamedTuple):
    """An objective's subjects that were bad in these weeks, worst first."""

    name: Annotated[str, fields.OBJECTIVE]
    title: Annotated[str, fields.TITLE]
    target: Annotated[float, fields.TARGET]
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
