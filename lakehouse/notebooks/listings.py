"""Lists for cells: what each table of the lake holds, and until when; and the rows of any SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import tables
from lakehouse.errors import TableNotFoundError, is_of_spark
from lakehouse.periods import instant
from lakehouse.report import figures, words
from lakehouse.report.figures import Cell
from lakehouse.report.listing import MORE, WORST, Column, Draft, Listing, column

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from lakehouse.notebooks.opened import Opened
    from lakehouse.report.figures import Row
    from lakehouse.report.gather import Gold
    from lakehouse.tables import Table

MOST: Final = WORST + MORE
_WHEN: Final = ("window", "start", "at", "last_seen")
_INSTANT: Final = "timestamp"
_NUMBERS: Final = ("int", "bigint", "double", "float", "decimal", "smallint", "tinyint")


def tour(opened: Opened) -> tuple[Listing, ...]:
    """Its tables and its inhabitants.

    Args:
        opened: The lake; the tables are told of as a whole, not of one cluster and week.
    """
    told = [_table(opened.gold, table) for table in (*tables.BRONZE, *tables.GOLD)]
    return _TABLES.of(told), _KNOWN.of(_known(opened))


def _table(gold: Gold, table: Table) -> Row:
    row: Row = {"table": table.path, "about": table.comment, "since": None, "until": None}
    whens = (f"r.{name}" for name in _WHEN if name in table.column_names)
    when = next(whens, "CAST(NULL AS BIGINT)")
    wanted = f"count(*) AS rows, min({when}) AS since, max({when}) AS until"
    try:
        (found,) = gold.ask(f"SELECT {wanted} FROM {{rows}} r", rows=gold.engine.rows(table))
    except TableNotFoundError:
        return {**row, "rows": "there is no such table"}
    except Exception as error:  # who may not read bronze still sees gold
        if not is_of_spark(error):
            raise
        condition = getattr(error, "getCondition", str)() or "Spark refused"
        return {**row, "rows": f"not readable: {condition}"}
    return {**row, **found}


def _known(opened: Opened) -> list[Row]:
    kinds = sorted({one.kind for one in opened.known})
    return [
        {
            "kind": kind,
            "number": len(mine),
            "since": min(one.first_us for one in mine),
            "until": max(one.last_us for one in mine),
        }
        for kind in kinds
        if (mine := [one for one in opened.known if one.kind == kind])
    ]


def _at(heading: str, key: str) -> Column:
    def get(row: Row) -> figures.Figure:
        us = row[key]
        said = words.NOT_KNOWN if us is None else f"{instant(us):%Y-%m-%d %H:%M}"
        return figures.plain(us, said)

    return Column(heading, get)


def _rows(row: Row) -> figures.Figure:
    number = row["rows"]
    if isinstance(number, str):  # why they cannot be counted
        return figures.Figure(number)
    return figures.plain(number, f"{number:,}")


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


_TABLES: Final = Draft(
    "Tables of the lake",
    "table",
    (
        Column("Table", lambda row: row["table"], numeric=False),
        Column("A row is", lambda row: row["about"], numeric=False),
        Column("Rows", _rows),
        _at("From", "since"),
        _at("To", "until"),
    ),
    "Of every cluster. Bronze is what the agents wrote; gold is made of it by the rollup.",
)
_KNOWN: Final = Draft(
    "What was ever seen in this cluster",
    "kind",
    (
        column("Kind", "name kind"),
        column("How many", "count number"),
        _at("From", "since"),
        _at("To", "until"),
    ),
)
