"""Lines of the short report that mail, chats and terminal share."""

import unicodedata
from typing import Final

from lakehouse.report.figures import Name
from lakehouse.report.summary import texts
from lakehouse.report.summary.model import Event, Objective, Strong, Summary, Text, Tile

MOST_EVENTS: Final = 3
"""Events in a message to a chat."""

_RIGHT_TO_LEFT: Final = {"R", "AL", "AN"}


def plain(text: Text, *, isolate: bool = False) -> str:
    """Return a sentence without markup.

    Args:
        text: The sentence.
        isolate: Whether a name from right to left gets Unicode isolates, for outputs that order
            text by direction. It then cannot move the words around it.
    """
    return texts.plain(tuple(map(_isolated, text)) if isolate else text)


def _isolated(part: str | Name | Strong) -> str | Name | Strong:
    if not isinstance(part, Name):
        return part
    directions = {unicodedata.bidirectional(character) for character in part.text}
    return f"\u2068{part.text}\u2069" if directions & _RIGHT_TO_LEFT else part


def headline(summary: Summary) -> str:
    """Return the worst verdict and what changed since last week."""
    return ", ".join(filter(None, (summary.headline.text, summary.headline.then)))


def about(summary: Summary) -> Text:
    """Return what the report is about: its cluster, its team and its period."""
    team: Text = () if summary.team is None else (", team ", summary.team)
    rest = (summary.week, summary.period, summary.running)
    return (f"{summary.title}, cluster ", summary.cluster, *team,
            *(f", {part}" for part in rest if part))  # fmt: skip


def context(tile: Tile) -> Text:
    """Return the context of a key figure: its worst subject and its change."""
    return texts.joined(tile.note, (tile.delta,) if tile.delta else (), between="; ")


def event_title(event: Event) -> Text:
    """Return the number and the title of an event."""
    return (f"{event.number}. ", *event.title)


def event_time(event: Event) -> str:
    """Return when an event was, its bad time, and whether it repeats or was planned."""
    return ", ".join(filter(None, (event.when, event.length, event.repeats, *event.notes)))


def event_owner(event: Event) -> Text:
    """Return the owner of an event, and the owners that it affected; empty: not known."""
    if event.owner is None:
        return ()
    affected: Text = (", ", *event.affects) if event.affects else ()
    return ("Owner: ", event.owner, *affected, ".")


def event_action(event: Event) -> Text:
    """Return the owner of an event and the next step."""
    step: Text = ("Next: ", *event.next_step) if event.next_step else ()
    return texts.joined(event_owner(event), step, between=" ")


def other_events(summary: Summary, shown: int) -> str:
    """Return how many events a message leaves out; empty: none."""
    left = len(summary.events) - shown
    noun = "event is" if left == 1 else "events are"
    return f"{left} more {noun} in the report." if left > 0 else ""


def not_met(summary: Summary) -> tuple[Objective, ...]:
    """Return the objectives that need a look."""
    return tuple(one for one in summary.objectives if one.status not in {"met", "on_track"})


def notes(summary: Summary) -> tuple[Text, ...]:
    """Return what was not observed or not collected, a sentence each."""
    missing = summary.not_collected
    collected: tuple[Text, ...] = ((f"Not collected: {', '.join(missing)}.",),) if missing else ()
    return (*summary.notes, *collected)
