"""Figures and names as text, lookups in the facts of a report, and files of this package."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from lakehouse.core import display
from lakehouse.core.periods import Span, micros
from lakehouse.tables import MAX_GAP_INTERVALS

Row = Mapping[str, Any]
Facts = Mapping[str, Any]
"""The facts of a report, with the keys of ``facts/report_record.py``."""

WIDE: Final = 0.05
"""Distance, as a share of the figure, from which bounds are text."""

_ALIKE: Final = 0.1
"""Greatest difference of two bounds' distances, as a share of both, for ``±``."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name from outside: of a topic, a client, a broker.

    Attributes:
        text: The name, shortened, without invisible characters.
        title: The whole name, capped; empty if ``text`` is the whole name.
    """

    text: str
    title: str = ""

    @property
    def isolated(self) -> str:
        """The name in Unicode isolates, so that its writing direction moves no word around it."""
        return f"\u2068{self.text}\u2069"


def moment(instant: str) -> int:
    """Return an instant of the facts, microseconds."""
    return micros(display.parse(instant))


def span_of(row: Row, start: str = "start", end: str = "end") -> Span:
    """Return two instants of a row, microseconds.

    Args:
        row: A row with ISO 8601 instants.
        start: Key of the first.
        end: Key of the second.
    """
    return moment(row[start]), moment(row[end])


def name(value: object) -> Name:
    """Return a name that is safe to show, whatever characters it has."""
    # Escapes of invisible characters are six times as long, so shorten first.
    whole = display.visible(display.shorten(str(value), 2 * display.TITLE_LIMIT))
    text = display.shorten(whole) or "(empty)"
    title = display.shorten(whole, display.TITLE_LIMIT)
    return Name(text, "" if title == text or not whole else title)


def badness(row: Row, *stems: str) -> tuple[float, float, float]:
    """Return a sort key, worst greatest: longest bad time, its upper bound, unknown time.

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
    """Return a duration in words; 0 has no unit."""
    return "0" if us == 0 else display.length(None if us is None else round(us), rounding)


def at_least(amount: str) -> str:
    """Return an amount as a lower bound: ``≥ 221.6 GiB``."""
    return f"≥ {amount}"


def at_most(amount: str) -> str:
    """Return an amount as an upper bound: ``≤ 42,000``."""
    return f"≤ {amount}"


def around(
    value: float | None, low: float | None, high: float | None, write: Callable[..., str] = length
) -> tuple[str, bool]:
    """Return the bounds of a figure in words, and whether they must be shown with it.

    Args:
        value: The figure.
        low: Its lower bound, which is rounded down.
        high: Its upper bound, which is rounded up.
        write: Formats a number and takes how it is rounded.
    """
    if value is None or low == value == high or (low is None and high is None):
        return "", False
    if high is None:
        return at_least(write(low, "down")), True
    is_wide = max(high - value, 0 if low is None else value - low) > WIDE * value
    if low is None or not value:
        return at_most(write(high, "up")), is_wide
    if abs((high - value) - (value - low)) <= _ALIKE * (high - low):
        return f"±{write(max(high - value, value - low), 'up')}", is_wide
    return f"{write(low, 'down')} to {write(high, 'up')}", is_wide


def value_at(row: Any, path: str) -> Any:
    """Return the value at a dotted path, such as ``copy.lagging_us``; None without one."""
    for key in path.split("."):
        row = (row or {}).get(key)
    return row


def rows_at(facts: Row, path: str) -> Iterator[Row]:
    """Yield the rows at a dotted path; a row of a list within rows has their values as well."""
    key, _, rest = path.partition(".")
    found = facts.get(key) or ()
    if isinstance(found, Mapping):
        yield from rows_at(found, rest) if rest else (found,)
        return
    for row in found:
        yield from ({**row, **one} for one in rows_at(row, rest)) if rest else (row,)


def floor_us(interval_us: int, slowest_us: int) -> int:
    """Return the longest time between two readings that is not unknown time, microseconds.

    Usually it is one interval. After a restart of the agent, or with late responses, it is more: a
    response covers ``MAX_GAP_INTERVALS`` intervals at most, and a value that is read first in a
    response can be read last in the next.

    Args:
        interval_us: Time between scrapes.
        slowest_us: Duration of the slowest response.
    """
    return round(MAX_GAP_INTERVALS * interval_us) + 2 * slowest_us


def longest_floor_us(read: Iterable[tuple[int | None, int | None]]) -> int | None:
    """Return the longest floor of pairs of interval and slowest response; None: without any."""
    return max((floor_us(us, slowest or 0) for us, slowest in read if us), default=None)


# Files of this package.


_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def asset(*path: str) -> str:
    """Return the text of a file of this package."""
    return resources.files("lakehouse.report").joinpath(*path).read_text("utf-8")


@lru_cache
def declared(file: str) -> Mapping[str, Any]:
    """Return the content of a YAML file."""
    content: Mapping[str, Any] = yaml.load(asset(file), _LOADER)  # noqa: S506  a safe loader, in C
    return content


@lru_cache
def templates(package: str) -> Environment:
    """Return the templates of a package, with autoescape."""
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
    )
    environment.globals["words"] = display
    environment.filters["tied"] = display.tied
    return environment


def sentence(name: str, **values: Any) -> str:
    """Return a sentence of the report.

    Args:
        name: Its key in page.yaml.
        values: Values by the names in its braces.
    """
    return str(declared("page.yaml")["sentences"][name].format(**values))
