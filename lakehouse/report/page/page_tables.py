"""Tables of the page, as page.yaml declares them: the worst rows first, the rest folded away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from lakehouse.core import display
from lakehouse.report import figures
from lakehouse.report.facts_lookup import value_at
from lakehouse.report.figures import Answer, Cell, Figure, Name, Row
from lakehouse.report.page import cells
from lakehouse.report.resources import columns, declared

WORST: Final = 8
"""Rows above the fold: a question with all its lists fits on a screen or two."""

MORE: Final = 34
"""Rows behind the fold, so that the page of a fleet stays below 1.5 MB."""

PRINTED: Final = 10
"""Rows of a list on paper, and of a list in a section that is none of the questions."""

Content = Figure | str | tuple[Name, ...] | Cell


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, its content for a row, and whether its contents are numbers."""

    heading: str
    content: Callable[[Row], Content]
    numeric: bool = True

    def cell(self, row: Row) -> Cell:
        """The cell of a row, with its sort key."""
        content = self.content(row)
        if isinstance(content, Cell):
            return content
        if isinstance(content, Figure):
            return Cell(content, order=content.order)
        text = content if isinstance(content, str) else " ".join(name.text for name in content)
        return Cell(content, order=text)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table without its rows.

    Attributes:
        caption: The title of the table.
        noun: The noun for one row.
        columns: The columns; the first names the subject of the row.
        note: A sentence on how to read the table.
        badness: Sort key of a row, worst greatest; None: the rows are in order already.
    """

    caption: str
    noun: str
    columns: tuple[Column, ...]
    note: str = ""
    badness: Callable[[Row], Any] | None = None

    def listing(self, rows: Iterable[Row] | None) -> Listing:
        """The table of ``rows``, the worst first, with a column of teams where rows have one."""
        ordered = list(rows or ())
        if self.badness is not None:
            ordered.sort(key=self.badness, reverse=True)
        spec = self
        if any(row.get("team") is not None for row in ordered):
            spec = replace(self, columns=(*self.columns, column("Team", "name team")))
        cells_ = (
            tuple(column_.cell(row) for column_ in spec.columns) for row in ordered[: WORST + MORE]
        )
        return Listing(spec, tuple(cells_), len(ordered))


@dataclass(frozen=True, slots=True)
class Listing:
    """A table of the page.

    Attributes:
        spec: Its caption and columns.
        rows: The rows that the page has.
        total: How many there are; the others are in JSON and CSV.
    """

    spec: TableSpec
    rows: tuple[tuple[Cell, ...], ...]
    total: int

    @property
    def worst(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows above the fold."""
        return self.rows[:WORST]

    @property
    def more(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows behind the fold."""
        return self.rows[WORST:]

    @property
    def omitted(self) -> int:
        """How many rows the page does not have."""
        return self.total - len(self.rows)

    @property
    def printed(self) -> int:
        """How many rows are on paper if the fold is closed."""
        return min(PRINTED, self.total)

    @property
    def summary(self) -> str:
        """The label of the fold."""
        rest = display.plural(self.total - len(self.worst), "more " + self.spec.noun)
        return rest if not self.omitted else f"{rest}, the first {len(self.more)} of them here"

    def brief(self) -> Listing:
        """The same with no more rows than go on paper."""
        return replace(self, rows=self.rows[:PRINTED])


def listing(name: str, rows: Iterable[Row] | None) -> Listing:
    """A table of page.yaml with its rows."""
    return table(name).listing(rows)


@lru_cache
def table(name: str) -> TableSpec:
    """A table of page.yaml without its rows."""
    spec = declared("page.yaml")["tables"][name]
    columns_ = tuple(column(*item) for item in columns(spec["columns"]))
    return TableSpec(spec["caption"], spec["each"], columns_, spec.get("note", ""), _badness(spec))


def _badness(spec: Mapping[str, Any]) -> Callable[[Row], Any] | None:
    if "longest" in spec:
        return lambda row: figures.badness(row, *spec["longest"])
    if "most_of" in spec:
        return lambda row: rank(spec["most_of"], row)
    if "most" in spec:
        return lambda row: [row.get(key) or 0 for key in spec["most"]]
    return (lambda row: _computed(row, spec["worst"])) if "worst" in spec else None


def column(heading: str, definition: str) -> Column:
    """A column of page.yaml, such as ``Topic`` and ``name topic``."""
    kind, _, key = definition.partition(" ")
    return Column(heading, lambda row: _KINDS[kind](row, key), kind not in _TEXT_KINDS)


def in_words(definition: str, row: Row) -> Answer:
    """The content of a column of page.yaml, as a part of a sentence."""
    kind, content = definition.partition(" ")[0], column("", definition).content(row)
    if isinstance(content, Cell):
        content = content.content
    if isinstance(content, tuple):
        return content
    return (content.value if isinstance(content, Figure) and kind in _FORMATS else content,)


def rank(definition: str, row: Row) -> float:
    """Return the sort key of a row by the figure that a column of page.yaml shows.

    A figure that is not known ranks above zero and below every other.
    """
    order = column("", definition).cell(row).order
    return float(order) if isinstance(order, int | float) else 0.5


def badge(value: object) -> Cell:
    """A verdict of the facts."""
    verdict = display.verdict(value)
    return Cell(verdict=verdict, order=-float(display.rank(verdict)))


def _plain(write: Callable[[float | None], str]) -> Callable[[Row, str], Figure]:
    """A number without bounds, but where the facts say that it has no high one."""

    def shown(row: Row, key: str) -> Figure:
        path, _, name = key.rpartition(".")
        return figures.at_least((value_at(row, path) if path else row) or {}, name, write)

    return shown


def _instant(row: Row, key: str) -> Cell:
    instant = value_at(row, key)
    return Cell(display.day_above_time(instant), order=instant)


def _computed(row: Row, definition: str) -> Any:
    """By a function of cells.py and its further arguments, such as ``lag copy``."""
    name, *arguments = definition.split()
    return getattr(cells, name)(row, *arguments)


def _bounded(row: Row, definition: str) -> Figure:
    unit, _, key = definition.partition(" ")
    return figures.between(row, key, _FORMATS[unit])


def _peak(row: Row, definition: str, limit: str = "at least") -> Figure:
    unit, _, path = definition.partition(" ")
    inner, _, key = path.rpartition(".")
    beside: Row = (value_at(row, inner) or {}) if inner else row
    own = {"unknown_us": row.get("unknown_us"), **beside}
    return figures.peak(own, key, _FORMATS[unit], limit)


def _lowest(row: Row, definition: str) -> Figure:
    return _peak(row, definition, "at most")


_FORMATS: Final[Mapping[str, Callable[[Any], str]]] = {
    "count": display.count,
    "size": display.size,
    "seconds": display.seconds,
    "microseconds": display.microseconds,
    "milliseconds": display.milliseconds,
    "percent": display.per_cent,
    "portion": display.percent,
    "mean_count": cells.mean_count,
    "times": cells.times,
    "money": cells.money,
    "at_least": lambda us: display.duration(us, "down"),
}
_KINDS: Final[Mapping[str, Callable[[Row, str], Content]]] = {
    **{kind: _plain(write) for kind, write in _FORMATS.items()},
    "bounded": _bounded,
    "peak": _peak,
    "lowest": _lowest,
    "figure": _computed,
    "text": _computed,
    "time": figures.time,
    "share": lambda row, key: figures.attainment(value_at(row, key) or {}),
    "given": lambda row, key: row[key],
    "name": lambda row, key: figures.single(row.get(key)),
    "names": lambda row, keys: figures.subject(row, keys.split() or figures.SUBJECT_KEYS),
    "given_names": lambda row, key: row[key],
    "line": lambda row, key: display.line(row.get(key) or ""),
    "at": _instant,
    "verdict": lambda row, key: badge(value_at(row, key)),
}
"""The kinds of columns, by their names in page.yaml."""

_TEXT_KINDS: Final = ("name", "names", "given_names", "line", "at", "verdict", "text")
"""Kinds whose contents are not numbers."""
