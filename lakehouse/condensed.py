"""Bronze in short, for a large stretch of a rollup: read once, and then by every table.

A gauge that has another value at each scrape brings thirty runs for each window. What gold asks of
them is when they begin and end, sums and extremes; so the runs of one series and window become one
row, unless somebody asks for the value at an instant (topics and clients, whose brokers are added
up). What is folded is told to be zero in each window again; that becomes one row an hour (see
``standing``). All other rows stay as they are. They are kept in a table of gold's, for a rollup
must work where nothing can be cached.

Where a partition's runs may overlap those of another source, or leave gaps, one row does not say
enough: the survey finds these, and their runs are added, marked ``loose``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import pieces, standing, survey, upkeep
from lakehouse.judgement import GREATEST, LONGEST_EDGE_US
from lakehouse.metrics import DESCRIBING, LEADERLESS, UNDER_MIN_ISR, flagged
from lakehouse.pieces import END, START, WINDOW
from lakehouse.tables import (
    CONDENSED,
    FLAG_DISTRIBUTION,
    FLAG_INCREASE,
    FLAG_KNOWN_WRONG,
    FLAG_NEXT_POSITIVE,
    FLAG_PREVIOUS_POSITIVE,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from lakehouse.bronze import Bronze
    from lakehouse.lake import Lake

_SERIES: Final = (
    "cluster", "source", "metric", "topic", "partition", "group", "agent", "members", "series",
)  # fmt: skip
_KEPT_FLAGS: Final = (FLAG_KNOWN_WRONG, FLAG_DISTRIBUTION)
_SINGLE: Final = ("user", "client_id", "labels", "members")


def prepared(bronze: Bronze) -> Bronze:
    """Write the touched hours in short; the same bronze, that reads them from there."""
    if upkeep.is_outdated(bronze.spark, bronze.lake, CONDENSED):
        upkeep.prepare(bronze.spark, bronze.lake, CONDENSED)
    rows = bronze.placed_runs()
    short, stands = is_short(bronze), standing.stands(bronze.window_seconds)
    few = short | (stands & bronze.misplaced().isNull())
    together = _put_together(rows.where(few).withColumn("stands", stands), bronze.window_seconds)
    both = rows.where(~few).unionByName(together, allowMissingColumns=True)
    made = _written(bronze, both.withColumn("loose", F.lit(False)), "overwrite")  # noqa: FBT003
    loose = survey.tangled(made.spark, made.survey, rows)
    if loose is None:
        return made
    single = loose.where(short).withColumn("loose", F.lit(True))  # noqa: FBT003 - a literal
    more = _written(bronze, single, "append")
    return replace(more, known=made.survey)


def forget(spark: SparkSession, lake: Lake) -> None:
    """Empty the table: it has served."""
    spark.sql(f"DELETE FROM {lake.name(CONDENSED)}")  # noqa: S608 - no outside text


def is_short(bronze: Bronze) -> Column:
    """Whether a run is part of a row for several: its value came from, or went to, another one.

    Nothing is put together that judgement might refuse run by run.
    """
    alone = F.col("series") == 1
    for name in _SINGLE:
        alone = alone & F.col(name).isNull()
    of_topic = F.col("topic").isNotNull() & F.col("partition").isNull() & F.col("group").isNull()
    others = (UNDER_MIN_ISR, LEADERLESS, *DESCRIBING)
    fit = (
        (F.col("value") > 0)
        & (F.col("value") <= GREATEST)
        & F.col("lead_us").between(0, LONGEST_EDGE_US)
        & F.col("tail_us").between(0, LONGEST_EDGE_US)
        & ~F.col("metric").isin(*others)
        & bronze.misplaced().isNull()
    )
    # Flags last: nothing costs as much.
    changing = flagged(FLAG_PREVIOUS_POSITIVE) | flagged(FLAG_NEXT_POSITIVE)
    told = changing & ~flagged(FLAG_INCREASE)
    return F.coalesce(alone & ~of_topic & fit & told, F.lit(False))  # noqa: FBT003


def _put_together(runs: DataFrame, window_seconds: int) -> DataFrame:
    """One row for the runs of each series in each window, or for an hour of the same zeros."""
    lead, tail = "lead", "tail"
    held_us = window_seconds * 1_000_000
    seconds = pieces.value_seconds()
    # To look into an array of strings costs more than all the rest: once for each run.
    keys = {
        **{flag: flagged(flag) for flag in _KEPT_FLAGS},
        "place": F.expr(f"IF(stands, {standing.HOUR}, {WINDOW})"),
        "idle": F.expr("stands AND value IS NULL"),
        lead: F.expr(pieces.lead_edge()),
        tail: F.expr(f"least({pieces.tail_edge()}, {END} - {START})"),
    }
    columns = {
        "first": f"min({START})",
        "last": f"max({END})",
        "lead_us": f"max({lead})",
        "tail_us": f"max({tail})",
        "value": "max(value)",
        "lowest": "min(value)",
        "batch": "min(batch)",
        "rows": "count(*)",
        "held_us": f"sum({END} - {START})",
        "sure_us": f"sum({pieces.sure_end(tail)} - {START})",
        "may_us": f"sum({END} - {pieces.may_start(lead)})",
        "spilled_us": f"sum({pieces.spilled(lead)})",
        "coarse": f"sum({seconds.coarse})",
        "fine": f"sum({seconds.fine})",
        # Where one run ends at which the next begins, all inner instants are there twice.
        "ends": f"bit_xor({START} ^ {END})",
        "leads": f"count_if({lead} > 0)",
        "first_lead": f"min(IF({lead} > 0, {START}, NULL))",
        "tails": f"count_if({tail} > 0)",
        "last_tail": f"max(IF({tail} > 0, {END}, NULL))",
        "standing": f"bit_or(IF(stands, {standing.bit(window_seconds)}, NULL))",
    }
    names = (*_SERIES, "place", "stands", "idle", *_KEPT_FLAGS)
    grouped = pieces.aggregated(runs.withColumns(keys), names, columns)
    one = (
        "held_us = last - first AND ends = (first ^ last) AND leads <= 1 AND tails <= 1 "
        "AND coalesce(first_lead, first) = first AND coalesce(last_tail, last) = last"
    )
    flags = F.array_compact(F.array(*(F.when(F.col(flag), flag) for flag in _KEPT_FLAGS)))
    return grouped.withColumns(
        {
            "window": F.expr("timestamp_micros(IF(stands, first, place))"),
            "start": F.timestamp_micros("first"),
            "end": F.expr(f"timestamp_micros(IF(stands, first + {held_us}L, last))"),
            "date": F.to_date(F.timestamp_micros("first")),
            "rows": F.expr("IF(stands, NULL, rows)"),
            "held_us": F.expr(f"IF(stands, {held_us}L, held_us)"),
            **{name: F.expr(f"IF(stands, NULL, {name})") for name in ("sure_us", "may_us")},
            "gapless": F.expr(f"IF(stands, NULL, {one})"),
            "flags": flags,
        }
    )


def _written(bronze: Bronze, rows: DataFrame, mode: str) -> Bronze:
    version = lakes.put(bronze.spark, bronze.lake, CONDENSED, rows, mode)
    return replace(bronze, condensed_at=version, known=None)
