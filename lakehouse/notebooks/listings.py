"""Lists for cells: the tables of the lake, and its subjects."""

from typing import Final

from lakehouse import tables
from lakehouse.core import formats
from lakehouse.core.periods import instant
from lakehouse.errors import TableNotFoundError, is_of_spark
from lakehouse.report.facts.gold import Gold
from lakehouse.report.page import figures
from lakehouse.report.page.figures import Row
from lakehouse.report.page.listing import Column, Listing, TableSpec, column

_INSTANTS: Final = ("window", "start", "at", "last_seen")


def tour(gold: Gold) -> tuple[Listing, ...]:
    """The tables of the lake, all clusters and weeks of them, and the subjects of the cluster."""
    rows = [_table(gold, table) for table in (*tables.BRONZE, *tables.GOLD)]
    return _TABLES.listing(rows), _KNOWN.listing(_known(gold))


def _table(gold: Gold, table: tables.Table) -> Row:
    row: Row = {"table": table.path, "about": table.comment, "since": None, "until": None}
    instants = (f"r.{name}" for name in _INSTANTS if name in table.column_names)
    at = next(instants, "CAST(NULL AS BIGINT)")
    columns = f"count(*) AS rows, min({at}) AS since, max({at}) AS until"
    try:
        (counts,) = gold.ask(f"SELECT {columns} FROM {{rows}} r", rows=gold.engine.rows(table))
    except TableNotFoundError:
        return {**row, "rows": "there is no such table"}
    except Exception as error:  # without access to bronze, gold is still listed
        if not is_of_spark(error):
            raise
        condition = getattr(error, "getCondition", str)() or "Spark refused"
        return {**row, "rows": f"not readable: {condition}"}
    return {**row, **counts}


def _known(gold: Gold) -> list[Row]:
    rows: list[Row] = []
    for kind in sorted({subject.kind for subject in gold.subjects}):
        own = [subject for subject in gold.subjects if subject.kind == kind]
        since, until = min(one.first_us for one in own), max(one.last_us for one in own)
        rows.append({"kind": kind, "number": len(own), "since": since, "until": until})
    return rows


def _at(heading: str, key: str) -> Column:
    def get(row: Row) -> figures.Figure:
        us = row[key]
        text = formats.NOT_KNOWN if us is None else f"{instant(us):%Y-%m-%d %H:%M}"
        return figures.Figure(text, order=us)

    return Column(heading, get)


def _rows(row: Row) -> figures.Figure:
    number = row["rows"]
    if isinstance(number, str):  # the reason why they cannot be counted
        return figures.Figure(number)
    return figures.Figure(f"{number:,}", order=number)


_TABLES: Final = TableSpec(
    "Tables of the lake",
    "table",
    (
        Column("Table", lambda row: row["table"], numeric=False),
        Column("A row is", lambda row: row["about"], numeric=False),
        Column("Rows", _rows),
        _at("From", "since"),
        _at("To", "until"),
    ),
    "All clusters. Agents write bronze; the rollup computes gold from it.",
)
_KNOWN: Final = TableSpec(
    "All subjects of this cluster",
    "kind",
    (
        column("Kind", "name kind"),
        column("How many", "count number"),
        _at("From", "since"),
        _at("To", "until"),
    ),
)
