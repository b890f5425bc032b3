"""What a story is made of: gold's rows, and events, of the subject and of who may report it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lakehouse import tables
from lakehouse.errors import TableNotFoundError
from lakehouse.explain.intervals import Attempt, Stretch
from lakehouse.gold_rows import EXACT, Row, is_one_of, is_same, text
from lakehouse.report.gather import EVENT
from lakehouse.sla import Times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.explain.subject import Asked
    from lakehouse.metrics import Watched
    from lakehouse.report.gather import Gold


MOST: Final = 50_000
"""Rows of one kind that a story takes; it says where it ends for want of more."""

OF_SOURCES: Final = (
    "agent_start", "source_restart", "version_change", "clock_step", "batch_dropped",
    "batch_refused", "journal_unreadable", "lake_lost_commits", "spool_damaged", "spool_restored",
    "spool_tail_lost", "spool_unwritable", "agent_crashed", "family_coarsened", "family_restored",
)  # fmt: skip
"""Events of whoever tells of a subject; all others are of a subject itself."""

_PARTS: Final = {
    "topic": "CAST(r.partition AS STRING)",
    "partition": "CAST(r.partition AS STRING)",
    "group": "concat_ws('/', r.topic, CAST(r.partition AS STRING))",
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a story is made of; instants in microseconds.

    Attributes:
        stretches: When the subject was bad.
        totals: By metric, windows with the greatest total of all brokers.
        attempts: What became of attempts to read whoever may tell of it.
        read: Sources of which anything was read, be it of no use here.
        events: What was noticed of it and of its sources, oldest first.
        times: By objective, the windows with good and bad time.
        until: Where the story ends, for there is too much to tell; None: it is whole.
        seen: By objective, how long a topic was wholly seen in windows, good or bad, microseconds.
    """

    stretches: list[Stretch]
    totals: dict[str, list[tuple[int, int, float]]]
    attempts: list[Attempt]
    read: frozenset[str]
    events: list[Row]
    times: dict[str, dict[int, Times]]
    until: int | None = None
    seen: dict[str, dict[int, int]] = field(default_factory=dict)


def gather(gold: Gold, asked: Asked, watched: Sequence[Watched]) -> Evidence:
    """The evidence of a subject in the period of ``gold``.

    Raises:
        TableNotFoundError: The lake lacks gold.
    """
    bad = f"{_bad_stretches(asked, watched)} LIMIT {MOST + 1}"
    rows = gold.ask(bad, rows=gold.whole(tables.INCIDENTS))
    until = rows[MOST]["s"] if len(rows) > MOST else None
    told = [Stretch(*row.values()) for row in rows[:MOST]]
    times, seen = _times(gold, asked)
    return Evidence(
        told,
        _totals(gold, asked, watched),
        _attempts(gold, asked, watched),
        frozenset(row["source"] for row in gold.sums(tables.COVERAGE)),
        _events(gold, asked),
        times,
        until,
        seen,
    )


def _totals(
    gold: Gold, asked: Asked, watched: Sequence[Watched]
) -> dict[str, list[tuple[int, int, float]]]:
    metrics = [one.metric for one in watched if one.worst == "total"]
    if not metrics:
        return {}
    size = gold.window_seconds * 1_000_000
    rows = gold.ask(
        "SELECT r.metric, r.window AS at, r.max_total FROM {rows} r "
        f"WHERE {is_one_of('r.metric', metrics)} AND {_of_subject(asked)} AND r.max_total > 0",
        rows=gold.finest(tables.TOPICS),
    )
    found: defaultdict[str, list[tuple[int, int, float]]] = defaultdict(list)
    for row in rows:
        found[row["metric"]].append((row["at"], row["at"] + size, row["max_total"]))
    return found


def _attempts(gold: Gold, asked: Asked, watched: Sequence[Watched]) -> list[Attempt]:
    """Of every source, for each may have had something to report; of a source its own alone."""
    where = "r.outcome <> 'skipped'"
    if asked.kind == "source":
        where += f" AND {_of_subject(asked)}"
    elif all(one.families for one in watched):
        families = sorted({family for one in watched for family in one.families})
        where += f" AND {is_one_of('r.family', families)}"
    pieces = f"SELECT r.*, r.start AS s, r.end AS e FROM {{rows}} r WHERE {where}"
    figures = (
        # The first error: instants of as many digits are in the order of their texts.
        "substr(min(lpad(CAST(n.s AS STRING), 20, '0') || n.error), 21) AS error, "
        "max(n.interval_us) AS interval_us, "
        "CAST(ceil(max(n.seconds_max) * 1000000) AS BIGINT) AS slowest_us"
    )
    rows = gold.ask(
        _stretches(pieces, ("source", "family", "outcome"), figures),
        rows=gold.whole(tables.READINGS),
    )
    names = ("source", "family", "s", "e", "outcome", "error", "interval_us", "slowest_us")
    return [Attempt(*(row[name] for name in names)) for row in rows]


def _events(gold: Gold, asked: Asked) -> list[Row]:
    """What was noticed of the subject, and of the sources that may report it."""
    try:
        rows = gold.hours(tables.EVENTS)
    except TableNotFoundError:
        return []
    return gold.ask(
        f"SELECT {EVENT} FROM {{rows}} r WHERE {_noticed_of(asked)} "
        f"ORDER BY r.at, r.source, {EVENT} LIMIT {MOST}",
        rows=rows,
    )


def _noticed_of(asked: Asked) -> str:
    """The condition that an event is of the subject, or of a source that may report it."""
    subject, of_sources = asked.subject, is_one_of("r.kind", OF_SOURCES)
    if asked.kind == "source":
        return is_same("r.source", subject.source)
    if asked.kind == "client":
        # A quota of all users or clients is this client's as well.
        user, client_id = (
            f"(r.{name} IS NULL OR {is_same(f'r.{name}', getattr(subject, name))})"
            for name in ("user", "client_id")
        )
        return f"{of_sources} OR (r.kind = 'quota_change' AND {user} AND {client_id})"
    if asked.kind == "partition":
        of_it = f"(r.partition IS NULL OR r.partition = {asked.partition:d})"
        return f"{of_sources} OR ({is_same('r.topic', subject.topic)} AND {of_it})"
    return f"{of_sources} OR ({_of_subject(asked)})"


def _times(
    gold: Gold, asked: Asked
) -> tuple[dict[str, dict[int, Times]], dict[str, dict[int, int]]]:
    """Good and bad time per objective and window, of a partition its topic's; and time seen."""
    names = asked.subject.names.items()
    whose = " AND ".join(is_same(f"r.{name}", value) for name, value in names)
    times = ", ".join(f"r.{name}" for name in Times._fields)
    rows = gold.ask(
        f"SELECT r.objective, r.window AS at, {times}, coalesce(r.seen_us, r.good_us) AS seen "
        f"FROM {{rows}} r WHERE {whose}",
        rows=gold.finest(tables.SLI),
    )
    found: defaultdict[str, dict[int, Times]] = defaultdict(dict)
    wholly: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for objective, at, *known, seen in map(dict.values, rows):
        found[objective][at], wholly[objective][at] = Times(*known), seen
    return found, wholly


def _bad_stretches(asked: Asked, watched: Sequence[Watched]) -> str:
    """Rows of gold/incidents as stretches (``s`` to ``e``) of series and lanes, oldest first."""
    metrics = sorted({metric for one in watched for metric in one.told_as})
    counters = sorted({name for one in watched if one.is_counter for name in one.told_as})
    part = _PARTS.get(asked.kind, "CAST(NULL AS STRING)")
    pieces = (
        f"SELECT r.metric AS metric, {part} AS part, r.source AS source, l.lane AS lane, "
        "r.worst AS worst, r.total AS total, "
        "CASE WHEN l.lane = 'may' THEN r.start - r.lead_us ELSE r.start END AS s, "
        "CASE WHEN l.lane = 'sure' THEN r.end - r.tail_us ELSE r.end END AS e "
        "FROM {rows} r CROSS JOIN "
        "(SELECT 'seen' AS lane UNION ALL SELECT 'sure' AS lane UNION ALL SELECT 'may' AS lane) l "
        f"WHERE {is_one_of('r.metric', metrics)} AND {_of_subject(asked)} "
        f"AND (l.lane = 'seen' OR NOT ({is_one_of('r.metric', counters)}))"
    )
    total = f"CAST(sum(CAST(n.total AS {EXACT})) AS DOUBLE) AS total"
    keys = ("metric", "part", "source", "lane")
    found = _stretches(pieces, keys, f"max(n.worst) AS worst, {total}")
    order = ", ".join(f"n.{name}" for name in ("s", "e", *keys))
    return f"SELECT n.* FROM ({found}) n ORDER BY {order}"


def _stretches(pieces: str, keys: Sequence[str], figures: str) -> str:
    """Pieces from ``s`` to ``e`` of the same keys that touch, as one.

    Args:
        pieces: A SELECT with the keys, ``s`` and ``e``.
        keys: What distinguishes series.
        figures: What is said of all pieces ``n`` of a stretch.
    """
    series, by = (", ".join(f"{alias}.{name}" for name in keys) for alias in "pn")
    before = f"OVER (PARTITION BY {series} ORDER BY p.s, p.e ROWS BETWEEN UNBOUNDED PRECEDING AND"
    marked = (
        f"SELECT p.*, CASE WHEN p.s <= max(p.e) {before} 1 PRECEDING) THEN 0 ELSE 1 END AS is_new "
        f"FROM ({pieces}) p WHERE p.s < p.e"
    )
    numbered = f"SELECT p.*, sum(p.is_new) {before} CURRENT ROW) AS number FROM ({marked}) p"
    return (
        f"SELECT {by}, min(n.s) AS s, max(n.e) AS e, {figures} "
        f"FROM ({numbered}) n GROUP BY {by}, n.number"
    )


def _of_subject(asked: Asked) -> str:
    """The condition that a row ``r`` is of the subject."""
    subject = asked.subject
    if asked.kind == "client":
        user, client_id = is_same("r.user", subject.user), is_same("r.client_id", subject.client_id)
        return f"{user} AND {client_id} AND r.topic IS NULL"
    if asked.kind == "partition":
        return f"r.topic = {text(str(subject.topic))} AND r.partition = {asked.partition:d}"
    return f"r.{asked.kind} = {text(str(getattr(subject, asked.kind)))}"
