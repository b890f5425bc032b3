"""Lists of the page, as page.yaml has them: the worst rows, some more, the rest counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import cells, figures, words
from lakehouse.report.figures import Cell, Figure, Finding, Name, Row
from lakehouse.report.lookup import columns, declared, value_at

if TYPE_CHECKING:
    from collections.abc import Iterable

WORST: Final = 8
"""Rows that are seen at once: a question with all its lists stays on a screen or two."""

MORE: Final = 42
"""A page of a fleet stays below 1.5 MB; what is beyond stands in JSON and CSV."""

PRINTED: Final = 20
"""Rows of a list on paper, and of a list beside the five questions."""

Shown = Figure | str | tuple[Name, ...] | Cell
"""What a cell may be made of."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, what it shows of a row, and whether that are numbers."""

    heading: str
    show: Callable[[Row], Shown]
    numeric: bool = True

    def cell(self, row: Row) -> Cell:
        """What a row has in it, so that it can be sorted by."""
        told = self.show(row)
        if isinstance(told, Cell):
            return told
        if isinstance(told, Figure):
            return Cell(figure=told, order=told.order)
        if isinstance(told, str):
            return Cell(text=told, order=told)
        return Cell(names=told, order=" ".join(part.text for part in told))


@dataclass(frozen=True, slots=True)
class Draft:
    """What a listing is made from, apart from its rows.

    Attributes:
        caption: What the table lists.
        noun: What one row is.
        columns: The columns; the first names the subject of the row.
        note: A sentence on how to read the table.
        badness: What makes a row a bad one, worst greatest; None: rows have an order of their own.
    """

    caption: str
    noun: str
    columns: tuple[Column, ...]
    note: str = ""
    badness: Callable[[Row], Any] | None = None

    def of(self, rows: Iterable[Row] | None) -> Listing:
        """The listing of ``rows``, the worst first."""
        ordered = list(rows or ())
        if self.badness is not None:
            ordered.sort(key=self.badness, reverse=True)
        draft = self
        if any(row.get("team") is not None for row in ordered):  # rows that are somebody's
            draft = replace(self, columns=(*self.columns, column("Team", "name team")))
        cells_of = (
            tuple(one.cell(row) for one in draft.columns) for row in ordered[: WORST + MORE]
        )
        return Listing(draft, tuple(cells_of), len(ordered))


@dataclass(frozen=True, slots=True)
class Listing:
    """A table as the page shows it.

    Attributes:
        draft: What it lists.
        rows: The rows that the page has.
        total: How many there are in all; the others are in JSON and CSV.
    """

    draft: Draft
    rows: tuple[tuple[Cell, ...], ...]
    total: int

    @property
    def worst(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows that are shown at once."""
        return self.rows[:WORST]

    @property
    def more(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows behind "show more"."""
        return self.rows[WORST:]

    @property
    def omitted(self) -> int:
        """How many rows the page does not have."""
        return self.total - len(self.rows)

    def brief(self) -> Listing:
        """No more rows than go on paper: what is beside the five questions."""
        return replace(self, rows=self.rows[:PRINTED])

    @property
    def printed(self) -> int:
        """How many rows are on paper, where the fold was closed."""
        return min(PRINTED, self.total)

    @property
    def summary(self) -> str:
        """What the fold says that hides the rest."""
        rest = words.plural(self.total - len(self.worst), "more " + self.draft.noun)
        return rest if not self.omitted else f"{rest}, the first {len(self.more)} of them here"


def listing(name: str, rows: Iterable[Row] | None) -> Listing:
    """A table of page.yaml with its rows."""
    return table(name).of(rows)


@lru_cache
def table(name: str) -> Draft:
    """A table of page.yaml without its rows."""
    told = declared("page.yaml")["tables"][name]
    made = tuple(column(*one) for one in columns(told["columns"]))
    return Draft(told["caption"], told["each"], made, told.get("note", ""), _badness(told))


def _badness(told: Mapping[str, Any]) -> Callable[[Row], Any] | None:
    if "longest" in told:
        return lambda row: figures.badness(row, *told["longest"])
    if "most" in told:
        return lambda row: [row.get(key) or 0 for key in told["most"]]
    return getattr(cells, told["worst"]) if "worst" in told else None


def column(heading: str, told: str) -> Column:
    """A column of page.yaml, such as ``Topic`` and ``name topic``."""
    kind, _, key = told.partition(" ")
    if kind in _FUNCTIONS:
        name, *keys = key.split()
        function = getattr(cells, name)
        return Column(heading, lambda row: function(row, *keys), numeric=kind not in _WORDS)
    return Column(heading, lambda row: _KINDS[kind](row, key), numeric=kind not in _WORDS)


def in_words(told: str, row: Row) -> Finding:
    """What a row has in a column of page.yaml, for a sentence."""
    kind, shown = told.partition(" ")[0], column("", told).show(row)
    if isinstance(shown, tuple):
        return shown
    if isinstance(shown, Cell):
        return (shown.text,)
    return (shown.value if isinstance(shown, Figure) and kind in _WRITTEN else shown,)


def badge(told: object) -> Cell:
    """A verdict of the facts."""
    verdict = words.verdict(told)
    return Cell(verdict=verdict, order=-float(words.rank(verdict)))


def _plain(write: Callable[[float | None], str]) -> Callable[[Row, str], Figure]:
    """A number without bounds, in the words of ``write``."""
    return lambda row, key: figures.plain(value_at(row, key), write(value_at(row, key)))


def _bounded(row: Row, told: str) -> Figure:
    unit, _, key = told.partition(" ")
    return figures.between(row, key, _WRITTEN[unit])


_WRITTEN: Final[Mapping[str, Callable[[float | None], str]]] = {
    "count": words.count,
    "size": words.size,
    "seconds": words.seconds,
    "microseconds": words.microseconds,
    "milliseconds": words.milliseconds,
    "percent": words.per_cent,
    "times": cells.times,
}
_KINDS: Final[Mapping[str, Callable[[Row, str], Shown]]] = {
    **{kind: _plain(write) for kind, write in _WRITTEN.items()},
    "bounded": _bounded,
    "time": figures.time,
    "share": lambda row, key: figures.attainment(value_at(row, key) or {}),
    "given": lambda row, key: row[key],
    "name": lambda row, key: figures.single(row.get(key)),
    "names": lambda row, keys: figures.subject(row, keys.split() or figures.SUBJECT_KEYS),
    "given_names": lambda row, key: row[key],
    "line": lambda row, key: words.line(row.get(key) or ""),
    "at": lambda row, key: Cell(text=words.day_above_time(row.get(key)), order=row.get(key)),
    "verdict": lambda row, key: badge(value_at(row, key)),
}
"""The kinds of columns, by their names in page.yaml."""

_FUNCTIONS: Final = ("figure", "text")
"""Kinds that are functions of cells.py, with what else these take."""

_WORDS: Final = ("name", "names", "given_names", "line", "at", "verdict", "text")
"""Kinds that are no numbers."""
