"""Planned maintenance and what the figures are without it, as a section of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import columns, figures, verdicts, words
from lakehouse.report.extra import Extra
from lakehouse.report.listing import Column, Draft, figure, names, text
from lakehouse.report.subjects import titled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.report.figures import Figure, Name, Row

_EXACT: Final = {"lead_us": 0, "tail_us": 0}
_CONCERNS: Final = ("clusters", "topics", "users", "clients", "groups", "sources")
_SINGULAR: Final = {"clients": "client id"}


def section(facts: Mapping[str, Any]) -> Extra | None:
    """The section; None where nothing was planned."""
    planned = list(facts.get("maintenance") or ())
    if not planned:
        return None
    rows = [one for one in titled(facts) if one.get("maintenance")]
    return Extra(
        "maintenance",
        "Maintenance",
        "What was planned, and what did it cost?",
        (_sentence(planned, rows),),
        (
            "Nothing is taken out of any other figure of this page. Without it counts as if a "
            "subject had not existed in the windows that lie wholly in what was planned.",
        ),
        (_PLANNED.of(planned).brief(), _WITHOUT.of(rows).brief()),
    )


def _sentence(planned: list[Row], rows: list[Row]) -> str:
    windows = words.plural(len(planned), "window")
    told = f"{windows} of maintenance {'was' if len(planned) == 1 else 'were'} planned."
    if not rows:
        return f"{told} No objective is about anything that it concerned."
    turned = sum(_verdict(row) != _verdict(_without(row)) for row in rows if _without(row))
    if not turned:
        return f"{told} Without it every verdict would be the same."
    verdict = "1 verdict would be another" if turned == 1 else f"{turned} verdicts would be others"
    return f"{told} Without it {verdict}."


def _without(row: Row) -> Row:
    return row.get("without_maintenance") or {}


def _verdict(row: Row) -> str:
    return str(row.get("verdict") or "no_data")


def excluded(row: Row) -> Figure:
    """How much expected time of a subject lies in planned maintenance."""
    left, all_of_it = _without(row).get("expected_us"), row.get("expected_us")
    us = None if left is None or all_of_it is None else all_of_it - left
    return figures.plain(us, words.duration(us))


def _badness(row: Row) -> tuple[bool, int, float]:
    low = row.get("attainment_low")
    turned = bool(_without(row)) and _verdict(row) != _verdict(_without(row))
    return turned, verdicts.rank(row.get("verdict")), -(0.0 if low is None else low)


def _concerned(row: Row) -> tuple[Name, ...]:
    found = tuple(
        figures.name(pattern, _SINGULAR.get(key, key.removesuffix("s")))
        for key in _CONCERNS
        for pattern in row.get(key) or ()
    )  # fmt: skip
    return found[:6] or (figures.Name("the whole cluster"),)


_PLANNED: Final = Draft(
    "Planned maintenance",
    "window",
    (
        columns.at("From", "start"),
        columns.at("To", "end"),
        Column("Lasts", figure(lambda row: figures.incident_length({**row, **_EXACT}))),
        Column("Concerns", names(_concerned), numeric=False),
        columns.one("Reason", "reason"),
    ),
)
_WITHOUT: Final = Draft(
    "With and without it",
    "subject",
    (
        columns.subject("Subject", *figures.SUBJECT_KEYS),
        Column("Objective", text(lambda row: words.line(row.get("objective"))), numeric=False),
        Column("Planned", figure(excluded)),
        Column("Verdict", verdicts.badge_cell, numeric=False),
        Column("Good share", figure(figures.attainment)),
        Column("Verdict without", lambda row: verdicts.badge_cell(_without(row)), numeric=False),
        Column("Good share without", figure(lambda row: figures.attainment(_without(row)))),
    ),
    badness=_badness,
)
