"""Figures with their bounds, and names from outside, as text."""

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

WIDE: Final = 0.05
"""Distance, as a share of the figure, from which bounds are text."""

_ALIKE: Final = 0.1
"""Greatest difference of two bounds' distances, as a share of both, for ``±``."""

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


def moment(instant: str) -> int:
    """An instant of the facts, microseconds."""
    return micros(display.parse(instant))


def span_of(row: Row, start: str = "start", end: str = "end") -> Span:
    """Two instants of a row, microseconds.

    Args:
        row: A row with ISO 8601 instants.
        start: Key of the first.
        end: Key of the second.
    """
    return moment(row[start]), moment(row[end])


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


def length(us: float | None, rounding: display.Rounding = "nearest") -> str:
    """A duration in words; 0 has no unit."""
    return "0" if us == 0 else display.length(None if us is None else round(us), rounding)


def around(
    value: float | None, low: float | None, high: float | None, write: Callable[..., str] = length
) -> tuple[str, bool]:
    """The bounds of a figure in words, and whether they must be read with it.

    Args:
        value: The figure.
        low: Its lower bound, which is rounded down.
        high: Its upper bound, which is rounded up.
        write: Formats a number and takes how it is rounded.
    """
    if value is None or low == value == high or (low is None and high is None):
        return "", False
    if high is None:
        return f"at least {write(low, 'down')}", True
    is_wide = max(high - value, 0 if low is None else value - low) > WIDE * value
    if low is None or not value:
        return f"at most {write(high, 'up')}", is_wide
    if abs((high - value) - (value - low)) <= _ALIKE * (high - low):
        return f"±{write(max(high - value, value - low), 'up')}", is_wide
    return f"{write(low, 'down')} to {write(high, 'up')}", is_wide
