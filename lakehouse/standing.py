"""Rows that stand for windows of an hour: the same zeros, told again in each of them.

Most of bronze says that what is folded is zero, for all of a window, and says so again in the next
one. In gold/condensed these are one row for the hour, with a bit for each window in ``standing``;
its window, start and end are those of the first. Whoever needs windows takes it apart, at best
after such rows were summed. A row that an agent told twice would count once; delivery sees to it
that there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse.grains import HOUR_SECONDS
from lakehouse.judgement import LONGEST_EDGE_US
from lakehouse.metrics import DESCRIBING, is_counter
from lakehouse.pieces import END, START, WINDOW, with_
from lakehouse.tables import LONGEST_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

_HOUR_US: Final = HOUR_SECONDS * 1_000_000
_BITS: Final = 60
_NAMELESS: Final = ("partition", "group", "user", "client_id", "labels")

HOUR: Final = f"({WINDOW} - pmod({WINDOW}, {_HOUR_US}L))"
"""Start of the hour of a row's window."""


def stands(window_seconds: int) -> Column:
    """Whether a run may be one of those: folded, zero or idle, and as long as its window."""
    if HOUR_SECONDS // window_seconds > _BITS:
        return F.lit(False)  # noqa: FBT003 - a literal
    whole = F.expr(f"{START} = {WINDOW} AND {END} - {WINDOW} = {window_seconds * 1_000_000}L")
    plain = F.col("members").isNotNull() & (F.col("value").isNull() | (F.col("value") == 0))
    for name in _NAMELESS:
        plain = plain & F.col(f"`{name}`").isNull()
    for name in ("lead_us", "tail_us"):
        plain = plain & F.col(name).between(0, LONGEST_EDGE_US)
    # Flags last: nothing costs as much.
    plain = plain & (F.col("series") > 0)
    size = F.octet_length(F.coalesce("topic", F.lit("x")))
    told = size.between(1, LONGEST_NAME) & ~F.col("metric").isin(*DESCRIBING) & ~is_counter()
    return F.coalesce(plain & whole & told, F.lit(False))  # noqa: FBT003 - a literal


def bit(window_seconds: int) -> str:
    """The bit of a row's window."""
    return f"shiftleft(1L, CAST(({WINDOW} - {HOUR}) div {window_seconds * 1_000_000}L AS INT))"


def until(window_seconds: int) -> Column:
    """End of the last window that a row stands for; of any other row its end."""
    last = f"timestamp_micros({HOUR} + length(bin(standing)) * {window_seconds * 1_000_000}L)"
    return F.expr(f"IF(standing IS NULL, `end`, {last})")


def in_each_window(
    rows: DataFrame,
    window_seconds: int,
    instants: Sequence[str] = ("window", "start", "end"),
    micros: Sequence[str] = (),
) -> DataFrame:
    """Rows that stand for several windows once in each; all others as they are.

    Args:
        rows: With ``window`` and ``standing``.
        window_seconds: Length of a window.
        instants: Columns that lie in the window.
        micros: Such columns in microseconds since the epoch.
    """
    steps = HOUR_SECONDS // window_seconds
    if steps > _BITS:
        return rows
    told = ", ".join(f"IF(standing & {1 << step}L != 0, {step}, NULL)" for step in range(steps))
    shift = f"IF(step < 0, 0L, {HOUR} + step * {window_seconds * 1_000_000}L - {WINDOW})"
    each = rows.withColumn(
        "step", F.expr(f"explode(IF(standing IS NULL, array(-1), array({told})))")
    )
    placed = with_(each.where("step IS NOT NULL"), {"shift": shift})
    columns = {name: f"timestamp_micros(unix_micros(`{name}`) + shift)" for name in instants}
    columns |= {name: f"{name} + shift" for name in micros}
    return with_(placed, {**columns, "standing": "CAST(NULL AS BIGINT)"}).drop("step", "shift")
