"""Good and bad slices of time, as OpenSLO's Timeslices and RatioTimeslices mean them.

gold/sli tells of each window how much of it was good and bad, and not where. A slice of several
windows is their sum. Where a window has several slices, its bad time may lie in few of them or be
spread over many: how many were bad is known within bounds.

A slice in which nobody saw anything is unknown; one that was seen in part is judged by that part,
and its bounds take the rest both ways. What comes out are times again, each slice at its full
length, so that what is said of times (see ``sla``) is said of slices in the same words.

What is judged here is SQL text over these columns, microseconds:
    good, bad, low, high: of a slice, or of a window of several slices.
    expected: how much of it the subject existed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.slo_objective import Slices
    from lakehouse.spans import Span

_SEEN: Final = "(good + bad)"
_WHOLE: Final = "greatest(expected, good + bad)"
_UNKNOWN: Final = f"({_WHOLE} - good - bad)"


class Judged(NamedTuple):
    """SQL of the times that a slice counts for."""

    good_us: str
    bad_us: str
    bad_low_us: str
    bad_high_us: str


def judged(slices: Slices, window_us: int) -> Judged:
    """How rows of ``size`` (below) are judged.

    Args:
        slices: How long slices are, and when one is good.
        window_us: Finest grain of gold.
    """
    length = size(slices, window_us)
    if slices.target is None:
        return _averaged(length)
    if slices.length_us < length:
        return _within_a_window(slices.length_us, slices.target)
    return _whole(length, slices.target)


def size(slices: Slices, window_us: int) -> int:
    """What is judged at once, microseconds: a slice, or a window of several."""
    return max(slices.length_us, window_us)


def fits(slices: Slices, window_us: int) -> bool:
    """Whether windows are made of slices, or slices of windows."""
    return slices.length_us % window_us == 0 or window_us % slices.length_us == 0


def expected_us(slices: Slices, window_us: int, start_us: int, spans: Iterable[Span]) -> int:
    """Time of all slices in which there is something of some spans, each at its full length.

    Args:
        slices: How long slices are.
        window_us: Finest grain of gold.
        start_us: When the first slice begins.
        spans: In order, and apart from one another.
    """
    length = slices.length_us if slices.target is not None else size(slices, window_us)
    number, reached = 0, None
    for start, end in spans:
        first, last = (start - start_us) // length, -(-(end - start_us) // length)
        if reached is not None:
            first = max(first, reached)
        number += max(0, last - first)
        reached = last if reached is None else max(reached, last)
    return number * length


def _whole(length: int, target: float) -> Judged:
    """A slice is good if so much of what was seen of it was."""
    least = f"CAST({target!r} AS DOUBLE)"
    is_good = f"good >= {least} * {_SEEN}"
    surely_good = f"good + bad - high >= {least} * {_WHOLE}"
    surely_bad = f"{_WHOLE} - low < {least} * {_WHOLE}"
    return _seen(
        Judged(
            _choice(is_good, length, 0),
            _choice(is_good, 0, length),
            _choice(surely_bad, length, 0),
            _choice(surely_good, 0, length),
        )
    )


def _averaged(length: int) -> Judged:
    """A slice counts for the share of it that was good."""
    # Where nothing is, none of this counts; but Spark may not divide by it either.
    seen, whole = (f"greatest({sql}, 1)" for sql in (_SEEN, _WHOLE))
    share = f"CAST({length} AS DOUBLE)"
    good = f"CAST(round({share} * good / {seen}) AS BIGINT)"
    low = f"CAST(floor({share} * low / {whole}) AS BIGINT)"
    high = f"CAST(ceil({share} * (high + {_UNKNOWN}) / {whole}) AS BIGINT)"
    bad = f"({length} - {good})"
    return _seen(
        Judged(good, bad, f"least({low}, {bad})", f"greatest({bad}, least({length}, {high}))")
    )


def _within_a_window(length: int, target: float) -> Judged:
    """Of the slices of a window, so many are bad at least and at most.

    A slice is bad if more than its allowance is. As few as can be are bad if every slice takes its
    allowance and some are bad throughout; as many as can be, if each takes a little more than it.
    For the figure itself what is bad lies together.
    """
    allowance = round((1 - target) * length)

    def least(bad: str) -> str:
        over = f"({bad} - {allowance} * {slices_})"
        return _ceiling(f"greatest(0, {over})", max(1, length - allowance))

    def most(bad: str) -> str:
        if not allowance:
            return _choice(f"{bad} > 0", slices_, 0)
        cut = _choice(f"{_WHOLE} % {length} = 0", 1, 0)  # of a slice that is cut less is allowed
        return f"least({slices_}, greatest(0, {_ceiling(bad, allowance)} - {cut}))"

    slices_ = _ceiling(_WHOLE, length)
    seen = f"least({slices_}, {_ceiling(_SEEN, length)})"
    rest = _choice(f"bad % {length} > {allowance}", 1, 0)
    together = f"CAST(floor(bad / CAST({length} AS DOUBLE)) AS BIGINT) + {rest}"
    bad = f"least({seen}, greatest({least('bad')}, least({most('bad')}, {together})))"
    low = f"least({bad}, {least('low')})"
    worst = f"least({_WHOLE}, high + {_UNKNOWN})"
    high = f"greatest({bad}, {most(worst)} - ({slices_} - {seen}))"
    good = f"({seen} - {bad})"
    return _seen(Judged(*(f"{length} * {sql}" for sql in (good, bad, low, high))))


def _seen(one: Judged) -> Judged:
    """Where nobody saw anything, nothing is said: it is unknown."""
    return Judged(*(_choice(f"{_SEEN} > 0", sql, 0) for sql in one))


def _choice(condition: str, one: str | int, other: str | int) -> str:
    return f"CASE WHEN {condition} THEN {one} ELSE {other} END"


def _ceiling(sql: str, by: int) -> str:
    return f"CAST(ceil({sql} / CAST({by} AS DOUBLE)) AS BIGINT)"
