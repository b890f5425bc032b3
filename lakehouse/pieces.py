"""Runs as pieces of time: what surely held and what may have, and sums that need no union.

A piece is a run in microseconds, or several runs of one series in one window that were put together
(see ``condensed``): then what is summed here was summed before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import exact
from lakehouse.tables import FLAG_KNOWN_WRONG, FLAG_NEXT_POSITIVE, FLAG_PREVIOUS_POSITIVE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

START: Final = "unix_micros(start)"
END: Final = "unix_micros(`end`)"
WINDOW: Final = "unix_micros(`window`)"


def flagged(flag: str) -> str:
    """Whether a run bears a flag, as SQL."""
    return f"coalesce(array_contains(flags, '{flag}'), false)"


def lead_edge() -> str:
    """Time before a run in which its value may already have been above zero, microseconds."""
    return f"IF({flagged(FLAG_PREVIOUS_POSITIVE)}, 0L, lead_us)"


def tail_edge() -> str:
    """Time at a run's end in which its value may not have been above zero any more."""
    return f"IF({flagged(FLAG_NEXT_POSITIVE)}, 0L, tail_us)"


def sure_end(tail: str) -> str:
    """Instant until which a run with such a tail surely held."""
    return f"greatest({START}, {END} - {tail})"


def may_start(lead: str) -> str:
    """Instant in the window from which on a run with such a lead may have held."""
    return f"greatest({WINDOW}, {START} - {lead})"


def spilled(lead: str) -> str:
    """What of a lead lies before the run's window."""
    return f"greatest(0L, {lead} - ({START} - {WINDOW}))"


def value_seconds() -> exact.Lanes:
    """A run's value times its seconds."""
    return exact.lanes(f"coalesce(value, 0D) * ({END} - {START}) / 1e6D")


def pieces(runs: DataFrame) -> DataFrame:
    """Pieces of ``bronze.runs``: edges in microseconds, and sums over the runs of a piece.

    A lead is clipped at the window; what spills beyond it belongs to the window before and is
    added once to the bound. An edge between two values above zero is none.

    Returns:
        The runs with ``s``, ``e``, ``opening`` (it begins with its window), ``sure_end``,
        ``may_start``, ``val`` (idle is 0), ``p`` (1 above zero, else 0), ``wrong``; the columns of
        ``tables.CONDENSED`` from ``held_us`` to ``fine`` are filled.
    """
    seconds, lead = value_seconds(), lead_edge()
    sure, may = sure_end(tail_edge()), may_start(lead)
    return with_(
        runs,
        {
            "s": START,
            "e": END,
            "opening": f"{START} = {WINDOW}",
            "sure_end": sure,
            "may_start": may,
            "val": "coalesce(value, 0D)",
            "p": "IF(value > 0, 1L, 0L)",
            "wrong": f"CAST({flagged(FLAG_KNOWN_WRONG)} AS INT)",
            "held_us": f"coalesce(held_us, {END} - {START})",
            "sure_us": f"coalesce(sure_us, {sure} - {START})",
            "may_us": f"coalesce(may_us, {END} - {may})",
            "spilled_us": f"coalesce(spilled_us, {spilled(lead)})",
            "lowest": "coalesce(lowest, value)",
            "coarse": f"coalesce(coarse, {seconds.coarse})",
            "fine": f"coalesce(fine, {seconds.fine})",
        },
    )


_DURATIONS: Final = {
    "observed_us": "sum(held_us * weight)",
    "positive_us": "sum(p * held_us)",
    "positive_low_us": "sum(p * sure_us)",
    "positive_high_us": "sum(p * (may_us + IF(opening, 0L, spilled_us)))",
}


def shapes(piece: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Pieces of the same times as one, with what is summed over them.

    Of hundreds of rows that fill a window one is left, so that few are to be swept.
    """
    columns = {
        **_DURATIONS,
        "lo": "min(lowest)",
        "hi": "max(value)",
        "wrong": "max(wrong)",
        "coarse": "sum(coarse)",
        "fine": "sum(fine)",
        "weight": "sum(weight)",
        "spilled_us": "max(p * spilled_us)",
    }
    same = ("s", "e", "sure_end", "may_start", "opening", "p")
    return aggregated(piece, (*keys, *same), columns)


def sums(piece: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Durations, values and extremes over pieces of atoms that do not overlap; no unions.

    The upper bound takes the part of a lead that spilled beyond the window, but not where a run
    began exactly with it: that one covered the time before the cut already.
    """
    columns = {
        **_DURATIONS,
        "min": "min(lowest)",
        "max": "max(value)",
        "series": "max(weight)",
        "known_wrong": "max(wrong) = 1",
    }
    seconds = F.expr(exact.double(exact.Lanes("sum(coarse)", "sum(fine)")))
    return aggregated(piece, keys, columns, seconds.alias("value_seconds"))


def with_(rows: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """Rows with columns of SQL."""
    return rows.withColumns({name: F.expr(sql) for name, sql in columns.items()})


def aggregated(
    rows: DataFrame, keys: Sequence[str], columns: Mapping[str, str], *more: Column
) -> DataFrame:
    """Groups of rows with columns of SQL."""
    named = (F.expr(sql).alias(name) for name, sql in columns.items())
    return rows.groupBy(*quoted(keys)).agg(*named, *more)


def quoted(names: Sequence[str]) -> list[str]:
    """Column names as Spark SQL wants them where they are words of its own."""
    return [f"`{name}`" for name in names]
