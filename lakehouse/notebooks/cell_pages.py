"""Pages for cells: one question, list or text, with the report's style and policy.

The lists are of the tables of the lake, and of its subjects.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from lakehouse import tables
from lakehouse.core import display, periods
from lakehouse.core.metrics import LEADERLESS, UNAVAILABLE
from lakehouse.core.objective import Objective
from lakehouse.core.observed_share import FLOOR_PERCENT
from lakehouse.core.periods import instant
from lakehouse.errors import TableNotFoundError, is_of_spark
from lakehouse.report import figures
from lakehouse.report.charts import charts
from lakehouse.report.charts.event_marks import marks_of
from lakehouse.report.facts.build import SECTIONS, Scope, by_time
from lakehouse.report.facts.coverage import coverage
from lakehouse.report.facts.fields import to_json
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.kafka.tier_lag import LAGGING
from lakehouse.report.figures import Row
from lakehouse.report.page import questions, sections
from lakehouse.report.page.page import html
from lakehouse.report.page.page_tables import Column, TableSpec, column
from lakehouse.report.page.verdicts import verdicts

QUESTIONS: Final[dict[str, tuple[Sequence[str], Collection[str]]]] = {
    "min-isr": (("min_isr",), (UNAVAILABLE, LEADERLESS)),
    "throttling": (
        ("throttling",),
        [f"kafka.client.{kind}.throttle_time" for kind in ("produce", "fetch", "request")],
    ),
    "tier-lag": (("tier_lag",), tuple(LAGGING.values())),
    "lost": (("lost_before_read",), ("kafka.group.non_consumed",)),
    "remote-reads": (("remote_reads", "tier_lag"), ()),
}
"""Sections of the facts and the metrics whose objectives belong to it, by anchor in the page."""

_PARTS: Final = (
    "eyebrow", "period", "cluster", "trouble", "text", "verdicts", "answer", "notes", "charts",
    "listings",
)  # fmt: skip
"""The parts of a cell, beside its title."""

_INSTANTS: Final = ("window", "start", "at", "last_seen")


def trouble(message: str) -> str:
    """A cell with an error.

    Args:
        message: One line; text from outside in it is escaped.
    """
    return page(title="This cell has nothing to show", trouble=display.line(message, 600))


def question(
    gold: Gold, objectives: Sequence[Objective], anchor: str, min_coverage: float = FLOOR_PERCENT
) -> str:
    """A question's answer, verdicts, charts and tables.

    Args:
        gold: Gold of the week and cluster.
        objectives: All objectives.
        anchor: One of ``QUESTIONS``.
        min_coverage: Observed share below which nothing good is said, percent.
    """
    facts = question_facts(gold, objectives, anchor) | {"min_coverage_percent": min_coverage}
    (one,) = (each for each in questions.questions(facts) if each.anchor == anchor)
    seen = sections.coverage(facts)
    return page(
        title=one.title,
        eyebrow=one.kip,
        period=display.period(facts["from"], facts["to"]),
        cluster=figures.name(facts["cluster"]),
        verdicts=verdicts(facts),
        answer=one.answer,
        notes=(*one.notes, figures.plain_text(seen.answer)),
        charts=charts.of(one, facts, marks_of(facts)),
        listings=(*one.listings, *seen.listings),
    )


def question_facts(gold: Gold, objectives: Sequence[Objective], anchor: str) -> dict[str, Any]:
    """The facts of one question, a part of those of a report.

    Args:
        gold: Gold of the week and cluster.
        objectives: All objectives.
        anchor: One of ``QUESTIONS``.
    """
    sections_, metrics = QUESTIONS[anchor]
    own = [one for one in objectives if one.metric in metrics]
    # Over the week itself, whatever the objectives' windows are.
    statements = by_time(gold, own, gold.statements(own))
    scope = Scope(gold, own, statements, statements, coverage(gold))
    whole = ("coverage", "collected", "incomplete", "timelines")
    names = ("verdicts", "objectives", *sections_, *whole)
    return {
        "cluster": gold.cluster,
        "from": gold.period.start.isoformat(),
        "to": gold.period.end.isoformat(),
        "week": periods.week_name(gold.period),
        **{name: to_json(SECTIONS[name](scope)) for name in names},
    }


def page(**parts: Any) -> str:
    """A cell with a title and some of the other parts."""
    return html("cell.html.j2", **dict.fromkeys(_PARTS, ()) | parts)


def tour(gold: Gold) -> str:
    """The tables of the lake, all clusters and weeks of them, and the subjects of the cluster."""
    rows = [_table(gold, table) for table in (*tables.BRONZE, *tables.GOLD)]
    listings = _TABLES.listing(rows), _KNOWN.listing(_known(gold))
    cluster = figures.name(gold.cluster)
    return page(title="What is in the lake", cluster=cluster, listings=listings)


def _table(gold: Gold, table: tables.Table) -> Row:
    row: Row = {"table": table.path, "about": table.comment, "since": None, "until": None}
    instants = (f"r.{name}" for name in _INSTANTS if name in table.column_names)
    at = next(instants, "CAST(NULL AS BIGINT)")
    columns = f"count(*) AS rows, min({at}) AS since, max({at}) AS until"
    try:
        (counts,) = gold.ask(f"SELECT {columns} FROM {{rows}} r", rows=gold.engine.rows(table))
    except TableNotFoundError:
        return {**row, "rows": figures.Figure("there is no such table")}
    except Exception as error:  # without access to bronze, gold is still listed
        if not is_of_spark(error):
            raise
        condition = getattr(error, "getCondition", str)() or "Spark refused"
        return {**row, "rows": figures.Figure(f"not readable: {condition}")}
    number = counts["rows"]
    return {**row, **counts, "rows": figures.Figure(f"{number:,}", order=number)}


def _known(gold: Gold) -> Iterator[Row]:
    for kind in sorted({subject.kind for subject in gold.subjects}):
        own = [subject for subject in gold.subjects if subject.kind == kind]
        since, until = min(one.first_us for one in own), max(one.last_us for one in own)
        yield {"kind": kind, "number": len(own), "since": since, "until": until}


def _at(heading: str, key: str) -> Column:
    def get(row: Row) -> figures.Figure:
        us = row[key]
        text = display.NOT_KNOWN if us is None else f"{instant(us):%Y-%m-%d %H:%M}"
        return figures.Figure(text, order=us)

    return Column(heading, get)


_WHEN: Final = (_at("From", "since"), _at("To", "until"))
_TABLES: Final = TableSpec(
    "Tables of the lake",
    "table",
    (
        Column("Table", lambda row: row["table"], numeric=False),
        Column("A row is", lambda row: row["about"], numeric=False),
        Column("Rows", lambda row: row["rows"]),  # or why they cannot be counted
        *_WHEN,
    ),
    "All clusters. Agents write bronze; the rollup computes gold from it.",
)
_KNOWN: Final = TableSpec(
    "All subjects of this cluster",
    "kind",
    (column("Kind", "name kind"), column("How many", "count number"), *_WHEN),
)
