"""Sums of gold/sli per objective and subject: over a period, and over lengths before an instant."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import slices, tables
from lakehouse.asked import SUBJECT, Named
from lakehouse.maintenance import matches
from lakehouse.periods import instant, micros
from lakehouse.pieces import quoted
from lakehouse.tallied import Times

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from lakehouse.asked import Asked, Living
    from lakehouse.existence import Subject
    from lakehouse.lake import Lake
    from lakehouse.maintenance import Maintenance
    from lakehouse.slices import Span

Summed = dict[Named, dict[str, Times]]
"""Times by cluster, objective and subject, and by the name of a range."""

_KEYS: Final = ("cluster", "objective", *SUBJECT)
_SUMS: Final = " sums"


def summed(
    spark: SparkSession,
    lake: Lake,
    asked: Sequence[Asked],
    living: Sequence[Living],
    window_us: int,
    left_out: Iterable[Maintenance] = (),
) -> Summed:
    """Times of all that gold/sli has rows of.

    Args:
        spark: A session with Delta, in UTC.
        lake: Where the tables are.
        asked: What is asked; each objective once.
        living: Of which subjects.
        window_us: Finest grain of gold.
        left_out: Whose windows are left out of account.
    """
    if not asked or not living:
        return {}
    clusters = sorted({one.subject.cluster for one in living})
    rows = lakes.read(spark, lake, tables.SLI).where(F.col("cluster").isin(*clusters))
    for one in left_out:
        rows = rows.where(~is_in(one, [each.subject for each in living], window_us))
    parts = (_ranged(_judged(spark, rows, one, living, window_us), one, window_us) for one in asked)
    every = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)
    found: Summed = {}
    for row in every.collect():
        told = row.asDict()
        key = tuple(told[name] for name in SUBJECT)
        found[told["cluster"], told["objective"], key] = {
            name.removesuffix(_SUMS): Times(*value)
            for name, value in told.items()
            if name.endswith(_SUMS) and value is not None
        }
    return found


def is_in(
    one: Maintenance, subjects: Sequence[Subject], window_us: int, names: Sequence[str] = SUBJECT
) -> Column:
    """Whether a row is of a window in which there was maintenance that concerns its subject.

    Args:
        one: The maintenance.
        subjects: All that rows are of.
        window_us: Finest grain of gold.
        names: Which columns of a subject the rows have.
    """
    start, end = one.windows(window_us)
    inside = (F.col("window") >= F.lit(instant(start))) & (F.col("window") < F.lit(instant(end)))
    clusters = {each.cluster for each in subjects}
    touched = F.lit(not one.subject_names)
    for name, patterns in one.names.items():
        if name == "cluster":
            inside = inside & F.col(name).isin(*(c for c in clusters if matches(c, patterns)))
            continue
        if name not in names:
            continue
        own = {each.key[SUBJECT.index(name)] for each in subjects}
        chosen = sorted(each for each in own if each is not None and matches(each, patterns))
        touched = touched | F.coalesce(F.col(f"`{name}`").isin(*chosen), F.lit(False))  # noqa: FBT003
    return inside & touched


def _judged(
    spark: SparkSession, rows: DataFrame, asked: Asked, living: Sequence[Living], window_us: int
) -> DataFrame:
    """Times of windows, or of slices: ``at``, microseconds, and the columns of ``Times``."""
    spans = asked.ranges(window_us).values()
    first, last = min(start for start, _ in spans), max(end for _, end in spans)
    rows = rows.where(
        F.col("objective").isin(*(one.name for one in asked.objectives))
        & (F.col("window") >= F.lit(instant(first)))
        & (F.col("window") < F.lit(instant(last)))
    )
    at = "unix_micros(`window`)"
    if asked.slices is None:
        return rows.select(*quoted(_KEYS), F.expr(at).alias("at"), *Times._fields)
    size = asked.size_us(window_us)
    slot = f"{at} - pmod({at} - {micros(asked.period.start)}L, {size}L)"
    sums = zip(("good", "bad", "low", "high"), Times._fields, strict=True)
    grouped = rows.groupBy(*quoted(_KEYS), F.expr(slot).alias("at")).agg(
        *(F.sum(column).cast("bigint").alias(name) for name, column in sums)
    )
    levels = {one.level for one in asked.objectives}
    known = _spans(spark, [one for one in living if one.subject.kind in levels])
    lived = (
        "aggregate(spans, 0L, (total, one) -> total + "
        f"greatest(0L, least(one.until, at + {size}L) - greatest(one.since, at)))"
    )
    same = [F.col(f"rows.{n}").eqNullSafe(F.col(f"known.{n}")) for n in ("cluster", *SUBJECT)]
    joined = grouped.alias("rows").join(known.alias("known"), same, "left")
    joined = joined.select("rows.*", F.expr(f"coalesce({lived}, 0L)").alias("expected"))
    judged = slices.judged(asked.slices, window_us)._asdict().items()
    return joined.select(*quoted(_KEYS), "at", *(F.expr(sql).alias(n) for n, sql in judged))


def _spans(spark: SparkSession, living: Sequence[Living]) -> DataFrame:
    """When each subject existed."""
    rows = [(one.subject.cluster, *one.subject.key, list(one.spans)) for one in living]
    names = ", ".join(f"{name} string" for name in quoted(("cluster", *SUBJECT)))
    schema = f"{names}, spans array<struct<since: bigint, until: bigint>>"
    return spark.createDataFrame(rows, schema)


def _ranged(rows: DataFrame, asked: Asked, window_us: int) -> DataFrame:
    """Sums over each range, in a column of its own."""

    def of(span: Span) -> Column:
        inside = (F.col("at") >= span[0]) & (F.col("at") < span[1])
        sums = (F.sum(F.when(inside, F.col(n)).otherwise(0)).cast("bigint") for n in Times._fields)
        return F.struct(*sums)

    ranges = asked.ranges(window_us)
    columns = (of(span).alias(f"{name}{_SUMS}") for name, span in ranges.items())
    return rows.groupBy(*quoted(_KEYS)).agg(*columns)
