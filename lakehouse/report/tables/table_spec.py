"""Tables of the details: typed columns with their contents, and the worst rows first."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Final, NamedTuple

from lakehouse.core import display
from lakehouse.report import evidence, figures, owners
from lakehouse.report.evidence import Evidence
from lakehouse.report.facts import fields
from lakehouse.report.facts.fields import Rows
from lakehouse.report.figures import (
    BOUNDS,
    Facts,
    Name,
    Row,
    around,
    declared,
    length,
    rows_at,
    value_at,
)

MOST: Final = 100
"""Rows of a table; a file has the others. So the page of a fleet stays below 1.5 MB."""


class Cell(NamedTuple):
    """The content of a table's cell.

    Attributes:
        text: Words and names from outside, in reading order.
        bounds: Bounds that must be read with the figure; mostly empty.
        title: Bounds that need not be, for a tooltip.
        order: Sort key; None: the text is.
        link: The fragment that it links to; empty: none.
        instant: The instant that it shows, ISO 8601; empty: none.
    """

    text: tuple[str | Name, ...] = ()
    bounds: str = ""
    title: str = ""
    order: float | None = None
    link: str = ""
    instant: str = ""


class Content(NamedTuple):
    """A function that makes the cells of a column, and the keys that it reads.

    Attributes:
        cell: Makes the cell.
        keys: Dotted paths in the record.
        is_figure: Whether it is aligned to the right.
        is_peak: Whether unobserved time may hide a greater one.
    """

    cell: Callable[[Row], Cell]
    keys: tuple[str, ...] = ()
    is_figure: bool = True
    is_peak: bool = False


class Column(NamedTuple):
    """A column: its heading and its content."""

    heading: str
    content: Content


class Listing(NamedTuple):
    """A table as the page shows it.

    Attributes:
        caption: Its title.
        columns: Its headings; the first names the row.
        rows: The worst rows, a cell for each column.
        notes: Sentences on all rows.
        omitted: How many rows it does not have.
        file: The file with all rows.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    omitted: int = 0
    file: str = ""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table without its rows.

    Attributes:
        rows: Its rows in the facts. One is shown if one of their figures is above zero; without
            figures every row is.
        caption: The title.
        noun: A row.
        columns: The columns; the first names the row.
        file: The CSV file with all rows, without ``.csv``; empty: the rows' path.
        worst: Sort key, greatest first; None: rows are in order.
        quiet: Predicate of the rows that are not shown; empty: no sentence.
        unknown: Key of a row's unobserved time; empty: it has none.

    Raises:
        TypeError: A key is not one of the record.
    """

    rows: Rows
    caption: str
    noun: str
    columns: tuple[Column, ...]
    file: str = ""
    worst: Callable[[Row], Any] | None = None
    quiet: str = ""
    unknown: str = "unknown_us"

    def __post_init__(self) -> None:
        """Check the keys, so that a renamed field fails at import."""
        keys = (key for column in self.columns for key in column.content.keys)
        fields.check_keys(self.rows.record, (*keys, *self.rows.keys))

    @property
    def csv_file(self) -> str:
        """The name of the CSV file with all rows."""
        return f"{self.file or self.rows.path.replace('.', '_')}.csv"

    def all_rows(self, facts: Facts) -> list[Row]:
        """Return all rows of the facts."""
        return list(rows_at(facts, self.rows.path))

    def bad_rows(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows to show, the worst first."""
        keys = self.rows.keys
        shown = [row for row in rows if not keys or evidence.is_bad(row, keys)]
        return shown if self.worst is None else sorted(shown, key=self.worst, reverse=True)

    def listing(
        self, facts: Facts, rows: Sequence[Row] | None = None, decided: Evidence | None = None
    ) -> Listing:
        """Return the table of the facts' rows, or of those rows.

        Args:
            facts: The facts of a report.
            rows: Rows made from the facts.
            decided: The decision on the question; None: no sentence on rows that are not shown.
        """
        every = self.all_rows(facts) if rows is None else rows
        shown = self.bad_rows(every)
        columns = (*self.columns, *_added(facts, shown))
        cells = [[column.content.cell(row) for row in shown[:MOST]] for column in columns]
        kept = [not _is_same(of_column) or not nth for nth, of_column in enumerate(cells)]
        notes = (_not_known(columns, cells), self._unobserved(every), self._quiet(every, decided))
        return Listing(
            self.caption,
            tuple(compress(columns, kept)),
            tuple(zip(*compress(cells, kept), strict=True)),
            tuple(filter(None, notes)),
            max(0, len(shown) - MOST),
            self.csv_file,
        )

    def _unobserved(self, rows: Iterable[Row]) -> str:
        """Return one sentence on the unobserved time of all rows."""
        if not self.unknown or "unknown_us" not in fields.keys_of(self.rows.record):
            return ""
        times = [row.get(self.unknown) for row in rows]
        longest = max((us for us in times if us is not None), default=0)
        noun = self.noun.partition(" ")[0] if " in " in self.noun else self.noun
        parts = [f"up to {display.length(longest, 'up')} per {noun}"] * bool(longest)
        if open_ := times.count(None):
            parts.append(f"not known for {display.plural(open_, noun)}")
        if not parts:
            return ""
        peaks = any(column.content.is_peak for column in self.columns)
        hidden = " A maximum can be higher in that time." * peaks
        return f"Not observed: {', '.join(parts)}.{hidden}"

    def _quiet(self, rows: Sequence[Row], decided: Evidence | None) -> str:
        """Return one sentence on the other rows, if enough was observed."""
        if decided is None or decided.reason or not self.quiet:
            return ""
        bad = len(self.subjects(self.bad_rows(rows)))
        known = decided.subjects_known
        known = len(self.subjects(rows)) if known is None else known
        others = known - bad
        if others <= 0 or not bad:
            return ""
        which = f"The other {self.noun if others == 1 else display.plural(others, self.noun)}"
        return f"{which} {self.quiet} while observed."

    def subjects(self, rows: Iterable[Row]) -> set[tuple[Any, ...]]:
        """Return the subjects of rows, each once."""
        return {evidence.name_of(row, self.columns[0].content.keys) for row in rows}


def _is_same(cells: Sequence[Cell]) -> bool:
    """Return True if a column is empty, not known or at least 0 in all rows."""
    return all(cell.text in _NOTHING for cell in cells)


def _not_known(columns: Sequence[Column], cells: Sequence[Sequence[Cell]]) -> str:
    """Return the headings of the columns that are not known in any row."""
    unknown = [
        column.heading
        for column, of_column in zip(columns, cells, strict=True)
        if _is_same(of_column) and any(cell.text == (display.NOT_KNOWN,) for cell in of_column)
    ]
    return f"Not known: {', '.join(unknown)}." if unknown else ""


_NOTHING: Final = ((), ("",), (display.NOT_KNOWN,), (figures.at_least("0"),))


def _added(facts: Facts, rows: Sequence[Row]) -> Iterable[Column]:
    """Yield the columns of reports with budgets and with owners."""
    if any(row.get("used") is not None for row in rows):
        yield Column("Budget used", _USED)
    if facts.get("owners") is not None and any(map(owners.shown, rows)):
        yield Column("Owner", Content(_owner, is_figure=False))


def _owner(row: Row) -> Cell:
    return Cell(figures.single(owners.shown(row)) or ("no owner",))


def _used(row: Row) -> Cell:
    used = row.get("used")
    return Cell() if used is None else Cell((display.share(used, 0),), order=used)


_USED: Final = Content(_used)


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
    if high is None and low is not None and value - low <= figures.WIDE * value:
        least, most_likely = write(low, "down"), write(value)
        title = "" if least == most_likely else f"estimate {most_likely}"
        return Cell((figures.at_least(least),), title=title, order=value)
    text, wide = around(value, low, high, write)
    return Cell((write(value),), text if wide else "", "" if wide else text, value)


def least_to_most(low: float | None, high: float | None, write: Callable[..., str]) -> Cell:
    """Return a figure with known bounds only, or with one known bound."""
    if low is None and high is None:
        return Cell((display.NOT_KNOWN,))
    if low is None or high is None:
        bound, limit = (low, figures.at_least) if high is None else (high, figures.at_most)
        return Cell((limit(write(bound)),), order=bound)
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
