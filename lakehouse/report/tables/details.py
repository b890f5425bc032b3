"""The details of a report: every section of this package as a fold of the page."""

import functools
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from lakehouse.core import display
from lakehouse.report import tables
from lakehouse.report.figures import Facts
from lakehouse.report.summary.model import Summary
from lakehouse.report.tables.section import Detail, Section

_FIRST: Final = (
    "availability", "loss", "lag", "throttling", "tiered", "requests", "replication", "risks",
    "disk", "owners",
)  # fmt: skip
_LAST: Final = ("own-metrics", "coverage", "incidents")
"""Anchors in order; other sections are between."""

_OPEN_IF_BLIND: Final = "coverage"
"""Its table has the errors of the agents."""


@functools.cache
def sections() -> tuple[Section, ...]:
    """Return the sections: each module of this package with a ``SECTION`` has one."""
    modules = (
        import_module(f"{tables.__name__}.{one.name}") for one in iter_modules(tables.__path__)
    )
    found = [one.SECTION for one in modules if hasattr(one, "SECTION")]
    return tuple(sorted(found, key=lambda one: (_place(one.anchor), one.anchor)))


def _place(anchor: str) -> int:
    if anchor in _FIRST:
        return _FIRST.index(anchor)
    return len(_FIRST) + (1 + _LAST.index(anchor) if anchor in _LAST else 0)


def details(facts: Facts, summary: Summary) -> tuple[Detail, ...]:
    """Return the folds of a report, in their order; owners only where they are known.

    Args:
        facts: The report's facts.
        summary: The report in short.
    """
    with display.shown_in(display.zone_of(facts)):
        found = [one.detail(facts) for one in sections()]
    return tuple(
        one._replace(is_open=summary.is_blind and one.anchor == _OPEN_IF_BLIND)
        for one in found
        if one is not None
    )
