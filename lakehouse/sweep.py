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
    v, v_low, v_high: total value of the observed, of the sure and of the possible, each in two
        lanes (see exact); v_pos: of those above zero.
    spill_sum, spill, opens: time before the window in which the value may already have held.
    lo, hi, wrong: least and greatest single value, and whether it is flagged as known wrong.

Several events at one instant leave segments of no length: what they tell for themselves (the last
two lines) counts, their running sums do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import exact
from lakehouse.tables import FLAG_KNOWN_WRONG, FLAG_NEXT_POSITIVE, FLAG_PREVIOUS_POSITIVE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

EXACT: Final = "decimal(38,6)"
"""Sums of doubles depend on their order, and would differ after a re-run; sums of these do not."""

VALUES: Final = ("v", "v_low", "v_high", "v_pos")
_COUNTS: Final = ("obs", "pos", "low", "high", "whole")
_RUNNING: Final = (*_COUNTS, *(f"{name}_{lane}" for name in VALUES for lane in exact.Lanes._fields))
_TOLD: Final = {
    "spill_sum": "BIGINT", "spill": "BIGINT", "opens": "INT", "lo": "DOUBLE", "hi": "DOUBLE",
    "wrong": "INT",
}  # fmt: skip


def lead_edge() -> str:
    """Time before a run in which its value may already have been above zero, microseconds."""
    return f"IF({_flagged(FLAG_PREVIOUS_POSITIVE)}, 0L, lead_us)"


def pieces(rows: DataFrame) -> DataFrame:
    """Edges of runs in microseconds: what may have held, and what surely did.

    ``rows`` have ``window``, ``start``, ``end``, ``lead_us``, ``tail_us``, ``value`` and ``flags``.
    A lead is clipped at the window; what spills beyond it belongs to the window before and is
    added once to the bound (see ``measures``). An edge between two values above zero is none.
    """
    window, start, end = (f"unix_micros(`{name}`)" for name in ("window", "start", "end"))
    tail = f"IF({_flagged(FLAG_NEXT_POSITIVE)}, 0L, tail_us)"
    return _with(
        rows,
        {
            "s": start,
            "e": end,
            "opening": f"{start} = {window}",
            "sure_end": f"greatest({start}, {end} - {tail})",
            "may_start": f"greatest({window}, {start} - {lead_edge()})",
            "val": "coalesce(value, 0D)",
            "p": "IF(value > 0, 1L, 0L)",
            "spilled": f"greatest(0L, {lead_edge()} - ({start} - {window}))",
            "wrong": f"CAST({_flagged(FLAG_KNOWN_WRONG)} AS INT)",
        },
    )


def _flagged(flag: str) -> str:
    return f"coalesce(array_contains(flags, '{flag}'), false)"


def _with(rows: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    return rows.withColumns({name: F.expr(sql) for name, sql in columns.items()})


def events(piece: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The events of pieces: two, and two more where a positive one has edges.

    ``weight`` is how many series a piece stands for; above 1 only where all of them are zero. The
    pieces of an atom do not overlap, or the atom is swept before its spill is asked for.
    """
    sure, may = "sure_end = e", "may_start = s"
    starts = event(
        "s",
        {"obs": "weight", "pos": "p", "low": "p", "high": f"IF({may}, p, 0L)"},
        {"v": "val", "v_pos": "p * val", "v_low": "p * val", "v_high": f"IF({may}, p * val, 0D)"},
        {"spill_sum": "IF(opening, 0L, p * spilled)", "spill": "p * spilled",
         "opens": "CAST(opening AND p = 1 AS INT)", "wrong": "wrong", "hi": "value", "lo": "value"},
    )  # fmt: skip
    ends = event(
        "e",
        {"obs": "-weight", "pos": "-p", "high": "-p", "low": f"IF({sure}, -p, 0L)"},
        {"v": "-val", "v_pos": "-p * val", "v_high": "-p * val",
         "v_low": f"IF({sure}, -p * val, 0D)"},
    )  # fmt: skip
    surely_ended = event(
        "sure_end", {"low": f"IF({sure}, 0L, -p)"}, {"v_low": f"IF({sure}, 0D, -p * val)"}
    )
    may_have_begun = event(
        "may_start", {"high": f"IF({may}, 0L, p)"}, {"v_high": f"IF({may}, 0D, p * val)"}
    )
    plain = f"p = 0 OR ({sure} AND {may})"
    all_four = f"array({starts}, {ends}, {surely_ended}, {may_have_begun})"
    both = f"inline(IF({plain}, array({starts}, {ends}), {all_four}))"
    return piece.select(*quoted(keys), F.expr(both))


def counted(rows: DataFrame, keys: Sequence[str], counts: Mapping[str, str]) -> DataFrame:
    """Events of rows that count for something from their ``start`` to their ``end``."""
    started = event("unix_micros(start)", counts)
    ended = event("unix_micros(`end`)", {name: f"-({sql})" for name, sql in counts.items()})
    return rows.select(*quoted(keys), F.expr(f"inline(array({started}, {ended}))"))


def event(
    t: str,
    counts: Mapping[str, str],
    values: Mapping[str, str] | None = None,
    told: Mapping[str, str] | None = None,
) -> str:
    """An event at ``t``, microseconds: what it adds to counts and values, and what it tells."""
    in_lanes: dict[str, str] = {}
    for name, value in (values or {}).items():
        in_lanes |= _named(name, exact.lanes(value))
    return made(t, {**counts, **in_lanes, **(told or {})})


def made(t: str, columns: Mapping[str, str]) -> str:
    """An event of expressions, values in lanes; what is not named adds and tells nothing."""
    running = (
        f"'{name}', "
        + (f"coalesce(CAST({columns[name]} AS BIGINT), 0L)" if name in columns else "0L")
        for name in _RUNNING
    )
    told = (
        f"'{name}', CAST({columns.get(name, 'NULL')} AS {kind})" for name, kind in _TOLD.items()
    )
    return f"named_struct('t', {t}, {', '.join((*running, *told))})"


def _named(name: str, one: exact.Lanes) -> dict[str, str]:
    return {f"{name}_{lane}": sql for lane, sql in one._asdict().items()}


def lanes_of(name: str) -> exact.Lanes:
    """A value's lanes among the columns of events and segments."""
    return exact.Lanes(*(f"{name}_{lane}" for lane in exact.Lanes._fields))


def sweep(events_: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Segments between events, with the running sums inside each group of keys."""
    along = f"PARTITION BY {', '.join(quoted(keys))} ORDER BY t"
    so_far = f"({along} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    return events_.selectExpr(
        *quoted(keys),
        "t",
        f"coalesce(lead(t) OVER ({along}) - t, 0L) AS length",
        *(f"sum({name}) OVER {so_far} AS {name}" for name in _RUNNING),
        *_TOLD,
    )


def atoms(segments: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The claims on one atom as one: observed once, bad if any source says so.

    Its value is the mean of the claims above zero, or of all claims where none is; of what may
    hold it is the mean too.
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
        "v_low": _share(lanes_of("v_low"), "low"),
        "v_high": _share(lanes_of("v_high"), "high"),
    }
    columns = {"spill_sum": f"IF({first}, coalesce({spill}, 0L), 0L)"}
    for name, share in shares.items():
        columns |= _named(name, share)
    columns |= {name: f"least({name}, 1L)" for name in _COUNTS}
    return _with(segments, columns)


def _share(total: exact.Lanes, count: str) -> exact.Lanes:
    mean = exact.lanes(f"{exact.double(total)} / nullif({count}, 0)")
    return exact.Lanes(
        *(
            f"CASE WHEN {count} = 1 THEN {one} WHEN {count} > 1 THEN {part} ELSE 0L END"
            for one, part in zip(total, mean, strict=True)
        )
    )


def again(segments: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Segments as events, for a sweep over coarser keys."""
    opened = made("t", {name: name for name in (*_RUNNING, *_TOLD)})
    closed = made("t + length", {name: f"-{name}" for name in _RUNNING})
    return segments.select(*quoted(keys), F.expr(f"inline(array({opened}, {closed}))"))


def standing(piece: DataFrame, keys: Sequence[str], length_us: int) -> DataFrame:
    """Events of pieces that fill their window: two for all those of a subject."""
    sums = {"obs": "weight", "pos": "p", **_named("v", exact.lanes("val"))}
    sums |= _named("v_pos", exact.lanes("p * val"))
    told = {"opens": "max(p)", "wrong": "max(wrong)", "lo": "min(value)", "hi": "max(value)"}
    grouped = piece.groupBy(*quoted(keys)).agg(
        *(F.expr(f"sum({sql})").alias(name) for name, sql in sums.items()),
        *(F.expr(sql).alias(name) for name, sql in told.items()),
    )
    running = {name: name for name in sums} | {"low": "pos", "high": "pos"}
    for name in ("v_low", "v_high"):
        running |= _named(name, lanes_of("v_pos"))
    start = "unix_micros(`window`)"
    opened = made(start, {**running, **{name: name for name in told}})
    closed = made(f"{start} + {length_us}L", {name: f"-{sql}" for name, sql in running.items()})
    return grouped.select(*quoted(keys), F.expr(f"inline(array({opened}, {closed}))"))


def measures(segments: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Durations, values and extremes of a group of segments (columns of gold's metric tables).

    The upper bound takes the part of a lead that spilled beyond the window once, and not where a
    positive run began exactly with the window: that one covered the time before the cut already.
    """
    value = exact.double(lanes_of("v"))
    spill = "IF(max(opens) = 1, 0L, coalesce(max(spill), 0L))"
    columns = {
        "observed_us": "sum(length * obs)",
        "min": "min(lo)",
        "max": "max(hi)",
        "positive_us": "sum(length * pos)",
        "positive_low_us": "sum(length * low)",
        "positive_high_us": "sum(length * high + coalesce(spill_sum, 0L))",
        "series": "max(IF(length > 0, obs, NULL))",
        "known_wrong": "max(wrong) = 1",
        "any_us": "sum(IF(pos > 0, length, 0L))",
        "any_low_us": "sum(IF(low > 0, length, 0L))",
        "any_high_us": f"sum(IF(high > 0, length, 0L)) + {spill}",
        "max_concurrent": "max(IF(length > 0, pos, NULL))",
        "max_total": f"max(IF(length > 0 AND obs > 0, {value}, NULL))",
    }
    seconds = exact.total(f"{value} * length / 1e6D").alias("value_seconds")
    return _aggregated(segments, keys, columns, seconds)


def sums(piece: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The same of pieces of atoms that do not overlap, without a sweep; and no unions."""
    columns = {
        "observed_us": "sum((e - s) * weight)",
        "min": "min(value)",
        "max": "max(value)",
        "positive_us": "sum(p * (e - s))",
        "positive_low_us": "sum(p * (sure_end - s))",
        "positive_high_us": "sum(p * (e - may_start + IF(opening, 0L, spilled)))",
        "series": "max(weight)",
        "known_wrong": "max(wrong) = 1",
    }
    seconds = exact.total("val * (e - s) / 1e6D").alias("value_seconds")
    return _aggregated(piece, keys, columns, seconds)


def _aggregated(
    rows: DataFrame, keys: Sequence[str], columns: Mapping[str, str], *more: Column
) -> DataFrame:
    named = (F.expr(sql).alias(name) for name, sql in columns.items())
    return rows.groupBy(*quoted(keys)).agg(*named, *more)


def quoted(names: Sequence[str]) -> list[str]:
    """Column names as Spark SQL wants them where they are words of its own."""
    return [f"`{name}`" for name in names]
