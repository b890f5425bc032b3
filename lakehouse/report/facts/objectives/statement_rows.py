"""Objectives in report.json: their records, the used error budget, and the status.

``slo`` makes the JSON of most records. All functions work on JSON, because a team's objectives are
computed again. A type with ``UnsetType`` is of a key that can be absent, and is not null.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args

from msgspec import UnsetType

from lakehouse.core.subjects import state_of
from lakehouse.report.facts import fields
from lakehouse.report.facts.fields import Bounds, Declared, Known, Means, Named, bounds_json
from lakehouse.report.figures import Row

Status = Literal["missed", "at_risk", "uncertain", "no_data", "on_track", "met"]
"""Statuses of an objective, worst first; ``at_risk`` and ``on_track``: the window is running."""

STATUSES: Final = get_args(Status)

_NEEDS_DATA: Final = ("uncertain", "on_track", "met")
"""Statuses that are not stated if too little was observed."""


def with_budgets(objectives: Sequence[Row], *, running: bool, floor: float) -> list[dict[str, Any]]:
    """Return objectives with the budget that each used; subjects with the worst status first.

    Args:
        objectives: As in the facts.
        running: Whether the report's period has not ended.
        floor: Minimum coverage for a good status, percent.
    """
    return [_with_budget(one, running=running, floor=floor) for one in objectives]


def _with_budget(objective: Row, *, running: bool, floor: float) -> dict[str, Any]:
    running = running or any(row.get("ahead_us") for row in objective["subjects"])
    subjects = [{**row, **budget(row, objective, running=running)} for row in objective["subjects"]]
    subjects.sort(key=lambda row: STATUSES.index(row["status"]))  # stable: worst first as before
    if not subjects:
        return {**objective, **_NO_BUDGET, "subjects": []}
    worst = {key: subjects[0][key] for key in _NO_BUDGET}
    worst["status"] = or_no_data(worst["status"], observed_percent(subjects), floor)
    return {**objective, **worst, "subjects": subjects}


def budget(subject: Row, objective: Row, *, running: bool) -> Row:
    """Return the status of a subject and the budget that it used, as ``Used`` declares them.

    Args:
        subject: As in the facts.
        objective: Its objective.
        running: Whether the objective's window has not ended.
    """
    whole_us = subject.get("budget_of_window_us", subject.get("budget_us"))
    used = _used(subject, objective, whole_us)
    status = _so_far(subject, objective, whole_us) if running else verdict(subject)
    return _row(status, whole_us, used)


def _row(status: Status, whole_us: int | None, used: Bounds) -> dict[str, Any]:
    return {"status": status, "budget_whole_us": whole_us, **bounds_json("used", used)}


_NO_BUDGET: Final[Row] = _row("no_data", None, Bounds())


def verdict(row: Row) -> Status:
    """Return the verdict of a row, ``no_data`` without one."""
    known: dict[Any, Status] = {name: name for name in STATUSES}
    return known.get(row.get("verdict"), "no_data")


def _used(subject: Row, objective: Row, whole_us: int | None) -> Bounds:
    bad = _bad_us(subject, objective)
    if bad.value is None or not whole_us:
        return Bounds()
    shares = Bounds(*(None if us is None else us / whole_us for us in bad))
    counted = subject.get("events") if objective.get("slice_us") is None else None
    if not counted or not counted["total"]:
        return shares
    # Events against allowed events, for the elapsed part of the window.
    over = (subject.get("budget_us") or 0) / whole_us
    value = counted["bad"] / counted["total"] / (1 - objective["target"]) * over
    low, high = shares.low or 0.0, shares.high
    return Bounds(value, min(value, low), None if high is None else max(value, high))


def _bad_us(subject: Row, objective: Row) -> Bounds:
    """Return the time that counts as bad; at most with all unobserved time."""
    value, low, high = (subject.get(key) for key in ("bad_us", "bad_low_us", "bad_high_us"))
    if subject.get("attainment") is None or value is None or low is None or high is None:
        return Bounds()
    unknown_us = subject.get("unknown_us")
    if objective.get("unknown") == "bad":
        value, low = value + (unknown_us or 0), low + (unknown_us or 0)
    return Bounds(value, low, None if unknown_us is None else high + unknown_us)


def _so_far(subject: Row, objective: Row, whole_us: int | None) -> Status:
    """Return the status of a subject in a running window."""
    bad = _bad_us(subject, objective)
    if bad.value is None or bad.low is None or whole_us is None:
        return "no_data"
    if bad.low > whole_us:
        return "missed"
    if bad.value > subject["budget_us"]:  # the used share exceeds the elapsed share of the window
        return "at_risk"
    most = bad.high
    if objective.get("unknown") in ("exclude", "good"):  # unobserved time never counts as bad
        most = subject["bad_high_us"]
    return "uncertain" if most is None or most > whole_us else "on_track"


def or_no_data(status: Status, percent: float | None, floor: float) -> Status:
    """Return a status, or ``no_data`` if coverage is too low for it."""
    too_little = state_of(percent, floor) == "not_known"
    return "no_data" if too_little and status in _NEEDS_DATA else status


def observed_percent(subjects: Sequence[Row]) -> float | None:
    """Return the observed share of the expected time of some subjects; None: none is expected."""
    expected_us = sum(row.get("expected_us") or 0 for row in subjects)
    observed_us = sum(
        max(0, (row.get("expected_us") or 0) - row["unknown_us"])
        for row in subjects
        if row.get("unknown_us") is not None
    )
    return 100 * observed_us / expected_us if expected_us else None


ATTAINMENT: Final = Means(
    "good time divided by good and bad time, 0 to 1; its bounds count unknown time as bad and as "
    "good"
)


class Figures(Declared):
    """The figures of a statement, as gold/sla has them."""

    expected_us: Annotated[int | None, Means("time in which the subject existed, microseconds")]
    good_us: Annotated[int | None, Means("time observed wholly and good, microseconds")]
    bad_us: Annotated[Bounds, Means("time observed bad, microseconds")]
    unknown_us: Annotated[int | None, fields.UNKNOWN]
    attainment: Annotated[Bounds, ATTAINMENT]
    budget_us: Annotated[int | None, Means("error budget of the time so far, microseconds")]
    budget_left_us: Annotated[int | None, Means(
        "budget_us less bad_us, microseconds; below 0: overspent")]  # fmt: skip
    verdict: Annotated[str, fields.VERDICT]


class Published(Figures):
    """The figures of a statement that was published, or is now."""

    agreed_attainment: Annotated[Bounds, Means("attainment outside corrections")]
    agreed_verdict: Annotated[str | None, Means("verdict outside corrections")]
    statement: Annotated[int | None, Means("number of the statement in gold/sla")]
    stated_at: Annotated[str | None, Means("time of its publication, UTC")]


class Rate(Declared):
    """A burn rate with its bounds."""

    rate: Annotated[float | None, Means("value", column="")]
    low: Annotated[float | None, Means("lower bound")]
    high: Annotated[float | None, Means("upper bound")]


class Burn(Declared):
    """Two burn rates of one error budget."""

    at: Annotated[str, Means("end of both windows, UTC")]
    long: Annotated[str, Means("longer window, such as 1h")]
    short: Annotated[str, Means("shorter window, such as 5m")]
    limit: Annotated[float, Means("rate that both must reach")]
    verdict: Annotated[str, Means("at that end: burning, uncertain, calm or no_data")]
    long_rate: Annotated[Rate, Means(
        "burn rate over the longer window; at 1 the budget lasts for its window")]  # fmt: skip
    short_rate: Annotated[Rate, Means("burn rate over the shorter window")]
    burnt_us: Annotated[Known, Means(
        "time of the period in which it certainly burned too fast, microseconds")]  # fmt: skip


class Window(Declared):
    """Time that a file names."""

    start: Annotated[str, Means("start, UTC")]
    end: Annotated[str, Means("end, UTC")]
    reason: Annotated[str, Means("reason in the file")]


class Agreement(Declared):
    """Approval of a correction."""

    approved_by: Annotated[str | None, Means("approver")]
    ticket: Annotated[str | None, Means("ticket")]
    objectives: Annotated[list[str], Means("patterns of the objectives")]


class Patterns(Declared):
    """Patterns of the subjects that it concerns; a list that is absent or empty: all."""

    clusters: Annotated[list[str], Means("patterns of clusters; empty: all")]
    topics: Annotated[list[str], Means("patterns of topics; empty: all")]
    users: Annotated[list[str], Means("patterns of users; empty: all")]
    clients: Annotated[list[str], Means("patterns of client ids; empty: all")]
    groups: Annotated[list[str], Means("patterns of consumer groups; empty: all")]
    sources: Annotated[list[str], Means("patterns of sources; empty: all")]


class Maintenance(Patterns, Window):
    """Planned maintenance."""


class Correction(Patterns, Agreement, Window):
    """A correction: time that was agreed not to count."""


class Counts(Declared):
    """Events that an objective counts."""

    good: Annotated[float, Means("good events")]
    bad: Annotated[float, Means("bad events")]
    total: Annotated[float, Means("all events")]


class Judgement(Declared):
    """Figures of a subject that gold/sla does not keep."""

    partitions: Annotated[int | UnsetType, fields.PARTITIONS]
    budget_left_low_us: Annotated[Known, Means("lower bound of budget_left_us")]
    budget_left_high_us: Annotated[Known, Means("upper bound of budget_left_us")]
    ahead_us: Annotated[Known, Means("time of the window that is still to come, microseconds")]
    budget_of_window_us: Annotated[Known, Means("error budget of the whole window, microseconds")]
    budget_of_window_left_us: Annotated[Known, Means("of that, the rest, microseconds")]
    burn: Annotated[list[Burn], Means("pairs of windows that burn, burned or may burn")]
    maintenance: Annotated[list[Maintenance], Means("maintenance that concerns it")]
    without_maintenance: Annotated[Figures | None, Means("outside maintenance", column="without")]
    corrections: Annotated[list[Correction], Means("corrections that concern it")]
    agreed: Annotated[Figures | None, Means("outside corrections")]
    events: Annotated[Counts | UnsetType, Means("events that the objective counts")]
    interval_verdict: Annotated[str | UnsetType, fields.INTERVAL_VERDICT]


class Used(Declared):
    """Status and error budget of a subject, or of an objective's worst subject."""

    status: Annotated[Status | UnsetType, Means(
        "missed, at_risk, uncertain, no_data, on_track or met")]  # fmt: skip
    budget_whole_us: Annotated[int | None, Means(
        "error budget of its time in the whole window, microseconds")]  # fmt: skip
    used: Annotated[Bounds, Means(
        "share of the whole error budget used; the upper bound includes unknown time")]  # fmt: skip


class Subject(Used, Judgement, Figures, Named):
    """A subject of an objective."""

    left: Annotated[list[float] | None, Means(
        "share of the whole error budget left at the end of each hour")]  # fmt: skip


class Weighted(Figures):
    """An objective over all its subjects together."""

    cluster: Annotated[str | None, Means("cluster")]
    objective: Annotated[str | None, fields.OBJECTIVE]
    topic: Annotated[str | None, fields.TOPIC]
    weight: Annotated[str, Means("weight of a subject: partitions or equal")]
    subjects: Annotated[int, Means("number of subjects")]


class Part(Declared):
    """A composite that an objective is a part of."""

    composite: Annotated[str, Means("name of the composite")]
    title: Annotated[str, Means("title of the composite")]
    service: Annotated[str, Means("service that the composite is on")]
    weight: Annotated[float, Means("weight of the objective in it")]


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


class Objective(Used):
    """An objective and its subjects, worst first."""

    name: Annotated[str, fields.OBJECTIVE]
    title: Annotated[str, fields.TITLE]
    description: Annotated[str | None, Means("description of the objective")]
    target: Annotated[float, fields.TARGET]
    level: Annotated[str, Means("subject type: cluster, topic, partition, client, group or source")]
    window: Annotated[str | None, Means("window of the objective, such as 1w or 28d")]
    method: Annotated[str | None, Means("budgeting method, such as GoodSeconds or Timeslices")]
    metrics: Annotated[list[str], Means("metrics of the objective")]
    labels: Annotated[dict[str, list[str]], Means("labels of the objective")]
    composites: Annotated[list[Part], Means("composites that it is a part of")]
    unknown: Annotated[str | None, Means(
        "how the verdict counts unknown time: interval, exclude, good or bad")]  # fmt: skip
    from_: Annotated[str | None, Means("start of the window, UTC", column="window_from")]
    to: Annotated[str | None, Means("end of the window, UTC", column="window_to")]
    slice_us: Annotated[Known, Means("length of a time slice, microseconds")]
    slice_target: Annotated[Known, Means("share of a time slice that must be good")]
    weighted: Annotated[Weighted | None, Means("all subjects together")]
    owner: Annotated[str | None, Means("owner of the worst subject; only with an owners file")]
    history: Annotated[list[WeekOfObjective], Means("last weeks, oldest first")]
    subjects: Annotated[list[Subject], Means("subjects, worst first")]


class Change(Declared):
    """A change in the cluster."""

    at: Annotated[str, Means("time at which it was noticed, UTC")]
    source: Annotated[str | None, fields.SOURCE]
    kind: Annotated[str, Means("kind of change")]
    topic: Annotated[str | None, fields.TOPIC]
    partition: Annotated[int | None, fields.PARTITION]
    user: Annotated[str | None, fields.USER]
    client_id: Annotated[str | None, fields.CLIENT_ID]
    group: Annotated[str | None, fields.GROUP]
    old: Annotated[str | None, Means("value before")]
    new: Annotated[str | None, Means("value after")]


class Incomplete(Declared):
    """Hours in which a table of gold may lack rows, because it was lost or replaced."""

    table: Annotated[str, Means("table of gold")]
    from_: Annotated[str, Means("start, UTC")]
    to: Annotated[str, Means("end, UTC")]
    reason: Annotated[str, Means("reason")]


class Verdict(NamedTuple):
    """The verdict of an objective, which is the verdict of its worst subject."""

    objective: Annotated[str, fields.OBJECTIVE]
    title: Annotated[str, fields.TITLE]
    target: Annotated[float, fields.TARGET]
    verdict: Annotated[str, fields.VERDICT]
    subjects: Annotated[int, Means("number of subjects")]
    missed: Annotated[int, Means("number of subjects that missed it")]
    uncertain: Annotated[int, Means("number of subjects that may have met or missed it")]
    no_data: Annotated[int, Means("number of subjects without data")]
    met: Annotated[int, Means("number of subjects that met it")]
    agreed: Annotated[str | None, Means("verdict with corrections; empty: no corrections")]


class BusinessHours(NamedTuple):
    """The objectives over business hours only."""

    hours: Annotated[str, Means("days and hours")]
    time_zone: Annotated[str, Means("their time zone")]
    spans: Annotated[list[list[str]], Means("start and end of each business day, UTC")]
    verdicts: Annotated[list[Verdict], Means("verdicts, worst first")]
    objectives: Annotated[list[dict[str, Any]], Means(
        "objectives and their subjects", json=list[Objective])]  # fmt: skip


class Restated(NamedTuple):
    """A subject whose published figures differ from its figures now."""

    objective: Annotated[str, fields.OBJECTIVE]
    title: Annotated[str | None, fields.TITLE]
    topic: Annotated[str | None, fields.TOPIC]
    partition: Annotated[int | None, fields.PARTITION]
    user: Annotated[str | None, fields.USER]
    client_id: Annotated[str | None, fields.CLIENT_ID]
    group: Annotated[str | None, fields.GROUP]
    source: Annotated[str | None, fields.SOURCE]
    before: Annotated[dict[str, Any], Means("published figures", json=Published)]
    now: Annotated[dict[str, Any], Means("figures of now", json=Published)]
