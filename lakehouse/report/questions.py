"""A section of the page; and the five questions: what each asks, what was found, and its lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from lakehouse.report.assets import sentence
from lakehouse.report.figures import Figure, Finding, Name, Row
from lakehouse.report.listing import Listing, in_words, listing, table
from lakehouse.report.lookup import declared, nothing_seen, value_at


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page.

    Attributes:
        anchor: Its place in the page.
        short: What the list of sections calls it.
        title: Its heading: of a question the question, in words people use.
        answer: What was found, as words, names and figures in reading order.
        notes: How to read it, or why it matters.
        listings: Its tables; an empty one is left out.
        charts: Names of the timelines that belong to it, with what they show.
        kip: The document that asks the question.
    """

    anchor: str
    short: str
    title: str
    answer: Finding
    notes: tuple[str, ...] = ()
    listings: tuple[Listing, ...] = ()
    charts: Mapping[str, str] = field(default_factory=dict)
    kip: str = ""


def section(
    anchor: str,
    said: Mapping[str, Any],
    noted: Mapping[str, str] | None = None,
    **rows: Iterable[Row],
) -> Section:
    """A section of page.yaml beside the five questions.

    Args:
        anchor: Which one; the sentence of this name answers it.
        said: What that sentence says of these facts.
        noted: What the note says of them.
        rows: Of each of its tables.
    """
    told: Mapping[str, Any] = declared("page.yaml")["sections"][anchor]
    notes = (told["note"].format(**noted or {}),) if "note" in told else ()
    shown = tuple(listing(name, found).brief() for name, found in rows.items())
    answer, drawn = (sentence(anchor, **said),), told.get("charts", {})
    return Section(anchor, told["short"], told["title"], answer, notes, shown, drawn)


def questions(facts: Mapping[str, Any]) -> tuple[Section, ...]:
    """The five questions in the order of the page."""
    asked = declared("page.yaml")["questions"]
    return tuple(_question(facts, anchor, told) for anchor, told in asked.items())


def _question(facts: Mapping[str, Any], anchor: str, told: Mapping[str, Any]) -> Section:
    lists = [
        (table(name), list(value_at(facts, path) or ())) for name, path in told["tables"].items()
    ]
    draft, rows = lists[0]
    bad = [row for row in rows if any((value_at(row, key) or 0) > 0 for key in told["bad"])]
    bad.sort(key=draft.badness or str, reverse=True)
    answer: Finding
    if bad:
        others = sentence("others", number=len(bad) - 1, said=told["others"])
        answer = (*_told(told["tells"], bad[0]), others)
    elif nothing_seen(facts, frozenset(told["families"])):
        answer = ("Not known: nobody looked in this period.",)
    else:
        doubtful = any(row.get("unknown_us", 0) != 0 for row in rows)
        answer = (told["quiet"], " Some time was not seen, see the table." if doubtful else "")
    known = {key: told[key] for key in ("short", "title", "kip", "charts")}
    listings = tuple(one.of(found) for one, found in lists)
    return Section(anchor, **known, answer=answer, notes=(told["meaning"],), listings=listings)


def _told(sentence_: str, row: Row) -> Finding:
    """A sentence about a row; in its braces stands what columns of page.yaml have, too."""
    parts: list[str | Name | Figure] = []
    for literal, field_, *_ in Formatter().parse(sentence_):
        parts += [literal, *(in_words(field_, row) if field_ else ())]
    return tuple(parts)
