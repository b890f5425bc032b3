"""The kinds of columns that tables of the page have, by their names in page.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import cells, change_cells, figures, words
from lakehouse.report.listing import Cell, Column, Shown, shown
from lakehouse.report.lookup import value_at

if TYPE_CHECKING:
    from lakehouse.report.figures import Figure, Row

FUNCTIONS: Final[Mapping[str, Callable[[Row], Any]]] = {**vars(cells), **vars(change_cells)}
"""Those that page.yaml names."""

Write = Callable[[float | None], str]


def column(heading: str, told: str) -> Column:
    """A column of page.yaml, such as ``Topic`` and ``name topic``."""
    kind, _, key = told.partition(" ")
    if kind in _FIGURES:
        return _FIGURES[kind](heading, key)
    get: Callable[[Row], Shown] = (
        FUNCTIONS[key] if kind == "text" else lambda row: _OTHERS[kind](row, key)
    )
    return Column(heading, shown(get), numeric=False)


def one(heading: str, key: str) -> Column:
    """A name whose column says what it is."""
    return column(heading, f"name {key}")


def plain(heading: str, key: str, write: Write) -> Column:
    """A number without bounds, in the words of ``write``."""

    def get(row: Row) -> Figure:
        value = value_at(row, key)
        return figures.plain(value, write(value))

    return Column(heading, shown(get))


def _plain(write: Write) -> Callable[[str, str], Column]:
    return lambda heading, key: plain(heading, key, write)


def _bounded(heading: str, told: str) -> Column:
    unit, _, key = told.partition(" ")
    return Column(heading, shown(lambda row: figures.between(row, key, _WRITTEN[unit])))


def _at(row: Row, key: str) -> Cell:
    return Cell(text=words.day_above_time(row.get(key)), order=row.get(key))


def badge(told: object) -> Cell:
    """A verdict of the facts."""
    verdict = words.verdict(told)
    return Cell(verdict=verdict, order=-float(words.rank(verdict)))


_WRITTEN: Final[Mapping[str, Write]] = {
    "count": words.count,
    "size": words.size,
    "seconds": words.seconds,
    "microseconds": words.microseconds,
    "milliseconds": words.milliseconds,
}
_FIGURES: Final[Mapping[str, Callable[[str, str], Column]]] = {
    **{kind: _plain(write) for kind, write in _WRITTEN.items()},
    "bounded": _bounded,
    "time": lambda heading, stem: Column(heading, shown(lambda row: figures.time(row, stem))),
    "rate": lambda heading, key: Column(heading, shown(lambda row: cells.rate(row, key))),
    "share": lambda heading, key: Column(
        heading, shown(lambda row: figures.attainment(value_at(row, key) or {}))
    ),
    "figure": lambda heading, name: Column(heading, shown(FUNCTIONS[name])),
}
"""Columns of numbers."""

_OTHERS: Final[Mapping[str, Callable[[Row, str], Shown]]] = {
    "name": lambda row, key: figures.single(row.get(key)),
    "names": lambda row, keys: figures.subject(row, keys.split() or figures.SUBJECT_KEYS),
    "line": lambda row, key: words.line(row.get(key) or ""),
    "at": _at,
    "verdict": lambda row, key: badge(value_at(row, key)),
}
