"""Unions of intervals by one sweep over their edges.

Each interval brings events (+1 where it starts, -1 where it ends; their columns are told in
``edges``). Their running sums inside one window of one subject give segments in which the counts
stand still. No interval crosses a window, so a sweep never looks beyond its own.

A sweep is done where intervals may lie over one another. Those of a subject's atoms do (an *atom*
is one partition, or one source where sources are to be summed): partition-microseconds are sums,
the time in which at least one atom was bad is a union. Those of one atom do only where several
sources claim it at one instant (a stale leader after a pause says 0), or a lead reaches back over
an earlier run: then the atom has a sweep of its own before. It is observed once, and bad if
anybody says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import exact
from lakehouse.edges import EVERYTHING, RUNNING, SUMMED, inlined, lanes_of, made, named
from lakehouse.pieces import aggregated, quoted, with_

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from lakehouse.edges import Carried

EXACT: Final = "decimal(38,6)"
"""Sums of doubles depend on their order, and would differ after a re-run; sums of these do not."""


def sweep(events: DataFrame, keys: Sequence[str], carried: Carried = EVERYTHING) -> DataFrame:
    """Segments between events, with the running sums inside each group of keys."""
    along = f"PARTITION BY {', '.join(quoted(keys))} ORDER BY t"
    so_far = f"({along} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    return events.selectExpr(
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
        columns |= named(name, share)
    columns |= {name: f"least({name}, 1L)" for name in RUNNING}
    if not carried.is_bounded:
        return with_(segments, columns)
    # Of the claims that may be above zero each is, or only those that surely are.
    columns["least"] = f"{exact.double(lanes_of('v_low'))} / greatest(high, 1L)"
    columns["most"] = f"{exact.double(lanes_of('v_high'))} / greatest(low, 1L)"
    # Step by step, for lanes name a value several times.
    rows = with_(with_(segments, columns), {"value": exact.double(lanes_of("v"))})
    rows = with_(rows, {"least": "least(least, value)", "most": "greatest(most, value)"})
    bounds = named("v_low", exact.lanes("least")) | named("v_high", exact.lanes("most"))
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
    return inlined(segments, keys, f"array({opened}, {closed})")


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
    told = {name: f"sum({name})" for name in SUMMED}
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
