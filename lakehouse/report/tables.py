"""The tables of the page, as page.yaml has them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lakehouse.report import figures
from lakehouse.report.columns import FUNCTIONS, column
from lakehouse.report.declared import declared
from lakehouse.report.listing import Draft

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from lakehouse.report.figures import Row
    from lakehouse.report.listing import Column, Listing


@lru_cache
def table(name: str) -> Draft:
    """A table without its rows."""
    told = declared("page.yaml")["tables"][name]
    return Draft(
        told["caption"],
        told["each"],
        tuple(_columns(told["columns"])),
        told.get("note", ""),
        _badness(told),
    )


def _badness(told: Mapping[str, Any]) -> Callable[[Row], Any] | None:
    """What makes a row a bad one, worst greatest; None: rows have an order of their own."""
    if "longest" in told:
        return lambda row: figures.badness(row, *told["longest"])
    if "most" in told:
        return lambda row: [row.get(key) or 0 for key in told["most"]]
    return FUNCTIONS[told["worst"]] if "worst" in told else None


def _columns(told: Iterable[Any]) -> Iterator[Column]:
    for one in told:
        if isinstance(one, list):  # columns of another table
            yield from _columns(one)
        else:
            yield from (column(*pair) for pair in one.items())


def listing(name: str, rows: Iterable[Row] | None) -> Listing:
    """A table with its rows."""
    return table(name).of(rows or ())
