"""Monitoring: the coverage of each family of each source, and metrics without a section.

Coverage is expected and observed time, and its gaps. The other metrics are of an operator's own
catalogue and of further families. Each is shown for its finest subject in gold: a topic, a client,
a group, a source, or a single series of a source with labels. Metrics of other sections are in
``shows`` of their questions.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from math import ceil
from operator import attrgetter, itemgetter
from typing import Annotated, Final, NamedTuple

from lakehouse import tables
from lakehouse.core import subjects
from lakehouse.core.metrics import COVERAGE, UNAVAILABLE, Definition, families, known, shipped
from lakehouse.core.objective import Objective
from lakehouse.core.periods import Span, iso, length, micros, touching
from lakehouse.engines.gold_reader import Row, is_same, own_definitions, summed
from lakehouse.engines.relation import is_one_of, text
from lakehouse.report.facts import fields
from lakehouse.report.facts.fields import SOURCE, UNKNOWN, Bounds, Known, Means, Question
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.gold_figures import counted, duration, per_second, seconds_mean
from lakehouse.report.facts.sections.replication import COUNTED_BY_BROKER
from lakehouse.report.figures import longest_floor_us
from lakehouse.slo.trends import NO_WEEKS, Weeks
from lakehouse.tables.gold import BEYOND, CONTRADICTED, IN_THE_FUTURE

ANY_FAMILY: Final = "any"
"""The family of a source that was never read."""


class Gap(NamedTuple):
    """Time in which scrapes of a family failed in one way."""

    start: Annotated[str, Means("start of the gap, UTC")]
    end: Annotated[str, Means("end of the gap, UTC")]
    outcome: Annotated[str, Means("outcome of the scrapes")]
    error: Annotated[str | None, Means("first error")]


class SourceCoverage(NamedTuple):
    """Coverage of a family of a source, and the outcomes of its scrapes."""

    source: Annotated[str | None, SOURCE]
    family: Annotated[str, Means("family of metrics; any: the source was never scraped")]
    expected_us: Annotated[int, Means("expected scrape time, microseconds")]
    observed_us: Annotated[int, Means("observed time of that, microseconds")]
    unknown_us: Annotated[int, UNKNOWN]
    percent: Annotated[float | None, Means("coverage: observed_us divided by expected_us, percent")]
    outcomes: Annotated[dict[str, int], Means("scrapes by outcome, such as ok=120 refused=22")]
    interval_us: Annotated[int | None, Means("longest scrape interval, microseconds")]
    slowest_us: Annotated[int | None, Means("duration of the slowest scrape, microseconds")]
    first_error: Annotated[str | None, Means("first error")]
    gaps: Annotated[list[Gap], Means("gaps")]
    since: Annotated[str | None, Means(
        "first scrape of the family, if other families of the source were scraped earlier; the "
        "objective on coverage ignores the time before")] = None  # fmt: skip
    dropped_series: Annotated[int | None, Means(
        "maximum number of series above the limit of the family in a scrape, which were not "
        "collected one by one; empty: not known")] = None  # fmt: skip
    contradicted_us: Annotated[int, Means(
        "time of values above zero that another agent contradicts, microseconds")] = 0  # fmt: skip


class CoverageOfWeek(NamedTuple):
    """Coverage of an earlier week."""

    week: Annotated[str, Means("ISO week")]
    percent: Annotated[float | None, Means("coverage, percent; empty: nothing was expected")]


class Coverage(NamedTuple):
    """The section: all sources together, and each."""

    expected_us: Annotated[int, Means(
        "time in which sources existed, from their first scrape on, added up")]  # fmt: skip
    observed_us: Annotated[int, Means("observed time of that, microseconds")]
    unknown_us: Annotated[int, UNKNOWN]
    percent: Annotated[float | None, Means("coverage, percent")]
    sources: Annotated[list[SourceCoverage], Means("sources and families")]
    weeks: Annotated[list[CoverageOfWeek], Means("earlier weeks, oldest first")]
    since: Annotated[str | None, Means(
        "first scrape of the cluster, if the period started earlier; nothing "
        "is expected before")] = None  # fmt: skip


def coverage(gold: Gold, weeks: Weeks = NO_WEEKS) -> Coverage:
    """Return the section, with every family of every source that existed in the period.

    Args:
        gold: The cluster's gold.
        weeks: The weeks before.
    """
    sources = _sources(gold, gold.sums(tables.COVERAGE), _failures(gold))
    sources = _with_contradicted(gold, _with_dropped(gold, _with_starts(gold, sources)))
    return Coverage(*_of_all(sources), sources, _weeks(gold, weeks), _since(gold))


def _weeks(gold: Gold, weeks: Weeks) -> list[CoverageOfWeek]:
    sums = gold.by_week(tables.COVERAGE, weeks.periods)
    found = []
    for name, week, rows in zip(weeks.names, weeks.periods, sums, strict=True):
        *_, percent = _of_all(_sources(gold.within(week), rows, defaultdict(list)))
        found.append(CoverageOfWeek(name, percent))
    return found


def _sources(
    gold: Gold, rows: Sequence[Row], failures: Mapping[tuple[str | None, str], list[Row]]
) -> list[SourceCoverage]:
    attempts: defaultdict[str | None, dict[str, dict[str, Row]]] = defaultdict(dict)
    for row in rows:
        attempts[row["source"]].setdefault(row["family"], {})[row["outcome"]] = row
    sources = []
    for subject, expected in gold.expected("source"):
        never_read: dict[str, dict[str, Row]] = {ANY_FAMILY: {}} if expected else {}
        for family, outcomes in (attempts[subject.source] or never_read).items():
            failed = failures[subject.source, family]
            sources.append(_of_source(subject.source, family, expected, outcomes, failed))
    return sources


def _with_starts(gold: Gold, sources: Sequence[SourceCoverage]) -> list[SourceCoverage]:
    """Return the rows; a family that was scraped only later has its first scrape."""
    first_us = {
        (row["source"], row["family"]): row["first_us"]
        for row in gold.ask(
            "SELECT r.source, r.family, min(r.started_at) AS first_us FROM {rows} r "
            "GROUP BY r.source, r.family",
            rows=gold.whole(tables.READINGS),
        )
    }
    starts: dict[str | None, int] = {}
    for (source, _), at_us in first_us.items():
        starts[source] = min(at_us, starts.get(source, at_us))
    found = []
    for one in sources:
        slack_us = max(gold.window_seconds * 1_000_000, one.interval_us or 0)
        at_us = first_us.get((one.source, one.family))
        is_late = at_us is not None and at_us > starts[one.source] + slack_us
        found.append(one._replace(since=iso(at_us)) if is_late and at_us is not None else one)
    return found


def _with_dropped(gold: Gold, sources: Sequence[SourceCoverage]) -> list[SourceCoverage]:
    dropped = gold.dropped()
    if dropped is None:
        return [*sources]
    return [
        one._replace(dropped_series=dropped.get((str(one.source), one.family), 0))
        for one in sources
    ]


def _with_contradicted(gold: Gold, sources: Sequence[SourceCoverage]) -> list[SourceCoverage]:
    found: defaultdict[tuple[str, str], list[Span]] = defaultdict(list)
    for row in gold.ask(
        "SELECT r.source, r.metric, r.started_at, r.ended_at FROM {rows} r "
        f"WHERE {is_same('r.reason', CONTRADICTED)}",
        rows=gold.hours(tables.REJECTED),
    ):
        for family in gold.families(row["metric"]):
            found[row["source"], family].append((row["started_at"], row["ended_at"]))
    return [
        one._replace(contradicted_us=length(found[str(one.source), one.family])) for one in sources
    ]


def _of_all(sources: Sequence[SourceCoverage]) -> tuple[int, int, int, float | None]:
    total, seen = sum(one.expected_us for one in sources), sum(one.observed_us for one in sources)
    return _totals(total, seen)


def _since(gold: Gold) -> str | None:
    first_us = min((one.first_us for one in gold.subjects if one.kind == "source"), default=None)
    began = first_us is not None and first_us > gold.period.span[0]
    return iso(first_us) if began and first_us is not None else None


def _of_source(
    source: str | None, family: str, expected: int, outcomes: dict[str, Row], failed: list[Row]
) -> SourceCoverage:
    ok = outcomes.get("ok")
    seen = ok["outcome_us"] if ok else 0
    return SourceCoverage(
        source,
        family,
        *_totals(max(expected, seen), seen),
        outcomes={outcome: row["scrapes"] for outcome, row in outcomes.items()},
        interval_us=max((row["interval_us"] for row in outcomes.values()), default=None),
        slowest_us=ceil(ok["seconds_max"] * 1e6) if ok else None,
        first_error=next((row["error"] for row in failed if row["error"]), None),
        gaps=_gaps(failed),
    )


def _totals(expected: int, seen: int) -> tuple[int, int, int, float | None]:
    """Return expected, observed and unknown time, and coverage in percent."""
    return expected, seen, expected - seen, 100 * seen / expected if expected else None


def _failures(gold: Gold) -> defaultdict[tuple[str | None, str], list[Row]]:
    """Return intervals of failed scrapes per source and family, oldest first."""
    listed = "r.started_at, r.ended_at, r.outcome, r.source, r.family, r.error"
    failures: defaultdict[tuple[str | None, str], list[Row]] = defaultdict(list)
    for row in gold.ask(
        f"SELECT {listed} FROM {{rows}} r WHERE r.outcome NOT IN ('ok', 'skipped') "
        f"ORDER BY {listed}",
        rows=gold.whole(tables.READINGS),
    ):
        failures[row["source"], row["family"]].append(row)
    return failures


def _gaps(failed: list[Row]) -> list[Gap]:
    """Return touching failures of one outcome as one gap."""
    return [
        Gap(
            iso(rows[0]["started_at"]),
            iso(max(row["ended_at"] for row in rows)),
            outcome,
            rows[0]["error"],
        )
        for outcome, alike in groupby(failed, key=itemgetter("outcome"))
        for rows in touching(alike, itemgetter("started_at", "ended_at"))
    ]


def detection_floor_us(seen: Coverage) -> int | None:
    """Return the length of the shortest certainly observed incident; None: no broker was read."""
    of_brokers = families(COUNTED_BY_BROKER)
    own = [one for one in seen.sources if one.family in of_brokers]
    return longest_floor_us((one.interval_us, one.slowest_us) for one in own)


def rejected(gold: Gold) -> int:
    """Return the number of rejected rows of bronze, including rows with impossible instants."""
    start, end = micros(gold.period.start), micros(gold.period.end)
    # Rows with an impossible instant are in no report's period, so every report counts them.
    (row,) = gold.ask(
        "SELECT coalesce(sum(r.row_count), 0) AS number FROM {rows} r "
        f"WHERE {is_same('r.cluster', gold.cluster)} "
        f"AND ({is_one_of('r.reason', (IN_THE_FUTURE, BEYOND))} "
        f"OR (r.window_start >= {start} AND r.window_start < {end}))",
        rows=gold.engine.rows(tables.REJECTED),
    )
    return int(row["number"])


QUESTION: Final = Question(
    name="events",
    section="coverage",
    read="any",
    gold=("readings",),
    # They determine the expected time.
    shows=("kafka.cluster.node.fenced", "kafka.topic.remote_storage_enabled"),
)

MOST_METRICS: Final = 200
MOST_SUBJECTS: Final = 20
"""Subjects of a metric in the facts; gold has all."""

TABLES: Final = {
    "topic": tables.TOPICS,
    "client": tables.CLIENTS,
    "group": tables.GROUPS,
    "series": tables.LABELLED,
    "source": tables.SOURCES,
}
"""Tables of the figures of a metric by subject type; the first table with rows counts."""


COLUMNS: Final = {
    **dict(zip(subjects.SUBJECT_COLUMNS, subjects.SUBJECT, strict=True)), "labels": "labels",
}  # fmt: skip
"""Columns of gold with the names of a subject, and these names."""


class Subject(NamedTuple):
    """A metric's figures for one subject: values and times of a gauge, increase of a counter."""

    topic: Annotated[str | None, fields.TOPIC]
    user: Annotated[str | None, fields.USER]
    client_id: Annotated[str | None, fields.CLIENT_ID]
    group: Annotated[str | None, fields.GROUP]
    source: Annotated[str | None, fields.SOURCE]
    labels: Annotated[str | None, Means("further labels, as key=value")]
    mean: Annotated[Known, Means("mean of a gauge over time")]
    min: Annotated[Known, Means("minimum of a gauge")]
    max: Annotated[Known, Means("maximum of a gauge")]
    above_us: Annotated[Bounds, Means("time above 0, microseconds")]
    increase: Annotated[Bounds, Means("increase of a counter")]
    per_second: Annotated[Known, Means("mean increase per observed second")]
    flags: Annotated[list[str], Means(
        "known_wrong: this Kafka version is known to report wrong values")]  # fmt: skip
    unknown_us: Annotated[int | None, Means("unknown time of a source or series, microseconds")]


class Metric(NamedTuple):
    """A metric, and its subjects with the worst values."""

    metric: Annotated[str, Means("name of the metric")]
    families: Annotated[list[str], Means("families of the catalogue that collect it")]
    own: Annotated[bool, Means("1: from an operator's own catalogue")]
    kind: Annotated[str, Means("gauge, counter, or both if catalogues differ")]
    unit: Annotated[str, Means("UCUM unit of its values")]
    level: Annotated[str, Means(
        "subject type: topic, client, group, series (of a source, with "
        "labels) or source")]  # fmt: skip
    subjects: Annotated[int | None, Means(
        "number of subjects in gold; empty: the report is of one team")]  # fmt: skip
    description: Annotated[str | None, Means("description in the catalogue")]
    percent: Annotated[Known, Means("coverage of its families, percent")]
    worst: Annotated[list[Subject], Means(f"at most {MOST_SUBJECTS} subjects, the worst first")]


class OwnMetrics(NamedTuple):
    """The section: metrics of own catalogues first."""

    metrics: Annotated[
        list[Metric], Means(f"at most {MOST_METRICS} metrics without a section of their own")
    ]
    omitted: Annotated[int, Means("number of further metrics in gold")]
    absent: Annotated[list[str], Means("metrics of objectives without any data")]


def is_shown(metric: str, patterns: Collection[str]) -> bool:
    """Return True if another section has figures of a metric."""
    return any(fnmatchcase(metric, pattern) for pattern in patterns)


def own_metrics(
    gold: Gold,
    where: Mapping[str, str],
    seen: Coverage,
    objectives: Sequence[Objective],
    shown: Collection[str],
) -> OwnMetrics:
    """Return the section, from gold and the catalogues of the lake.

    Args:
        gold: Gold of the cluster and period.
        where: Levels of its metrics, see ``levels``.
        seen: The section on coverage.
        objectives: The objectives.
        shown: Metrics of other sections, as patterns.
    """
    others = sorted((name in known(), name) for name in where if not is_shown(name, shown))
    chosen = [name for _, name in others[:MOST_METRICS]]
    # A low value of these is bad.
    below = [one.metric for one in objectives if not one.events and one.op in {"gt", "gte"}]
    meanings = _meanings(gold)
    metrics = []
    for level in sorted({where[name] for name in chosen}):
        names, table = [name for name in chosen if where[name] == level], TABLES[level]
        rows = gold.ask(_ranked(table, names, below), rows=gold.whole(table))
        rows = _with_increases(gold, table, rows)
        for name, worst in groupby(gold.with_later(table, rows), itemgetter("metric")):
            metrics.append(_metric(name, level, list(worst), meanings.get(name, ()), seen))
    metrics.sort(key=lambda one: (not one.own, one.metric))
    read = {*where, *map(gold.meanings.value_of, where)}
    return OwnMetrics(metrics, len(others) - len(chosen), _absent(objectives, read, shown))


def levels(gold: Gold) -> dict[str, str]:
    """Return the finest subject of each metric with rows in gold."""
    rows = {level: gold.whole(table) for level, table in TABLES.items()}
    each = (f"SELECT {text(level)} AS level, r.metric FROM {{{level}}} r" for level in rows)
    found = gold.ask(f"SELECT DISTINCT s.* FROM ({' UNION ALL '.join(each)}) s", **rows)
    found.sort(key=lambda row: [*TABLES].index(row["level"]), reverse=True)
    return {row["metric"]: row["level"] for row in found}


def _absent(
    objectives: Sequence[Objective], read: Collection[str], shown: Collection[str]
) -> list[str]:
    """Return metrics of objectives without rows in gold, except metrics of other sections."""
    wanted = {name for one in objectives for name in one.metrics}
    missing = wanted - {*read, UNAVAILABLE, COVERAGE}
    return sorted(name for name in missing if not is_shown(name, shown))


def _meanings(gold: Gold) -> dict[str, list[Definition]]:
    """Return the definitions of each metric in the catalogues of the lake, or the shipped one."""
    of_metric = attrgetter("metric")
    return {
        metric: list(own)
        for definitions in (shipped(), own_definitions(gold.engine))
        for metric, own in groupby(sorted(definitions, key=of_metric), of_metric)
    }


def _ranked(table: tables.Table, metrics: Sequence[str], below: Sequence[str]) -> str:
    """Return the SQL of the first rows of each metric; ``subjects`` is their number."""
    keys = ", ".join(f"s.{key}" for key in table.keys[1:])
    most = "s.value_max"
    if "max_total" in table.column_names:
        most = f"coalesce(s.max_total, {most})"
    bad = f"CASE WHEN {is_one_of('s.metric', below)} THEN -s.value_min ELSE {most} END"
    sums = summed(table, table.keys[1:], is_one_of("r.metric", metrics))
    return (
        "SELECT p.* FROM (SELECT s.*, row_number() OVER (PARTITION BY s.metric ORDER BY "
        f"coalesce(s.increase, {bad}) DESC NULLS LAST, {keys}) AS place, "
        "count(*) OVER (PARTITION BY s.metric) AS subjects "
        f"FROM ({sums}) s WHERE s.series_seen_us > 0) p "
        f"WHERE p.place <= {MOST_SUBJECTS} ORDER BY p.metric, p.place"
    )


def _with_increases(gold: Gold, table: tables.Table, rows: Sequence[Row]) -> list[Row]:
    """Return the rows; rows of counters have the bounds of their increase."""
    key = itemgetter(*table.keys[1:])
    counters = sorted({row["metric"] for row in rows if row["increase"] is not None})
    increases = counted(gold, table, counters, key) if counters else {}
    return [row | {"rose": increases.get(key(row), Bounds())} for row in rows]


def _metric(
    name: str, level: str, rows: Sequence[Row], said: Sequence[Definition], seen: Coverage
) -> Metric:
    families = sorted({one.family for one in said})
    read = [one for one in seen.sources if one.family in families]
    expected = sum(one.expected_us for one in read)
    figures = {"gauge": "value_seconds", "counter": "increase"}
    kinds = [kind for kind, key in figures.items() if any(row[key] is not None for row in rows)]
    return Metric(
        name,
        families,
        level=level,
        own=name not in known(),
        kind=" and ".join(kinds),
        unit=" or ".join(sorted({one.unit for one in said})),
        description=next((one.description for one in said if one.description), None),
        percent=100 * sum(one.observed_us for one in read) / expected if expected else None,
        subjects=rows[0]["subjects"],
        worst=[_subject(row, read) for row in rows],
    )


def _subject(row: Row, read: Sequence[SourceCoverage]) -> Subject:
    # A topic, client or group may have been reported by any source.
    of_source = row.get("source") is not None
    own = [one for one in read if not of_source or one.source == row["source"]]
    seconds = sum(one.observed_us for one in own) / 1e6 / len(own) if own else 0.0
    most, rose = row.get("max_total"), row["increase"]
    is_mixed = rose is not None and row["value_seconds"] is not None
    return Subject(
        **{name: row.get(column) for column, name in COLUMNS.items()},
        mean=None if is_mixed else mean(row),
        min=row["value_min"],
        max=row["value_max"] if most is None else most,
        above_us=duration(row, "affected" if "affected_us" in row else "series_affected"),
        increase=row.get("rose", Bounds()),
        per_second=None if rose is None or is_mixed or not seconds else rose / seconds,
        flags=[tables.FLAG_KNOWN_WRONG] if row["known_wrong"] else [],
        unknown_us=max((one.unknown_us for one in own), default=None) if of_source else None,
    )


def mean(row: Row) -> float | None:
    """Return the mean of a gauge over time, or of the brokers' total if there is one."""
    if row["value_seconds"] is None:
        return None
    return seconds_mean(row) if row.get("max_total") else per_second(row, "series_seen_us")
