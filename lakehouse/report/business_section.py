"""Business hours alone, as a section of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakehouse.report import verdicts, words
from lakehouse.report.extra import Extra
from lakehouse.report.listing import Cell, Column, Draft, figure, names, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lakehouse.report.figures import Row
    from lakehouse.report.listing import Listing
    from lakehouse.report.verdicts import Verdict


def section(facts: Mapping[str, Any]) -> Extra | None:
    """The section; None where nobody asked for business hours."""
    told = facts.get("business_hours")
    if told is None:
        return None
    always = {row["objective"]: row.get("verdict") for row in facts.get("verdicts") or ()}
    judged = verdicts.verdicts(told)
    rows = [
        {"one": one, "always": always.get(row["objective"])}
        for one, row in zip(judged, verdicts.ordered(told), strict=True)
    ]
    hours, zone = words.line(told.get("hours")), words.line(told.get("time_zone"))
    if not told.get("spans"):
        answer = f"No part of this period is in business hours ({hours}, {zone})."
        return Extra("business", "Business hours", "How was it in business hours?", (answer,))
    return Extra(
        "business",
        "Business hours",
        "How was it in business hours?",
        (verdicts.headline(told),),
        (
            f"Business hours are {hours}, {zone}; only that time is judged here, "
            "against the same targets.",
        ),
        (_OBJECTIVES.of(rows), *_subjects(judged)),
    )


def _subjects(judged: Iterable[Verdict]) -> Iterator[Listing]:
    """Those of objectives that are not met: of the others the line above says all."""
    for one in judged:
        if one.subjects is not None and one.verdict != "met":
            yield one.subjects.brief()


def _one(row: Row) -> Verdict:
    found: Verdict = row["one"]
    return found


def _badge(verdict: str | None) -> Cell:
    known = verdict if verdict in verdicts.WORDS else "no_data"
    return Cell(verdict=known, order=-float(verdicts.rank(known)))


_OBJECTIVES = Draft(
    "Objectives, in business hours and at all times",
    "objective",
    (
        Column("Objective", text(lambda row: _one(row).title), numeric=False),
        Column("In business hours", lambda row: _badge(_one(row).verdict), numeric=False),
        Column("At all times", lambda row: _badge(row["always"]), numeric=False),
        Column("Target", text(lambda row: _one(row).target), numeric=False),
        Column("Lowest", names(lambda row: _one(row).worst), numeric=False),
        Column(
            "Good share",
            figure(lambda row: _one(row).attainment or verdicts.NO_FIGURE),
        ),
    ),
)
