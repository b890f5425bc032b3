"""Sums of doubles that are the same in whatever order they are made.

Doubles are added as whole numbers, to the millionth, in two lanes: ``value = coarse * 2^22 +
fine / 10^6``. Each lane is a 64-bit integer, which Spark adds in registers; a decimal of 38 digits
says the same at ten times the cost. A lane holds the sum of two million values, each as large as a
value of bronze may be.

Expressions are SQL text here, in ``edges`` and in ``sweep``: they are large, and Python builds a
tree of columns a hundred times slower than Spark parses a line.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

_COARSE: Final = "4194304D"  # 2^22: multiplying by it and dividing by it rounds nothing
_COARSE_IN_FINE: Final = 4_194_304_000_000
_IN_ONE_LANE: Final = 1 << 20


class Lanes(NamedTuple):
    """A number, or a sum of numbers, in two lanes: SQL of two integers."""

    coarse: str
    fine: str


def lanes(value: str) -> Lanes:
    """A double in two lanes, to the millionth; null stays null."""
    coarse = f"CAST(({value}) / {_COARSE} AS BIGINT)"
    return Lanes(coarse, f"CAST(rint((({value}) - {coarse} * {_COARSE}) * 1e6D) AS BIGINT)")


def double(sums: Lanes) -> str:
    """The double that is nearest to what two lanes hold."""
    return (
        f"IF(abs({sums.coarse}) < {_IN_ONE_LANE}, "
        f"({sums.coarse} * {_COARSE_IN_FINE} + {sums.fine}) / 1e6D, "
        f"{sums.coarse} * {_COARSE} + {sums.fine} / 1e6D)"
    )


def total(value: str) -> Column:
    """The sum of doubles over a group, as a double; null where there is none."""
    coarse, fine = lanes(value)
    return F.expr(double(Lanes(f"sum({coarse})", f"sum({fine})")))
