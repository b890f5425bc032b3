"""Sums of gold/sli per objective and subject: over a period, and over lengths before an instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import slices, tables
from lakehouse.asked import SUBJECT, Living, Named
from lakehouse.burnt import Bad
from lakehouse.lake import Lake
from lakehouse.left_out import Begun, rest_and_begun
from lakehouse.maintenance import Maintenance
from lakehouse.occurrences import Counting
from lakehouse.periods import instant, micros
from lakehouse.pieces import quoted
from lakehouse.session import compiled
from lakehouse.tallied import Times

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import Column, DataFrame

    from lakehouse.asked import Asked
    from lakehouse.slices import Span

Summed = dict[Named, dict[str, Times]]
"""Times by cluster, objective and subject, and by the name of a range."""

_KEYS: Final = ("cluster", "objective", *SUBJECT)
_SUMS: Final = " sums"
_ROWS: Final = "rows"
_SPILL: Final = "spill_us"
_OF_NOTHING: Final = ("good_us", "bad_us", "bad_low_us", _SPILL)
_AT: Final = "unix_micros(`window`)"


def summed(
    spark: SparkSession,
    lake: Lake,
    asked: Sequence[Asked],
    living: Sequence[Living],
    window_us: int,
    left_out: Sequence[Maintenance] = (),
) -> Summed:
    """Times of all that gold tells of.

    Args:
        spark: A session with Delta, in UTC.
        lake: Where the tables are.
        asked: What is asked, each objective once; of events those in slices.
        living: Of which subjects.
        window_us: Finest grain of gold.
        left_out: Whose windows are left out of account.
    """
    if not asked or not living:
        return {}
    gold = _Gold(spark, lake, living, window_us, left_out)
    parts = (_ranged(gold.judged(one), one, window_us) for one in asked)
    every = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)
    found: Summed = {}
    with compiled(spark, gold.most(asked)):
        rows = every.collect()
    for row in rows:
        told = row.asDict()
        key = tuple(told[name] for name in SUBJECT)
        found[told["cluster"], told["objective"], key] = {
            name.removesuffix(_SUMS): Times(*value[:-1])
            for name, value in told.items()
            if name.endswith(_SUMS) and value is not None and value[_ROWS]
        }
    return found


def bad(
    spark: SparkSession,
    lake: Lake,
    asked: Asked,
    living: Sequence[Living],
    window_us: int,
    whom: Collection[Named],
) -> dict[Named, list[Bad]]:
    """Windows or slices of some that were surely bad for some time, in order.

    Args:
        spark: A session with Delta, in UTC.
        lake: Where the tables are.
        asked: What is asked.
        living: All of whom, and when they existed.
        window_us: Finest grain of gold.
        whom: Of whom; few, for each brings as many rows as it was bad in.
    """
    names = ", ".join(f"{name} string" for name in quoted(_KEYS))
    wanted = [(cluster, name, *key) for cluster, name, key in whom]
    few = spark.createDataFrame(wanted, names).alias("few")
    gold = _Gold(spark, lake, living, window_us, ())
    rows = gold.judged(asked).where("bad_low_us > 0")
    same = [F.col(f"rows.{name}").eqNullSafe(F.col(f"few.{name}")) for name in _KEYS]
    rows = rows.alias("rows").join(few, same, "left_semi").orderBy("at")
    found: dict[Named, list[Bad]] = {}
    with compiled(spark, gold.most([asked])):
        told = rows.select(*quoted(_KEYS), "at", "bad_low_us").collect()
    for row in told:
        cluster, name, *key = tuple(row)[:-2]
        found.setdefault((cluster, name, tuple(key)), []).append(Bad(*tuple(row)[-2:]))
    return found


@dataclass(frozen=True, slots=True)
class _Gold:
    spark: SparkSession
    lake: Lake
    living: Sequence[Living]
    window_us: int
    left_out: Sequence[Maintenance]

    def most(self, asked: Sequence[Asked]) -> int:
        """How many rows of gold are read: one for each objective and window at most."""
        lived = sum(
            max(0, min(last, end) - max(first, start)) * kinds[each.subject.kind]
            for kinds, (start, end) in (
                (Counter[str](o.kind for o in one.objectives), self._span(one)) for one in asked
            )
            for each in self.living
            for first, last in each.spans
        )
        return lived // self.window_us

    def _span(self, asked: Asked) -> Span:
        spans = asked.ranges(self.window_us).values()
        return (min(start for start, _ in spans), max(end for _, end in spans))

    def judged(self, asked: Asked) -> DataFrame:
        """Times of windows, or of slices: ``at``, microseconds, and the columns of ``Times``.

        Of windows also what of each may have been before it, and the one after the last.
        """
        span = self._span(asked)
        if asked.slices is None:
            rows = self._indicators(asked, (span[0], span[1] + self.window_us))
            at, spill = F.expr(_AT).alias("at"), spilled(rows).alias(_SPILL)
            return rows.select(*quoted(_KEYS), at, *Times._fields, spill)
        size = asked.size_us(self.window_us)
        slot = f"{_AT} - pmod({_AT} - {micros(asked.period.start)}L, {size}L)"
        joined = self._with_expected(self._slots(asked, span, slot), asked, size)
        judged = slices.judged(asked.slices, self.window_us)._asdict().items()
        return joined.select(*quoted(_KEYS), "at", *(F.expr(sql).alias(n) for n, sql in judged))

    def _slots(self, asked: Asked, span: Span, slot: str) -> DataFrame:
        """Sums over slices, or over windows that hold several."""
        (first, *_) = asked.objectives
        if first.events is not None:
            counting = Counting(self.spark, self.lake, self.living, self.window_us, self.left_out)
            return counting.by_slot(first, first.events, span, slot)
        sums = zip(("good", "bad", "low", "high"), Times._fields, strict=True)
        rows = self._indicators(asked, span)
        return rows.groupBy(*quoted(_KEYS), F.expr(slot).alias("at")).agg(
            *(F.sum(column).cast("bigint").alias(name) for name, column in sums)
        )

    def _indicators(self, asked: Asked, span: Span) -> DataFrame:
        known = [one.subject for one in self.living]
        rows = lakes.read(self.spark, self.lake, tables.SLI).where(
            F.col("cluster").isin(*sorted({one.cluster for one in known}))
            & F.col("objective").isin(*(one.name for one in asked.objectives))
            & (F.col("window") >= F.lit(instant(span[0])))
            & (F.col("window") < F.lit(instant(span[1])))
        )
        others = [name for name in _OF_NOTHING if name in rows.columns]
        begun = Begun(spilled(rows), "bad_high_us", others)
        rows = rest_and_begun(rows, self.left_out, known, self.window_us, begun)
        # What may have begun before the span is not asked for.
        return rows.where(F.col("window") >= F.lit(instant(span[0]))) if self.left_out else rows

    def _with_expected(self, slots: DataFrame, asked: Asked, size: int) -> DataFrame:
        """Slices with how much of them the subject existed."""
        levels = {one.kind for one in asked.objectives}
        known = _spans(self.spark, [one for one in self.living if one.subject.kind in levels])
        lived = (
            "aggregate(spans, 0L, (total, one) -> total + "
            f"greatest(0L, least(one.e, `at` + {size}L) - greatest(one.s, `at`)))"
        )
        same = [F.col(f"rows.{n}").eqNullSafe(F.col(f"known.{n}")) for n in ("cluster", *SUBJECT)]
        joined = slots.alias("rows").join(known.alias("known"), same, "left")
        return joined.select("rows.*", F.expr(f"coalesce({lived}, 0L)").alias("expected"))


def _spans(spark: SparkSession, living: Sequence[Living]) -> DataFrame:
    """When each subject existed."""
    rows = [(one.subject.cluster, *one.subject.key, list(one.spans)) for one in living]
    names = ", ".join(f"{name} string" for name in quoted(("cluster", *SUBJECT)))
    schema = f"{names}, spans array<struct<s: bigint, e: bigint>>"
    return spark.createDataFrame(rows, schema)


def spilled(rows: DataFrame) -> Column:
    """What of a window's upper bound may lie before it, of rows of gold/sli.

    Rows that an older version rolled up do not say; there it is the most that it may be.
    Nothing is first seen of what groups lost, or of attempts that failed: that has no edges.
    """
    edges = F.col("group").isNull() & F.col("source").isNull()
    most = F.when(edges, F.greatest(F.lit(0), F.col("bad_high_us") - F.col("bad_us"))).otherwise(0)
    return F.coalesce(_SPILL, most) if _SPILL in rows.columns else most


def _ranged(rows: DataFrame, asked: Asked, window_us: int) -> DataFrame:
    """Sums over each range, in a column of its own, and how many rows it has.

    What was first seen just after a range may have begun in it.
    """

    def of(span: Span) -> Column:
        inside = (F.col("at") >= span[0]) & (F.col("at") < span[1])
        sums = {n: F.sum(F.when(inside, F.col(n)).otherwise(0)) for n in Times._fields}
        says = F.greatest(*Times._fields) > 0
        if _SPILL in rows.columns:
            after = F.when(F.col("at") == span[1], F.col(_SPILL)).otherwise(0)
            sums["bad_high_us"] = sums["bad_high_us"] + F.sum(after)
            # A client is told of by a row of zeros as well (see sli).
            says = says | F.col("user").isNotNull() | F.col("client_id").isNotNull()
        sums[_ROWS] = F.count_if(inside & says)
        # A union by name goes by the names of fields, too.
        return F.struct(*(one.cast("bigint").alias(n) for n, one in sums.items()))

    ranges = asked.ranges(window_us)
    columns = (of(span).alias(f"{name}{_SUMS}") for name, span in ranges.items())
    return rows.groupBy(*quoted(_KEYS)).agg(*columns)
