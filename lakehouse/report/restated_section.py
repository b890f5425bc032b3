"""Restated figures, the old beside the new, as a section of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import figures, verdicts, words
from lakehouse.report.extra import Extra
from lakehouse.report.listing import Cell, Column, Draft, figure, names, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.report.figures import Figure, Row


def section(facts: Mapping[str, Any]) -> Extra | None:
    """The section; None where no published figure has changed."""
    rows = list(facts.get("restated") or ())
    if not rows:
        return None
    told = words.plural(len(rows), "figure")
    turned = sum(row["before"].get("verdict") != row["now"].get("verdict") for row in rows)
    verdict = f", {words.plural(turned, 'verdict')} with {'it' if turned == 1 else 'them'}"
    return Extra(
        "restated",
        "Restated",
        "What was published otherwise?",
        (
            f"{told} of this period changed after {'it was' if len(rows) == 1 else 'they were'} "
            f"published{verdict if turned else ''}.",
        ),
        ("Late data came, or what was asked for changed. What was published stays in gold/sla.",),
        (_RESTATED.of(rows).brief(),),
    )


def _share(when: str) -> Column:
    def get(row: Row) -> Figure:
        return figures.attainment(row.get(when) or {})

    return Column(f"Good share {when}", figure(get))


def _verdict(when: str) -> Column:
    def cell(row: Row) -> Cell:
        said = (row.get(when) or {}).get("verdict")
        known = said if said in verdicts.WORDS else "no_data"
        return Cell(verdict=known, order=-float(verdicts.rank(known)))

    return Column(f"Verdict {when}", cell, numeric=False)


_RESTATED: Final = Draft(
    "Restated",
    "figure",
    (
        Column("Of", names(figures.subject), numeric=False),
        Column("Objective", text(lambda row: words.line(row.get("title") or "")), numeric=False),
        Column(
            "Stated",
            text(lambda row: words.day_above_time((row.get("before") or {}).get("stated_at"))),
            numeric=False,
        ),
        _share("before"),
        _verdict("before"),
        _share("now"),
        _verdict("now"),
    ),
)
