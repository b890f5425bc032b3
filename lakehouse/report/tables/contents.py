"""Contents of columns: times, numbers, names and words of a row."""

from collections.abc import Callable
from typing import Any

from lakehouse.core import display
from lakehouse.report import figures
from lakehouse.report.figures import BOUNDS, Name, Row, around, length, value_at
from lakehouse.report.resources import declared
from lakehouse.report.tables.table_spec import Cell, Content

Write = Callable[[Any], str]
"""Formats a number; for None it returns ``not known``."""


def size(value: float | None) -> str:
    """Return a number of bytes; 0 has no unit."""
    return "0" if value == 0 else display.size(value)


def words(group: str, value: object) -> str:
    """Return the words for a value of the facts, from a group of page.yaml."""
    text = display.NOT_KNOWN if value is None else display.line(value)
    return str(declared("page.yaml")["terms"][group].get(str(value), text))


# Columns.


def time(stem: str, within: str = "") -> Content:
    """Return a duration, from ``_us``, ``_low_us`` and ``_high_us``.

    Args:
        stem: The beginning of the three keys.
        within: Path of the record within the row; empty: the row.
    """
    keys = tuple(f"{within}{'.' * bool(within)}{stem}{bound}_us" for bound in BOUNDS)
    return Content(lambda row: bounded(row, keys, length), keys)


def count(key: str, write: Write = display.count) -> Content:
    """Return a number with its bounds, from ``key``, ``key_low`` and ``key_high``."""
    keys = tuple(f"{key}{bound}" for bound in BOUNDS)
    return Content(lambda row: bounded(row, keys, lambda value, _="": write(value)), keys)


def between(key: str, write: Write = display.count) -> Content:
    """Return a number with bounds only, from ``key_low`` and ``key_high``."""
    keys = tuple(f"{key}{bound}" for bound in BOUNDS[1:])

    def cell(row: Row) -> Cell:
        low, high = (value_at(row, one) for one in keys)
        return least_to_most(low, high, write)

    return Content(cell, keys)


def number(key: str, write: Write = display.count, *, is_peak: bool = False) -> Content:
    """Return a number without bounds."""

    def cell(row: Row) -> Cell:
        value = value_at(row, key)
        return Cell((write(value),), order=value)

    return Content(cell, (key,), is_peak=is_peak)


def peak(key: str, write: Write = display.count) -> Content:
    """Return a maximum."""
    return number(key, write, is_peak=True)


def name(*keys: str) -> Content:
    """Return names from outside, such as a user and a client id: ``billing / invoicing``."""

    def cell(row: Row) -> Cell:
        found = [figures.name(row[key]) for key in keys if row.get(key) is not None]
        return Cell(joined(found))

    return Content(cell, keys, is_figure=False)


def partition() -> Content:
    """Return a partition as Kafka's tools write it: ``orders-3``."""
    return Content(
        lambda row: Cell(figures.single(f"{row['topic']}-{row['partition']}")),
        ("topic", "partition"),
        is_figure=False,
    )


def word(group: str, key: str) -> Content:
    """Return a value of the facts in words of page.yaml."""
    return Content(lambda row: Cell((words(group, row.get(key)),)), (key,), is_figure=False)


def instant(key: str) -> Content:
    """Return an instant, to the second."""

    def cell(row: Row) -> Cell:
        at = row.get(key)
        return Cell((display.day_and_time(at),), instant=at or "")

    return Content(cell, (key,), is_figure=False)


def of(cell: Callable[[Row], Cell | str], *keys: str, is_figure: bool = True) -> Content:
    """Return a content that a function makes.

    Args:
        cell: Makes the cell, or its text.
        keys: The keys that it reads.
        is_figure: Whether it is aligned to the right.
    """

    def made(row: Row) -> Cell:
        found = cell(row)
        return Cell((found,)) if isinstance(found, str) else found

    return Content(made, keys, is_figure)


# Figures.


def bounded(row: Row, keys: tuple[str, ...], write: Callable[..., str]) -> Cell:
    """Return a figure with its bounds: as text if they are wide, otherwise as a tooltip.

    Args:
        row: The row.
        keys: Keys of the figure and its two bounds.
        write: Formats a number and takes how it is rounded.
    """
    value, low, high = (value_at(row, key) for key in keys)
    if value is None:
        return least_to_most(low, high, write)
    if high is None and low == value:
        return Cell((f"≥ {write(low, 'down')}",), order=value)
    text, wide = around(value, low, high, write)
    return Cell((write(value),), text if wide else "", "" if wide else text, value)


def least_to_most(low: float | None, high: float | None, write: Callable[..., str]) -> Cell:
    """Return a figure with known bounds only, or with one known bound."""
    if low is None and high is None:
        return Cell((display.NOT_KNOWN,))
    if low is None or high is None:
        bound, limit = (low, "≥") if high is None else (high, "≤")
        return Cell((f"{limit} {write(bound)}",), order=bound)
    if low == high:
        return Cell((write(low),), order=high)
    return Cell((f"{write(low)} to {write(high)}",), order=high)


def text_of(cell: Cell) -> str:
    """Return a cell within a sentence, its names isolated."""
    text = "".join(one if isinstance(one, str) else isolated(one) for one in cell.text)
    return f"{text} ({cell.bounds})" if cell.bounds else text


def isolated(one: Name) -> str:
    """Return a name so that its writing direction does not change the sentence around it."""
    return f"\u2068{one.text}\u2069"


def joined(names: list[Name]) -> tuple[str | Name, ...]:
    """Return names with a slash between them."""
    found: list[str | Name] = []
    for one in names:
        found += [" / ", one] if found else [one]
    return tuple(found)


def longest(*stems: str) -> Callable[[Row], Any]:
    """Return a sort key: the longest of some times, its upper bound, the unknown time."""
    return lambda row: figures.badness(row, *stems)


def most(*keys: str) -> Callable[[Row], Any]:
    """Return a sort key: the figures, the first one first."""
    return lambda row: [value_at(row, key) or 0 for key in keys]
