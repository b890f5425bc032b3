"""The evidence of a story: rows of gold on a subject, and what follows from them.

Bad intervals with bounds, gaps of sources and unknown time are plain functions of these rows.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, Self

from lakehouse import tables
from lakehouse.core.metrics import Watched
from lakehouse.core.periods import Span, length, overlap, shared, union, without
from lakehouse.core.subjects import SUBJECT_COLUMNS, Subject
from lakehouse.engines.gold_reader import Row, is_same
from lakehouse.engines.relation import is_one_of, text
from lakehouse.gold.incidents import Incident, joined
from lakehouse.report.facts.events.event_uses import most_at_once
from lakehouse.report.facts.gold import CHANGE, Gold
from lakehouse.report.facts.sections.monitoring import ANY_FAMILY
from lakehouse.slo.sla_statement import Times

MOST: Final = 50_000
"""Maximum number of rows of one kind in a story; with more it ends early, at ``until``."""

OF_SOURCES: Final = (
    "agent_start", "source_restart", "version_change", "clock_step", "batch_dropped",
    "batch_refused", "journal_unreadable", "lake_lost_commits", "lake_replaced", "spool_damaged",
    "spool_restored", "spool_tail_lost", "spool_unwritable", "agent_crashed", "family_coarsened",
    "family_restored",
)  # fmt: skip
"""Changes of sources and their agents; all others are changes of a subject itself."""


class Attempt(NamedTuple):
    """Attempts of one outcome to read a family of a source; microseconds."""

    source: str
    family: str
    start: int
    end: int
    outcome: str
    error: str | None = None
    interval_us: int = 0
    slowest_us: int = 0


class Total(NamedTuple):
    """A window, and the greatest sum over sources at one instant in it; microseconds."""

    metric: str
    start: int
    end: int
    worst: float


class Evidence(NamedTuple):
    """The content of a story; instants in microseconds.

    Attributes:
        incidents: Incidents of the subject, oldest first.
        totals: Windows with the greatest total of all brokers.
        attempts: Attempts to read the sources that may report the subject.
        read: Sources with a successful reading of any family.
        changes: Changes of the subject and of its sources, oldest first.
        times: Good and bad time by objective and window. A partition has the times of its topic,
            and all observed time that is not bad is good: while another partition was bad, it
            may have been unobserved.
        until: The end of a story with too many rows; None: it is complete.
        collected: The metrics with rows in gold in the period; None: not looked up.
        incomplete: Hours in which a table of gold is incomplete, as in report.json.
    """

    incidents: list[Incident]
    totals: list[Total]
    attempts: list[Attempt]
    read: frozenset[str]
    changes: list[Row]
    times: dict[str, dict[int, Times]]
    until: int | None = None
    collected: frozenset[str] | None = None
    incomplete: Sequence[Row] = ()


def gather(
    gold: Gold, subject: Subject, watched: Sequence[Watched], collected: frozenset[str]
) -> Evidence:
    """Return the evidence on a subject in the period of ``gold``.

    Raises:
        TableNotFoundError: The lake lacks gold.
    """
    metrics = sorted({metric for one in watched for metric in one.names_in_bronze})
    where = f"{is_one_of('r.metric', metrics)} AND {_of_subject(subject)}"
    bad = joined(gold.engine, gold.whole(tables.INCIDENTS), where)
    until = bad[MOST].start if len(bad) > MOST else None
    attempts = _attempts(gold, subject, watched)
    read = frozenset(row["source"] for row in gold.sums(tables.COVERAGE))
    changes, times = _changes(gold, subject), _times(gold, subject)
    incomplete = [one.to_json() for one in gold.incomplete]
    totals = _totals(gold, subject, watched)
    own = bad[:MOST], totals, attempts, read, changes, times
    return Evidence(*own, until, collected, incomplete)


def _totals(gold: Gold, subject: Subject, watched: Sequence[Watched]) -> list[Total]:
    metrics = [one.metric for one in watched if one.worst == "total"]
    if not metrics:
        return []
    span = f"r.window_start AS s, r.window_start + {gold.window_seconds * 1_000_000} AS e"
    where = f"{is_one_of('r.metric', metrics)} AND {_of_subject(subject)} AND r.max_total > 0"
    sql = f"SELECT r.metric AS metric, {span}, r.max_total AS worst FROM {{rows}} r WHERE {where}"
    rows = gold.ask(sql, rows=gold.finest(tables.TOPICS))
    return [Total(*row.values()) for row in rows]


def _attempts(gold: Gold, subject: Subject, watched: Sequence[Watched]) -> list[Attempt]:
    """Return attempts to read every source that may report the subject, or the source itself."""
    where = "r.outcome <> 'skipped'"
    if subject.kind == "source":
        where += f" AND {_of_subject(subject)}"
    elif all(one.families for one in watched):
        families = sorted({family for one in watched for family in one.families})
        where += f" AND {is_one_of('r.family', families)}"
    series = "r.source, r.family, r.outcome"
    along = f"PARTITION BY {series} ORDER BY r.started_at, r.ended_at"
    before = f"OVER ({along} ROWS BETWEEN UNBOUNDED PRECEDING"
    marked = (
        f"SELECT r.*, CASE WHEN r.started_at <= max(r.ended_at) {before} AND 1 PRECEDING) "
        "THEN 0 ELSE 1 END AS is_new "
        f"FROM {{rows}} r WHERE r.started_at < r.ended_at AND {where}"
    )
    rows = gold.ask(
        # The first error: padded instants sort as texts.
        f"SELECT {series}, min(r.started_at) AS s, max(r.ended_at) AS e, "
        "substr(min(lpad(CAST(r.started_at AS STRING), 20, '0') || r.error), 21) AS error, "
        "max(r.interval_us) AS interval_us, "
        "CAST(ceil(max(r.seconds_max) * 1000000) AS BIGINT) AS slowest_us "
        f"FROM (SELECT r.*, sum(r.is_new) {before} AND CURRENT ROW) AS number FROM ({marked}) r) r "
        f"GROUP BY {series}, r.number",
        rows=gold.whole(tables.READINGS),
    )
    names = ("source", "family", "s", "e", "outcome", "error", "interval_us", "slowest_us")
    return [Attempt(*(row[name] for name in names)) for row in rows]


def _changes(gold: Gold, subject: Subject) -> list[Row]:
    """Return changes of the subject, and of the sources that may report it."""
    rows = gold.events
    if rows is None:
        return []
    return gold.ask(
        f"SELECT {CHANGE} FROM {{rows}} r WHERE {_of_change(subject)} "
        f"ORDER BY r.at, r.source, {CHANGE} LIMIT {MOST}",
        rows=rows,
    )


def _of_change(subject: Subject) -> str:
    """Return the SQL condition of changes of the subject, or of sources that may report it."""
    of_sources = is_one_of("r.kind", OF_SOURCES)
    if subject.kind == "source":
        return is_same("r.source", subject.source)
    if subject.kind == "client":
        # A quota of all users or clients applies to this client as well.
        own = ((f"r.{name}", subject.names[name]) for name in ("user", "client_id"))
        of_own = " AND ".join(f"({name} IS NULL OR {is_same(name, value)})" for name, value in own)
        return f"{of_sources} OR (r.kind = 'quota_change' AND {of_own})"
    if subject.kind == "partition":
        partition = f"(r.partition IS NULL OR r.partition = {subject.partition:d})"
        return f"{of_sources} OR ({is_same('r.topic', subject.topic)} AND {partition})"
    name = is_same(f"r.{subject.kind}", getattr(subject, subject.kind))
    return f"{of_sources} OR ({name})"


def _times(gold: Gold, subject: Subject) -> dict[str, dict[int, Times]]:
    """Return good and bad time by objective and window, as in ``Evidence``."""
    own = zip(SUBJECT_COLUMNS, subject.key, strict=True)
    condition = " AND ".join(is_same(f"r.{name}", value) for name, value in own)
    columns = {name: f"r.{name}" for name in Times._fields}
    if subject.kind == "partition":
        columns["good_us"] = "coalesce(r.seen_us, r.good_us) - r.bad_us"
    times = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    sql = f"SELECT r.objective, r.window_start AS at, {times} FROM {{rows}} r WHERE {condition}"
    by_objective: defaultdict[str, dict[int, Times]] = defaultdict(dict)
    for objective, at, *values in map(dict.values, gold.ask(sql, rows=gold.finest(tables.SLI))):
        by_objective[objective][at] = Times(*values)
    return by_objective


def _of_subject(subject: Subject) -> str:
    """Return the SQL condition that a row ``r`` of gold is of the subject."""
    if subject.kind == "client":
        user = is_same("r.user_name", subject.user)
        return f"{user} AND {is_same('r.client_id', subject.client_id)} AND r.topic IS NULL"
    if subject.kind == "partition":
        return f"r.topic = {text(str(subject.topic))} AND r.partition_id = {subject.partition:d}"
    column = "consumer_group" if subject.kind == "group" else subject.kind
    return f"r.{column} = {text(str(getattr(subject, subject.kind)))}"


class Interval(NamedTuple):
    """A span in which a subject was bad; microseconds.

    Attributes:
        start: First instant at which a source reported it.
        end: End of the last reading that reported it.
        lead_us: Time before start in which it may already have been bad.
        tail_us: Time before end in which it may have been good again.
        sure_us: Time that was bad for certain.
        worst: Greatest value, at least and at most.
        parts: The parts that were bad in it.
        sources: The sources that reported it.
    """

    start: int
    end: int
    lead_us: int
    tail_us: int
    sure_us: int
    worst: tuple[float, float]
    parts: tuple[str, ...]
    sources: tuple[str, ...]


def intervals(
    watched: Watched, incidents: Iterable[Incident], totals: Iterable[Total] = ()
) -> list[Interval]:
    """Return the bad intervals of one metric, oldest first: unions of incidents over parts.

    Args:
        watched: The metric.
        incidents: Incidents of the subject, of any metric.
        totals: Windows of the subject, of any metric.
    """
    own = [one for one in incidents if one.metric in watched.names_in_bronze]
    sums = [one for one in totals if one.metric in watched.names_in_bronze]
    spans = union(one.span for one in own)
    every = [*zip(spans, shared(spans, own), shared(spans, sums), strict=True)]
    found: list[Interval] = []
    earliest = spans[-1][1] if spans else 0
    for place, (span, parts, of_all) in reversed([*enumerate(every)]):
        # A later part may have been bad since before this interval, or since before the last.
        earliest = min(earliest, *(one.start - one.lead_us for one in parts))
        may_start = max(earliest, spans[place - 1][1] if place else earliest)
        found.append(_interval(watched, span, parts, [one.worst for one in of_all], may_start))
    return found[::-1]


def _interval(
    watched: Watched, span: Span, parts: Sequence[Incident], totals: Sequence[float], may_start: int
) -> Interval:
    """Return the interval of some incidents. It may have started at ``may_start``."""
    start, end = span
    tails = [0 if watched.is_counter else one.tail_us for one in parts]
    certain = [(one.start, one.end - tail) for one, tail in zip(parts, tails, strict=True)]
    return Interval(
        start,
        end,
        lead_us=0 if watched.is_counter else max(0, start - may_start),
        tail_us=end - max(last for _, last in certain),
        sure_us=length(certain),
        worst=_worst(watched, parts, totals),
        parts=_in_order(name for one in parts if (name := _part(one)) is not None),
        sources=_in_order(source for one in parts for source in one.sources),
    )


def _part(one: Incident) -> str | None:
    """Return the bad part of a subject: a partition, for a group a partition of a topic."""
    if one.partition is None:
        return None
    return str(one.partition) if one.group is None else f"{one.topic}/{one.partition}"


def _worst(
    watched: Watched, parts: Sequence[Incident], totals: Sequence[float]
) -> tuple[float, float]:
    if watched.worst == "parts":
        most = float(most_at_once(parts))
        return most, most
    greatest = max(one.worst for one in parts)
    if watched.worst == "most":
        return greatest, greatest
    if watched.is_counter:
        names = watched.names_in_bronze
        sums = [sum(one.total for one in parts if one.metric == name) for name in names]
        return sums[0], sums[-1]
    # Peaks of several brokers need not be simultaneous, and a window can exceed the interval.
    most = sum(one.worst * len(one.sources) for one in parts)
    return greatest, max(greatest, min(most, max(totals, default=most)))


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return names, each once, broker-2 before broker-10."""
    padded = partial(re.sub, "[0-9]+", lambda digits: digits[0].zfill(20))
    return tuple(sorted(set(names), key=padded))


class Gap(NamedTuple):
    """Time in which a family of a source was not read; microseconds.

    Attributes:
        outcome: The outcome of the attempts; None: none was reported.
        error: The first error.
    """

    source: str
    family: str
    start: int
    end: int
    outcome: str | None = None
    error: str | None = None

    def within(self, span: Span) -> Self | None:
        """Return the part of it in a span; None without one."""
        common = overlap((self.start, self.end), span)
        return common and self._replace(start=common[0], end=common[1])


def gaps_of(
    lives: Mapping[str, Span], attempts: Iterable[Attempt], otherwise_read: Collection[str] = ()
) -> list[Gap]:
    """Return all time in which sources were expected to be read and were not, oldest first.

    Args:
        lives: The span in which each source was expected to be read.
        attempts: Reported attempts; successful ones of one family do not overlap.
        otherwise_read: Sources that were read for families without attempts here.
    """
    by_family: defaultdict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        by_family[attempt.source, attempt.family].append(attempt)
    read = {source for source, _ in by_family} | set(otherwise_read)
    result = [Gap(s, ANY_FAMILY, *life) for s, life in lives.items() if s not in read]
    for (source, family), of_family in by_family.items():
        if source in lives:
            good = [(one.start, one.end) for one in of_family if one.outcome == "ok"]
            failed = [one for one in of_family if one.outcome != "ok"]
            for span in without(lives[source], good):
                result += _by_outcome(source, family, span, failed)
    return sorted(result, key=lambda one: (one.start, one.source, one.family))


def _by_outcome(source: str, family: str, span: Span, failed: Sequence[Attempt]) -> list[Gap]:
    """Return a span without a reading, split by the outcomes of the attempts in it."""
    parts: list[Gap] = []
    for attempt in sorted(failed, key=lambda one: (one.start, one.end)):
        common = overlap((attempt.start, attempt.end), span)
        if common is None:
            continue
        last = parts[-1] if parts else None
        if last and last.outcome == attempt.outcome and common[0] <= last.end:
            end = max(last.end, common[1])
            parts[-1] = last._replace(end=end, error=last.error or attempt.error)
        else:
            parts.append(Gap(source, family, *common, attempt.outcome, attempt.error))
    explained = [(one.start, one.end) for one in parts]
    return parts + [Gap(source, family, *rest) for rest in without(span, explained)]


def unknown_spans(
    life: Span, window_us: int, known: Mapping[int, int]
) -> list[tuple[int, int, int]]:
    """Return spans of neighbouring windows with unknown time, each with that time.

    Args:
        life: The span in which the subject was expected.
        window_us: Length of a window.
        known: Good and bad time by the start of a window.
    """
    spans: list[tuple[int, int, int]] = []
    for window in range(life[0] // window_us * window_us, life[1], window_us):
        start, end = max(window, life[0]), min(window + window_us, life[1])
        left = max(0, end - start - known.get(window, 0))
        if left and spans and spans[-1][1] == start:
            first, _, before = spans.pop()
            spans.append((first, end, before + left))
        elif left:
            spans.append((start, end, left))
    return spans
