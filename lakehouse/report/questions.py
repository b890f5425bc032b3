"""The five questions a report answers: what each asks, what was found, and its lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import cells, figures, words
from lakehouse.report.declared import declared
from lakehouse.report.figures import Finding
from lakehouse.report.listing import Listing
from lakehouse.report.lookup import nothing_seen, value_at
from lakehouse.report.tables import table

if TYPE_CHECKING:
    from lakehouse.report.figures import Row


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its answer.

    Attributes:
        anchor: Its place in the page.
        short: What the list of sections calls it.
        title: The question in words people use.
        kip: The document that asks it.
        meaning: Why it matters, in a sentence.
        charts: Names of the timelines that belong to it, with what they show.
        finding: What was found, as words, names and figures in reading order.
        listings: The tables behind it.
    """

    anchor: str
    short: str
    title: str
    kip: str
    meaning: str
    charts: Mapping[str, str]
    finding: Finding
    listings: tuple[Listing, ...]


def questions(facts: Mapping[str, Any]) -> tuple[Question, ...]:
    """The five questions in the order of the page."""
    asked = declared("page.yaml")["questions"]
    return tuple(_question(facts, anchor, told) for anchor, told in asked.items())


def _question(facts: Mapping[str, Any], anchor: str, told: Mapping[str, Any]) -> Question:
    lists = [
        (table(name), list(value_at(facts, path) or ())) for name, path in told["tables"].items()
    ]
    draft, rows = lists[0]
    is_bad, tell = _TOLD[anchor]
    bad = sorted(filter(is_bad, rows), key=draft.badness or str, reverse=True)
    finding: Finding
    if bad:
        finding = (*tell(bad[0]), _others(len(bad) - 1, *told["others"]))
    elif nothing_seen(facts, frozenset(told["families"])):
        finding = ("Not known: nobody looked in this period.",)
    else:
        doubtful = any(row.get("unknown_us", 0) != 0 for row in rows)
        finding = (told["quiet"], " Some time was not seen, see the table." if doubtful else "")
    known = {key: told[key] for key in ("short", "title", "kip", "meaning", "charts")}
    return Question(
        anchor, **known, finding=finding, listings=tuple(one.of(found) for one, found in lists)
    )


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
    was = f" was throttled ({cells.kind_of_quota(worst)}) for "
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
