"""Pages for cells: one question, list or text, with the report's style and policy.

The lists contain the tables of the lake and its subjects.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from lakehouse import tables
from lakehouse.core import display
from lakehouse.core.metrics import GROUP_LAG, LEADERLESS, UNAVAILABLE
from lakehouse.core.objective import Objective
from lakehouse.core.periods import instant, iso, union
from lakehouse.core.subjects import FLOOR_PERCENT
from lakehouse.errors import TableNotFoundError, is_of_spark
from lakehouse.report import figures
from lakehouse.report.facts.build import head, without_history
from lakehouse.report.facts.events import events
from lakehouse.report.facts.events.event_records import certain
from lakehouse.report.facts.fields import to_json
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.objectives.statement_rows import with_budgets
from lakehouse.report.facts.report_record import SECTIONS, shown
from lakehouse.report.facts.sections.tier_lag import LAGGING
from lakehouse.report.figures import Facts, Row
from lakehouse.report.page import week_lanes
from lakehouse.report.page.page import ObjectiveTable, html
from lakehouse.report.page.svg import Axis, strip
from lakehouse.report.summary import lines
from lakehouse.report.summary.events import Event
from lakehouse.report.summary.summarize import summarize
from lakehouse.report.tables.section import Detail, sections
from lakehouse.report.tables.storage import HELD, ORPHANS, WAITING
from lakehouse.report.tables.table_spec import Cell, Column, Listing
from lakehouse.slo.report_calendar import OF_UTC, Calendar


class Question(NamedTuple):
    """A cell's question.

    Attributes:
        section: Anchor of its section in the details of a report.
        keys: Sections of the report data.
        metrics: Metrics of its objectives.
        timelines: Figures in its charts, in addition to coverage.
        events: Kinds of events whose bad time is in its charts.
        captions: Tables of the section. Default: all of them.
        title: Title of the page. Default: the section's title.
    """

    section: str
    keys: Sequence[str]
    metrics: Collection[str] = ()
    timelines: Collection[str] = ()
    events: Collection[str] = ()
    captions: Collection[str] = ()
    title: str = ""


_BY_PARTITION: Final = ("kafka.partition.upload_lag.records", "kafka.partition.delete_lag.segments")
_TIERED: Final = Question(
    "tiered", ("tier_lag", "tiering", "remote_reads"), tuple(LAGGING.values())
)
QUESTIONS: Final[Mapping[str, Question]] = {
    "min-isr": Question(
        "availability",
        ("min_isr",),
        (UNAVAILABLE, LEADERLESS),
        ("error_answers",),
        ("availability",),
    ),
    "throttling": Question(
        "throttling",
        ("throttling",),
        [f"kafka.client.{kind}.throttle_time" for kind in ("produce", "fetch", "request")],
        events=("throttling",),
    ),
    "tier-lag": _TIERED._replace(timelines=("copy_lag_bytes",)),
    "remote-log": _TIERED._replace(
        metrics=(*_TIERED.metrics, *_BY_PARTITION),
        captions=(WAITING.caption, ORPHANS.caption, HELD.caption),
        title="Tiered storage by partition",
    ),
    "lag": Question(
        "lag", ("consumer_lag",), (GROUP_LAG, "kafka.group.time_lag"), ("consumer_lag",)
    ),
    "lost": Question(
        "loss",
        ("lost_before_read",),
        ("kafka.group.non_consumed",),
        ("lost_offsets", "consumer_lag"),
    ),
    "remote-reads": _TIERED._replace(timelines=("remote_fetch_bytes",)),
    "capacity": Question("disk", ("capacity",)),
}
"""Questions by their names in cells."""

_PARTS: Final = (
    "period", "cluster", "trouble", "text", "objectives", "line", "notes", "lanes", "listings",
)  # fmt: skip
"""The parts of a cell except its title."""

_INSTANTS: Final = (
    "hour", "window_start", "period_start", "start", "at", "finished_at", "last_seen",
)  # fmt: skip


def trouble(message: str) -> str:
    """Return a cell with an error.

    Args:
        message: One line. External text in it is escaped.
    """
    return page(title="No data for this cell", trouble=display.line(message, 600))


def question(facts: Mapping[str, Any], name: str) -> str:
    """Return a question's answer, objectives, lanes and tables.

    Args:
        facts: Report data, at least the sections of the question.
        name: One of ``QUESTIONS``.
    """
    asked = QUESTIONS[name]
    report = summarize({**facts, "events": ()})  # they may have nothing but their time
    with display.shown_in(display.zone_of(facts)):
        answer, observed = _fold(facts, asked.section), _fold(facts, "coverage")
        drawn = _lanes(facts, asked, Axis(report.span), report.elapsed_to)
    wanted = [one for one in answer.tables if one.caption in (asked.captions or {one.caption})]
    judged = _objectives_of(facts, asked)
    own = tuple(one for one in report.objectives if one.name in judged)
    report = report._replace(objectives=own)
    return page(
        title=asked.title or answer.title,
        period=report.period,
        cluster=report.cluster,
        line=answer.line,
        objectives=ObjectiveTable(report, lambda _: "objectives"),
        lanes=drawn,
        listings=(*wanted, *observed.tables),
        notes=tuple(filter(None, (answer.note, observed.line))),
    )


def _lanes(facts: Facts, asked: Question, axis: Axis, to: int) -> Markup | None:
    wanted = {*asked.timelines, "coverage"}
    timelines = [one for one in facts["timelines"] if one["name"] in wanted]
    events = [one for one in facts["events"] or () if one["kind"] in asked.events]
    drawn_of = {**facts, "timelines": timelines, "events": events}
    drawn = week_lanes.lanes_of(drawn_of, week_lanes.steps_of(facts, to))
    return week_lanes.lanes(drawn, (), (), axis, to) if drawn else None


def _objectives_of(facts: Facts, asked: Question) -> set[str]:
    return {one["name"] for one in facts["objectives"] if {*one["metrics"]} & {*asked.metrics}}


def events_page(facts: Mapping[str, Any]) -> str:
    """Return the events of a report as a table, and their incidents.

    Args:
        facts: All report data.
    """
    report = summarize(facts)
    with display.shown_in(display.zone_of(facts)):
        incidents = _fold(facts, "incidents")
    rows = tuple(map(_row_of_event, report.events))
    headings = ("Event", "Time", "Bad time", "Impact", "Cause", "Next step", "Error budget")
    listed = Listing("Events, most of an error budget first", _columns(headings), rows)
    planned, axis = week_lanes.planned_of(facts), Axis(report.span)
    drawn = strip(report.events, (), planned, axis, report.elapsed_to)
    return page(
        title="Events",
        period=report.period,
        cluster=report.cluster,
        line=incidents.line,
        lanes=drawn if rows else None,
        listings=(*([listed] if rows else ()), *incidents.tables),
        notes=tuple(filter(None, (report.events_note,))),
    )


def _row_of_event(event: Event) -> tuple[Cell, ...]:
    texts = (event.title, event.impact, event.cause, event.next_step)
    title, impact, cause, next_step = (lines.plain(one, isolate=True) for one in texts)
    first = Cell((f"{event.number}. {title}",), order=event.number)
    others = (event.when, event.length, impact, cause, next_step, event.used)
    return first, *(Cell((one,)) for one in others)


def bad_time(gold: Gold, kinds: Collection[str]) -> list[Row]:
    """Return the intervals of events of some kinds, without causes, which require bronze."""
    if not kinds or gold.is_incomplete(tables.INCIDENTS):
        return []
    return [
        {"kind": kind, "parts": [{"start": iso(start), "end": iso(end)} for start, end in spans]}
        for event, items in events.grouped(gold)
        if (kind := event.key.kind) in kinds
        for spans in [union(one.span for one in certain(kind, items))]
    ]


def _fold(facts: Facts, anchor: str) -> Detail:
    (section,) = (one for one in sections() if one.anchor == anchor)
    return section.detail(facts) or Detail(
        anchor, section.title, display.NOT_KNOWN, is_open=False, tables=(), note=""
    )


def question_facts(
    gold: Gold,
    objectives: Sequence[Objective],
    name: str,
    calendar: Calendar = OF_UTC,
    min_coverage: float = FLOOR_PERCENT,
) -> dict[str, Any]:
    """Return the report data of one question, in less time than all report data.

    Args:
        gold: Gold of the period and cluster.
        objectives: All objectives.
        name: One of ``QUESTIONS``.
        calendar: The time zone.
        min_coverage: Minimum coverage of a good result (percent).
    """
    asked = QUESTIONS[name]
    own = [one for one in objectives if one.metric in asked.metrics]
    scope = replace(without_history(gold, own, calendar, min_coverage), shown=shown())
    judged = {one: to_json(SECTIONS[one](scope)) for one in ("verdicts", "objectives")}
    of_all = replace(scope, objectives=objectives)  # it has the groups of other objectives
    sections_ = (*asked.keys, "coverage", "collected", "incomplete", "timelines")
    found = head(gold, calendar, min_coverage)
    budgets = with_budgets(judged["objectives"], running=found["running"], floor=min_coverage)
    return {
        **found,
        **judged,
        "objectives": budgets,
        **{one: to_json(SECTIONS[one](of_all)) for one in sections_},
        "events": bad_time(gold, asked.events),
    }


def page(**parts: Any) -> str:
    """Return a cell with a title and some of the other parts."""
    return html("cell.html.j2", **dict.fromkeys(_PARTS, ()) | parts)


def tour(gold: Gold) -> str:
    """Return the tables of the lake for all clusters, and the subjects of the cluster."""
    every = (*tables.BRONZE, *tables.GOLD)
    listings = (
        Listing(
            "Tables of the lake", _columns(("Table", "A row is"), ("Rows", "From", "To")),
            tuple(_row_of_table(gold, table) for table in every),
            ("All clusters. Agents write bronze; the rollup computes gold from it.",),
        ),
        Listing(
            "All subjects of this cluster", _columns(("Type",), ("Number", "From", "To")),
            tuple(_rows_of_kinds(gold)),
        ),
    )  # fmt: skip
    cluster = figures.name(gold.cluster)
    return page(title="Contents of the lake", cluster=cluster, listings=listings)


def _columns(texts: Sequence[str], numbers: Sequence[str] = ()) -> tuple[Column, ...]:
    """Return columns that have only a heading; numbers are right-aligned."""
    every = (*texts, *numbers)
    return tuple(Column(one, lambda _: Cell(), is_figure=one in numbers) for one in every)


def _count(number: int) -> Cell:
    return Cell((f"{number:,}",), order=number)


def _at(us: int | None) -> Cell:
    text = display.NOT_KNOWN if us is None else f"{instant(us):%Y-%m-%d %H:%M}"
    return Cell((text,), order=us)


def _row_of_table(gold: Gold, table: tables.Table) -> tuple[Cell, ...]:
    instants = (f"r.{name}" for name in _INSTANTS if name in table.column_names)
    at = next(instants, "CAST(NULL AS BIGINT)")
    columns = f"count(*) AS rows, min({at}) AS since, max({at}) AS until"
    since = until = None
    try:
        (counts,) = gold.ask(f"SELECT {columns} FROM {{rows}} r", rows=gold.engine.rows(table))
        number, since, until = counts.values()
        rows = _count(number)
    except TableNotFoundError:
        rows = Cell(("the table does not exist",))
    except Exception as error:  # gold is listed even without access to bronze
        if not is_of_spark(error):
            raise
        condition = getattr(error, "getCondition", str)() or "Spark refused"
        rows = Cell((f"not readable: {condition}",))
    return Cell((table.path,)), Cell((table.comment,)), rows, _at(since), _at(until)


def _rows_of_kinds(gold: Gold) -> Iterator[tuple[Cell, ...]]:
    for kind in sorted({subject.kind for subject in gold.subjects}):
        own = [subject for subject in gold.subjects if subject.kind == kind]
        since, until = min(one.first_us for one in own), max(one.last_us for one in own)
        yield Cell((kind,)), _count(len(own)), _at(since), _at(until)
