"""The last weeks of each objective: its worst subject, and the number that missed it, by week.

An earlier week is its result in gold/sla, or otherwise the statement that trends use. Objectives in
slices, on events, on partitions or over other windows than a week have only published weeks. A week
with too little coverage is ``no_data``.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core import display, periods
from lakehouse.core.objective import ISO_WEEK, Objective
from lakehouse.core.periods import Period, Span
from lakehouse.core.subjects import SUBJECT_COLUMNS, with_names
from lakehouse.engines.gold_reader import is_same
from lakehouse.engines.relation import select, text
from lakehouse.report.facts.fields import Bounds, Means, Named, names_of, to_json
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.objectives.budget import Status, observed_percent, or_no_data, verdict
from lakehouse.report.figures import Row
from lakehouse.slo.calendar.report_calendar import Calendar
from lakehouse.slo.sla_statement import Statement, verdict_between
from lakehouse.slo.trends import Weeks

WEEKS: Final = 8
"""Weeks of a history, including this week."""


class WeekOfObjective(NamedTuple):
    """An objective in one week."""

    week: Annotated[str, Means("ISO week")]
    verdict: Annotated[Status, Means(
        "verdict of the worst subject; its status if the week is not over")]  # fmt: skip
    subject: Annotated[Row | None, Means("worst subject", column="", json=Named | None)] = None
    bad_us: Annotated[Bounds, Means("its bad time, microseconds")] = Bounds()
    unknown_us: Annotated[int | None, Means("its unknown time, microseconds")] = None
    attainment: Annotated[float | None, Means("its attainment, 0 to 1")] = None
    subjects: Annotated[int | None, Means("number of subjects")] = None
    missed: Annotated[int | None, Means("number of subjects that missed it")] = None
    uncertain: Annotated[int | None, Means(
        "number of subjects that may have met or missed it")] = None  # fmt: skip
    no_data: Annotated[int | None, Means("number of subjects without data")] = None
    restated: Annotated[bool, Means("true: late data changed it after its publication")] = False


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
        _bad(worst),
        worst.get("unknown_us"),
        worst.get("attainment"),
        sum(counts.values()),
        missed=counts.get("missed", 0),
        uncertain=counts.get("uncertain", 0),
        no_data=counts.get("no_data", 0),
    )


class Trended(NamedTuple):
    """Subjects that were bad in some week of trends, and the names of the weeks.

    Attributes:
        own: The selected subjects.
        every: All subjects.
        weeks: Names of the weeks.
    """

    own: Sequence[Row]
    every: Sequence[Row]
    weeks: Sequence[str]

    def at(self, subjects: Sequence[Row], name: str, objective: Row) -> list[dict[str, Any]]:
        """Return the subjects that existed in a week, with their verdict in it."""
        place = self.weeks.index(name)
        return [
            {**subject, **week, "verdict": _verdict(week, objective)}
            for subject in subjects
            if (week := subject["weeks"][place]) is not None
        ]


def of_some(
    past: Sequence[Row], objective: Row, trended: Trended | None, floor: float
) -> list[dict[str, Any]]:
    """Return the earlier weeks of an objective for some of its subjects only.

    Trends have the subjects that were bad in some week. The others met the objective in weeks in
    which no subject was uncertain or without data.

    Args:
        past: The same weeks of all subjects.
        objective: As in the facts.
        trended: The trends; None: the objective has none.
        floor: Minimum coverage, percent; a week below it is ``no_data``.
    """
    return [to_json(_some_in_week(one, objective, trended, floor)) for one in past]


def _some_in_week(
    whole: Row, objective: Row, trended: Trended | None, floor: float
) -> WeekOfObjective:
    name = whole["week"]
    no_data = WeekOfObjective(name, "no_data")
    if trended is None or name not in trended.weeks or whole["subjects"] is None:
        return no_data
    own, every = (trended.at(rows, name, objective) for rows in (trended.own, trended.every))
    others = whole["uncertain"] + whole["no_data"]
    others -= sum(row["verdict"] in ("uncertain", "no_data") for row in every)
    if not own:
        is_met = whole["subjects"] > 0 and not others and whole["verdict"] != "no_data"
        # Unobserved time may still hide bad time.
        return WeekOfObjective(name, "met", bad_us=Bounds(0, 0)) if is_met else no_data
    worst = min(own, key=lambda row: (-display.rank(row["verdict"]), -row["bad_us"]))
    status = or_no_data(verdict(worst), observed_percent(own), floor)
    return WeekOfObjective(
        name,
        "no_data" if status == "met" and others > 0 else status,
        names_of(worst),
        _bad(worst),
        worst["unknown_us"],
        None if worst["share"] is None else 1 - worst["share"],
        missed=sum(row["verdict"] == "missed" for row in own),
        restated=whole["restated"],
    )


def _verdict(week: Row, objective: Row) -> str:
    """Return the verdict of a week of trends, as a statement on it has it."""
    target, policy, expected_us = objective["target"], objective.get("unknown"), week["expected_us"]
    if week["share"] is None:
        return "no_data"
    if policy in (None, "interval"):
        return verdict_between(1 - week["share_high"], 1 - week["share_low"], target)
    seen_us = expected_us - week["unknown_us"]
    good_us = seen_us - week["bad_us"] + (week["unknown_us"] if policy == "good" else 0)
    share = 1 - week["share"] if policy == "exclude" else good_us / expected_us
    return "met" if share >= target else "missed"


def _bad(row: Row) -> Bounds:
    """Return the bad time of a row; without any observed time it is not known, and not 0."""
    if row.get("attainment", row.get("share")) is None:
        return Bounds()
    return Bounds(row["bad_us"], row["bad_low_us"], row["bad_high_us"])
