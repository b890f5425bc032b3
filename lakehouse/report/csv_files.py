"""The facts as CSV (RFC 4180), safe to open in a spreadsheet: ``FILES``, from the facts' records.

Text is quoted, numbers are not. An unknown figure is an empty field without quotes, unlike an empty
name. Clients of the cluster choose names, so every name is protected from being read as a formula.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from lakehouse.core import display
from lakehouse.report import figures
from lakehouse.report.facts.events.event_records import Use
from lakehouse.report.facts.fields import OWNED, Column, Named, columns, keys, record_at
from lakehouse.report.facts.objectives import statement_rows, verdicts, weeks
from lakehouse.report.facts.report_record import QUESTIONS, Report
from lakehouse.report.facts.sections import golden_signals, hygiene, monitoring, timelines
from lakehouse.report.figures import Facts, Row
from lakehouse.report.owners import NAMES

CELL_LIMIT: Final = 32_000
"""Characters of a text; a spreadsheet's cell holds 767 more."""

# Characters that start a formula, plain and full-width, at the start of a cell, or after a
# character that ends a cell in a spreadsheet of another locale.
_FORMULA: Final = re.compile("""(^|[,;|"])(\\s*)(?=[-=+@\uff1d\uff0b\uff0d\uff20])""")

COMMON: Final = (
    Column("cluster", "cluster of the report", "cluster"),
    Column("from", "start of the report period, UTC", "from"),
    Column("to", "end of the report period, UTC", "to"),
)
"""The first columns of every file, so that files of several weeks or clusters can be joined."""

_OWNED: Final = tuple(Column(name, means.text, name) for name, means in OWNED.items())


class File(NamedTuple):
    """A file of CSV.

    Attributes:
        name: Its name without ``.csv``.
        each: The subject of a row, as in "One row per topic".
        rows: The path of its rows in the facts, or a function that makes them. A row of a list
            within rows, such as ``objectives.subjects``, also has the values of its objective.
        own: Its columns, without common columns and owners. Empty: all columns of its record.
        needs: A key without which a row is left out.
    """

    name: str
    each: str
    rows: str | Callable[[Facts], Iterable[Row]]
    own: tuple[Column, ...] = ()
    needs: str = ""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its columns, with the owner for rows about a topic, client or group."""
        own = self.own or columns(record_at(Report, str(self.rows)))
        names = {column.name for column in own}
        owned = _OWNED if names & {*NAMES.values()} else ()
        return (*own, *(column for column in owned if column.name not in names))

    def rows_of(self, facts: Facts) -> Iterable[Row]:
        """Return its rows."""
        made = self.rows
        rows = figures.rows_at(facts, made) if isinstance(made, str) else made(facts)
        return (row for row in rows if not self.needs or row.get(self.needs))


def files(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield every file's name and content; a file without rows is its header."""
    for file in FILES:
        yield f"{file.name}.csv", "".join(_lines(file, facts))


def text(value: object) -> str:
    """Return a text from outside on one line that a spreadsheet never reads as a formula."""
    visible = display.shorten(display.visible(str(value)[: 2 * CELL_LIMIT]), CELL_LIMIT)
    return _FORMULA.sub(r"\1\2'", visible)


def _lines(file: File, facts: Facts) -> Iterator[str]:
    own = file.columns
    yield _line(column.name for column in (*COMMON, *own))
    shared = [figures.value_at(facts, column.path) for column in COMMON]
    for row in file.rows_of(facts):
        yield _line([*shared, *(figures.value_at(row, column.path) for column in own)])


def _line(values: Iterable[object]) -> str:
    return ",".join(map(_field, values)) + "\r\n"


def _field(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float):
        return repr(int(value) if isinstance(value, bool) else value)
    if isinstance(value, Mapping):
        value = " ".join(f"{name}={count}" for name, count in value.items())
    elif isinstance(value, list):
        value = " ".join(map(str, value))
    return '"' + text(value).replace('"', '""') + '"'


def _topics_without_a_spare_replica(facts: Facts) -> Iterator[Row]:
    for finding in ("replication_one", "no_spare_replica"):
        rows = figures.rows_at(facts, f"hygiene.{finding}")
        yield from ({"finding": finding, **row} for row in rows)


def _weeks(facts: Facts) -> Iterator[Row]:
    names = figures.value_at(facts, "trends.weeks") or ()
    for subject in figures.rows_at(facts, "trends.objectives.subjects"):
        for name, week in zip(names, subject.get("weeks") or (), strict=True):
            if week is not None:
                yield {**subject, **week, "week": name}


def _points(facts: Facts) -> Iterator[Row]:
    for line in facts.get("timelines") or ():
        for point in line.get("points") or ():
            yield {**line, **dict(zip(("at", "value", "low", "high"), point, strict=True))}


def _outside(key: str, excluded: str, *names: str) -> Iterator[Column]:
    """Yield columns of a subject's figures outside some time, by the names that they have there."""
    figures = ("verdict", "expected_us", "bad_us", *keys("attainment"))
    for name, figure in zip(names, figures, strict=True):
        yield Column(name, f"{figure} outside {excluded}", f"{key}.{figure}")


_OBJECTIVE: Final = (*columns(statement_rows.Objective, "name"), *columns(Named))
"""The objective of a row and the names of its subject."""

_ATTAINMENT: Final = (
    *_OBJECTIVE,
    *columns(statement_rows.Objective, "target", "method", "window", "from", "to"),
    *columns(statement_rows.Figures),
    *columns(statement_rows.Objective, "unknown"),
    *columns(statement_rows.Judgement, "interval_verdict"),
)
_PERIOD: Final = (*_OBJECTIVE, *columns(statement_rows.Figures, "verdict", "attainment"))

_DECLARED: Final = (
    File("key_figures", "figure at the start of the report", "key_figures"),
    File("objectives", "objective", "objectives", columns(
        statement_rows.Objective, "name", "title", "target", "window", "status",
        "budget_whole_us", "used", "owner",
    )),
    File("history", "objective and week, oldest first", "objectives.history",
         (*columns(statement_rows.Objective, "name"), *columns(statement_rows.WeekOfObjective))),
    File("events", "event, most of an error budget first", "events"),
    File("event_uses", "event and subject whose error budget it used", "events.uses",
         (Column("event", "number of the event", "number"), *columns(Use))),
    File("incidents", "incident", "incidents"),
    File("verdicts", "objective, worst first", "verdicts"),
    File("composites", "composite, on all subjects, and on the subjects of each team and tier",
         "composites"),
    File("composite_objectives", "objective of a composite", "composites.objectives", (
        *columns(verdicts.Composite, "composite", "team", "tier"), *columns(verdicts.Member),
    )),
    File("attainment", "objective and subject", "objectives.subjects",
         (*_ATTAINMENT, *columns(statement_rows.Used))),
    File("attainment_business_hours", "objective and subject, over business hours",
         "business_hours.objectives.subjects", _ATTAINMENT),
    File("restated", "subject whose published figures have changed", "restated", (
        *columns(statement_rows.Restated, "objective", *Named.__annotations__),
        Column("stated_at", "time of the earlier publication, UTC", "before.stated_at"),
        Column("attainment_before", "published attainment, 0 to 1", "before.attainment"),
        Column("bad_before_us", "published bad time, microseconds", "before.bad_us"),
        Column("verdict_before", "published verdict", "before.verdict"),
        Column("attainment_now", "attainment now, 0 to 1", "now.attainment"),
        Column("bad_now_us", "bad time now, microseconds", "now.bad_us"),
        Column("verdict_now", "verdict now", "now.verdict"),
        Column("agreed_before", "published verdict with corrections", "before.agreed_verdict"),
        Column("agreed_now", "verdict with corrections now", "now.agreed_verdict"),
    )),
    File("tiering_topics", "topic with bytes in remote storage", "tiering.topics"),
    File("capacity_topics", "topic with bytes on a disk", "capacity.topics"),
    File("own_metrics", "metric without a section of its own and subject, 20 at most",
         "own_metrics.metrics.worst", (*columns(monitoring.Metric), *columns(monitoring.Subject))),
    File("owners", "owner; rows without an owner are last", "owners.accounts"),
    File("burn_rates", "objective, subject and pair of windows that burns, burned or may burn",
         "objectives.subjects.burn", (*_OBJECTIVE, *columns(statement_rows.Burn))),
    File("maintenance", "planned maintenance", "maintenance"),
    File("corrections", "correction", "corrections"),
    File("agreed", "objective and subject that a correction concerns", "objectives.subjects", (
        *_PERIOD,
        *_outside("agreed", "corrections", "agreed_verdict", "agreed_expected_us", "agreed_bad_us",
                  "agreed_attainment", "agreed_attainment_low", "agreed_attainment_high"),
    ), needs="corrections"),
    File("without_maintenance", "objective and subject that maintenance concerns",
         "objectives.subjects", (
        *_PERIOD,
        *_outside("without_maintenance", "maintenance", "verdict_without", "expected_without_us",
                  "bad_without_us", "attainment_without", "attainment_without_low",
                  "attainment_without_high"),
    ), needs="maintenance"),
    File("service_requests", "kind of request, on all brokers", "service.requests",
         columns(golden_signals.Answers, "request", "answers", "errors", "good", "unknown_us")),
    File("service_brokers", "broker and kind of request", "service.brokers"),
    File("service_errors", "kind of request and error, most frequent first", "service.errors"),
    File("service_latency", "broker, kind of request and objective on its latency",
         "service.latency"),
    File("traffic_topics", "topic with traffic, the busiest first", "service.topics"),
    File("traffic_clients", "client with a broker-side rate metric", "service.clients"),
    File("min_isr_topics", "topic", "min_isr.topics"),
    File("min_isr_partitions", "partition that was under min ISR or leaderless",
         "min_isr.partitions"),
    File("min_isr_brokers", "broker", "min_isr.brokers"),
    File("min_isr_controllers", "controller", "min_isr.controllers"),
    File("replication_topics", "topic with missing or moving replicas, or an unclean leader",
         "replication.topics"),
    File("throttling_clients", "client and kind of quota", "throttling.clients"),
    File("throttling_own_views", "client whose own metrics show delayed responses",
         "throttling.own_views"),
    File("throttling_brokers", "broker or controller at which a quota delayed something",
         "throttling.brokers"),
    File("tier_lag_topics", "tiered topic", "tier_lag.topics"),
    File("tier_lag_brokers", "broker", "tier_lag.brokers"),
    File("tier_lag_partitions", "partition with records that are not in remote storage",
         "tier_lag.partitions"),
    File("tier_lag_orphans", "partition of a deleted topic with segments in remote storage",
         "tier_lag.orphans"),
    File("tier_lag_held_topics", "topic with delayed uploads",
         "tier_lag.held_topics"),
    File("consumer_lag", "group and topic in which it lagged", "consumer_lag.groups"),
    File("consumer_lag_partitions", "group and partition with more than 10,000 unread records",
         "consumer_lag.partitions"),
    File("lost_before_read", "group and partition", "lost_before_read.groups"),
    File("remote_reads_topics", "topic with reads from remote storage", "remote_reads.topics"),
    File("remote_reads_brokers", "broker", "remote_reads.brokers"),
    File("remote_reads_plugins", "broker with Aiven's plugin", "remote_reads.plugins"),
    File("hygiene_topics", "topic without a spare replica", _topics_without_a_spare_replica, (
        Column("finding", "replication_one, or no_spare_replica: all must be in sync", "finding"),
        *columns(hygiene.Replicas),
    )),
    File("hygiene_overtaken", "group and topic whose unread records are about to be deleted",
         "hygiene.overtaken"),
    File("hygiene_near_quota", "client near its quota", "hygiene.near_quota"),
    File("hygiene_unused_quotas", "quota that no client used", "hygiene.unused_quotas"),
    File("trends", "objective and subject that was bad in these weeks",
         "trends.objectives.subjects", (
        *_OBJECTIVE,
        Column("change", "change to the last week: worse, better, as_usual, within_bounds or "
               "untested", "change.verdict"),
        Column("p", "share of all changes that are as large, 0 to 1", "change.p"),
    )),
    File("trends_weeks", "objective, subject and week", _weeks,
         (*_OBJECTIVE, Column("week", "ISO week", "week"), *columns(weeks.TrendWeek))),
    File("coverage_sources", "source and family of metrics", "coverage.sources"),
    File("coverage_gaps", "gap of a source and family", "coverage.sources.gaps",
         (*columns(monitoring.SourceCoverage, "source", "family"), *columns(monitoring.Gap))),
    File("answers", "question or section of the page", "answers"),
    File("lost_by_group", "group that lost records", "lost_before_read.totals"),
    File("timelines", "timeline and window", _points, (
        *columns(timelines.Timeline, "name", "unit", "subject"),
        Column("at", "start of the window, UTC", "at"),
        Column("value", "value; empty: no data", "value"),
        Column("low", "lower bound of value", "low"),
        Column("high", "upper bound of value; empty: not all sources were observed", "high"),
    )),
    File("changes", "change in the cluster, in the order of notice", "changes"),
)  # fmt: skip

FILES: Final = (
    *_DECLARED,
    *(
        File(one.fact.replace(".", "_"), one.noun, one.fact)
        for one in QUESTIONS
        if one.fact and one.fact not in {file.rows for file in _DECLARED}
    ),
)
"""Every file; the rows of a question that has none of another name have one of their path's."""
