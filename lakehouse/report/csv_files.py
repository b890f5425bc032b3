"""The facts as CSV (RFC 4180): a file a table of csv.yaml, safe to open in a spreadsheet.

Text is quoted, numbers are not. A figure that is not known is an empty field without quotes, so
that it differs from an empty name. Clients of the cluster choose names: none becomes a formula.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from lakehouse.core import display
from lakehouse.report import facts_lookup, resources
from lakehouse.report.facts import build
from lakehouse.report.figures import Facts, Row

CELL_LIMIT: Final = 32_000
"""Characters of a text; a spreadsheet's cell holds 767 more."""

# Characters that begin a formula, plain and full-width, at the start of a cell; and after one that
# ends a cell in a spreadsheet of another locale.
_FORMULA: Final = re.compile("""(^|[,;|"])(\\s*)(?=[-=+@\uff1d\uff0b\uff0d\uff20])""")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: name, meaning, path of its value in a row, and as which kind it is written."""

    name: str
    means: str
    path: str
    kind: str = ""

    def of(self, row: Row) -> Any:
        """The row's value; None: not known."""
        value = facts_lookup.value_at(row, self.path)
        return _KINDS[self.kind](value) if self.kind else value


@dataclass(frozen=True, slots=True)
class Table:
    """One file: its name without ``.csv``, what a row is, where its rows are, and its columns.

    Attributes:
        source: The path of the rows in the facts, or the name of a function that makes them.
        having: A key without which a row is left out.
    """

    name: str
    each: str
    source: str
    having: str
    columns: tuple[Column, ...]

    def rows(self, facts: Facts) -> Iterable[Row]:
        """The table's rows."""
        made = _ROWS.get(self.source)
        rows = made(facts) if made else facts_lookup.rows_at(facts, self.source)
        return (row for row in rows if not self.having or row.get(self.having))


@lru_cache
def common() -> tuple[Column, ...]:
    """The columns that every file begins with."""
    return tuple(_columns(resources.declared("csv.yaml")["common"]))


@lru_cache
def tables() -> tuple[Table, ...]:
    """Every table of csv.yaml."""
    return tuple(
        Table(name, one["each"], one["rows"], one.get("with", ""), tuple(_columns(one["columns"])))
        for name, one in resources.declared("csv.yaml")["tables"].items()
    )


def files(facts: Facts) -> Iterator[tuple[str, str]]:
    """Every file's name and content; a table without rows is its header."""
    for table in tables():
        yield f"{table.name}.csv", "".join(_lines(table, facts))


def text(value: object) -> str:
    """A text from outside on one line that no spreadsheet takes for a formula."""
    visible = display.shorten(display.visible(str(value)[: 2 * CELL_LIMIT]), CELL_LIMIT)
    return _FORMULA.sub(r"\1\2'", visible)


def _columns(listed: Iterable[Any]) -> Iterator[Column]:
    for name, declared_ in resources.columns(listed):
        column = declared_ if isinstance(declared_, dict) else {"means": declared_}
        yield Column(name, column["means"], column.get("path", name), column.get("as", ""))


def _lines(table: Table, facts: Facts) -> Iterator[str]:
    yield _line(column.name for column in (*common(), *table.columns))
    shared = [column.of(facts) for column in common()]
    for row in table.rows(facts):
        yield _line([*shared, *(column.of(row) for column in table.columns)])


def _line(values: Iterable[object]) -> str:
    return ",".join(map(_field, values)) + "\r\n"


def _field(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float):
        return repr(value)
    return '"' + text(value).replace('"', '""') + '"'


def _counts(counts: Mapping[str, int] | None, *, zeros: bool = False) -> str:
    return " ".join(f"{name}={count}" for name, count in (counts or {}).items() if count or zeros)


_KINDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "list": lambda values: " ".join(map(str, values or ())),
    "counts": _counts,
    "all_counts": lambda counts: _counts(counts, zeros=True),
    "flag": lambda value: int(bool(value)),
}


def _topics_without_a_spare_replica(facts: Facts) -> Iterator[Row]:
    for finding in ("replication_one", "no_spare_replica"):
        rows = facts_lookup.rows_at(facts, f"hygiene.{finding}")
        yield from ({"finding": finding, **row} for row in rows)


def _weeks(facts: Facts) -> Iterator[Row]:
    names = facts_lookup.value_at(facts, "trends.weeks") or ()
    for subject in facts_lookup.rows_at(facts, "trends.objectives.subjects"):
        for name, week in zip(names, subject.get("weeks") or (), strict=True):
            if week is not None:
                yield {**subject, **week, "week": name}


def _points(facts: Facts) -> Iterator[Row]:
    for line in facts.get("timelines") or ():
        for point in line.get("points") or ():
            yield {**line, **dict(zip(("at", "value", "low", "high"), point, strict=True))}


def _decided(facts: Facts) -> Iterator[Row]:
    yield from (one._asdict() for one in build.answers(facts))


def _lost_by_group(facts: Facts) -> Iterator[Row]:
    yield from facts_lookup.rows_at(facts_lookup.with_totals(facts), "lost_before_read.totals")


_ROWS: Final[Mapping[str, Callable[[Facts], Iterable[Row]]]] = {
    "decided": _decided,
    "lost_by_group": _lost_by_group,
    "topics_without_a_spare_replica": _topics_without_a_spare_replica,
    "weeks": _weeks,
    "points": _points,
}
"""Rows that are made of the facts, by the names of csv.yaml."""
