"""The evidence of a story, read from gold, and the report's decision on each of its metrics."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import (
    GROUP_LAG,
    PARTITION_LAG,
    UNAVAILABLE,
    Watched,
    families,
    is_of_partitions,
    roles_of,
)
from lakehouse.core.periods import Period, Span, iso, length, overlap
from lakehouse.core.subjects import SUBJECT_COLUMNS, Subject
from lakehouse.engines.gold_reader import Row, is_same
from lakehouse.engines.relation import is_one_of, text
from lakehouse.explain.intervals import Attempt, Total
from lakehouse.gold import incidents
from lakehouse.gold.incidents import Incident
from lakehouse.report import evidence as decisions
from lakehouse.report.facts import fields
from lakehouse.report.facts.gold import CHANGE, Gold
from lakehouse.report.facts.sections.monitoring import ANY_FAMILY
from lakehouse.slo.sla_statement import Statement, Times
from lakehouse.tables.agent_names import role_of

MOST: Final = 50_000
"""Maximum number of rows of one kind in a story; with more it ends early, at ``until``."""

OF_SOURCES: Final = (
    "agent_start", "source_restart", "version_change", "clock_step", "batch_dropped",
    "batch_refused", "journal_unreadable", "lake_lost_commits", "lake_replaced", "spool_damaged",
    "spool_restored", "spool_tail_lost", "spool_unwritable", "agent_crashed", "family_coarsened",
    "family_restored",
)  # fmt: skip
"""Changes of sources and their agents; all others are changes of a subject itself."""


class Scope(NamedTuple):
    """The subject of a story, its period and its objectives; instants in microseconds.

    Attributes:
        subject: A row of gold/subjects, or a partition of a topic.
        period: Whole windows.
        window_us: Length of a window.
        now_us: The present; nothing is expected later.
        watched: The metrics of the story.
        life: Active period of the subject within the period; None: it did not exist.
        lives: Expected time within the period of each source that may report it.
        statements: Attainments of its objectives. A partition has the statements on its topic.
    """

    subject: Subject
    period: Period
    window_us: int
    now_us: int
    watched: Sequence[Watched]
    life: Span | None
    lives: Mapping[str, Span]
    statements: Sequence[Statement]


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
    bad = incidents.joined(gold.engine, gold.whole(tables.INCIDENTS), where)
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


_OTHER: Final = "other"
"""Placeholder for all families that the story does not use."""

_READS: Final = ("incidents", "lost_offsets", "sources")
"""Tables of gold that a story reads."""

_IS_TIERED: Final = "kafka.topic.remote_storage_enabled"
_OF_TIERS: Final = ("tiered", "remote_log")
"""Families of metrics that only topics with remote storage have."""

_READ_WITH: Final = {PARTITION_LAG: GROUP_LAG}
"""Metrics that agents report above a threshold only, each with a metric that is always reported."""


def answers(
    scope: Scope, evidence: Evidence, bad: Collection[str], min_coverage: float
) -> list[dict[str, Any]]:
    """Return the state of each watched metric, and the observed time that it rests on.

    Args:
        scope: The subject, its period and its metrics.
        evidence: Attempts to read its sources.
        bad: The metrics with a bad interval.
        min_coverage: Minimum coverage for a good answer, percent.
    """
    facts = {
        "from": iso(scope.period.span[0]),
        "to": iso(scope.period.span[1]),
        "min_coverage_percent": min_coverage,
        "coverage": _coverage(scope, evidence),
        "objectives": [_objective(one, scope) for one in scope.statements],
        "collected": evidence.collected,
        "incomplete": evidence.incomplete,
    }
    return [_answer(facts, scope.subject, one, is_bad=one.metric in bad) for one in scope.watched]


def _answer(
    facts: dict[str, Any], subject: Subject, watched: Watched, *, is_bad: bool
) -> dict[str, Any]:
    metric = _READ_WITH.get(watched.metric, watched.names_in_bronze[0])
    derived = [UNAVAILABLE] if is_of_partitions(metric) else []
    # Families of a metric in the lake's own catalogue are not known here.
    read = metric if watched.families else "any"
    # Rows of these metrics are bad in a story, and no row means good.
    judged = (watched.metric, metric, *derived)
    question = fields.Question(watched.metric, read, gold=_READS, judged=judged)
    found = decisions.decide(facts, question, bad=is_bad)
    if not is_bad and (why := _inapplicable(subject, watched.metric)):
        found = found._replace(state="not_applicable", reason=f"Not applicable: {why}.")
    names = ("state", "observed_percent", "expected_us", "observed_us", "reason")
    return {
        "metric": watched.metric,
        "title": watched.title,
        **{name: getattr(found, name) for name in names},
    }


def _inapplicable(subject: Subject, metric: str) -> str:
    """Return why a subject does not have a metric; empty: it has it, or that is not known."""
    is_of_tiers = bool(read_by := families(metric)) and read_by.issubset(_OF_TIERS)
    if is_of_tiers and subject.attributes.get(_IS_TIERED) == 0:
        return "the topic does not have remote storage enabled"
    roles = roles_of(metric)
    if roles and subject.kind == "source" and role_of(subject.source) not in roles:
        return f"the source is not a {' or '.join(sorted(roles))}"
    return ""


def _coverage(scope: Scope, evidence: Evidence) -> dict[str, Any]:
    """Return the coverage of the subject's sources in its active period."""
    sources: list[dict[str, Any]] = []
    for source, life in scope.lives.items():
        if (lived := overlap(life, scope.life) if scope.life else None) is None:
            continue
        read = {one.family for one in evidence.attempts if one.source == source}
        # A source that was read for other families only has no attempt here.
        others = {_OTHER if source in evidence.read else ANY_FAMILY}
        for family in sorted(read or others):
            observed = (
                lived[1] - lived[0] if family == _OTHER else _read(evidence, source, family, lived)
            )
            sources.append({
                "source": source,
                "family": family,
                "expected_us": lived[1] - lived[0],
                "observed_us": observed,
            })  # fmt: skip
    total, seen = (sum(one[key] for one in sources) for key in ("expected_us", "observed_us"))
    return {"sources": sources, "expected_us": total, "observed_us": seen}


def _read(evidence: Evidence, source: str, family: str, life: Span) -> int:
    spans = (
        overlap((one.start, one.end), life)
        for one in evidence.attempts
        if (one.source, one.family, one.outcome) == (source, family, "ok")
    )
    return length(span for span in spans if span)


def _objective(statement: Any, scope: Scope) -> dict[str, Any]:
    subject = {"expected_us": statement.whole_us, "unknown_us": statement.unknown_us}
    period = {"from": iso(scope.period.span[0]), "to": iso(scope.period.span[1])}
    return {"metrics": list(statement.objective.metrics), **period, "subjects": [subject]}
