"""Figures with their bounds and their unknown time, and names from outside, as text."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lakehouse.core import display
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


def attainment(row: Row) -> Figure:
    """The share of the time that was good."""
    return share(row, "attainment")


def share(row: Row, stem: str) -> Figure:
    """The share ``stem`` of a row, from its columns ``stem``, ``_low`` and ``_high``."""
    values = (row.get(f"{stem}{bound}") for bound in BOUNDS)
    return bounded(values, display.percent, row.get("unknown_us"))


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
