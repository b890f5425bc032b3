"""Records of objectives, subjects and calendars in report.json, whose JSON ``slo`` makes.

A type with ``UnsetType`` is of a key that can be absent, and is not null.
"""

from typing import Annotated, Final

from msgspec import UnsetType

from lakehouse.report.facts.fields import (
    CLIENT_ID,
    GROUP,
    INTERVAL_VERDICT,
    OBJECTIVE,
    PARTITION,
    PARTITIONS,
    SOURCE,
    TARGET,
    TITLE,
    TOPIC,
    UNKNOWN,
    USER,
    VERDICT,
    Bounds,
    Declared,
    Known,
    Means,
    Named,
)
from lakehouse.report.facts.objectives.budget import Status
from lakehouse.report.facts.objectives.history import WeekOfObjective

ATTAINMENT: Final = Means(
    "good time divided by good and bad time, 0 to 1; its bounds count unknown time as bad and as "
    "good"
)


class Figures(Declared):
    """The figures of a statement, as gold/sla has them."""

    expected_us: Annotated[int | None, Means("time in which the subject existed, microseconds")]
    good_us: Annotated[int | None, Means("time observed wholly and good, microseconds")]
    bad_us: Annotated[Bounds, Means("time observed bad, microseconds")]
    unknown_us: Annotated[int | None, UNKNOWN]
    attainment: Annotated[Bounds, ATTAINMENT]
    budget_us: Annotated[int | None, Means("error budget of the time so far, microseconds")]
    budget_left_us: Annotated[int | None, Means(
        "budget_us less bad_us, microseconds; below 0: overspent")]  # fmt: skip
    verdict: Annotated[str, VERDICT]


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

    partitions: Annotated[int | UnsetType, PARTITIONS]
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
    interval_verdict: Annotated[str | UnsetType, INTERVAL_VERDICT]


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
    objective: Annotated[str | None, OBJECTIVE]
    topic: Annotated[str | None, TOPIC]
    weight: Annotated[str, Means("weight of a subject: partitions or equal")]
    subjects: Annotated[int, Means("number of subjects")]


class Part(Declared):
    """A composite that an objective is a part of."""

    composite: Annotated[str, Means("name of the composite")]
    title: Annotated[str, Means("title of the composite")]
    service: Annotated[str, Means("service that the composite is on")]
    weight: Annotated[float, Means("weight of the objective in it")]


class Objective(Used):
    """An objective and its subjects, worst first."""

    name: Annotated[str, OBJECTIVE]
    title: Annotated[str, TITLE]
    description: Annotated[str | None, Means("description of the objective")]
    target: Annotated[float, TARGET]
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
    source: Annotated[str | None, SOURCE]
    kind: Annotated[str, Means("kind of change")]
    topic: Annotated[str | None, TOPIC]
    partition: Annotated[int | None, PARTITION]
    user: Annotated[str | None, USER]
    client_id: Annotated[str | None, CLIENT_ID]
    group: Annotated[str | None, GROUP]
    old: Annotated[str | None, Means("value before")]
    new: Annotated[str | None, Means("value after")]


class Incomplete(Declared):
    """Hours in which a table of gold may lack rows, because it was lost or replaced."""

    table: Annotated[str, Means("table of gold")]
    from_: Annotated[str, Means("start, UTC")]
    to: Annotated[str, Means("end, UTC")]
    reason: Annotated[str, Means("reason")]
