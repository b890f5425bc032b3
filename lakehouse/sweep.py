"""Unions of intervals by one sweep over their edges.

Each interval brings events (+1 where it starts, -1 where it ends). Their running sums inside one
window of one subject give segments in which the counts stand still. No interval crosses a window,
so a sweep never looks beyond its own.

A sweep is done where intervals may lie over one another. Those of a subject's atoms do (an *atom*
is one partition, or one source where sources are to be summed): partition-microseconds are sums,
the time in which at least one atom was bad is a union. Those of one atom do only where several
sources claim it at one instant (a stale leader after a pause says 0), or a lead reaches back over
an earlier run: then the atom has a sweep of its own before. It is observed once, and bad if
anybody says so.

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

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import exact
from lakehouse.pieces import END, START, WINDOW, aggregated, quoted, with_

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

EXACT: Final = "decimal(38,6)"
"""Sums of doubles depend on their order, and would differ after a re-run; sums of these do not."""

_COUNTS: Final = ("obs", "pos", "low", "high")
_SUMMED: Final = ("observed_us", "positive_us", "positive_low_us", "positive_high_us")
_TOLD: Final = {
    "spill": "BIGINT", "opens": "INT", "spill_sum": "BIGINT", "lo": "DOUBLE", "hi": "DOUBLE",
    "wrong": "INT", **dict.fromkeys((*_SUMMED, *exact.Lanes._fields), "BIGINT"),
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


COUNTS: Final = Carried(_COUNTS, ("spill", "opens"))
_BY_SHAPES: Final = ("lo", "hi", "wrong", *_SUMMED, *exact.Lanes._fields)
SUMS: Final = Carried(_COUNTS, ("spill", "opens", *_BY_SHAPES))
"""Counts, and sums that each piece tells for itself (see pieces.shapes)."""
EVERYTHING: Final = Carried(
    (*_COUNTS, *_lanes("v", "v_pos")), ("spill", "opens", "spill_sum", "lo", "hi", "wrong")
)
BOUNDED: Final = Carried((*_COUNTS, *_lanes("v", "v_pos", "v_low", "v_high")), ("spill", "opens"))
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
    return _inlined(piece, keys, f"IF({plain}, array({starts}, {ends}), {all_four})")


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
    return _inlined(piece, keys, f"array({', '.join(made_)})")


def counted(rows: DataFrame, keys: Sequence[str], counts: Mapping[str, str]) -> DataFrame:
    """Events of rows that count for something from their ``start`` to their ``end``."""
    carried = COUNTS.with_whole()
    started = event(START, counts, carried=carried)
    ended = event(END, {name: f"-({sql})" for name, sql in counts.items()}, carried=carried)
    return _inlined(rows, keys, f"array({started}, {ended})")


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
        in_lanes |= _named(name, exact.lanes(value))
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


def _inlined(rows: DataFrame, keys: Sequence[str], events_: str) -> DataFrame:
    return rows.selectExpr(*quoted(keys), f"inline({events_})")


def _named(name: str, one: exact.Lanes) -> dict[str, str]:
    return {f"{name}_{lane}": sql for lane, sql in one._asdict().items()}


def lanes_of(name: str) -> exact.Lanes:
    """A value's lanes among the columns of events and segments."""
    return exact.Lanes(*(f"{name}_{lane}" for lane in exact.Lanes._fields))


def sweep(events_: DataFrame, keys: Sequence[str], carried: Carried = EVERYTHING) -> DataFrame:
    """Segments between events, with the running sums inside each group of keys."""
    along = f"PARTITION BY {', '.join(quoted(keys))} ORDER BY t"
    so_far = f"({along} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    return events_.selectExpr(
        *quoted(keys),
        "t",
        f"coalesce(lead(t) OVER ({along}) - t, 0L) AS length",
        *(f"sum({name}) OVER {so_far} AS {name}" for name in carried.running),
        *carried.told,
    )


def atoms(segments: DataFrame, keys: Sequence[str], carried: Carried = EVERYTHING) -> DataFrame:
    """The claims on one atom as one: observed once, bad if any source says so.

    Its value is the mean of the claims above zero, or of all claims where none is.
    """
    whole = f"(PARTITION BY {', '.join(quoted(keys))})"
    first = f"row_number() OVER ({whole[1:-1]} ORDER BY t) = 1"
    spill = f"IF(max(opens) OVER {whole} = 1, 0L, max(spill) OVER {whole})"
    told = exact.Lanes(
        *(
            f"IF(pos > 0, {above}, {every})"
            for above, every in zip(lanes_of("v_pos"), lanes_of("v"), strict=True)
        )
    )
    shares = {
        "v": _share(told, "IF(pos > 0, pos, obs)"),
        "v_pos": _share(lanes_of("v_pos"), "pos"),
    }
    columns = {"spill_sum": f"IF({first}, coalesce({spill}, 0L), 0L)"}
    for name, share in shares.items():
        columns |= _named(name, share)
    columns |= {name: f"least({name}, 1L)" for name in _COUNTS}
    if not carried.is_bounded:
        return with_(segments, columns)
    # Of the claims that may be above zero each is, or only those that surely are.
    columns["least"] = f"{exact.double(lanes_of('v_low'))} / greatest(high, 1L)"
    columns["most"] = f"{exact.double(lanes_of('v_high'))} / greatest(low, 1L)"
    # Step by step, for lanes name a value several times.
    rows = with_(with_(segments, columns), {"value": exact.double(lanes_of("v"))})
    rows = with_(rows, {"least": "least(least, value)", "most": "greatest(most, value)"})
    bounds = _named("v_low", exact.lanes("least")) | _named("v_high", exact.lanes("most"))
    return with_(rows, bounds)


def _share(total: exact.Lanes, count: str) -> exact.Lanes:
    mean = exact.lanes(f"{exact.double(total)} / nullif({count}, 0)")
    return exact.Lanes(
        *(
            f"CASE WHEN {count} = 1 THEN {one} WHEN {count} > 1 THEN {part} ELSE 0L END"
            for one, part in zip(total, mean, strict=True)
        )
    )


def again(segments: DataFrame, keys: Sequence[str], carried: Carried = EVERYTHING) -> DataFrame:
    """Segments as events, for a sweep over coarser keys."""
    seconds = exact.lanes(f"{_TOTAL} * length / 1e6D")
    sums = {
        "observed_us": "length * obs",
        "positive_us": "length * pos",
        "positive_low_us": "length * low",
        "positive_high_us": "length * high + coalesce(spill_sum, 0L)",
        **seconds._asdict(),
    }
    told = {name: sums.get(name, name) for name in carried.told}
    opened = made("t", {name: name for name in carried.running} | told, carried)
    closed = made("t + length", {name: f"-{name}" for name in carried.running}, carried)
    return _inlined(segments, keys, f"array({opened}, {closed})")


def filling(
    piece: DataFrame, keys: Sequence[str], length_us: int, carried: Carried = EVERYTHING
) -> DataFrame:
    """Events of pieces that fill their window: two for all those of a subject."""
    lanes = {**_named("v", exact.lanes("val")), **_named("v_pos", exact.lanes("p * val"))}
    sums = {"obs": "weight", "pos": "p", **lanes}
    told = {"opens": "max(p)", "wrong": "max(wrong)", "lo": "min(lowest)", "hi": "max(value)"}
    sums = {name: f"sum({sql})" for name, sql in sums.items() if name in carried.running}
    told = {name: sql for name, sql in told.items() if name in carried.told}
    grouped = aggregated(piece, keys, sums | told)
    running = {name: name for name in sums} | {"low": "pos", "high": "pos"}
    opened = made(WINDOW, {**running, **{name: name for name in told}}, carried)
    ended = {name: f"-{sql}" for name, sql in running.items()}
    closed = made(f"{WINDOW} + {length_us}L", ended, carried)
    return _inlined(grouped, keys, f"array({opened}, {closed})")


_TOTALS: Final = {
    "observed_us": "sum(length * obs)",
    "min": "min(lo)",
    "max": "max(hi)",
    "positive_us": "sum(length * pos)",
    "positive_low_us": "sum(length * low)",
    "positive_high_us": "sum(length * high + coalesce(spill_sum, 0L))",
    "known_wrong": "max(wrong) = 1",
}
_UNIONS: Final = {
    "series": "max(IF(length > 0, obs, NULL))",
    "any_us": "sum(IF(pos > 0, length, 0L))",
    "any_low_us": "sum(IF(low > 0, length, 0L))",
    # Spilled time counts once, and not where a run began exactly with the window (see pieces).
    "any_high_us": "sum(IF(high > 0, length, 0L)) + "
    "IF(max(opens) = 1, 0L, coalesce(max(spill), 0L))",
    "max_concurrent": "max(IF(length > 0, pos, NULL))",
}  # fmt: skip
_TOTAL: Final = exact.double(lanes_of("v"))
_PEAK: Final = {"max_total": f"max(IF(length > 0 AND obs > 0, {_TOTAL}, NULL))"}


def sums(segments: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Columns of gold's metric tables, but for totals, of segments that carry SUMS."""
    told = {name: f"sum({name})" for name in _SUMMED}
    of_values = {name: _TOTALS[name] for name in ("min", "max", "known_wrong")}
    seconds = F.expr(exact.double(exact.Lanes("sum(coarse)", "sum(fine)")))
    return aggregated(segments, keys, told | of_values | _UNIONS, seconds.alias("value_seconds"))


def peaks(segments: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The greatest total of the atoms at one instant."""
    return aggregated(segments, keys, _PEAK)


def measures(segments: DataFrame, keys: Sequence[str]) -> DataFrame:
    """All of these, of segments that carry everything."""
    seconds = exact.total(f"{_TOTAL} * length / 1e6D").alias("value_seconds")
    return aggregated(segments, keys, _TOTALS | _UNIONS | _PEAK, seconds)
