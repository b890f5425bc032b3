"""The facts as CSV (RFC 4180): a file a table, safe to open in a spreadsheet.

Text is quoted, numbers are not, and what is not known is an empty field without quotes, so that it
differs from an empty name. Names come from clients of the cluster: none becomes a formula.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import words
from lakehouse.report.csv_columns import columns
from lakehouse.report.csv_tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lakehouse.report.csv_columns import Table

CELL_LIMIT: Final = 32_000
"""Characters of a text; a spreadsheet's cell holds 767 more."""

# What begins a formula, plain and full-width, where a cell begins: also behind what another
# country's spreadsheet takes for the end of a cell.
_FORMULA: Final = re.compile("""(^|[,;|"])(\\s*)(?=[-=+@\uff1d\uff0b\uff0d\uff20])""")


def files(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every file's name and content; a table without rows is its header."""
    for table in TABLES:
        yield f"{table.name}.csv", "".join(_lines(table, facts))


def text(value: object) -> str:
    """A text from outside that no spreadsheet takes for a formula, on one line."""
    shown = words.shorten(words.visible(str(value)[: 2 * CELL_LIMIT]), CELL_LIMIT)
    return _FORMULA.sub(r"\1\2'", shown)


def _lines(table: Table, facts: Mapping[str, Any]) -> Iterator[str]:
    wanted = columns(table)
    yield _line(column.name for column in wanted)
    shared = {key: facts.get(key) for key in ("cluster", "from", "to")}
    for row in table.rows(facts):
        yield _line(column.of({**row, **shared}) for column in wanted)


def _line(values: Iterable[object]) -> str:
    return ",".join(map(_field, values)) + "\r\n"


def _field(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float):
        return repr(value)
    return '"' + text(value).replace('"', '""') + '"'
