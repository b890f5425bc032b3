"""Coverage: expected and observed time of each family of each source, and its gaps."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from math import ceil
from operator import itemgetter
from typing import Annotated, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import families
from lakehouse.core.periods import iso, micros, touching
from lakehouse.engines.gold_reader import Row, is_same
from lakehouse.engines.relation import is_one_of
from lakehouse.report.facts.fields import SOURCE, UNKNOWN, Means, Question
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections.min_isr import COUNTED_BY_BROKER
from lakehouse.report.figures import longest_floor_us
from lakehouse.slo.trends import NO_WEEKS, Weeks
from lakehouse.tables.gold import BEYOND, IN_THE_FUTURE

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
    read="any",
    gold=("readings",),
    # They determine the expected time.
    shows=("kafka.cluster.node.fenced", "kafka.topic.remote_storage_enabled"),
)
