"""A section of the page; and the five questions: what each asks, what was found, and its lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lakehouse.report import cells, figures, words
from lakehouse.report.figures import Finding, Row
from lakehouse.report.listing import Listing, listing, table
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
    anchor: str, answer: str, said: Mapping[str, str] | None = None, **rows: Iterable[Row]
) -> Section:
    """A section of page.yaml beside the five questions.

    Args:
        anchor: Which one.
        answer: What was found.
        said: What its note says of these facts.
        rows: Of each of its tables.
    """
    told: Mapping[str, Any] = declared("page.yaml")["sections"][anchor]
    notes = (told["note"].format(**said or {}),) if "note" in told else ()
    shown = tuple(listing(name, found).brief() for name, found in rows.items())
    return Section(anchor, told["short"], told["title"], (answer,), notes, shown)


def questions(facts: Mapping[str, Any]) -> tuple[Section, ...]:
    """The five questions in the order of the page."""
    asked = declared("page.yaml")["questions"]
    return tuple(_question(facts, anchor, told) for anchor, told in asked.items())


def _question(facts: Mapping[str, Any], anchor: str, told: Mapping[str, Any]) -> Section:
    lists = [
        (table(name), list(value_at(facts, path) or ())) for name, path in told["tables"].items()
    ]
    draft, rows = lists[0]
    is_bad, tell = _TOLD[anchor]
    bad = sorted(filter(is_bad, rows), key=draft.badness or str, reverse=True)
    answer: Finding
    if bad:
        answer = (*tell(bad[0]), _others(len(bad) - 1, *told["others"]))
    elif nothing_seen(facts, frozenset(told["families"])):
        answer = ("Not known: nobody looked in this period.",)
    else:
        doubtful = any(row.get("unknown_us", 0) != 0 for row in rows)
        answer = (told["quiet"], " Some time was not seen, see the table." if doubtful else "")
    known = {key: told[key] for key in ("short", "title", "kip", "charts")}
    listings = tuple(one.of(found) for one, found in lists)
    return Section(anchor, **known, answer=answer, notes=(told["meaning"],), listings=listings)


def _others(number: int, noun: str, one: str, many: str) -> str:
    """A sentence that says how many others there were; empty where there were none."""
    said = one if number == 1 else many
    return f". {said} {words.plural(number, 'other ' + noun)}." if number else "."


def _min_isr(worst: Row) -> Finding:
    most = worst.get("max_concurrent")
    at_once = f", at most {words.plural(most, 'partition')} at once" if most else ""
    time = figures.time(worst, "unavailable_any")
    topic = figures.name(worst["topic"])
    return "Topic ", topic, " could not be written to safely for ", time, at_once


def _throttling(worst: Row) -> Finding:
    who: list[str | figures.Name] = []
    for one in figures.subject(worst, ("user", "client_id")):
        who += [f", {one.label} " if who else f"{one.label.capitalize()} ", one]
    was = f" was throttled ({cells.word('kind', worst.get('kind'))}) for "
    return *who, was, figures.time(worst, "throttled")


def _tier_lag(worst: Row) -> Finding:
    most = words.size(value_at(worst, "copy.max_bytes"))
    return (
        "Topic ",
        figures.name(worst["topic"]),
        " was behind with its uploads for ",
        cells.uploads_lagging(worst),
        f", by {most} at most; with its deletions for ",
        cells.deletions_lagging(worst),
    )


def _lost(worst: Row) -> Finding:
    partition = figures.name(f"{worst.get('topic')}-{worst.get('partition')}")
    group = figures.name(worst["group"])
    return "Group ", group, " lost ", figures.offsets(worst), " offsets of ", partition


def _remote(worst: Row) -> Finding:
    requests, errors = (words.count(worst.get(key)) for key in ("requests", "errors"))
    return (
        "Topic ",
        figures.name(worst["topic"]),
        f" was read from the remote store most: {requests} requests, "
        f"{words.size(worst.get('bytes'))}, errors: {errors}",
    )


def _positive(*keys: str) -> Callable[[Row], bool]:
    """Whether any of these columns is above zero."""
    return lambda row: any((row.get(key) or 0) > 0 for key in keys)


def _lasted(*stems: str) -> Callable[[Row], bool]:
    """Whether any of these durations may have been above zero."""
    return _positive(*(f"{stem}{part}_us" for stem in stems for part in ("", "_high")))


_TOLD: Final[Mapping[str, tuple[Callable[[Row], bool], Callable[[Row], Finding]]]] = {
    "min-isr": (_lasted("unavailable_any", "any", "leaderless"), _min_isr),
    "throttling": (_lasted("throttled"), _throttling),
    "tier-lag": (lambda row: cells.tier_badness(row)[0] > 0.5, _tier_lag),
    "lost": (_positive("offsets_high", "offsets_low"), _lost),
    "remote-reads": (_positive("requests", "bytes"), _remote),
}
"""Which rows of a question are worth telling, and how the worst is told."""
