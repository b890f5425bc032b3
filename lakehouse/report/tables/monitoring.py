"""Monitoring: coverage of the sources, metrics without a section of their own, and all incidents.

Metrics of an operator's own catalogue are first. An incident has the number of its event.
"""

from collections import Counter, defaultdict
from typing import Any, Final

from lakehouse.core import display
from lakehouse.report import evidence, figures
from lakehouse.report.evidence import nothing_seen
from lakehouse.report.facts.events.event_records import IncidentOfEvent
from lakehouse.report.facts.fields import Bounds, Rows
from lakehouse.report.facts.sections.monitoring import COLUMNS, QUESTION, Metric, SourceCoverage
from lakehouse.report.figures import Facts, Row, length, rows_at, span_of
from lakehouse.report.summary.events import short_error
from lakehouse.report.tables.section import Part, section
from lakehouse.report.tables.table_spec import Cell, Column, TableSpec, words


def _error(row: Row) -> Cell:
    error = row.get("first_error")
    return Cell() if error is None else Cell((short_error(error),))


def _outcomes(row: Row) -> str:
    outcomes = (row.get("outcomes") or {}).items()
    failed = [(name, number) for name, number in outcomes if number and name != "ok"]
    return ", ".join(f"{number:,} {words('outcome', name)}" for name, number in failed)


SOURCES: Final = TableSpec(
    rows=Rows(SourceCoverage, "coverage.sources"),
    caption="Sources",
    noun="source",
    columns=(
        Column.name("Source", "source"),
        Column.number("Observed", "percent", display.per_cent),
        Column.number("Not observed, worst family", "unknown_us", length),
        Column.of("Failed scrapes", _outcomes, "outcomes", is_figure=False),
        Column.of("First error", _error, "first_error", is_figure=False),
    ),
    unknown="",
)


def _by_source(facts: Facts) -> list[Row]:
    """Return one row per source with all its families, the least observed first."""
    found: defaultdict[Any, list[Row]] = defaultdict(list)
    for row in rows_at(facts, "coverage.sources"):
        found[row.get("source")].append(row)
    rows = [_source(source, of_source) for source, of_source in found.items()]
    return sorted(rows, key=lambda row: (row["percent"] or 0.0, str(row["source"])))


def _source(source: Any, rows: list[Row]) -> Row:
    expected, observed = (
        sum(row.get(key) or 0 for row in rows) for key in ("expected_us", "observed_us")
    )
    outcomes: Counter[str] = Counter()
    for row in rows:
        outcomes.update(row.get("outcomes") or {})
    return {
        "source": source,
        "percent": 100 * observed / expected if expected else None,
        "unknown_us": max(row.get("unknown_us") or 0 for row in rows),
        "outcomes": dict(outcomes),
        "first_error": next((row["first_error"] for row in rows if row.get("first_error")), None),
    }


def _observed(facts: Facts) -> Part:
    rows = _by_source(facts)
    percent = (facts.get("coverage") or {}).get("percent")
    share = "0 %" if nothing_seen(facts) else display.per_cent(percent)
    line = f"{share} of expected observations of {display.plural(len(rows), 'source')}"
    line = line if rows or not nothing_seen(facts) else "not known: no agent ran"
    listing = SOURCES.listing({**facts, "owners": None}, rows)
    return Part.of([line], [listing], _notes(facts))


def _notes(facts: Facts) -> list[str]:
    notes = []
    if rejected := facts.get("rejected"):
        notes.append(f"{display.plural(round(rejected), 'row')} of bronze could not be used.")
    changes = facts.get("changes") or ()
    imported = {(row.get("new"), row.get("source")) for row in changes if row["kind"] == "imported"}
    for place, number in sorted(Counter(str(place) for place, _ in imported).items()):
        sources = display.plural(number, "source")
        notes.append(f"Past data of {sources} was imported from {figures.name(place).isolated}.")
    above = evidence.dropped(facts, {row["family"] for row in rows_at(facts, "coverage.sources")})
    notes += [
        f"Family {figures.name(family).isolated} of {display.plural(sources, 'source')} had up to "
        f"{series:,} series above its limit. They were not collected one by one."
        for family, (series, sources) in sorted(above.items())
    ]
    notes += [
        f"Agents contradict each other on family {figures.name(row['family']).isolated} of "
        f"{figures.name(row['source']).isolated}, up to {length(us)}. The worse value counts, and "
        "its bad time is uncertain."
        for row in rows_at(facts, "coverage.sources")
        if (us := row.get("contradicted_us"))
    ]
    later = Counter(
        (row["family"], row["since"])
        for row in rows_at(facts, "coverage.sources")
        if row.get("since")
    )
    notes += [
        f"Family {figures.name(family).isolated} of {display.plural(number, 'source')} was not "
        f"scraped before {display.day_and_time(since)}. The coverage here includes that time, the "
        "objective on scrapes does not."
        for (family, since), number in sorted(later.items())
    ]
    return notes


COVERAGE: Final = section("coverage", "Monitoring coverage", _observed)


def _figure(heading: str, key: str, *, is_peak: bool = False) -> Column:
    def cell(row: Row) -> Cell:
        value = row.get(key)
        if value is None and row.get("kind") in {"gauge", "counter"}:
            return Cell()
        return Cell((display.quantity(value, str(row.get("unit") or "")),), order=value)

    return Column(heading, cell, (f"worst.{key}",), is_peak=is_peak)


def _subject(row: Row) -> Cell:
    return Cell.named(row, COLUMNS.values())


def _metric(row: Row) -> Cell:
    return Cell((figures.name(row["metric"]),), title=display.line(row.get("description") or ""))


METRICS: Final = TableSpec(
    rows=Rows(Metric, "own_metrics.metrics"),
    caption="Each metric, with the subject of its greatest value",
    noun="metric",
    columns=(
        Column.of("Metric", _metric, "metric", "description", is_figure=False),
        Column.of(
            "Subject", _subject, *(f"worst.{key}" for key in COLUMNS.values()), is_figure=False
        ),
        _figure("Mean", "mean"),
        _figure("Max", "max", is_peak=True),
        _figure("Increase", "increase"),
    ),
    file="own_metrics",
)


def _others(facts: Facts) -> Part:
    content = facts.get("own_metrics") or {}
    metrics, absent = content.get("metrics") or (), content.get("absent") or ()
    rows = [{**row, **row["worst"][0]} for row in metrics if row.get("worst")]
    own = sum(bool(row.get("own")) for row in metrics)
    said = [display.plural(len(metrics) + (content.get("omitted") or 0), "metric")]
    said += [f"{own} of your own catalogue"] * bool(own)
    if absent:
        names = ", ".join(display.line(name) for name in absent)
        said.append(f"not collected: {names}")
    return Part.of(said, [METRICS.listing(facts, rows)])


OWN_METRICS: Final = section("own-metrics", "Other metrics", _others)


_TWINS: Final = ("kafka.group.non_consumed.low",)
"""Metrics with the same incidents as another metric, with the other bound."""


def _duration(row: Row) -> Cell:
    start, end = span_of(row)
    lead, tail = row.get("lead_us"), row.get("tail_us")
    low = None if tail is None else max(0, end - start - tail)
    high = None if lead is None else end - start + lead
    return Cell.bounded(Bounds(end - start, low, high), length)


def _of_subjects(row: Row) -> Cell:
    if row.get("user") is not None or row.get("client_id") is not None:
        return Cell.named(row, ("user", "client_id"))
    names = [figures.name(row["group"])] if row.get("group") is not None else []
    if row.get("topic") is not None:
        partition = "" if row.get("partition") is None else f"-{row['partition']}"
        names.append(figures.name(f"{row['topic']}{partition}"))
    if not names:
        names = [figures.name(source) for source in (row.get("sources") or ())[:3]]
    return Cell.names(names, ("cluster",))


def _event(row: Row) -> Cell:
    number = row["event"]
    return Cell((str(number),), order=number, link=f"event-{number}")


INCIDENTS: Final = TableSpec(
    rows=Rows(IncidentOfEvent, "incidents"),
    caption="One row per partition, client, group or topic",
    noun="incident",
    columns=(
        Column.instant("Start", "start"),
        Column.of("Duration", _duration, "start", "end", "lead_us", "tail_us"),
        Column.of(
            "Subject", _of_subjects, "topic", "partition", "user", "client_id", "group", "sources",
            is_figure=False,
        ),
        Column.word("Incident", "incident", "metric"),
        Column.of("Event", _event, "event"),
    ),
)  # fmt: skip


def _incidents(facts: Facts) -> Part:
    rows = facts.get("incidents")
    if rows is None:
        return Part.of(["not known: this report does not have incidents"])
    if not rows:
        decided = evidence.decide(facts, QUESTION)
        return Part.of(["0 incidents" if decided.is_answered else decided.reason])
    rows = [row for row in rows if row["metric"] not in _TWINS]
    number = len(rows) + (facts.get("incidents_omitted") or 0)
    events = {row["event"] for row in rows}
    line = f"{display.plural(number, 'incident')} in {display.plural(len(events), 'event')}"
    ordered = sorted(rows, key=lambda row: (row["event"], str(row["start"])))
    return Part.of([line], [INCIDENTS.listing(facts, ordered)])


ALL_INCIDENTS: Final = section("incidents", "All incidents", _incidents)
