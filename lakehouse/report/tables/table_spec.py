"""Tables of the details: typed columns with their contents, and the worst rows first."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, Final, NamedTuple, Self

from lakehouse.core import display
from lakehouse.report import evidence, figures, owners
from lakehouse.report.evidence import Evidence
from lakehouse.report.facts import fields
from lakehouse.report.facts.fields import Bounds, Rows
from lakehouse.report.figures import Facts, Name, Row, value_at

MOST: Final = 100
"""Rows of a table; a file has the others. So the page of a fleet stays below 1.5 MB."""


Write = Callable[[Any], str]
"""Formats a number; for None it returns ``not known``."""


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

    @classmethod
    def bounded(cls, figure: Bounds, write: Callable[..., str]) -> Self:
        """Return a figure with its bounds: as text if they are wide, otherwise as a tooltip.

        Args:
            figure: The figure.
            write: Formats a number and takes how it is rounded.
        """
        value, low, high = figure
        if value is None:
            return cls.between(low, high, write)
        if high is None and low is not None and value - low <= figures.WIDE * value:
            least, most_likely = write(low, "down"), write(value)
            title = "" if least == most_likely else f"estimate {most_likely}"
            return cls((figures.at_least(least),), title=title, order=value)
        text, wide = figures.around(value, low, high, write)
        return cls((write(value),), text if wide else "", "" if wide else text, value)

    @classmethod
    def between(cls, low: float | None, high: float | None, write: Callable[..., str]) -> Self:
        """Return a figure with known bounds only, or with one known bound."""
        if low is None and high is None:
            return cls((display.NOT_KNOWN,))
        if low is None or high is None:
            bound, limit = (low, figures.at_least) if high is None else (high, figures.at_most)
            return cls((limit(write(bound)),), order=bound)
        if low == high:
            return cls((write(low),), order=high)
        return cls((f"{write(low)} to {write(high)}",), order=high)

    @classmethod
    def named(cls, row: Row, keys: Iterable[str]) -> Self:
        """Return the names of a row: ``billing / invoicing``; empty without any."""
        return cls.names(figures.name(row[key]) for key in keys if row.get(key) is not None)

    @classmethod
    def names(cls, names: Iterable[Name], otherwise: tuple[str, ...] = ()) -> Self:
        """Return names from outside with a slash between them; without any another text."""
        found: list[str | Name] = []
        for one in names:
            found += [" / ", one] if found else [one]
        return cls(tuple(found) or otherwise)

    @property
    def sentence(self) -> str:
        """The cell within a sentence, its names isolated."""
        text = "".join(one if isinstance(one, str) else one.isolated for one in self.text)
        return f"{text} ({self.bounds})" if self.bounds else text


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, a function that makes its cells, and the keys that it reads.

    Attributes:
        heading: Its heading.
        cell: Makes a cell.
        keys: Dotted paths in the record.
        is_figure: Whether it is aligned to the right.
        is_peak: Whether unobserved time may hide a greater one.
    """

    heading: str
    cell: Callable[[Row], Cell]
    keys: tuple[str, ...] = ()
    is_figure: bool = True
    is_peak: bool = False

    @classmethod
    def time(cls, heading: str, key: str) -> Self:
        """Return a duration with its bounds: ``any_us``, ``any_low_us`` and ``any_high_us``."""
        return cls._bounded(heading, key, figures.length)

    @classmethod
    def count(cls, heading: str, key: str, write: Write = display.count) -> Self:
        """Return a number with its bounds: ``key``, ``key_low`` and ``key_high``."""
        return cls._bounded(heading, key, lambda value, _="": write(value))

    @classmethod
    def _bounded(cls, heading: str, key: str, write: Callable[..., str]) -> Self:
        keys = fields.keys(key)

        def cell(row: Row) -> Cell:
            return Cell.bounded(Bounds(*(value_at(row, key) for key in keys)), write)

        return cls(heading, cell, keys)

    @classmethod
    def between(cls, heading: str, key: str, write: Write = display.count) -> Self:
        """Return a number with bounds only: ``key_low`` and ``key_high``."""
        _, low, high = fields.keys(key)

        def cell(row: Row) -> Cell:
            return Cell.between(value_at(row, low), value_at(row, high), write)

        return cls(heading, cell, (low, high))

    @classmethod
    def number(cls, heading: str, key: str, write: Write = display.count) -> Self:
        """Return a number without bounds."""

        def cell(row: Row) -> Cell:
            value = value_at(row, key)
            return Cell((write(value),), order=value)

        return cls(heading, cell, (key,))

    @classmethod
    def peak(cls, heading: str, key: str, write: Write = display.count) -> Self:
        """Return a maximum."""
        return replace(cls.number(heading, key, write), is_peak=True)

    @classmethod
    def quantity(cls, heading: str, key: str, *, is_peak: bool = False) -> Self:
        """Return a value in the unit of its row, ``rate_unit``."""

        def cell(row: Row) -> Cell:
            value, unit = row.get(key), str(row.get("rate_unit") or "")
            return Cell((display.quantity(value, unit),), order=value)

        return cls(heading, cell, (key, "rate_unit"), is_peak=is_peak)

    @classmethod
    def name(cls, heading: str, *keys: str) -> Self:
        """Return names from outside, such as a user and a client id: ``billing / invoicing``."""
        return cls(heading, lambda row: Cell.named(row, keys), keys, is_figure=False)

    @classmethod
    def partition(cls) -> Self:
        """Return a partition as Kafka's tools write it: ``orders-3``."""

        def cell(row: Row) -> Cell:
            return Cell((figures.name(f"{row['topic']}-{row['partition']}"),))

        return cls("Partition", cell, ("topic", "partition"), is_figure=False)

    @classmethod
    def word(cls, heading: str, group: str, key: str) -> Self:
        """Return a value of the facts in words of page.yaml."""
        return cls(
            heading, lambda row: Cell((words(group, row.get(key)),)), (key,), is_figure=False
        )

    @classmethod
    def instant(cls, heading: str, key: str) -> Self:
        """Return an instant, to the second."""

        def cell(row: Row) -> Cell:
            at = row.get(key)
            return Cell((display.day_and_time(at),), instant=at or "")

        return cls(heading, cell, (key,), is_figure=False)

    @classmethod
    def of(
        cls, heading: str, cell: Callable[[Row], Cell | str], *keys: str, is_figure: bool = True
    ) -> Self:
        """Return a column whose cells a function makes.

        Args:
            heading: Its heading.
            cell: Makes the cell, or its text.
            keys: The keys that it reads.
            is_figure: Whether it is aligned to the right.
        """

        def made(row: Row) -> Cell:
            found = cell(row)
            return Cell((found,)) if isinstance(found, str) else found

        return cls(heading, made, keys, is_figure)


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
        keys = (key for column in self.columns for key in column.keys)
        fields.check_keys(self.rows.record, (*keys, *self.rows.keys))

    @property
    def csv_file(self) -> str:
        """The name of the CSV file with all rows."""
        return f"{self.file or self.rows.path.replace('.', '_')}.csv"

    def all_rows(self, facts: Facts) -> list[Row]:
        """Return all rows of the facts."""
        return list(figures.rows_at(facts, self.rows.path))

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
        cells = [[column.cell(row) for row in shown[:MOST]] for column in columns]
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
        peaks = any(column.is_peak for column in self.columns)
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
        return {evidence.name_of(row, self.columns[0].keys) for row in rows}


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
        yield Column("Budget used", _used)
    if facts.get("owners") is not None and any(map(owners.shown, rows)):
        yield Column("Owner", _owner, is_figure=False)


def _owner(row: Row) -> Cell:
    owner = owners.shown(row)
    return Cell(("no owner" if owner is None else figures.name(owner),))


def _used(row: Row) -> Cell:
    used = row.get("used")
    return Cell() if used is None else Cell((display.share(used, 0),), order=used)


def size(value: float | None) -> str:
    """Return a number of bytes; 0 has no unit."""
    return "0" if value == 0 else display.size(value)


def words(group: str, value: object) -> str:
    """Return the words for a value of the facts, from a group of page.yaml."""
    text = display.NOT_KNOWN if value is None else display.line(value)
    return str(figures.declared("page.yaml")["terms"][group].get(str(value), text))


def longest(*stems: str) -> Callable[[Row], Any]:
    """Return a sort key: the longest of some times, its upper bound, the unknown time."""
    return lambda row: figures.badness(row, *stems)


def most(*keys: str) -> Callable[[Row], Any]:
    """Return a sort key: the figures, the first one first."""
    return lambda row: [value_at(row, key) or 0 for key in keys]
