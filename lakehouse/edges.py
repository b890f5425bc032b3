"""Intervals as events: what each adds where it starts, and takes away where it ends.

Columns of events, and after a sweep of segments that begin at ``t`` and last ``length``:
    obs, pos, low, high: how many are observed, above zero, surely above zero, possibly so.
    whole: whether all that belongs to the subject is seen (only where somebody asks, see sli).
    v: total value of the observed, in two lanes (see exact); v_pos: of those above zero; v_low,
        v_high: the least and the most that it may have been (only for thresholds).
    spill_sum, spill, opens: time before the window in which the value may already have held.
    lo, hi, wrong: least and greatest single value, and whether it is flagged as known wrong.
    observed_us to fine: what a piece, or several of the same times, sums up to.

Most sweeps count and value nothing: they carry few of these columns (see ``Carried``), for what a
sweep costs is sorting them.

Several events at one instant leave segments of no length: what they tell for themselves (the last
three lines) counts, their running sums do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lakehouse import exact
from lakehouse.pieces import END, START, WINDOW, aggregated, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

RUNNING: Final = ("obs", "pos", "low", "high")
"""What every event carries: counts, summed up along time."""

SUMMED: Final = ("observed_us", "positive_us", "positive_low_us", "positive_high_us")
"""What a piece may have summed up by itself."""

_TOLD: Final = {
    "spill": "BIGINT", "opens": "INT", "spill_sum": "BIGINT", "lo": "DOUBLE", "hi": "DOUBLE",
    "wrong": "INT", **dict.fromkeys((*SUMMED, *exact.Lanes._fields), "BIGINT"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Carried:
    """Which columns events carry: those that are summed up along time, and what they tell."""

    running: tuple[str, ...]
    told: tuple[str, ...]

    @property
    def is_valued(self) -> bool:
        """Whether values are summed up along time."""
        return "v_coarse" in self.running

    @property
    def is_bounded(self) -> bool:
        """Whether the bounds of values are, too."""
        return "v_low_coarse" in self.running

    def with_whole(self) -> Carried:
        """With the column ``whole`` too."""
        return Carried((*self.running, "whole"), self.told)


def _lanes(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}_{lane}" for name in names for lane in exact.Lanes._fields)


COUNTS: Final = Carried(RUNNING, ("spill", "opens"))
_BY_SHAPES: Final = ("lo", "hi", "wrong", *SUMMED, *exact.Lanes._fields)
SUMS: Final = Carried(RUNNING, ("spill", "opens", *_BY_SHAPES))
"""Counts, and sums that each piece tells for itself (see pieces.shapes)."""
EVERYTHING: Final = Carried(
    (*RUNNING, *_lanes("v", "v_pos")), ("spill", "opens", "spill_sum", "lo", "hi", "wrong")
)
BOUNDED: Final = Carried((*RUNNING, *_lanes("v", "v_pos", "v_low", "v_high")), ("spill", "opens"))
"""Counts, and values with their bounds (see thresholds)."""


def events(piece: DataFrame, keys: Sequence[str], carried: Carried = EVERYTHING) -> DataFrame:
    """The events of pieces: two, and two more where a positive one has edges.

    ``weight`` is how many series a piece stands for. Where values are carried it is above 1 only
    where all of them are zero. The pieces of an atom do not overlap, or the atom is swept before
    its spill is asked for.
    """
    sure, may = "sure_end = e", "may_start = s"
    shaped = {name: name for name in carried.told if name in _BY_SHAPES}
    single = {"hi": "value", "lo": "lowest", "wrong": "wrong"}
    starts = event(
        "s",
        {"obs": "weight", "pos": "p * weight", "low": "p * weight",
         "high": f"IF({may}, p * weight, 0L)"},
        {"v": "val", "v_pos": "p * val", "v_low": "val", "v_high": "val"},
        {"spill_sum": "IF(opening, 0L, p * spilled_us)", "spill": "p * spilled_us",
         "opens": "CAST(opening AND p = 1 AS INT)",
         **(single if carried.is_valued else shaped)},
        carried,
    )  # fmt: skip
    ends = event(
        "e",
        {"obs": "-weight", "pos": "-p * weight", "high": "-p * weight",
         "low": f"IF({sure}, -p * weight, 0L)"},
        {"v": "-val", "v_pos": "-p * val", "v_low": "-val", "v_high": "-val"},
        carried=carried,
    )  # fmt: skip
    surely_ended = event("sure_end", {"low": f"IF({sure}, 0L, -p * weight)"}, carried=carried)
    may_have_begun = event("may_start", {"high": f"IF({may}, 0L, p * weight)"}, carried=carried)
    plain = f"p = 0 OR ({sure} AND {may})"
    all_four = f"array({starts}, {ends}, {surely_ended}, {may_have_begun})"
    return inlined(piece, keys, f"IF({plain}, array({starts}, {ends}), {all_four})")


def uncertain(piece: DataFrame, keys: Sequence[str], carried: Carried = BOUNDED) -> DataFrame:
    """Events of pieces from ``thresholds``: what their edges do to the bounds of values."""
    rise = {"v_high": "rise", "v_low": "-fall"}
    sink = {"v_high": "lift", "v_low": "-sink"}
    around = (("lead_from", "s", rise), ("tail_from", "e", sink))
    made_ = [
        event(t, {}, {name: f"{sign}({sql})" for name, sql in values.items()}, carried=carried)
        for begin, end, values in around
        for t, sign in ((begin, ""), (end, "-"))
    ]
    return inlined(piece, keys, f"array({', '.join(made_)})")


def counted(rows: DataFrame, keys: Sequence[str], counts: Mapping[str, str]) -> DataFrame:
    """Events of rows that count for something from their ``start`` to their ``end``."""
    carried = COUNTS.with_whole()
    started = event(START, counts, carried=carried)
    ended = event(END, {name: f"-({sql})" for name, sql in counts.items()}, carried=carried)
    return inlined(rows, keys, f"array({started}, {ended})")


def filling(
    piece: DataFrame, keys: Sequence[str], length_us: int, carried: Carried = EVERYTHING
) -> DataFrame:
    """Events of pieces that fill their window: two for all those of a subject."""
    lanes = {**named("v", exact.lanes("val")), **named("v_pos", exact.lanes("p * val"))}
    sums = {"obs": "weight", "pos": "p", **lanes}
    told = {"opens": "max(p)", "wrong": "max(wrong)", "lo": "min(lowest)", "hi": "max(value)"}
    sums = {name: f"sum({sql})" for name, sql in sums.items() if name in carried.running}
    told = {name: sql for name, sql in told.items() if name in carried.told}
    grouped = aggregated(piece, keys, sums | told)
    running = {name: name for name in sums} | {"low": "pos", "high": "pos"}
    opened = made(WINDOW, {**running, **{name: name for name in told}}, carried)
    ended = {name: f"-{sql}" for name, sql in running.items()}
    closed = made(f"{WINDOW} + {length_us}L", ended, carried)
    return inlined(grouped, keys, f"array({opened}, {closed})")


def event(
    t: str,
    counts: Mapping[str, str],
    values: Mapping[str, str] | None = None,
    told: Mapping[str, str] | None = None,
    carried: Carried = EVERYTHING,
) -> str:
    """An event at ``t``, microseconds: what it adds to counts and values, and what it tells."""
    in_lanes: dict[str, str] = {}
    for name, value in (values or {}).items():
        in_lanes |= named(name, exact.lanes(value))
    return made(t, {**counts, **in_lanes, **(told or {})}, carried)


def made(t: str, columns: Mapping[str, str], carried: Carried = EVERYTHING) -> str:
    """An event of expressions, values in lanes; what is not named adds and tells nothing."""
    running = (
        f"'{name}', "
        + (f"coalesce(CAST({columns[name]} AS BIGINT), 0L)" if name in columns else "0L")
        for name in carried.running
    )
    told = (
        f"'{name}', CAST({columns.get(name, 'NULL')} AS {_TOLD[name]})" for name in carried.told
    )
    return f"named_struct('t', {t}, {', '.join((*running, *told))})"


def inlined(rows: DataFrame, keys: Sequence[str], events_: str) -> DataFrame:
    """The events of rows, as SQL of an array of them."""
    return rows.selectExpr(*quoted(keys), f"inline({events_})")


def named(name: str, one: exact.Lanes) -> dict[str, str]:
    """A value's lanes as columns of events and segments."""
    return {f"{name}_{lane}": sql for lane, sql in one._asdict().items()}


def lanes_of(name: str) -> exact.Lanes:
    """A value's lanes among the columns of events and segments."""
    return exact.Lanes(*(f"{name}_{lane}" for lane in exact.Lanes._fields))
