"""A section of the page beside the five questions: there only where the facts have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.report.charts import Chart
from lakehouse.report.declared import declared
from lakehouse.report.figures import Finding
from lakehouse.report.listing import Listing
from lakehouse.report.tables import listing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lakehouse.report.figures import Row


@dataclass(frozen=True, slots=True)
class Extra:
    """What the page shows of it.

    Attributes:
        anchor: Its place in the page.
        short: What the list of sections calls it.
        title: Its heading.
        answer: What was found, in a sentence.
        notes: How to read it.
        listings: Its tables; an empty one is left out.
        charts: Its drawings.
    """

    anchor: str
    short: str
    title: str
    answer: Finding
    notes: tuple[str, ...] = ()
    listings: tuple[Listing, ...] = ()
    charts: tuple[Chart, ...] = ()


def extra(
    anchor: str,
    answer: str,
    notes: Iterable[str] = (),
    charts: Iterable[Chart] = (),
    **rows: Iterable[Row],
) -> Extra:
    """A section of page.yaml.

    Args:
        anchor: Which one.
        answer: What was found.
        notes: How to read it, before what page.yaml says of that.
        charts: Its drawings.
        rows: Of each of its tables.
    """
    told: Mapping[str, str] = declared("page.yaml")["sections"][anchor]
    always = (told["note"],) if "note" in told else ()
    shown = tuple(listing(name, found).brief() for name, found in rows.items())
    return Extra(
        anchor, told["short"], told["title"], (answer,), (*notes, *always), shown, tuple(charts)
    )
