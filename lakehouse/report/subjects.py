"""Every subject that the facts judge: what several sections and files go through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakehouse.report.figures import Row


def subjects(told: Mapping[str, Any]) -> Iterator[tuple[Row, Row]]:
    """Each objective with each of its subjects, in the order of the facts.

    Args:
        told: Whatever has ``objectives``: the facts, their business hours or their trends.
    """
    for objective in told.get("objectives") or ():
        for subject in objective.get("subjects") or ():
            yield objective, subject


def titled(told: Mapping[str, Any]) -> Iterator[Row]:
    """Each subject as one row that says its objective in words."""
    for objective, subject in subjects(told):
        yield {**subject, "objective": objective.get("title") or objective.get("name")}
