"""What a story is made of, read from the lake: of bronze no more than the subject's own rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import tables
from lakehouse.errors import TableNotFoundError
from lakehouse.explain.intervals import Stretch
from lakehouse.explain.runs import bad_runs, of_subject, stretches
from lakehouse.explain.silence import Attempt
from lakehouse.sla import Times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

    from lakehouse.explain.subject import Asked
    from lakehouse.explain.watched import Watched
    from lakehouse.report.gather import Gold

Row = dict[str, Any]

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
    runs = bad_runs(gold, asked, watched).orderBy("s").limit(MOST + 1).collect()
    until = runs[MOST]["s"] if len(runs) > MOST else None
    told = [
        Stretch(r["metric"], r["part"], r["source"], r["lane"], r["s"], r["e"], r["worst"],
                r["total"])
        for r in runs[:MOST]
    ]  # fmt: skip
    times, seen = _times(gold, asked)
    return Evidence(
        told,
        _totals(gold, asked, watched),
        _attempts(gold, asked, watched),
        frozenset(row["source"] for row in gold.sums(tables.COVERAGE, ("source",))),
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
    rows = gold.finest(tables.TOPICS).where(
        F.col("metric").isin(*metrics) & of_subject(asked) & (F.col("max_total") > 0)
    )
    found: dict[str, list[tuple[int, int, float]]] = {}
    for row in rows.select("metric", F.unix_micros("window").alias("at"), "max_total").collect():
        found.setdefault(row["metric"], []).append((row["at"], row["at"] + size, row["max_total"]))
    return found


def _attempts(gold: Gold, asked: Asked, watched: Sequence[Watched]) -> list[Attempt]:
    """Of every source, for each may have had something to tell; of a source its own alone."""
    rows = gold.bronze(tables.SCRAPES).withColumns(
        {"s": F.unix_micros("start"), "e": F.unix_micros("end")}
    )
    if asked.kind == "source":
        rows = rows.where(of_subject(asked))
    elif all(one.families for one in watched):
        families = sorted({family for one in watched for family in one.families})
        rows = rows.where(F.col("family").isin(*families))
    told = stretches(
        rows.where("outcome <> 'skipped'"),
        ("source", "family", "outcome"),
        error=F.min_by("error", "s"),
        interval_us=F.max("interval_us"),
        slowest_us=F.ceil(F.max("seconds_max") * 1_000_000).cast("bigint"),
    )
    names = ("source", "family", "s", "e", "outcome", "error", "interval_us", "slowest_us")
    ordered = told.select(*names)
    return [Attempt(*row) for row in ordered.collect()]


def _events(gold: Gold, asked: Asked) -> list[Row]:
    """What was noticed of the subject, and of the sources that may tell of it."""
    try:
        rows = lakes.read(gold.spark, gold.lake, tables.EVENTS)
    except TableNotFoundError:
        return []
    first, last = gold.period.start, gold.period.end
    found = rows.where(
        F.col("date").between(F.lit(first.date()), F.lit(last.date()))
        & (F.col("cluster") == gold.cluster)
        & (F.col("at") >= F.lit(first))
        & (F.col("at") < F.lit(last))
        & _noticed_of(asked)
    ).withColumn("at", F.unix_micros("at"))
    kept = found.drop("date", "cluster", "agent", "batch").orderBy("at", "source").limit(MOST)
    return [row.asDict() for row in kept.collect()]


def _noticed_of(asked: Asked) -> Column:
    """Whether an event is of the subject, or of a source that may tell of it."""
    subject, of_sources = asked.subject, F.col("kind").isin(*OF_SOURCES)
    if asked.kind == "source":
        return F.col("source").eqNullSafe(F.lit(subject.source))
    if asked.kind == "client":
        # A quota of all users or clients is this client's as well.
        user, client_id = (
            F.col(name).isNull() | F.col(name).eqNullSafe(getattr(subject, name))
            for name in ("user", "client_id")
        )
        return of_sources | ((F.col("kind") == "quota_change") & user & client_id)
    if asked.kind == "partition":
        of_it = F.col("partition").isNull() | (F.col("partition") == asked.partition)
        return of_sources | (F.col("topic").eqNullSafe(F.lit(subject.topic)) & of_it)
    return of_sources | of_subject(asked)


def _times(
    gold: Gold, asked: Asked
) -> tuple[dict[str, dict[int, Times]], dict[str, dict[int, int]]]:
    """Good and bad time per objective and window, of a partition its topic's; and time seen."""
    rows = gold.finest(tables.SLI)
    for name in ("topic", "user", "client_id", "group", "source"):
        rows = rows.where(F.col(f"`{name}`").eqNullSafe(getattr(asked.subject, name)))
    seen = F.coalesce("seen_us", "good_us")
    at = F.unix_micros("window").alias("at")
    found: dict[str, dict[int, Times]] = {}
    wholly: dict[str, dict[int, int]] = {}
    for row in rows.select("objective", at, *Times._fields, seen.alias("seen")).collect():
        found.setdefault(row["objective"], {})[row["at"]] = Times(*row[2:-1])
        wholly.setdefault(row["objective"], {})[row["at"]] = row["seen"]
    return found, wholly
