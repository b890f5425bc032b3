"""Figures that never stand alone: a value, the bounds of the truth and the time nobody saw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from lakehouse.report import words

Row = Mapping[str, Any]

SUBJECT_KEYS: Final = ("group", "user", "client_id", "topic", "partition", "source")
BOUNDS: Final = ("", "_low", "_high")
"""What the names of a value and its bounds end with."""

_LABELS: Final = {"client_id": "client id"}


@dataclass(frozen=True, slots=True)
class Name:
    """A name somebody outside chose.

    Attributes:
        text: What is shown: nothing invisible in it, and short.
        title: The whole name, capped; empty where ``text`` is the whole name already.
        label: What it is the name of; empty where the column says so.
    """

    text: str
    title: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its doubts, as text.

    Attributes:
        value: The best figure, or ``not known``.
        bounds: Between what the truth lies; empty where the facts give no bounds.
        unknown: The time nobody saw; empty where all was seen.
        order: What to sort by; None where the value is not known.
    """

    value: str
    bounds: str = ""
    unknown: str = ""
    order: float | None = None

    @property
    def text(self) -> str:
        """The figure on one line."""
        bounded = f"{self.value} ({self.bounds})" if self.bounds else self.value
        return f"{bounded}, {self.unknown}" if self.unknown else bounded


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table: names, a figure, a verdict or plain text."""

    names: tuple[Name, ...] = ()
    figure: Figure | None = None
    verdict: str = ""
    text: str = ""
    order: float | str | None = None


Finding = tuple[str | Name | Figure, ...]
"""An answer: words, names and figures in reading order."""


def sentence(finding: Finding) -> str:
    """The answer as text alone."""
    return "".join(part if isinstance(part, str) else part.text for part in finding)


def name(value: object, label: str = "", limit: int = words.NAME_LIMIT) -> Name:
    """A hostile name, made fit to be shown."""
    given = str(value)
    # Cut before it is spelt out: 32 KB of control characters would become six times as much.
    whole = words.visible(words.shorten(given, 2 * words.TITLE_LIMIT))
    text = words.shorten(whole, limit) or "(empty)"
    title = words.shorten(whole, words.TITLE_LIMIT)
    return Name(text, "" if title == text or not whole else title, label)


def subject(row: Row, keys: Iterable[str] = SUBJECT_KEYS) -> tuple[Name, ...]:
    """The names that say whom a row is about; none where it is about the whole cluster."""
    return tuple(name(row[key], _LABELS.get(key, key)) for key in keys if row.get(key) is not None)


def single(value: object) -> tuple[Name, ...]:
    """One name whose column says what it is; nothing where there is none."""
    return () if value is None else (name(value),)


def unknown_time(us: int | None) -> str:
    """The time nobody saw; empty where all was seen."""
    if us is None:
        return "unknown time not known"
    return f"{words.duration(us, 'up')} unknown" if us else ""


def time(row: Row, stem: str) -> Figure:
    """The duration ``stem`` of a row, from its columns ``_us``, ``_low_us`` and ``_high_us``."""
    found = (row.get(f"{stem}{bound}_us") for bound in BOUNDS)
    return bounded(found, words.duration, row.get("unknown_us"))


def seen_time(row: Row, stem: str) -> Figure:
    """The same, where it is not asked what nobody saw."""
    return time({**row, "unknown_us": 0}, stem)


def incident_length(incident: Row) -> Figure:
    """How long an incident lasted; its edges bound it."""
    if incident.get("start") is None or incident.get("end") is None:
        return Figure(words.NOT_KNOWN)
    us = (words.parse(incident["end"]) - words.parse(incident["start"])) // timedelta(
        microseconds=1
    )
    lead, tail = incident.get("lead_us"), incident.get("tail_us")
    low = None if tail is None else max(0, us - tail)
    return bounded((us, low, None if lead is None else us + lead), words.duration, 0)


def attainment(row: Row) -> Figure:
    """The share of the time that was good."""
    found = (row.get(f"attainment{bound}") for bound in BOUNDS)
    return bounded(found, words.percent, row.get("unknown_us"))


def offsets(row: Row) -> Figure:
    """How many offsets were lost: at least and at most."""
    low, high = row.get("offsets_low"), row.get("offsets_high")
    unknown = unknown_time(row.get("unknown_us"))
    if low is None and high is None:
        return Figure(words.NOT_KNOWN, "", unknown)
    if low == high:
        return Figure(words.count(low), "±0", unknown, high)
    if low is None or high is None:
        known = f"at least {words.count(low)}" if high is None else f"at most {words.count(high)}"
        return Figure(known, "", unknown, low if high is None else high)
    return Figure(f"{words.count(low)} to {words.count(high)}", "", unknown, high)


def plain(value: float | None, text: str) -> Figure:
    """A figure for which the facts give no bounds."""
    return Figure(text, order=value)


def between(row: Row, name: str, write: Callable[[float | None], str]) -> Figure:
    """A count with its bounds; where only these are known, they are the figure."""
    value, low, high = (row.get(f"{name}{bound}") for bound in BOUNDS)
    said = f"{write(low)} to {write(high)}" if low != high else ""
    if value is None:
        known = None not in (low, high)
        return Figure((said or write(high)) if known else words.NOT_KNOWN, order=high)
    return Figure(write(value), said, order=value)


def badness(row: Row, *stems: str) -> tuple[float, float]:
    """How bad a row is, worst greatest: what was bad at most, then what nobody saw.

    A figure that is not known stands above zero and below everything that was seen to be bad.
    """
    worst = 0.0
    for stem in stems:
        value = row.get(f"{stem}_high_us", row.get(f"{stem}_us"))
        worst = max(worst, 0.5 if value is None else float(value))
    unknown = row.get("unknown_us")
    return worst, float("inf") if unknown is None else float(unknown)


def bounded(
    found: Iterable[float | None], say: Callable[..., str], unknown_us: int | None
) -> Figure:
    """A value, its low and its high bound rounded outwards, and the time nobody saw."""
    value, low, high = found
    if value == low == high:
        bounds = "" if value is None else "±0"
    elif low is None and high is None:
        bounds = "bounds not known"
    else:
        bounds = f"{say(low, 'down')} to {say(high, 'up')}"
    return Figure(say(value), bounds, unknown_time(unknown_us), value)
