"""Events in words: time, duration, impact, likely cause, next step, used budget."""

from collections.abc import Mapping, Sequence
from typing import Final

from lakehouse.core import display
from lakehouse.core.spans import Span
from lakehouse.report import figures
from lakehouse.report.facts.objectives.budget import Status
from lakehouse.report.facts.owners.event_owners import is_of_brokers
from lakehouse.report.figures import Facts, Name, Row
from lakehouse.report.summary import amounts, causes, impacts
from lakehouse.report.summary.frame import Frame
from lakehouse.report.summary.headline import blind
from lakehouse.report.summary.model import Event, Text
from lakehouse.report.summary.texts import line, listed, plain, text, words

MAJOR: Final = 0.5
"""Share of an error budget from which an event has a card of its own."""

_WITHOUT_EVENTS: Final = {"remote-reads", "traffic", "capacity"}
_RECURRING_DAYS: Final = 3
_SECONDS_BELOW_US: Final = 60_000_000


def rows(facts: Facts) -> Sequence[Row] | None:
    """Return the events of the facts; None if they have no events, as in older versions."""
    found: Sequence[Row] | None = facts.get("events")
    return found


def is_major(row: Row) -> bool:
    """Return True if an event used at least half of an error budget."""
    return (row.get("used") or 0) >= MAJOR


def events(facts: Facts, frame: Frame) -> tuple[Event, ...]:
    """Return all events in the order of the facts: most of a budget first."""
    titles = {one["name"]: one.get("title") for one in facts.get("objectives") or ()}
    scene = impacts.scene_of(facts, frame)
    return tuple(_event(row, scene, titles) for row in rows(facts) or ())


def _event(row: Row, scene: impacts.Scene, titles: Mapping[str, object]) -> Event:
    parts = amounts.parts_of(row)
    used, objective = row.get("used"), row.get("objective")
    return Event(
        number=row["number"],
        status=_status(used),
        is_major=is_major(row),
        when=when(row, scene.frame),
        length=_length(row, parts),
        repeats=_repeats(row, scene.frame),
        title=impacts.title(row, scene),
        impact=impacts.impact(row, scene),
        cause=causes.cause(row, scene),
        next_step=causes.next_step(row, scene),
        owner=_owner(row),
        affects=_affects(row),
        used=_used(used, objective, titles),
        used_share=used,
        objective=objective,
        notes=_notes(row),
        parts=parts,
        subject=amounts.first_name({**row, "topic": next(iter(row.get("topics") or ()), None)}),
    )


def _length(row: Row, parts: Sequence[Span]) -> str:
    """Return the bad time of an event; of several times it is the sum."""
    length = figures.length(row.get("bad_us"))
    return line("event.in_total", length=length) if len(parts) > 1 else length


def _status(used: float | None) -> Status:
    """Return the status by the used share; an event that no objective counts has none."""
    if used is None:
        return "no_data"
    return "missed" if used >= 1 else "at_risk" if used >= MAJOR else "met"


def when(row: Row, frame: Frame) -> str:
    """Return when an event was: its start and end, or its days and hours if it recurred."""
    start, end = figures.span_of(row, "from", "to")
    parts = amounts.parts_of(row)
    days = {amounts.date(part[0]) for part in parts}
    if len(days) >= _RECURRING_DAYS and len(days) * 2 > len(parts):
        return _daily(parts, len(days), frame)
    shown = f"{amounts.day(start)} {amounts.clock(start)}"
    if row.get("ongoing"):
        return line("event.since", start=shown)
    if amounts.date(start) != amounts.date(end):
        return line("event.between", start=shown, end=f"{amounts.day(end)} {amounts.clock(end)}")
    seconds = end - start < _SECONDS_BELOW_US
    first, last = (amounts.clock(us, seconds=seconds) for us in (start, end))
    return line("event.within", day=amounts.day(start), start=first, end=last)


def _daily(parts: Sequence[Span], days: int, frame: Frame) -> str:
    first, last = (date.toordinal() for date in amounts.dates_of(frame.span))
    hours = amounts.hours_of(parts) or ("", "")
    return line("event.daily", days=days, total=last - first + 1, start=hours[0], end=hours[1])


def _repeats(row: Row, frame: Frame) -> str:
    weeks = row.get("weeks_in_row") or 1
    if weeks < 2 or frame.word != "week":
        return ""
    return line("event.weeks_in_row", weeks=weeks)


def _owner(row: Row) -> Name | None:
    owners = row.get("owners") or ([row["owner"]] if row.get("owner") is not None else [])
    owners = [row["owner"]] if is_of_brokers(row) else owners
    return figures.name(plain(listed(amounts.names(owners)))) if owners else None


def _affects(row: Row) -> Text:
    """Return the owners that brokers of another owner affected; empty otherwise."""
    if not is_of_brokers(row):
        return ()
    others = [one for one in row.get("owners") or () if one != row["owner"]]
    return text("event.affects", owners=listed(amounts.names(others)))


def _used(used: float | None, objective: str | None, titles: Mapping[str, object]) -> str:
    if used is None or objective is None:
        return ""
    share = amounts.used(used)
    if budget := words(f"budget.{objective}"):
        return line("event.used", share=share, budget=budget)
    title = display.line(titles.get(objective) or objective)
    return line("event.used_of", share=share, title=title)


def _notes(row: Row) -> tuple[str, ...]:
    no_objective = row.get("objective") is None and row.get("used") is None
    given = {**row, "no_objective": no_objective}
    keys = ("planned", "agreed", "no_objective")
    return tuple(words(f"event.{key}") for key in keys if given.get(key))


def events_note(facts: Facts, frame: Frame) -> str:
    """Return how many events there were, or why that is not known."""
    found = rows(facts)
    if frame.is_blind:
        return f"{blind(frame)}."
    if found is None:
        return line("events.missing", period=frame.word)
    return plain(text(_note(found), **_counts(found, frame))) + _not_known(facts)


def _note(found: Sequence[Row]) -> str:
    if not found:
        return "events.none"
    return "events.note" if any(map(is_major, found)) else "events.minor"


def _counts(found: Sequence[Row], frame: Frame) -> dict[str, str | int]:
    major = sum(map(is_major, found))
    minor = len(found) - major
    is_whole = frame.coverage is None or frame.coverage >= 0.99
    return {
        "major": line("events.count", count=major),
        "minor": (str(minor) if major else line("events.count", count=minor)) if minor else "",
        "others": minor,
        "budget": words("events.budget_week" if frame.word == "week" else "events.budget"),
        "share": "" if is_whole else display.share(frame.coverage, 1, "down"),
        "period": frame.word,
    }


def _not_known(facts: Facts) -> str:
    """Return the questions on which nothing is known, so that no event of them can be listed."""
    subjects = [
        subject
        for row in facts.get("answers") or ()
        if row.get("state") == "not_known" and row["question"] not in _WITHOUT_EVENTS
        if (subject := words(f"asked.{row['question']}"))
    ]
    return line("events.not_known", subjects=listed(subjects, 8)) if subjects else ""
