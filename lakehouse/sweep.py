"""Unions of intervals by one sweep over their edges.

Each interval brings events (+1 where it starts, -1 where it ends). Their running sums inside one
window of one subject give segments in which the counts stand still. No interval crosses a window,
so a sweep never looks beyond its own.

A sweep is done twice. The first is inside an *atom*: one partition, or one source where sources
are to be summed. Where several sources claim a partition at one instant (a stale leader after a
pause says 0), it is observed once and bad if any of them says so. The second sums the atoms of a
subject: partition-microseconds, and the time in which at least one atom was bad.

Columns of events, and after a sweep of segments ``[t, until)``:
    obs, pos, low, high: how many are observed, above zero, surely above zero, possibly so.
    whole: whether all that belongs to the subject is seen (only where somebody asks, see sli).
    v, v_low, v_high: total value of the observed, of the sure and of the possible.
    spill_sum, spill, opens: time before the window in which the value may already have held.
    lo, hi, wrong: least and greatest single value, and whether it is flagged as known wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from lakehouse.tables import FLAG_KNOWN_WRONG, FLAG_NEXT_POSITIVE, FLAG_PREVIOUS_POSITIVE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

EXACT: Final = "decimal(38,6)"
"""Sums of doubles depend on their order, and would differ after a re-run; sums of these do not."""

_COUNTS: Final = ("obs", "pos", "low", "high", "whole")
_VALUES: Final = ("v", "v_low", "v_high")
_SUMS: Final = (*_COUNTS, *_VALUES, "spill_sum")
_EXTREMES: Final = {"spill": F.max, "opens": F.max, "hi": F.max, "lo": F.min, "wrong": F.max}
_EXTREME_TYPES: Final = {
    "spill": "bigint", "opens": "int", "hi": "double", "lo": "double", "wrong": "int"
}  # fmt: skip


def pieces(rows: DataFrame, *, above: float = 0.0) -> DataFrame:
    """Edges of runs in microseconds: what may have held, and what surely did.

    ``rows`` have ``window``, ``start``, ``end``, ``lead_us``, ``tail_us``, ``value`` and ``flags``.
    A lead is clipped at the window; what spills beyond it belongs to the window before and is
    added once to the bound (see ``measures``). An edge between two values above zero is none, as
    long as nothing but ``above`` zero is asked for.
    """
    window, start, end = (F.unix_micros(name) for name in ("window", "start", "end"))
    lead, tail = F.col("lead_us"), F.col("tail_us")
    if above == 0.0:
        lead = F.when(_flagged(FLAG_PREVIOUS_POSITIVE), 0).otherwise(lead)
        tail = F.when(_flagged(FLAG_NEXT_POSITIVE), 0).otherwise(tail)
    return rows.withColumns(
        {
            "s": start,
            "e": end,
            "sure_end": F.greatest(start, end - tail),
            "may_start": F.greatest(window, start - lead),
            "val": F.coalesce(F.col("value"), F.lit(0.0)).cast(EXACT),
            "p": F.coalesce((F.col("value") > 0).cast("bigint"), F.lit(0).cast("bigint")),
            "spilled": F.greatest(F.lit(0).cast("bigint"), lead - (start - window)),
            "opened": ((start == window) & (F.col("value") > above)).cast("int"),
            "wrong": _flagged(FLAG_KNOWN_WRONG).cast("int"),
        }
    )


def _flagged(flag: str) -> Column:
    return F.coalesce(F.array_contains("flags", flag), F.lit(False))  # noqa: FBT003 - a literal


def events(piece: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The events of pieces: four of a positive one, two of another.

    ``weight`` is how many series a piece stands for; above 1 only where all of them are zero.
    """
    p, value = F.col("p"), F.col("val")
    starts = event(
        F.col("s"),
        {"obs": F.col("weight"), "pos": p, "low": p, "v": value, "v_low": p * value},
        {"spill": p * F.col("spilled"), "opens": p * F.col("opened"), "wrong": F.col("wrong"),
         "hi": F.col("value"), "lo": F.col("value")},
    )  # fmt: skip
    ends = event(
        F.col("e"),
        {"obs": -F.col("weight"), "pos": -p, "high": -p, "v": -value, "v_high": -p * value},
    )
    surely_ended = event(F.col("sure_end"), {"low": -p, "v_low": -p * value})
    may_have_begun = event(F.col("may_start"), {"high": p, "v_high": p * value})
    return piece.select(
        *quoted(keys),
        F.inline(
            F.when(p == 1, F.array(starts, ends, surely_ended, may_have_begun)).otherwise(
                F.array(starts, ends)
            )
        ),
    )


def event(
    t: Column, sums: Mapping[str, Column], extremes: Mapping[str, Column] | None = None
) -> Column:
    """An event at ``t``, microseconds: what it adds to sums, and the extremes it tells."""
    told = extremes or {}
    return F.struct(
        t.alias("t"),
        *(sums.get(name, F.lit(0)).cast(_type(name)).alias(name) for name in _SUMS),
        *(told.get(name, F.lit(None)).cast(_EXTREME_TYPES[name]).alias(name) for name in _EXTREMES),
    )


def sweep(events_: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Segments ``[t, until)`` between events, with the running sums inside each group of keys."""
    at = events_.groupBy(*quoted(keys), "t").agg(
        *(F.sum(name).cast(_type(name)).alias(name) for name in _SUMS),
        *(extreme(name).alias(name) for name, extreme in _EXTREMES.items()),
    )
    along = Window.partitionBy(*quoted(keys)).orderBy("t")
    so_far = along.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    totals = (*_COUNTS, *_VALUES)
    running = at.select(
        *quoted(keys),
        "t",
        F.lead("t").over(along).alias("until"),
        *(F.sum(name).over(so_far).cast(_type(name)).alias(name) for name in totals),
        "spill_sum",
        *_EXTREMES,
    )
    return running.where("until IS NOT NULL")


def _type(name: str) -> str:
    return EXACT if name in _VALUES else "bigint"


def atoms(segments: DataFrame, keys: Sequence[str], *, uncapped: Column | None = None) -> DataFrame:
    """The claims on one atom as one: observed once, bad if any source says so.

    Its value is the mean of the claims above zero, or of all claims where none is. Where
    ``uncapped``, the atom stands for many series and is observed as often.
    """
    stands_for_many = uncapped if uncapped is not None else F.lit(False)  # noqa: FBT003 - a literal
    whole = Window.partitionBy(*quoted(keys))
    first = F.lag("t").over(whole.orderBy("t")).isNull()
    spill = F.when(F.max("opens").over(whole) == 1, 0).otherwise(F.max("spill").over(whole))
    flags = {
        name: F.when(stands_for_many, F.col(name)).otherwise(F.least(F.col(name), F.lit(1)))
        for name in _COUNTS
    }
    return segments.withColumns(
        {"spill_sum": F.when(first, F.coalesce(spill, F.lit(0))).otherwise(0).cast("bigint")}
    ).withColumns(
        {
            "v": _share("v", F.when(F.col("pos") > 0, F.col("pos")).otherwise(F.col("obs"))),
            "v_low": _share("v_low", F.col("low")),
            "v_high": _share("v_high", F.col("high")),
            **{name: flag.cast("bigint") for name, flag in flags.items()},
        }
    )


def _share(total: str, count: Column) -> Column:
    return (
        F.when(count == 1, F.col(total))
        .when(count > 1, (F.col(total) / count).cast(EXACT))
        .otherwise(F.lit(0))
        .cast(EXACT)
    )


def again(segments: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Segments as events, for a sweep over coarser keys."""
    counts = [name for name in _SUMS if name != "spill_sum"]
    opened = event(
        F.col("t"), {name: F.col(name) for name in _SUMS}, {name: F.col(name) for name in _EXTREMES}
    )
    closed = event(F.col("until"), {name: -F.col(name) for name in counts})
    return segments.select(*quoted(keys), F.inline(F.array(opened, closed)))


def measures(segments: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Durations, values and extremes of a group of segments (columns of gold's metric tables).

    The upper bound takes the part of a lead that spilled beyond the window once, and not where a
    positive run began exactly with the window: that one covered the time before the cut already.
    """
    length = F.col("until") - F.col("t")
    some = {name: F.sum(F.when(F.col(name) > 0, length).otherwise(0)) for name in _COUNTS}
    each = {name: F.sum(length * F.col(name)).cast("bigint") for name in _COUNTS}
    spill = F.when(F.max("opens") == 1, 0).otherwise(F.max("spill"))
    seconds = (F.col("v").cast("double") * length / 1e6).cast(EXACT)
    return segments.groupBy(*quoted(keys)).agg(
        each["obs"].alias("observed_us"),
        F.sum(seconds).cast("double").alias("value_seconds"),
        F.min("lo").alias("min"),
        F.max("hi").alias("max"),
        each["pos"].alias("positive_us"),
        each["low"].alias("positive_low_us"),
        (each["high"] + F.sum("spill_sum")).alias("positive_high_us"),
        F.max("obs").alias("series"),
        (F.max("wrong") == 1).alias("known_wrong"),
        some["pos"].alias("any_us"),
        some["low"].alias("any_low_us"),
        (some["high"] + F.coalesce(spill, F.lit(0))).alias("any_high_us"),
        F.max("pos").alias("max_concurrent"),
        F.max(F.when(F.col("obs") > 0, F.col("v"))).cast("double").alias("max_total"),
    )


def quoted(names: Sequence[str]) -> list[str]:
    """Column names as Spark SQL wants them where they are words of its own."""
    return [f"`{name}`" for name in names]
