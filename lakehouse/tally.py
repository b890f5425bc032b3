"""Sums of gold/sli per objective and subject: over a period, and over lengths before an instant.

What is made of whole hours is summed from hours, all else from the finest windows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import slices, tables
from lakehouse.asked import SUBJECT, Asked, Living, Named
from lakehouse.burnt import Bad
from lakehouse.gold_rows import GoldRows, before_window, is_hourly, quoted
from lakehouse.left_out import Begun, rest_and_begun
from lakehouse.maintenance import Maintenance
from lakehouse.occurrences import Counting
from lakehouse.periods import HOUR_US, Period, instant, micros
from lakehouse.session import compiled
from lakehouse.slices import Span
from lakehouse.tallied import Times

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import Column, DataFrame, SparkSession

Summed = dict[Named, dict[str, Times]]
"""Times by cluster, objective and subject, and by the name of a range."""

_KEYS: Final = ("cluster", "objective", *SUBJECT)
_SUMS: Final = " sums"
_ROWS: Final = "rows"
_SPILL: Final = "spill_us"
_OF_NOTHING: Final = ("good_us", "bad_us", "bad_low_us", _SPILL)
_AT: Final = "unix_micros(`window`)"


def summed(
    gold: GoldRows,
    asked: Sequence[Asked],
    living: Sequence[Living],
    left_out: Sequence[Maintenance] = (),
) -> Summed:
    """Times of all that gold tells of.

    Args:
        gold: Where gold is.
        asked: What is asked, each objective once; of events those in slices.
        living: Of which subjects.
        left_out: Whose windows are left out of account.
    """
    if not asked or not living:
        return {}
    sli = _Sli(gold, living, left_out)
    parts = [part for one in asked for part in sli.parts(one)]
    ranged = (_ranged(sli.judged(part), part.ranges) for part in parts)
    every = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), ranged)
    found: Summed = {}
    with compiled(gold.spark, sli.most(parts)):
        rows = every.collect()
    for row in rows:
        told = row.asDict()
        key = tuple(told[name] for name in SUBJECT)
        found.setdefault((told["cluster"], told["objective"], key), {}).update(
            (name.removesuffix(_SUMS), Times(*value[:-1]))
            for name, value in told.items()
            if name.endswith(_SUMS) and value is not None and value[_ROWS]
        )
    return found


def bad(
    gold: GoldRows, asked: Asked, living: Sequence[Living], whom: Collection[Named]
) -> dict[Named, list[Bad]]:
    """Windows or slices of some that were surely bad for some time, in order.

    Args:
        gold: Where gold is.
        asked: What is asked.
        living: All of whom, and when they existed.
        whom: Of whom; few, for each brings as many rows as it was bad in.
    """
    names = ", ".join(f"{name} string" for name in quoted(_KEYS))
    wanted = [(cluster, name, *key) for cluster, name, key in whom]
    few = gold.spark.createDataFrame(wanted, names).alias("few")
    sli = _Sli(gold, living, ())
    part = _Part(asked, asked.ranges(gold.window_us), gold.window_us)
    rows = sli.judged(part).where("bad_low_us > 0")
    same = [F.col(f"rows.{name}").eqNullSafe(F.col(f"few.{name}")) for name in _KEYS]
    rows = rows.alias("rows").join(few, same, "left_semi").orderBy("at")
    found: dict[Named, list[Bad]] = {}
    with compiled(gold.spark, sli.most([part])):
        told = rows.select(*quoted(_KEYS), "at", "bad_low_us").collect()
    for row in told:
        cluster, name, *key = tuple(row)[:-2]
        found.setdefault((cluster, name, tuple(key)), []).append(Bad(*tuple(row)[-2:]))
    return found


class _Part(NamedTuple):
    """Ranges of what is asked that are summed from the same rows, and the length of these."""

    asked: Asked
    ranges: Mapping[str, Span]
    size_us: int

    @property
    def span(self) -> Span:
        """All that these ranges hold."""
        starts, ends = zip(*self.ranges.values(), strict=True)
        return min(starts), max(ends)


@dataclass(frozen=True, slots=True)
class _Sli:
    """Rows of gold/sli of some subjects."""

    gold: GoldRows
    living: Sequence[Living]
    left_out: Sequence[Maintenance]

    def parts(self, asked: Asked) -> list[_Part]:
        """What is asked, by the rows of which it is made."""
        hourly, others = dict[str, Span](), dict[str, Span]()
        cut = asked.slices is not None or bool(self.left_out)
        for name, span in asked.ranges(self.gold.window_us).items():
            by_hour = not cut and is_hourly(Period.of(span))
            (hourly if by_hour else others)[name] = span
        both = (_Part(asked, hourly, HOUR_US), _Part(asked, others, self.gold.window_us))
        return [part for part in both if part.ranges]

    def most(self, parts: Sequence[_Part]) -> int:
        """How many rows of gold are read: one for each objective and window at most."""
        return sum(
            max(0, min(last, part.span[1]) - max(first, part.span[0]))
            * kinds[each.subject.kind]
            // part.size_us
            for part in parts
            for kinds in (Counter[str](one.kind for one in part.asked.objectives),)
            for each in self.living
            for first, last in each.spans
        )

    def judged(self, part: _Part) -> DataFrame:
        """Times of rows of gold, or of slices: ``at``, microseconds, and the columns of ``Times``.

        Of rows of gold also what of each may have been before it, and the one after the last.
        """
        asked, (start, end) = part.asked, part.span
        if asked.slices is None:
            rows = self._indicators(part, (start, end + part.size_us))
            at = F.expr(_AT).alias("at")
            return rows.select(*quoted(_KEYS), at, *Times._fields, spilled().alias(_SPILL))
        size = asked.size_us(self.gold.window_us)
        slot = f"{_AT} - pmod({_AT} - {micros(asked.period.start)}L, {size}L)"
        joined = self._with_expected(self._slots(part, slot), asked, size)
        judged = slices.judged(asked.slices, self.gold.window_us)._asdict().items()
        return joined.select(*quoted(_KEYS), "at", *(F.expr(sql).alias(n) for n, sql in judged))

    def _slots(self, part: _Part, slot: str) -> DataFrame:
        """Sums over slices, or over windows that hold several."""
        (first, *_) = part.asked.objectives
        if first.events is not None:
            counting = Counting(self.gold, self.living, self.left_out)
            return counting.by_slot(first, first.events, part.span, slot)
        sums = zip(("good", "bad", "low", "high"), Times._fields, strict=True)
        rows = self._indicators(part, part.span)
        return rows.groupBy(*quoted(_KEYS), F.expr(slot).alias("at")).agg(
            *(F.sum(column).cast("bigint").alias(name) for name, column in sums)
        )

    def _indicators(self, part: _Part, span: Span) -> DataFrame:
        known = [one.subject for one in self.living]
        rows_of = self.gold.hours if part.size_us == HOUR_US else self.gold.windows
        rows = rows_of(tables.SLI, Period.of(span)).where(
            F.col("cluster").isin(*sorted({one.cluster for one in known}))
            & F.col("objective").isin(*(one.name for one in part.asked.objectives))
        )
        begun = Begun(spilled(), "bad_high_us", _OF_NOTHING)
        rows = rest_and_begun(rows, self.left_out, known, self.gold.window_us, begun)
        # What may have begun before the span is not asked for.
        return rows.where(F.col("window") >= F.lit(instant(span[0]))) if self.left_out else rows

    def _with_expected(self, slots: DataFrame, asked: Asked, size: int) -> DataFrame:
        """Slices with how much of them the subject existed."""
        levels = {one.kind for one in asked.objectives}
        known = _spans(self.gold.spark, [one for one in self.living if one.subject.kind in levels])
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


def spilled() -> Column:
    """What of the upper bound may lie before its first window, of rows of gold/sli.

    Nothing is first seen of what groups lost, or of attempts that failed: that has no edges.
    """
    has_edges = F.col("group").isNull() & F.col("source").isNull()
    return F.when(has_edges, before_window(_SPILL, "bad_high_us", "bad_us")).otherwise(0)


def _ranged(rows: DataFrame, ranges: Mapping[str, Span]) -> DataFrame:
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

    columns = (of(span).alias(f"{name}{_SUMS}") for name, span in ranges.items())
    return rows.groupBy(*quoted(_KEYS)).agg(*columns)
