"""Figures with their bounds and their unknown time, and names from outside, as text."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lakehouse.core import display
from lakehouse.core.observed_share import peak_high
from lakehouse.core.periods import micros
from lakehouse.core.spans import Span

Row = Mapping[str, Any]
Facts = Mapping[str, Any]
"""The facts of a report, whose keys are those of ``facts/report_record.py``."""

SUBJECT_KEYS: Final = ("group", "user", "client_id", "topic", "partition", "source")
BOUNDS: Final = ("", "_low", "_high")
"""Suffixes of a value and its bounds."""

_LABELS: Final = {"client_id": "client id"}


@dataclass(frozen=True, slots=True)
class Name:
    """A name from outside: of a topic, a client, a broker.

    Attributes:
        text: The name, shortened, without invisible characters.
        title: The whole name, capped; empty where ``text`` is the whole name already.
        label: The kind of thing it names; empty where the column says so.
    """

    text: str
    title: str = ""
    label: str = ""

    @property
    def labelled(self) -> str:
        """Label and name."""
        return f"{self.label} {self.text}".strip()


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its uncertainty, as text.

    Attributes:
        value: The best figure, or ``not known``.
        bounds: The bounds of the true value; empty where the facts give none.
        unknown: The time that was not seen; empty where all was seen.
        order: The sort key; None where the value is not known.
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
    """One cell of a table: plain text, a figure or names; or a verdict."""

    content: str | Figure | tuple[Name, ...] = ""
    verdict: str = ""
    order: float | str | None = None


Answer = tuple[str | Name | Figure, ...]
"""A sentence: words, names and figures in reading order."""


def plain_text(answer: Answer) -> str:
    """The sentence without markup."""
    return "".join(part if isinstance(part, str) else part.text for part in answer)


def span_of(row: Row, start: str = "start", end: str = "end") -> Span:
    """Two instants of a row, microseconds.

    Args:
        row: A row with ISO 8601 instants.
        start: Key of the first.
        end: Key of the second.
    """
    return micros(display.parse(row[start])), micros(display.parse(row[end]))


def name(value: object, label: str = "", limit: int = display.NAME_LIMIT) -> Name:
    """A name that is safe to show, whatever characters it has."""
    # Shortened before invisible characters are spelt out, which makes each six times as long.
    whole = display.visible(display.shorten(str(value), 2 * display.TITLE_LIMIT))
    text = display.shorten(whole, limit) or "(empty)"
    title = display.shorten(whole, display.TITLE_LIMIT)
    return Name(text, "" if title == text or not whole else title, label)


def subject(row: Row, keys: Iterable[str] = SUBJECT_KEYS) -> tuple[Name, ...]:
    """The names of a row's subject; none for the whole cluster."""
    return tuple(name(row[key], _LABELS.get(key, key)) for key in keys if row.get(key) is not None)


def single(value: object) -> tuple[Name, ...]:
    """One name without a label; empty for None."""
    return () if value is None else (name(value),)


def unknown_time(us: int | None) -> str:
    """Time that was not seen; empty where all was seen."""
    if us is None:
        return "unknown time not known"
    return f"{display.duration(us, 'up')} unknown" if us else ""


def time(row: Row, stem: str) -> Figure:
    """The duration ``stem`` of a row, from its columns ``_us``, ``_low_us`` and ``_high_us``."""
    values = (row.get(f"{stem}{bound}_us") for bound in BOUNDS)
    return bounded(values, display.duration, row.get("unknown_us"))


def seen_time(row: Row, stem: str) -> Figure:
    """The same without the unknown time."""
    return time({**row, "unknown_us": 0}, stem)


def incident_length(incident: Row) -> Figure:
    """The length of an incident, bounded by the uncertainty of its edges."""
    start, end = span_of(incident)
    lead, tail = incident.get("lead_us"), incident.get("tail_us")
    low = None if tail is None else max(0, end - start - tail)
    high = None if lead is None else end - start + lead
    return bounded((end - start, low, high), display.duration, 0)


def attainment(row: Row) -> Figure:
    """The share of the time that was good."""
    return share(row, "attainment")


def share(row: Row, stem: str) -> Figure:
    """The share ``stem`` of a row, from its columns ``stem``, ``_low`` and ``_high``."""
    values = (row.get(f"{stem}{bound}") for bound in BOUNDS)
    return bounded(values, display.percent, row.get("unknown_us"))


def offsets(row: Row) -> Figure:
    """The offsets that were lost, at least and at most."""
    return least_to_most(row, "offsets", display.count, unknown_time(row.get("unknown_us")))


def least_to_most(
    row: Row, stem: str, write: Callable[[float | None], str], unknown: str = ""
) -> Figure:
    """A figure of which the bounds alone are known, or one of them."""
    low, high = row.get(f"{stem}_low"), row.get(f"{stem}_high")
    order = low if high is None else high
    if order is None:
        return Figure(display.NOT_KNOWN, "", unknown)
    if low is None or high is None:
        limit = "at least" if high is None else "at most"
        return Figure(f"{limit} {write(order)}", "", unknown, order)
    if low == high:
        return Figure(write(low), "" if unknown else "±0", unknown, high)
    return Figure(f"{write(low)} to {write(high)}", "", unknown, high)


def peak(row: Row, key: str, write: Callable[[Any], str], limit: str = "at least") -> Figure:
    """Return a maximum; "at least" it, if its subject has unknown time.

    Args:
        row: The row with the value and ``unknown_us``.
        key: The key of the value.
        write: Formats the value.
        limit: ``at most`` for a minimum.
    """
    value = row.get(key)
    is_exact = value is None or peak_high(value, row.get("unknown_us")) is not None
    return Figure(write(value) if is_exact else f"{limit} {write(value)}", order=value)


def between(row: Row, stem: str, write: Callable[[float | None], str]) -> Figure:
    """A count with its bounds; without a best value the bounds are the figure."""
    value, low, high = (row.get(f"{stem}{bound}") for bound in BOUNDS)
    bounds = f"{write(low)} to {write(high)}" if low != high else ""
    if high is None and low is not None and (low or value is not None):
        if value in (low, None):
            return Figure(f"at least {write(low)}", order=low)
        return Figure(write(value), f"at least {write(low)}", order=value)
    if value is None:
        known = None not in (low, high)
        return Figure((bounds or write(high)) if known else display.NOT_KNOWN, order=high)
    return Figure(write(value), bounds, order=value)


def at_least(row: Row, stem: str, write: Callable[[float | None], str]) -> Figure:
    """Return a count; without a high bound more may have been counted in unknown time."""
    value, low = row.get(stem), row.get(f"{stem}_low")
    least = value if low is None else low
    if not (least or value is not None) or row.get(f"{stem}_high", 0) is not None:
        return Figure(write(value), order=value)
    text = f"at least {write(least)}" if least else f"{write(least)} counted"
    return Figure(text, order=least if value is None else value)


def badness(row: Row, *stems: str) -> tuple[float, float, float]:
    """A sort key, worst greatest: the longest bad time, that time at most, the unknown time.

    The first is the figure that is shown. One that is not known ranks above zero and below every
    known bad time.
    """
    worst = 0.0, 0.0
    for stem in stems:
        value, high = row.get(f"{stem}_us"), row.get(f"{stem}_high_us")
        shown = 0.5 if value is None else float(value)
        worst = max(worst, (shown, 0.5 if high is None else float(high)))
    unknown = row.get("unknown_us")
    return *worst, float("inf") if unknown is None else float(unknown)


def bounded(
    values: Iterable[float | None], write: Callable[..., str], unknown_us: int | None
) -> Figure:
    """A value with its low and its high bound, rounded outwards, and the unknown time."""
    value, low, high = values
    unknown = unknown_time(unknown_us)
    if high is None and low is not None and (value == low or (low and value is None)):
        return Figure(f"at least {write(low, 'down')}", "", unknown, low)
    if value == low == high:
        bounds = "" if value is None or unknown else "±0"
    elif low is None and high is None:
        bounds = "bounds not known"
    elif high is None:
        bounds = f"at least {write(low, 'down')}"
    elif low is None:
        bounds = "lower bound not known"
    else:
        bounds = f"{write(low, 'down')} to {write(high, 'up')}"
    return Figure(write(value), bounds, unknown, value)
