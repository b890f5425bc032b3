"""A section of the page beside the five questions: there only where the facts have it."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse.report.charts import Chart
from lakehouse.report.findings import Finding
from lakehouse.report.listing import Listing


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
