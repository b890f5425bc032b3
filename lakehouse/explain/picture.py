"""A small picture of a period in letters: how bad it was when, and what is not known."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from lakehouse.periods import DAY_US, instant
from lakehouse.spans import Span, length, overlap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GOOD: Final = "·"
UNKNOWN: Final = "░"
NOT_THERE: Final = " "
BAD: Final = "▁▂▃▄▅▆▇█"
"""By the share of the time that was bad; what was bad at all is never drawn as nothing."""

LEGEND: Final = f"{BAD[0]}{BAD[3]}{BAD[-1]} bad, by its share   {UNKNOWN} not known   {GOOD} good"


def strip(
    cells: Sequence[Span], life: Span | None, bad: Iterable[Span], unknown: Iterable[Span]
) -> str:
    """One letter for each cell.

    Args:
        cells: What each letter stands for, in order.
        life: When the subject existed; None: not in this period.
        bad: When it was bad.
        unknown: When nobody knows.
    """
    bad, unknown = list(bad), list(unknown)
    return "".join(_letter(cell, life, bad, unknown) for cell in cells)


def cells(within: Span, width: int) -> list[Span]:
    """The period in at most so many equal cells; as many each day, if it is of whole days."""
    start, end = within
    days, rest = divmod(end - start, DAY_US)
    number = width // days * days if days and not rest and width >= days else width
    edges = [start + (end - start) * at // number for at in range(number + 1)]
    return list(pairwise(edges))


def axis(cells: Sequence[Span]) -> str:
    """Letters below the cells that say where each day begins; empty where no name has room."""
    each = sum(1 for cell in cells if cell[0] < cells[0][0] + DAY_US)
    if each == len(cells) or len(cells) % each:
        return ""
    for form in ("%a %-d", "%a", "%-d"):
        days = [f"{instant(cell[0]):{form}}" for cell in cells[::each]]
        if max(map(len, days)) < each:
            return "".join(day.ljust(each) for day in days).rstrip()
    return ""


def _letter(cell: Span, life: Span | None, bad: Iterable[Span], unknown: Iterable[Span]) -> str:
    alive = overlap(cell, life) if life else None
    ill = _covered(cell, bad)
    if ill:
        share = ill / (cell[1] - cell[0])
        return BAD[min(len(BAD) - 1, int(share * len(BAD)))]
    if alive is None:
        return NOT_THERE
    return UNKNOWN if _covered(alive, unknown) else GOOD


def _covered(cell: Span, spans: Iterable[Span]) -> int:
    return length(common for one in spans if (common := overlap(cell, one)))
