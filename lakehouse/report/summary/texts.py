"""Texts of words.yaml, filled in with figures and names, and what all texts depend on.

A template has ``{name}``, ``{name!b}`` for a figure that stands out, ``{n:topic}`` for a number
with its noun, and ``{n:was/were}`` for a word that depends on a number. ``[parts]`` are left out if
one of their values is empty.
"""

import datetime as dt
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeVar, cast

from lakehouse.core import display
from lakehouse.core.periods import Span, instant
from lakehouse.report import evidence, figures
from lakehouse.report.facts.fields import Bounds
from lakehouse.report.figures import Facts, Name, Row, value_at


class Strong(NamedTuple):
    """A figure in a sentence that a reader looks for."""

    text: str


Text = tuple[str | Name | Strong, ...]
"""A sentence: words, names and figures in reading order."""

Value = str | float | Name | Text | None
"""A value of a template; None and empty values leave out their part."""

T = TypeVar("T")

_FILE: Final = "summary/words.yaml"
_PARTS: Final = re.compile(r"\[([^\]]*)\]")
_FIELD: Final = re.compile(r"\{(\w+)(!b)?(?::([^}]*))?\}")
_LISTED: Final = 2


class _Piece(NamedTuple):
    """Words of a template, or the name of a value.

    Attributes:
        literal: The words.
        name: The value's name; empty of words.
        is_strong: Whether the value stands out.
        spec: A noun, or words for one and for other numbers.
    """

    literal: str
    name: str = ""
    is_strong: bool = False
    spec: str = ""


@functools.cache
def words(path: str) -> str:
    """Return a text of words.yaml as it is; empty where there is none.

    Args:
        path: Its keys, with dots between them.
    """
    return str(value_at(figures.declared(_FILE), path) or "")


def text(path: str, /, **values: Value) -> Text:
    """Return a text of words.yaml, filled in.

    Args:
        path: Its keys, with dots between them.
        values: Values by the names in its braces.
    """
    parts: list[str | Name | Strong] = []
    for is_optional, pieces in _parsed(words(path)):
        if is_optional and not all(_is_given(values[one.name]) for one in pieces if one.name):
            continue
        for one in pieces:
            parts += _value(values[one.name], one) if one.name else (one.literal,)
    return tuple(_merged(parts))


def line(path: str, /, **values: Value) -> str:
    """Return the same as plain text; names are short and have no invisible characters."""
    return plain(text(path, **values))


def plain(content: Text) -> str:
    """Return a text without marks."""
    return "".join(part if isinstance(part, str) else part.text for part in content)


def capital(content: Text) -> Text:
    """Return a sentence with a capital letter, unless it starts with a name."""
    first, *rest = content
    return (first[:1].upper() + first[1:], *rest) if isinstance(first, str) else content


def joined(*texts: Text, between: str = "") -> Text:
    """Return texts that are not empty as one, with plain spaces."""
    parts: list[str | Name | Strong] = []
    for one in filter(None, texts):
        parts += [between, *one] if parts and between else one
    return tuple(_merged(parts))


def listed(items: Sequence[Value], limit: int = 3, last: str = "list.and") -> Text:
    """Return ``a``, ``a and b``, ``a, b and c`` or ``a, b, c and 4 more``.

    Args:
        items: Names or texts.
        limit: Number of items that are written out.
        last: The text between the last two.
    """
    shown = [_parts(item) for item in items[:limit]]
    if more := len(items) - limit if len(items) > limit else 0:
        first = joined(*map(tuple, shown), between=", ")
        return text("list.more", first=first, count=more)
    if len(shown) < _LISTED:
        return joined(*map(tuple, shown))
    first = joined(*map(tuple, shown[:-1]), between=", ")
    return text(last, first=first, last=tuple(shown[-1]))


def _is_given(value: Value) -> bool:
    return value == 0 or bool(value)


@functools.cache
def _parsed(template: str) -> tuple[tuple[bool, tuple[_Piece, ...]], ...]:
    """Return the parts of a template, whether each is optional, and its pieces."""
    parts = _PARTS.split(template)  # every second part is in brackets
    return tuple((place % 2 == 1, tuple(_pieces(part))) for place, part in enumerate(parts))


def _pieces(part: str) -> Iterator[_Piece]:
    reached = 0
    for field in _FIELD.finditer(part):
        yield _Piece(part[reached : field.start()])
        name, strong, spec = field.groups()
        yield _Piece("", name, bool(strong), spec or "")
        reached = field.end()
    yield _Piece(part[reached:])


def _value(value: Value, piece: _Piece) -> Iterable[str | Name | Strong]:
    if piece.spec and isinstance(value, int):
        one, _, other = piece.spec.partition("/")
        chosen = (one if value == 1 else other) if other else display.plural(value, one)
        parts: list[str | Name | Strong] = [chosen]
    else:
        parts = _parts(value)
    if not piece.is_strong:
        return parts
    return [Strong(part) if isinstance(part, str) else part for part in parts]


def _parts(value: Value) -> list[str | Name | Strong]:
    if isinstance(value, tuple):
        return list(value)
    if value is None:
        return []
    return [f"{value:,}" if isinstance(value, int | float) else value]


def _merged(parts: Iterable[str | Name | Strong]) -> Iterator[str | Name | Strong]:
    """Yield the parts, neighbouring words as one."""
    for is_words, group in groupby(parts, key=lambda part: isinstance(part, str)):
        if not is_words:
            yield from group
        elif together := "".join(map(str, group)):
            yield together


def spaced(value: T) -> T:
    """Return a value with plain spaces in all its texts. Names stay as they are."""
    changed: Any = value
    if isinstance(value, str):
        changed = display.untied(value)
    elif isinstance(value, tuple):
        parts = map(spaced, value)
        changed = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return cast("T", changed)


def around(figure: Bounds) -> str:
    """Return the bounds of a duration for the text; empty if they are close to it."""
    text, is_wide = figures.around(*figure)
    return text if is_wide else ""


def exactly(figure: Bounds) -> str:
    """Return the bounds of a duration for a tooltip; the duration where it has none."""
    us, low, high = (None if one is None else round(one) for one in figure)
    if us is None or low is None:
        return display.length(us)
    if high is None:
        return figures.at_least(display.length(low, "down"))
    if low == high:
        return display.length(us)
    bounds = display.length(low, "down"), display.length(high, "up")
    return line("amount.between", low=bounds[0], high=bounds[1])


def used(share: float | None) -> str:
    """Return a share of an error budget, such as ``1,240 %``."""
    return display.share(share, 0)


def used_between(low: float | None, high: float | None) -> str:
    """Return the bounds of a used error budget, such as ``64 to 102 %``."""
    return display.NOT_KNOWN if low is None or high is None else between_shares(low, high, 0)


def between_shares(low: float, high: float, digits: int, target: float = 1) -> str:
    """Return two bounds: ``98.9 to 99.9 %``.

    Args:
        low: The lower bound, rounded down.
        high: The upper bound, rounded up.
        digits: Digits after the point, or more where a bound needs them.
        target: A share as which neither is shown unless it is that.
    """
    apart = (0, 1, target)
    first = last = ""
    for places in range(digits, 7):  # the same digits in both
        first = display.share(low, places, "down", apart)
        last = display.share(high, places, "up", apart)
        if places == max(_places(first), _places(last)):
            break
    first = first.removesuffix("\u00a0%")
    return line("amount.between", low=first, high=last)


def _places(share: str) -> int:
    return len(share.partition(".")[2].partition("\u00a0")[0])


# Names.


def subject(row: Row) -> Text:
    """Return the name of a subject: ``orders``, ``orders-3``, ``billing / invoicing``."""
    if row.get("user") is not None or row.get("client_id") is not None:
        who = [row[key] for key in ("user", "client_id") if row.get(key) is not None]
        return joined(*((figures.name(one),) for one in who), between=" / ")
    for key in ("topic", "group", "source"):
        if row.get(key) is not None:
            label = row[key]
            if key == "topic" and row.get("partition") is not None:
                label = f"{label}-{row['partition']}"
            return (figures.name(label),)
    return (words("objective.cluster"),)


def names(values: Iterable[object]) -> list[Name]:
    """Return names from outside in their order, each once."""
    return [figures.name(one) for one in dict.fromkeys(map(str, values))]


def first_name(row: Row) -> Name | None:
    """Return the subject of ``jmxlake explain`` for a row; None without a name."""
    keys = ("group", "client_id", "user", "topic", "source")
    found = next((row[key] for key in keys if row.get(key) is not None), None)
    return None if found is None else figures.name(found)


# Instants.


def day(us: int) -> str:
    """Return the local day of an instant: ``Wed 18 Nov``."""
    return display.day(instant(us))


def date(us: int) -> dt.date:
    """Return the local date of an instant."""
    return display.local(instant(us)).date()


def clock(us: int, *, seconds: bool = False) -> str:
    """Return the local time of an instant: ``14:27``."""
    return display.clock(instant(us), seconds=seconds)


def at(us: int) -> str:
    """Return an instant in a sentence: ``Wed 18 Nov at 14:27``."""
    return line("event.at", day=day(us), clock=clock(us))


def dates_of(span: Span) -> tuple[dt.date, dt.date]:
    """Return the first and the last local date of a time."""
    return date(span[0]), date(span[1] - 1)


def parts_of(row: Row) -> tuple[Span, ...]:
    """Return the times in which an event was bad, microseconds."""
    parts = row.get("parts") or ({"start": row["from"], "end": row["to"]},)
    return tuple(map(figures.span_of, parts))


def hours_of(parts: Sequence[Span]) -> tuple[str, str] | None:
    """Return the earliest and the latest time of day.

    None if a part is across midnight, or all is within one minute.
    """
    if any(date(start) != date(end) for start, end in parts):
        return None
    first, last = min(clock(start) for start, _ in parts), max(clock(end) for _, end in parts)
    return None if first == last else (first, last)


# Figures without a value.


_UNKNOWN: Final = {
    "not_collected": "tile.not_collected",
    "not_applicable": "tile.not_applicable",
}
"""Words of states without a figure; any other figure without a value is not known."""


def missing(state: str | None, reason: str | None) -> tuple[str, str]:
    """Return the text of a figure that is not known, and why, without the words of the text.

    Args:
        state: State of its question.
        reason: Reason of the question: ``Not applicable: no consumer group was observed.``
    """
    name = _UNKNOWN.get(str(state))
    word = words(name) if name else display.NOT_KNOWN
    return word, display.line((reason or "").removeprefix(f"{word.capitalize()}: "))


def week_name(week: object) -> str:
    """Return the short name of an ISO week: ``W47`` of ``2026-W47``."""
    return display.line(week, 20).rpartition("-")[2]


# Period and coverage.


class Frame(NamedTuple):
    """Period and coverage, on which every text of a report depends.

    Attributes:
        span: The period, microseconds.
        observed_to: End of the observable time; the end of the period if it has ended.
        is_running: Whether the period has not ended.
        is_blind: Whether too little was observed to state anything good.
        floor: Least observed share for a good statement.
        coverage: Observed share of the expected time; None: nothing was expected.
        word: Word for the period: ``week`` or ``period``.
        has_week_before: Whether the facts have the week before.
    """

    span: Span
    observed_to: int
    is_running: bool
    is_blind: bool
    floor: float
    coverage: float | None
    word: str
    has_week_before: bool


def frame_of(facts: Facts) -> Frame:
    """Return the frame of a report, whatever version wrote it."""
    start, end = figures.span_of(facts, "from", "to")
    made = facts.get("generated_at")
    now = end if made is None else min(end, max(start, figures.moment(made)))
    is_running = bool(facts.get("running", now < end))
    if facts.get("elapsed") is not None:
        now = start + round(float(facts["elapsed"]) * (end - start))
    percent = value_at(facts, "coverage.percent")
    floor = evidence.floor_of(facts) / 100
    share = None if percent is None else percent / 100
    is_blind = not share or share < floor
    word = "week" if facts.get("week") else "period"
    observed_to = now if is_running else end
    had_week = bool(facts.get("previous"))
    return Frame((start, end), observed_to, is_running, is_blind, floor, share, word, had_week)


def blind(frame: Frame) -> str:
    """Return that too little was observed, and how much."""
    if not frame.coverage:
        return line("headline.blind_at_all", period=frame.word)
    share = display.share(frame.coverage, 1, "down")
    return line("headline.blind", share=share, period=frame.word)
