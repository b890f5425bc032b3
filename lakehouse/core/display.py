"""Formats of numbers, instants and names for readers.

Low bounds are rounded down and high bounds up, so that the interval still contains the true value.
Names come from clients of the cluster and are treated as hostile.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from math import ceil, copysign, floor, isclose
from typing import Any, Final, Literal

from lakehouse.core import periods
from lakehouse.core.periods import DAY_US, HOUR_US, MINUTE_US, SECOND_US

Rounding = Literal["down", "nearest", "up"]

NOT_KNOWN: Final = "not known"
NAME_LIMIT: Final = 48
TITLE_LIMIT: Final = 240
LINE_LIMIT: Final = 160

VERDICTS: Final = {"missed": "missed", "uncertain": "uncertain", "no_data": "no data", "met": "met"}
"""Verdicts in words, worst first."""

_TIE: Final = "\u00a0"  # no line break between a number and its unit
_MS: Final = 1_000
BINARY: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
# Controls, formatting (bidi overrides, zero width), surrogates, unassigned, separators of lines.
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})


def verdict(value: object) -> str:
    """Return a verdict from the report data. Unknown values become ``no_data``."""
    return str(value) if value in VERDICTS else "no_data"


def rank(value: object) -> int:
    """Return the severity of a verdict, from 0 (met)."""
    return list(reversed(VERDICTS)).index(verdict(value))


def length(us: int | None, rounding: Rounding = "nearest") -> str:
    """Return a duration (µs) in its two largest units, such as ``4 h 24 min`` or ``20 min``."""
    if us is None:
        return NOT_KNOWN
    if us < 0:
        return f"-{length(-us, _OPPOSITE[rounding])}"
    step = next((step for limit, step in _STEPS if us < limit), HOUR_US)
    if rounding == "nearest":  # a duration above zero is never shown as zero
        rounded = max((us + step // 2) // step * step, step if us else 0)
    else:
        rounded = us // step * step if rounding == "down" else -(-us // step) * step
    if rounded < SECOND_US:
        return f"{rounded // _MS}{_TIE}ms" if rounded else f"0{_TIE}s"
    if rounded < 10 * SECOND_US:
        tenths = rounded // (SECOND_US // 10)
        return f"{tenths // 10}.{tenths % 10}".removesuffix(".0") + f"{_TIE}s"
    for unit, name, part, part_name in _PAIRS:
        if rounded >= unit:
            rest = rounded % unit // part
            return f"{rounded // unit}{_TIE}{name}" + f" {rest}{_TIE}{part_name}" * bool(rest)
    return f"{rounded // SECOND_US}{_TIE}s"


_OPPOSITE: Final[dict[Rounding, Rounding]] = {"down": "up", "nearest": "nearest", "up": "down"}
_PAIRS: Final = (
    (DAY_US, "d", HOUR_US, "h"),
    (HOUR_US, "h", MINUTE_US, "min"),
    (MINUTE_US, "min", SECOND_US, "s"),
)

_STEPS: Final = (
    (SECOND_US, _MS),
    (10 * SECOND_US, SECOND_US // 10),
    (HOUR_US, SECOND_US),
    (DAY_US, MINUTE_US),
)
"""Upper limit of durations, and the unit to which they are rounded (µs)."""


def count(value: float | None) -> str:
    """Return a count with separated thousands, such as ``12,400``."""
    if value is None:
        return NOT_KNOWN
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def rough(value: float, rounding: Rounding) -> str:
    """Return a count with three significant digits, such as ``131,000``."""
    unit = 10 ** max(0, len(str(int(abs(value)))) - 3)
    steps = value / unit
    whole = floor(steps) if rounding == "down" else ceil(steps)
    return count(whole * unit)


def rough_between(low: float, high: float) -> str:
    """Return two counts, rounded outward: ``131,000 to 156,000``."""
    return f"{rough(low, 'down')} to {rough(high, 'up')}"


def size(value: float | None) -> str:
    """Return a number of bytes in binary units, such as ``12.4 MiB``."""
    if value is None:
        return NOT_KNOWN
    power = sum(abs(value) >= 1024**power for power in range(1, len(BINARY)))
    scaled = value / 1024**power
    return f"{scaled:,.1f}{_TIE}{BINARY[power]}" if power else f"{count(value)}{_TIE}B"


def quantity(value: float | None, unit: str) -> str:
    """Return a value with its UCUM unit in words: scaled bytes, ``{offset}`` without braces."""
    if value is None:
        return NOT_KNOWN
    if unit.startswith("By"):
        return size(value) + unit[2:]
    # A share or a short time must not be rounded to zero.
    number = count(value) if float(value).is_integer() or abs(value) >= 1 else f"{value:.3g}"
    if noun := re.fullmatch(r"\{([a-z]{1,16})\}", unit):
        return f"{number}{_TIE}{noun[1] if value == 1 else _plural(noun[1])}"
    words = "" if unit == "1" else unit.replace("{", "").replace("}", "")
    if value == 1 and len(words) > 2:  # not for s and ms
        words = words.removesuffix("s")
    return f"{number}{_TIE}{line(words, 10)}".rstrip()


def _plural(noun: str) -> str:
    if re.search("[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "sh", "ch", "x")) else f"{noun}s"


def seconds(value: float | None) -> str:
    """Return a duration given in seconds."""
    return length(None if value is None else round(value * SECOND_US))


def milliseconds(value: float | None) -> str:
    """Return a duration given in milliseconds."""
    return length(None if value is None else round(value * _MS))


def percent(value: float | None, rounding: Rounding = "nearest") -> str:
    """Return a share between 0 and 1 as ``share`` does, without zeros at the end."""
    number, tie, sign = share(value, 2, rounding).partition(_TIE)
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number}{tie}{sign}"


def share(
    value: float | None,
    digits: int = 2,
    rounding: Rounding = "nearest",
    apart: Collection[float] = (0, 1),
) -> str:
    """Return a share in percent, such as ``99.80 %`` or ``1,240 %``.

    Args:
        value: The share; 1.0 is 100 %.
        digits: Digits after the point. ``apart`` can add digits, down to a millionth of a percent.
        rounding: Down for a lower bound, up for an upper bound.
        apart: Shares that are shown only for exactly this value.
    """
    if value is None:
        return NOT_KNOWN
    if value in {0, 1}:
        return f"{value * 100:.0f}{_TIE}%"
    value, text = _kept_apart(value, apart, rounding), ""
    for places in range(digits, max(digits, 6) + 1):
        whole = _rounded(value * 100, places, rounding)
        text = f"{whole:,.{places}f}{_TIE}%"
        if value in apart or not any(isclose(whole / 100, one) for one in apart):
            break
    return text


_LEAST: Final = 1e-8
"""Smallest difference of two shares that is shown: a millionth of a percent."""

_NOISE: Final = 1e-13
"""Difference of two shares that are computed differently; a microsecond of a week is more."""


def _kept_apart(value: float, apart: Collection[float], rounding: Rounding) -> float:
    """Return a share that is shown as another than some shares, unless it is one of them.

    A bound that is rounded to one of them is still a bound.
    """
    near = (one for one in apart if _NOISE < abs(value - one) < _LEAST)
    if rounding != "nearest" or (one := next(near, None)) is None:
        return value
    return one + copysign(_LEAST, value - one)


def _rounded(number: float, places: int, rounding: Rounding) -> float:
    """Return a number rounded to decimal places, without the noise of binary floats."""
    scale = 10.0**places
    scaled = round(number * scale, 6)
    whole = {"down": floor(scaled), "up": ceil(scaled), "nearest": round(scaled)}[rounding]
    return whole / scale


def per_cent(coverage: float | None) -> str:
    """Return a coverage given in percent, rounded down."""
    return percent(None if coverage is None else coverage / 100, "down")


def parse(instant: str) -> datetime:
    """Return an ISO 8601 instant in UTC.

    Raises:
        ValueError: The text is not an ISO 8601 instant.
    """
    moment = datetime.fromisoformat(instant)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


_ZONE: ContextVar[tzinfo] = ContextVar("zone", default=UTC)


@contextmanager
def shown_in(zone: tzinfo) -> Iterator[None]:
    """Format instants in a time zone within this context; the default is UTC."""
    token = _ZONE.set(zone)
    try:
        yield
    finally:
        _ZONE.reset(token)


def zone_of(facts: Mapping[str, Any]) -> tzinfo:
    """Return the time zone of report data."""
    return periods.time_zone(str(facts.get("time_zone") or periods.UTC_NAME))


def zone() -> tzinfo:
    """Return the time zone in which instants are formatted."""
    return _ZONE.get()


def local(moment: datetime) -> datetime:
    """Return an instant in that time zone."""
    return moment.astimezone(_ZONE.get())


def day_and_time(instant: str | None) -> str:
    """Return an instant to the second, such as ``Sat 21 Nov 06:41:12``."""
    if instant is None:
        return NOT_KNOWN
    moment = parse(instant)
    return f"{day(moment)}{_TIE}{clock(moment, seconds=True)}"


def day(moment: datetime) -> str:
    """Return the local day of an instant, such as ``Wed 18 Nov``."""
    shown = local(moment)
    return f"{shown:%a}{_TIE}{shown.day}{_TIE}{shown:%b}"


def clock(moment: datetime, *, seconds: bool = False) -> str:
    """Return the local time of an instant, such as ``14:27``."""
    shown = local(moment)
    # At the end of summer time a local time occurs twice; the zone's abbreviation distinguishes it.
    twice = shown.replace(fold=0).utcoffset() != shown.replace(fold=1).utcoffset()
    text = f"{shown:%H:%M:%S}" if seconds else f"{shown:%H:%M}"
    return f"{text}{_TIE}{shown.tzname()}" if twice else text


def visible(text: object) -> str:
    """Return a name with control, bidi and unassigned characters and outer spaces escaped."""
    whole = str(text)
    start, end = len(whole) - len(whole.lstrip()), len(whole.rstrip())
    return "".join(
        character if start <= place < end and _is_visible(character) else f"\\u{ord(character):04x}"
        for place, character in enumerate(whole)
    )


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in _INVISIBLE


def line(text: object, limit: int = LINE_LIMIT) -> str:
    """Return untrusted text as one printable line."""
    return shorten(visible(str(text)[: 2 * limit]), limit)


def shorten(text: str, limit: int = NAME_LIMIT) -> str:
    """Return a text, shortened in the middle to ``limit`` characters."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


_MEASURE: Final = re.compile(
    r"[\u2248\u2264\u2265] (?=[0-9])"
    r"|[0-9] (?:%|(?:d|h|min|s|ms|[KMGTP]?i?B|MB/s)\b(?: [0-9]+ (?:h|min|s)\b)?)"
)


def tied(text: str) -> str:
    """Return a text without line breaks within a figure, such as ``4 h 24 min``."""
    return _MEASURE.sub(lambda found: found[0].replace(" ", _TIE), text)


def plural(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 topic`` or ``12 topics``."""
    return f"{number:,}{_TIE}{noun if number == 1 else noun + 's'}"


def untied(text: str) -> str:
    """Return a text with plain spaces between numbers and units, for a terminal or a log."""
    return text.replace(_TIE, " ")
