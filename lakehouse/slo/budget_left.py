"""How much of an error budget was left at the end of each hour of its window."""

from collections.abc import Iterable

from lakehouse.core.periods import HOUR_US
from lakehouse.slo.sla_statement import Statement

BadTime = tuple[int, int]
"""The last microsecond of a row of gold, or of a slice, and the bad time in it (µs)."""


def left_by_hour(
    statement: Statement, bad: Iterable[BadTime], until_us: int
) -> tuple[float, ...] | None:
    """Return the share of the budget of the whole window that is left after each hour so far.

    The last value is 1 less the used share. A negative value is an overspent budget. None: there
    is no budget, or the objective counts unknown time as bad, whose place in time is not stored.

    Args:
        statement: The statement on the window.
        bad: All bad time that the statement has.
        until_us: The present; later hours have no value.
    """
    whole_us, period = statement.budget_of_window_us, statement.period
    if whole_us <= 0 or period is None or statement.objective.unknown == "bad":
        return None
    start, end = period.span
    hours = -(-(min(end, until_us) - start) // HOUR_US)
    by_hour = [0] * max(0, hours)
    for at, bad_us in bad:
        by_hour[min((at - start) // HOUR_US, hours - 1)] += bad_us
    left, found = whole_us, []
    for bad_us in by_hour:
        left -= bad_us
        found.append(round(left / whole_us, 4))
    return tuple(found) or None
