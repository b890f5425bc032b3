"""All incidents of the period, each with the number of its event."""

from typing import Final

from lakehouse.core import display
from lakehouse.report import evidence, figures
from lakehouse.report.evidence import Rows
from lakehouse.report.facts.events.event_records import IncidentOfEvent
from lakehouse.report.facts.sections.coverage import QUESTION
from lakehouse.report.figures import Facts, Row, length, span_of
from lakehouse.report.tables.section import Part, plain, section, unanswered
from lakehouse.report.tables.table_spec import (
    Cell,
    Column,
    TableSpec,
    bounded,
    instant,
    joined,
    of,
    words,
)

_TWINS: Final = ("kafka.group.non_consumed.low",)
"""Metrics with the same incidents as another metric, with the other bound."""


def _duration(row: Row) -> Cell:
    start, end = span_of(row)
    lead, tail = row.get("lead_us"), row.get("tail_us")
    low = None if tail is None else max(0, end - start - tail)
    high = None if lead is None else end - start + lead
    bounds = {"us": end - start, "low_us": low, "high_us": high}
    return bounded(bounds, ("us", "low_us", "high_us"), length)


def _subject(row: Row) -> Cell:
    if row.get("user") is not None or row.get("client_id") is not None:
        keys = ("user", "client_id")
        return Cell(joined([figures.name(row[key]) for key in keys if row.get(key) is not None]))
    names = [figures.name(row["group"])] if row.get("group") is not None else []
    if row.get("topic") is not None:
        partition = "" if row.get("partition") is None else f"-{row['partition']}"
        names.append(figures.name(f"{row['topic']}{partition}"))
    if not names:
        names = [figures.name(source) for source in (row.get("sources") or ())[:3]]
    return Cell(joined(names) or ("cluster",))


def _event(row: Row) -> Cell:
    number = row["event"]
    return Cell((str(number),), order=number, link=f"event-{number}")


INCIDENTS: Final = TableSpec(
    rows=Rows(IncidentOfEvent, "incidents"),
    caption="One row per partition, client, group or topic",
    noun="incident",
    columns=(
        Column("Start", instant("start")),
        Column("Duration", of(_duration, "start", "end", "lead_us", "tail_us")),
        Column(
            "Subject",
            of(
                _subject, "topic", "partition", "user", "client_id", "group", "sources",
                is_figure=False,
            ),
        ),
        Column(
            "Incident", of(lambda row: words("incident", row["metric"]), "metric", is_figure=False)
        ),
        Column("Event", of(_event, "event")),
    ),
)  # fmt: skip


def _incidents(facts: Facts) -> Part:
    rows = facts.get("incidents")
    if rows is None:
        return Part("not known: this report does not have incidents")
    if not rows:
        decided = evidence.decide(facts, QUESTION)
        return Part("0 incidents") if decided.is_answered else unanswered(decided)
    rows = [row for row in rows if row["metric"] not in _TWINS]
    number = len(rows) + (facts.get("incidents_omitted") or 0)
    events = {row["event"] for row in rows}
    line = f"{display.plural(number, 'incident')} in {display.plural(len(events), 'event')}"
    ordered = sorted(rows, key=lambda row: (row["event"], str(row["start"])))
    listing = INCIDENTS.listing(facts, ordered)
    return Part(plain(line), (listing,))


SECTION: Final = section("incidents", "All incidents", _incidents)
