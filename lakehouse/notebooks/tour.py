"""A walk through the lake: what each table holds, how much of it, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse import tables
from lakehouse.errors import TableNotFoundError, is_of_spark
from lakehouse.periods import instant
from lakehouse.report import figures, words
from lakehouse.report.listing import Column, Draft, Listing, column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.gold_rows import Row
    from lakehouse.notebooks.opened import Opened
    from lakehouse.report.gather import Gold
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
    whens = (f"r.{name}" for name in _WHEN if name in table.column_names)
    when = next(whens, "CAST(NULL AS BIGINT)")
    wanted = f"count(*) AS number, min({when}) AS since, max({when}) AS until"
    try:
        (found,) = gold.ask(f"SELECT {wanted} FROM {{rows}} r", rows=gold.engine.rows(table))
    except TableNotFoundError:
        return {**row, "trouble": "there is no such table"}
    except Exception as error:  # who may not read bronze still sees gold
        if not is_of_spark(error):
            raise
        return {**row, "trouble": f"not readable: {_condition(error)}"}
    told = {"rows": found["number"], "from": found["since"], "to": found["until"]}
    return {**row, **told, "trouble": ""}


def _condition(error: Any) -> str:
    return getattr(error, "getCondition", str)() or "Spark refused"


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

    return Column({"from": "From", "to": "To"}[key], get)


def _rows(row: Mapping[str, Any]) -> figures.Figure:
    number = row["rows"]
    if number is None:
        return figures.Figure(row["trouble"])
    return figures.plain(number, f"{number:,}")


_TABLES: Final = Draft(
    "Tables of the lake",
    "table",
    (
        Column("Table", lambda row: row["table"], numeric=False),
        Column("A row is", lambda row: row["about"], numeric=False),
        Column("Rows", _rows),
        _at("from"),
        _at("to"),
    ),
    "Of every cluster. Bronze is what the agents wrote; gold is made of it by the rollup.",
)
_KNOWN: Final = Draft(
    "What was ever seen in this cluster",
    "kind",
    (
        column("Kind", "name kind"),
        column("How many", "count number"),
        _at("from"),
        _at("to"),
    ),
)
