"""The facts as CSV (RFC 4180): a file a table of csv.yaml, safe to open in a spreadsheet.

Text is quoted, numbers are not, and what is not known is an empty field without quotes, so that it
differs from an empty name. Names come from clients of the cluster: none becomes a formula.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from lakehouse.report import incidents, lookup, words
from lakehouse.report.lookup import declared, subjects, value_at

Facts = Mapping[str, Any]
Row = Mapping[str, Any]

CELL_LIMIT: Final = 32_000
"""Characters of a text; a spreadsheet's cell holds 767 more."""

# What begins a formula, plain and full-width, where a cell begins: also behind what another
# country's spreadsheet takes for the end of a cell.
_FORMULA: Final = re.compile("""(^|[,;|"])(\\s*)(?=[-=+@\uff1d\uff0b\uff0d\uff20])""")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, what it says, where a row has it, and as what it is written."""

    name: str
    means: str
    path: str
    kind: str = ""

    def of(self, row: Row) -> Any:
        """The row's value; None where it is not known."""
        found = value_at(row, self.path)
        return _KINDS[self.kind](found) if self.kind else found


@dataclass(frozen=True, slots=True)
class Table:
    """One file: its name without ``.csv``, what a row is, the rows in the facts, the columns."""

    name: str
    each: str
    rows: Callable[[Facts], Iterable[Row]]
    columns: tuple[Column, ...]


@lru_cache
def common() -> tuple[Column, ...]:
    """The columns that every file begins with."""
    return tuple(_columns(declared("csv.yaml")["common"]))


@lru_cache
def tables() -> tuple[Table, ...]:
    """Every table of csv.yaml."""
    return tuple(
        Table(name, told["each"], _rows(told), tuple(_columns(told["columns"])))
        for name, told in declared("csv.yaml")["tables"].items()
    )


def files(facts: Facts) -> Iterator[tuple[str, str]]:
    """Every file's name and content; a table without rows is its header."""
    for table in tables():
        yield f"{table.name}.csv", "".join(_lines(table, facts))


def text(value: object) -> str:
    """A text from outside that no spreadsheet takes for a formula, on one line."""
    shown = words.shorten(words.visible(str(value)[: 2 * CELL_LIMIT]), CELL_LIMIT)
    return _FORMULA.sub(r"\1\2'", shown)


def _columns(told: Iterable[Any]) -> Iterator[Column]:
    for name, given in lookup.columns(told):
        more = given if isinstance(given, dict) else {"means": given}
        yield Column(name, more["means"], more.get("path", name), more.get("as", ""))


def _rows(told: Mapping[str, str]) -> Callable[[Facts], Iterable[Row]]:
    return _MADE.get(told["rows"]) or (lambda facts: value_at(facts, told["rows"]) or ())


def _lines(table: Table, facts: Facts) -> Iterator[str]:
    wanted = (*common(), *table.columns)
    yield _line(column.name for column in wanted)
    shared = {column.path: facts.get(column.path) for column in common()}
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


def _counts(told: Mapping[str, int] | None, *, zeros: bool = False) -> str:
    return " ".join(f"{name}={count}" for name, count in (told or {}).items() if count or zeros)


_KINDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "list": lambda told: " ".join(map(str, told or ())),
    "counts": _counts,
    "all_counts": lambda told: _counts(told, zeros=True),
    "flag": lambda told: int(bool(told)),
}


def _subjects(told: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    for objective, subject in subjects(told or {}):
        yield {
            **subject,
            **{key: objective.get(key) for key in ("target", "window", "method")},
            "objective": objective.get("name"),
            "window_from": objective.get("from"),
            "window_to": objective.get("to"),
        }


def _burns(facts: Facts) -> Iterator[Row]:
    return ({**one, **pair} for one in _subjects(facts) for pair in one.get("burn") or ())


def _topics_without_a_spare_replica(facts: Facts) -> Iterator[Row]:
    for finding in ("replication_one", "no_spare_replica"):
        for row in value_at(facts, f"hygiene.{finding}") or ():
            yield {"finding": finding, **row}


def _weeks(facts: Facts) -> Iterator[Row]:
    names = value_at(facts, "trends.weeks") or ()
    for subject in _subjects(facts.get("trends")):
        for name, week in zip(names, subject.get("weeks") or (), strict=True):
            if week is not None:
                yield {**subject, **week, "week": name}


def _points(facts: Facts) -> Iterator[Row]:
    for line in facts.get("timelines") or ():
        for point in line.get("points") or ():
            yield {**line, **dict(zip(("at", "value", "low", "high"), point, strict=True))}


_MADE: Final[Mapping[str, Callable[[Facts], Iterable[Row]]]] = {
    "subjects": _subjects,
    "subjects_in_business_hours": lambda facts: _subjects(facts.get("business_hours")),
    "concerned_by_maintenance": lambda facts: (
        one for one in _subjects(facts) if one.get("maintenance")
    ),
    "burns": _burns,
    "incidents": incidents.incidents,
    "topics_without_a_spare_replica": _topics_without_a_spare_replica,
    "trends": lambda facts: _subjects(facts.get("trends")),
    "weeks": _weeks,
    "gaps": incidents.gaps,
    "points": _points,
}
"""The rows that are not in the facts as they are, by the names of csv.yaml."""
