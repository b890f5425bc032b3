"""Metrics that no other section shows: of an operator's own catalogue, and of further families.

Each is shown for its finest subject in gold: a topic, a client, a group, a source, or a single
series of a source with labels. Metrics of other sections are in ``shows`` of their questions.
"""

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Annotated, Final, NamedTuple

from lakehouse import tables
from lakehouse.core import subjects
from lakehouse.core.metrics import COVERAGE, UNAVAILABLE, Definition, known, shipped
from lakehouse.core.objective import Objective
from lakehouse.engines.gold_reader import Row, own_definitions, summed
from lakehouse.engines.relation import is_one_of, text
from lakehouse.report.facts import fields
from lakehouse.report.facts.fields import Bounds, Known, Means
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.gold_figures import counted, duration, per_second, seconds_mean
from lakehouse.report.facts.sections.coverage import Coverage, SourceCoverage

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
