"""Rows of any SQL as a list of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse.periods import instant
from lakehouse.report import figures, words
from lakehouse.report.figures import Cell
from lakehouse.report.listing import MORE, WORST, Column, Draft, Listing

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from lakehouse.report.figures import Row

MOST: Final = WORST + MORE
_INSTANT: Final = "timestamp"
_NUMBERS: Final = ("int", "bigint", "double", "float", "decimal", "smallint", "tinyint")


def rows(found: DataFrame) -> Listing:
    """The first rows of a query, in its order.

    Args:
        found: Its rows, of any columns.
    """
    types = {field.name: field.dataType.simpleString() for field in found.schema}
    columns = tuple(
        Column(words.line(name).replace("_", " "), _cell(name, type_), type_.startswith(_NUMBERS))
        for name, type_ in types.items()
    )
    # Spark hands out instants in the time zone of this process.
    instants = [name for name, type_ in types.items() if type_ == _INSTANT]
    for name in instants:
        found = found.withColumn(name, F.unix_micros(F.col(f"`{name}`")))
    told = [row.asDict() for row in found.limit(MOST + 1).collect()]
    note = f"The first {MOST} rows." if len(told) > MOST else ""
    return Draft("Rows", "row", columns, note).of(told[:MOST])


def _cell(name: str, type_: str) -> Callable[[Row], Cell]:
    def cell(row: Row) -> Cell:
        value = row[name]
        if value is None:
            return Cell(figure=figures.Figure(words.NOT_KNOWN))
        if type_ == _INSTANT:
            return Cell(text=f"{instant(value):%Y-%m-%d %H:%M:%S}", order=float(value))
        if isinstance(value, bool | int | float):
            return Cell(text=_number(value), order=float(value))
        text = words.line(value, words.NAME_LIMIT)
        return Cell(text=text, order=text)

    return cell


def _number(value: float) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"
