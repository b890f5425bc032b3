"""A walk through the lake: what each table holds, how much of it, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import tables
from lakehouse.errors import TableNotFoundError
from lakehouse.periods import instant
from lakehouse.report import columns, figures, words
from lakehouse.report.listing import Column, Draft, Listing, figure, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.notebooks.opened import Opened
    from lakehouse.report.gather import Gold, Row
    from lakehouse.tables import Table

_WHEN: Final = ("window", "start", "at", "last_seen")


def tour(opened: Opened) -> tuple[Listing, ...]:
    """Its tables and its inhabitants.

    Args:
        opened: The lake; the tables are told of as a whole, not of one cluster and week.
    """
    told = [_table(opened.gold, table) for table in (*tables.BRONZE, *tables.GOLD)]
    return _TABLES.of(told), _KNOWN.of(_known(opened))


def _table(gold: Gold, table: Table) -> Row:
    row: Row = {"table": table.path, "about": table.comment, "rows": None, "from": None, "to": None}
    when = next((name for name in _WHEN if name in table.column_names), None)
    moment = F.lit(None).cast("bigint") if when is None else F.unix_micros(when)
    wanted = (F.count("*").alias("rows"), F.min(moment).alias("from"), F.max(moment).alias("to"))
    try:
        found = lakes.read(gold.spark, gold.lake, table).agg(*wanted).collect()[0].asDict()
    except TableNotFoundError:
        return {**row, "trouble": "there is no such table"}
    except PySparkException as error:  # who may not read bronze still sees gold
        return {**row, "trouble": f"not readable: {error.getCondition() or 'Spark refused'}"}
    return {**row, **found, "trouble": ""}


def _known(opened: Opened) -> list[dict[str, Any]]:
    kinds = sorted({one.kind for one in opened.known})
    return [
        {
            "kind": kind,
            "number": len(mine),
            "from": min(one.first_us for one in mine),
            "to": max(one.last_us for one in mine),
        }
        for kind in kinds
        if (mine := [one for one in opened.known if one.kind == kind])
    ]


def _at(key: str) -> Column:
    def get(row: Mapping[str, Any]) -> figures.Figure:
        us = row[key]
        said = words.NOT_KNOWN if us is None else f"{instant(us):%Y-%m-%d %H:%M}"
        return figures.plain(us, said)

    return Column({"from": "From", "to": "To"}[key], figure(get))


def _rows(row: Mapping[str, Any]) -> figures.Figure:
    number = row["rows"]
    if number is None:
        return figures.Figure(row["trouble"])
    return figures.plain(number, f"{number:,}")


_TABLES: Final = Draft(
    "Tables of the lake",
    "table",
    (
        Column("Table", text(lambda row: row["table"]), numeric=False),
        Column("A row is", text(lambda row: row["about"]), numeric=False),
        Column("Rows", figure(_rows)),
        _at("from"),
        _at("to"),
    ),
    "Of every cluster. Bronze is what the agents wrote; gold is made of it by the rollup.",
)
_KNOWN: Final = Draft(
    "What was ever seen in this cluster",
    "kind",
    (
        columns.one("Kind", "kind"),
        columns.plain("How many", "number", words.count),
        _at("from"),
        _at("to"),
    ),
)
