"""Good and bad slices of time, as defined by OpenSLO's Timeslices and RatioTimeslices.

gold/sli has good and bad time per window, without its position. A slice of several windows is their
sum. If a window has several slices, its bad time may be in few of them or in many, so the number of
bad slices is known within bounds.

A slice without any observed time is unknown. A partly observed slice is judged by that part, and
the bounds count the rest both ways. The results are times, each slice at its full length, so that
statements treat them like other times.

The judgement is SQL over these columns, microseconds:
    good, bad, low, high: of a slice, or of a window of several slices.
    expected: the time in it in which the subject existed.
"""

from collections.abc import Iterable
from typing import Final

from lakehouse.core.objective import Slices
from lakehouse.core.periods import Span

_SEEN: Final = "(good + bad)"
_WHOLE: Final = "greatest(expected, good + bad)"
_UNKNOWN: Final = f"({_WHOLE} - good - bad)"


Judgement = tuple[str, ...]
"""SQL of the times that a slice counts for: good, bad, and bad at least and at most."""


def judge(slices: Slices, window_us: int) -> Judgement:
    """Return the judgement of rows that are ``unit_us`` long; zeros without observed time.

    Args:
        slices: Length and target of a slice.
        window_us: Finest grain of gold.
    """
    length = unit_us(slices, window_us)
    if slices.target is None:
        judgement = _averaged(length)
    elif slices.length_us < length:
        judgement = _within_a_window(slices.length_us, slices.target)
    else:
        judgement = _whole(length, slices.target)
    return tuple(_choice(f"{_SEEN} > 0", sql, 0) for sql in judgement)


def unit_us(slices: Slices, window_us: int) -> int:
    """Return the length of the judged rows, microseconds: a slice, or a window of several."""
    return max(slices.length_us, window_us)


def fits(slices: Slices, window_us: int) -> bool:
    """Return True if a window is whole slices, or a slice whole windows."""
    return slices.length_us % window_us == 0 or window_us % slices.length_us == 0


def expected_us(slices: Slices, window_us: int, start_us: int, spans: Iterable[Span]) -> int:
    """Return the time of all slices that overlap some spans, each at full length, microseconds.

    Args:
        slices: Length and target of a slice.
        window_us: Finest grain of gold.
        start_us: Start of the first slice.
        spans: In order, without overlap.
    """
    length = slices.length_us if slices.target is not None else unit_us(slices, window_us)
    count = reached = 0
    for start, end in spans:
        first = max(reached, (start - start_us) // length)
        reached = max(reached, -(-(end - start_us) // length))
        count += max(0, reached - first)
    return count * length


def _whole(length: int, target: float) -> Judgement:
    """Return the judgement of a slice: good if the target's share of its observed time was."""
    least = f"CAST({target!r} AS DOUBLE)"
    is_good = f"good >= {least} * {_SEEN}"
    surely_good = f"good + bad - high >= {least} * {_WHOLE}"
    surely_bad = f"{_WHOLE} - low < {least} * {_WHOLE}"
    good, bad = _choice(is_good, length, 0), _choice(is_good, 0, length)
    return good, bad, _choice(surely_bad, length, 0), _choice(surely_good, 0, length)


def _averaged(length: int) -> Judgement:
    """Return the judgement of a slice by its good share."""
    # Rows without observed time do not count, but Spark must not divide by zero there either.
    seen, whole = (f"greatest({sql}, 1)" for sql in (_SEEN, _WHOLE))
    share = f"CAST({length} AS DOUBLE)"
    good = f"CAST(round({share} * good / {seen}) AS BIGINT)"
    low = f"CAST(floor({share} * low / {whole}) AS BIGINT)"
    high = f"CAST(ceil({share} * (high + {_UNKNOWN}) / {whole}) AS BIGINT)"
    bad = f"({length} - {good})"
    low, high = f"least({low}, {bad})", f"greatest({bad}, least({length}, {high}))"
    return good, bad, low, high


def _within_a_window(length: int, target: float) -> Judgement:
    """Return the number of bad slices in a window, at least and at most, times their length.

    A slice is bad if its bad time exceeds an allowance. The number is least if every slice uses its
    allowance and some are bad throughout, and greatest if each slightly exceeds it. The figure
    itself assumes that the bad time is contiguous.
    """
    allowance = round((1 - target) * length)

    def least(bad: str) -> str:
        over = f"({bad} - {allowance} * {count})"
        return _ceiling(f"greatest(0, {over})", max(1, length - allowance))

    def most(bad: str) -> str:
        if not allowance:
            return _choice(f"{bad} > 0", count, 0)
        cut = _choice(f"{_WHOLE} % {length} = 0", 1, 0)  # a partial slice is allowed less
        return f"least({count}, greatest(0, {_ceiling(bad, allowance)} - {cut}))"

    count = _ceiling(_WHOLE, length)
    seen = f"least({count}, {_ceiling(_SEEN, length)})"
    rest = _choice(f"bad % {length} > {allowance}", 1, 0)
    contiguous = f"CAST(floor(bad / CAST({length} AS DOUBLE)) AS BIGINT) + {rest}"
    bad = f"least({seen}, greatest({least('bad')}, least({most('bad')}, {contiguous})))"
    low = f"least({bad}, {least('low')})"
    worst = f"least({_WHOLE}, high + {_UNKNOWN})"
    high = f"greatest({bad}, {most(worst)} - ({count} - {seen}))"
    good = f"({seen} - {bad})"
    return tuple(f"{length} * {sql}" for sql in (good, bad, low, high))


def _choice(condition: str, one: str | int, other: str | int) -> str:
    return f"CASE WHEN {condition} THEN {one} ELSE {other} END"


def _ceiling(sql: str, by: int) -> str:
    return f"CAST(ceil({sql} / CAST({by} AS DOUBLE)) AS BIGINT)"
