"""Figures in a text, compared with the facts that the text is about.

It knows nothing of how the report writes: a figure is what a reader would take for one, with its
unit and its last digit. It holds if one of the facts, rounded to that digit, is that figure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

_UNITS = {
    "d": 86_400e6, "h": 3600e6, "min": 60e6, "s": 1e6, "ms": 1e3,
    "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "B/s": 1,
    "KiB/s": 2**10, "MiB/s": 2**20, "GiB/s": 2**30,
}  # fmt: skip
_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_TIME = re.compile(rf"(?:{_NUMBER} (?:d|h|min|s|ms)\b(?!/))(?: {_NUMBER} (?:d|h|min|s|ms)\b)*")
_SIZE = re.compile(rf"({_NUMBER}) ((?:[kKMGT]i?)?B(?:/s)?)(?!\w)")
_PERCENT = re.compile(rf"({_NUMBER}) ?%")
_BETWEEN = re.compile(rf"({_NUMBER})(?= to {_NUMBER} ?%)")
"""The unit of the first of two figures stands behind the second."""
_EXACT = 4
"""Digits of a whole number; of a longer one, zeros at the end may be rounded digits."""
_PLAIN = re.compile(rf"(?<![\w.:]){_NUMBER}(?![\w:%]|\.\d)")
_CALENDAR = re.compile(
    r"\b\d{4}-W\d\d\b|\bWeek \d+|\bW\d\d?\b|\b\d{4}-\d\d-\d\d\b|\b\d\d:\d\d(?::\d\d)?\b"
    r"|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d+(?: [A-Z][a-z]{2}\b)?(?: \d{4})?"
    r"|\b\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*(?: \d{4})?"
)


class Figure(NamedTuple):
    """A figure as it is written.

    Attributes:
        text: The text.
        value: In microseconds, bytes, bytes a second, per cent, or as it is.
        digit: What its last digit counts, in the same unit.
        kind: ``time``, ``size``, ``percent`` or ``plain``.
    """

    text: str
    value: float
    digit: float
    kind: str


def figures(text: str, names: Iterable[str] = ()) -> Iterator[Figure]:
    """Yield the figures of a text; names, dates, times of day and weeks are none.

    Args:
        text: The text.
        names: Names from outside that may have digits.
    """
    rest = re.sub(r"[\u00a0\u202f\s]+", " ", text)
    for name in sorted(set(names), key=len, reverse=True):
        if re.search(r"\d", name):
            rest = rest.replace(name, "*")
    rest = _BETWEEN.sub(r"\1 %", _CALENDAR.sub("*", rest))
    for found in _TIME.finditer(rest):
        yield _time(found[0])
    rest = _TIME.sub("*", rest)
    for found in _SIZE.finditer(rest):
        yield _one(found[0], found[1], _UNITS[found[2]], "size")
    rest = _SIZE.sub("*", rest)
    for found in _PERCENT.finditer(rest):
        yield _one(found[0], found[1], 1, "percent")
    rest = _PERCENT.sub("*", rest)
    for found in _PLAIN.finditer(rest):
        yield _one(found[0], found[0], 1, "plain")


def _time(text: str) -> Figure:
    parts = [(number, _UNITS[unit]) for number, unit in re.findall(rf"({_NUMBER}) (\w+)", text)]
    value = sum(float(number.replace(",", "")) * unit for number, unit in parts)
    return Figure(text, value, _digit(parts[-1][0]) * parts[-1][1], "time")


def _one(text: str, number: str, unit: float, kind: str) -> Figure:
    return Figure(text, float(number.replace(",", "")) * unit, _digit(number) * unit, kind)


def _digit(number: str) -> float:
    whole, _, decimals = number.replace(",", "").partition(".")
    zeros = len(whole) - len(whole.rstrip("0"))
    is_rough = len(whole) > _EXACT and zeros > 1 and not decimals
    return float(10 ** (zeros if is_rough else -len(decimals)))


def numbers(facts: Any) -> Iterator[float]:
    """Yield every number of some facts, and the number of items of each list."""
    if isinstance(facts, Mapping):
        for value in facts.values():
            yield from numbers(value)
    elif isinstance(facts, list | tuple):
        yield float(len(facts))
        for value in facts:
            yield from numbers(value)
    elif isinstance(facts, int | float) and not isinstance(facts, bool):
        yield float(facts)


def names(facts: Any) -> Iterator[str]:
    """Yield every text of some facts."""
    if isinstance(facts, Mapping):
        for value in facts.values():
            yield from names(value)
    elif isinstance(facts, list | tuple):
        for value in facts:
            yield from names(value)
    elif isinstance(facts, str):
        yield facts


def wrong(text: str, facts: Any, of_all: Iterable[str] = ()) -> list[str]:
    """Return the figures of a text that none of some facts rounds to.

    Args:
        text: The text.
        facts: The facts that it is about.
        of_all: Names from outside, besides those of these facts.
    """
    known = list(numbers(facts))
    shown = figures(text, [*of_all, *names(facts)])
    return [one.text for one in shown if not any(_holds(one, value) for value in known)]


def _holds(figure: Figure, value: float) -> bool:
    scales = {
        "time": (1, 1e3, 1e6),  # facts in microseconds, milliseconds or seconds
        "size": (1,),
        "percent": (1, 100),
        "plain": (1,),
    }[figure.kind]  # fmt: skip
    return any(abs(abs(value) * one - figure.value) <= figure.digit * 1.000001 for one in scales)
