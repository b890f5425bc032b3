"""What a story is made of: gold's rows, and events, of the subject and of who may report it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lakehouse import tables
from lakehouse.errors import TableNotFoundError
from lakehouse.explain.intervals import Stretch
from lakehouse.explain.runs import bad_stretches, of_subject, stretches
from lakehouse.explain.silence import Attempt
from lakehouse.gold_rows import Row, is_one_of, is_same
from lakehouse.report.gather import EVENT
from lakehouse.sla import Times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.explain.subject import Asked
    from lakehouse.explain.watched import Watched
    from lakehouse.report.gather import Gold


MOST: Final = 50_000
"""Rows of one kind that a story takes; it says where it ends for want of more."""

OF_SOURCES: Final = (
    "agent_start", "source_restart", "version_change", "clock_step", "batch_dropped",
    "spool_damaged", "spool_tail_lost", "spool_restored",
)  # fmt: skip
"""Events of whoever tells of a subject; all others are of a subject itself."""


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
    bad = f"{bad_stretches(asked, watched)} LIMIT {MOST + 1}"
    rows = gold.ask(bad, rows=gold.whole(tables.INCIDENTS))
    until = rows[MOST]["s"] if len(rows) > MOST else None
    told = [
        Stretch(r["metric"], r["part"], r["source"], r["lane"], r["s"], r["e"], r["worst"],
                r["total"])
        for r in rows[:MOST]
    ]  # fmt: skip
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
        f"WHERE {is_one_of('r.metric', metrics)} AND {of_subject(asked)} AND r.max_total > 0",
        rows=gold.finest(tables.TOPICS),
    )
    found: dict[str, list[tuple[int, int, float]]] = {}
    for row in rows:
        found.setdefault(row["metric"], []).append((row["at"], row["at"] + size, row["max_total"]))
    return found


def _attempts(gold: Gold, asked: Asked, watched: Sequence[Watched]) -> list[Attempt]:
    """Of every source, for each may have had something to report; of a source its own alone."""
    where = "r.outcome <> 'skipped'"
    if asked.kind == "source":
        where += f" AND {of_subject(asked)}"
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
        stretches(pieces, ("source", "family", "outcome"), figures),
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
    return f"{of_sources} OR ({of_subject(asked)})"


def _times(
    gold: Gold, asked: Asked
) -> tuple[dict[str, dict[int, Times]], dict[str, dict[int, int]]]:
    """Good and bad time per objective and window, of a partition its topic's; and time seen."""
    names = ("topic", "user", "client_id", "group", "source")
    whose = " AND ".join(is_same(f"r.{name}", getattr(asked.subject, name)) for name in names)
    times = ", ".join(f"r.{name}" for name in Times._fields)
    rows = gold.ask(
        f"SELECT r.objective, r.window AS at, {times}, coalesce(r.seen_us, r.good_us) AS seen "
        f"FROM {{rows}} r WHERE {whose}",
        rows=gold.finest(tables.SLI),
    )
    found: dict[str, dict[int, Times]] = {}
    wholly: dict[str, dict[int, int]] = {}
    for row in rows:
        known = Times(*(row[name] for name in Times._fields))
        found.setdefault(row["objective"], {})[row["at"]] = known
        wholly.setdefault(row["objective"], {})[row["at"]] = row["seen"]
    return found, wholly
