"""Columns that tables of the report share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.report import figures, words
from lakehouse.report.listing import Cell, Column, figure, names

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse.report.figures import Row


def subject(heading: str, *keys: str) -> Column:
    """Names with their labels, such as a topic and its partition."""
    return Column(heading, names(lambda row: figures.subject(row, keys)), numeric=False)


def one(heading: str, key: str) -> Column:
    """A name whose column says what it is."""
    return Column(heading, names(lambda row: figures.single(row.get(key))), numeric=False)


def time(heading: str, stem: str) -> Column:
    """A duration with its bounds."""
    return Column(heading, figure(lambda row: figures.time(row, stem)))


def plain(heading: str, key: str, write: Callable[[float | None], str]) -> Column:
    """A number without bounds, in the words of ``write``."""
    return Column(heading, figure(lambda row: figures.plain(row.get(key), write(row.get(key)))))


def span(seconds: float | None) -> str:
    """A time given in seconds."""
    return words.duration(None if seconds is None else round(seconds * 1_000_000))


def span_us(us: float | None) -> str:
    """A time given in microseconds."""
    return words.duration(None if us is None else round(us))


def at(heading: str, key: str) -> Column:
    """An instant."""

    def cell(row: Row) -> Cell:
        return Cell(text=words.day_above_time(row.get(key)), order=row.get(key))

    return Column(heading, cell, numeric=False)
