"""Answers in a sentence: the worst row, or that nothing was seen, or that nobody looked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import words
from lakehouse.report.figures import Figure, Name, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Finding = tuple[str | Name | Figure, ...]
"""Words, names and figures in reading order."""


def rows(facts: Mapping[str, Any], section: str, key: str) -> list[Row]:
    """The rows of a section; none where the facts have no such section."""
    return list((facts.get(section) or {}).get(key) or ())


def nothing_seen(facts: Mapping[str, Any], families: frozenset[str] = frozenset()) -> bool:
    """Whether no reading was made: of any of these families, or, where none is named, of any.

    A family that nobody was told to read is in no row of the coverage: nobody looked at it either.
    """
    if families:
        sources = rows(facts, "coverage", "sources")
        return not any(row.get("observed_us") for row in sources if row.get("family") in families)
    return not (facts.get("coverage") or {}).get("observed_us")


_NO_DATA: Final[Finding] = ("Not known: nobody looked in this period.",)


def found(
    facts: Mapping[str, Any],
    families: frozenset[str],
    listed: list[Row],
    badness: Callable[[Row], Any],
    is_bad: Callable[[Row], bool],
    tell: Callable[[list[Row]], Finding],
    quiet: str,
) -> Finding:
    """The answer to a question.

    Args:
        facts: The report's facts.
        families: The families of beans that must have been read to know.
        listed: The rows of the question.
        badness: What makes one row worse than another.
        is_bad: Whether a row is worth telling.
        tell: How the bad rows are told, the worst first.
        quiet: What is said where somebody looked and nothing bad was seen.
    """
    bad = sorted((row for row in listed if is_bad(row)), key=badness, reverse=True)
    if bad:
        return tell(bad)
    if nothing_seen(facts, families):
        return _NO_DATA
    doubtful = any(row.get("unknown_us", 0) != 0 for row in listed)
    return (quiet, " Some time was not seen, see the table." if doubtful and listed else "")


def others(bad: list[Row], noun: str, one: str, many: str) -> str:
    """A sentence that says how many others there were; empty where there were none."""
    number = len(bad) - 1
    if not number:
        return ""
    return f" {one if number == 1 else many} {words.plural(number, 'other ' + noun)}."


def label(one: Name, place: int) -> str:
    """What a name is, before the name, at its place in a sentence."""
    return f", {one.label} " if place else f"{one.label.capitalize()} "


def positive(*keys: str) -> Callable[[Row], bool]:
    """Whether any of these columns is above zero."""
    return lambda row: any((row.get(key) or 0) > 0 for key in keys)


def lasted(*stems: str) -> Callable[[Row], bool]:
    """Whether any of these durations may have been above zero."""
    return positive(*(f"{stem}{part}_us" for stem in stems for part in ("", "_high")))
