"""Lists of the page: the worst rows are shown, some more can be opened, the rest is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import figures, words
from lakehouse.report.figures import Figure, Name, Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


WORST: Final = 8
"""Rows that are seen at once: a question with all its lists stays on a screen or two."""

MORE: Final = 42
"""A page of a fleet stays below 1.5 MB; what is beyond stands in JSON and CSV."""

PRINTED: Final = 20
"""Rows of a list on paper, and of a list beside the five questions."""

TEAM: Final = "team"
"""The key of rows that are somebody's; a list with such rows has a column of it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: names, a figure, a verdict or plain text."""

    names: tuple[Name, ...] = ()
    figure: Figure | None = None
    verdict: str = ""
    text: str = ""
    order: float | str | None = None


Shown = Figure | str | tuple[Name, ...] | Cell
"""What a cell may be made of."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, how a row becomes a cell, and whether it holds numbers."""

    heading: str
    cell: Callable[[Row], Cell]
    numeric: bool = True


@dataclass(frozen=True, slots=True)
class Listing:
    """A table as the page shows it.

    Attributes:
        caption: What the table lists.
        columns: The columns; the first names the subject of the row.
        worst: The rows that are shown at once.
        more: The rows behind "show more".
        omitted: How many rows the page does not have; they are in JSON and CSV.
        noun: What one row is.
        note: A sentence on how to read the table.
    """

    caption: str
    columns: tuple[Column, ...]
    worst: tuple[tuple[Cell, ...], ...]
    more: tuple[tuple[Cell, ...], ...]
    omitted: int
    noun: str
    note: str = ""

    @property
    def total(self) -> int:
        """How many rows there are in all."""
        return len(self.worst) + len(self.more) + self.omitted

    def brief(self) -> Listing:
        """No more rows than go on paper: what is beside the five questions."""
        more = self.more[: PRINTED - WORST]
        return replace(self, more=more, omitted=self.total - len(self.worst) - len(more))

    @property
    def printed(self) -> int:
        """How many rows are on paper, where the fold was closed."""
        return min(PRINTED, self.total)

    @property
    def summary(self) -> str:
        """What the fold says that hides the rest."""
        rest = words.plural(len(self.more) + self.omitted, "more " + self.noun)
        return rest if not self.omitted else f"{rest}, the first {len(self.more)} of them here"


@dataclass(frozen=True, slots=True)
class Draft:
    """What a listing is made from, apart from its rows."""

    caption: str
    noun: str
    columns: tuple[Column, ...]
    note: str = ""
    badness: Callable[[Row], Any] | None = field(default=None)

    def of(self, rows: Iterable[Row]) -> Listing:
        """The listing of ``rows``, the worst first; their own order where no badness is given."""
        ordered: Sequence[Row] = list(rows)
        if self.badness is not None:
            ordered = sorted(ordered, key=self.badness, reverse=True)
        columns = self.columns
        if any(row.get(TEAM) is not None for row in ordered):
            columns = (*columns, _OF_TEAM)
        shown = [tuple(column.cell(row) for column in columns) for row in ordered[: WORST + MORE]]
        return Listing(
            self.caption,
            columns,
            tuple(shown[:WORST]),
            tuple(shown[WORST:]),
            max(0, len(ordered) - WORST - MORE),
            self.noun,
            self.note,
        )


def cell(told: Shown) -> Cell:
    """What a row has in a column, as a cell that can be sorted by."""
    if isinstance(told, Cell):
        return told
    if isinstance(told, Figure):
        return Cell(figure=told, order=told.order)
    if isinstance(told, str):
        return Cell(text=told, order=told)
    return Cell(names=told, order=" ".join(part.text for part in told))


def shown(get: Callable[[Row], Shown]) -> Callable[[Row], Cell]:
    """How a row becomes a cell."""
    return lambda row: cell(get(row))


_OF_TEAM: Final = Column("Team", shown(lambda row: figures.single(row.get(TEAM))), numeric=False)
