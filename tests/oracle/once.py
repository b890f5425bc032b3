"""Values that were read twice count once: rows that count, and rejected rows."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.oracle.intervals import Span, cuts, union

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tests.oracle.rows import Run, Scrapes

TWICE = "it is there twice"
ITSELF = "its agent recorded that time twice"
ANOTHER = "another agent read it as well"

_ORDER = {"ok": 0, "down": 1}


def scrapes(rows: Iterable[Scrapes]) -> list[Scrapes]:
    """Return attempts, one at each instant of a source's family.

    A success counts before a failure; then the smallest agent and its earliest batch.
    """
    found = [row for row in rows if row.reason is not None]
    usable = [row for row in rows if row.reason is None]
    for own in _grouped(usable, _place):
        before: list[Scrapes] = []
        for row in sorted(own, key=_turn_of_scrapes):
            pieces = _without([(row.start, row.end)], before)
            if pieces == [(row.start, row.end)]:
                found.append(row)
            else:
                if row.outcome != "skipped":
                    found.append(replace(row, reason=_why(row, before)))
                found += _attempts(row, pieces)
            before.append(row)
    return found


def _place(row: Scrapes) -> tuple[Any, ...]:
    """Return the place of a row; the late attempt before a skipped tick can overlap it."""
    return (row.cluster, row.window, row.source, row.family, row.outcome == "skipped")


def _turn_of_scrapes(row: Scrapes) -> tuple[Any, ...]:
    return (
        _ORDER.get(row.outcome, 2), row.agent, row.batch, row.outcome, row.start, row.end,
        row.scrapes, row.seconds_total, row.seconds_max, row.interval,
        row.error is None, row.error or "",
    )  # fmt: skip


def _attempts(row: Scrapes, pieces: Sequence[Span]) -> Iterable[Scrapes]:
    """Yield pieces of a row; the first piece has all attempts."""
    for number, (start, end) in enumerate(pieces):
        piece = replace(row, start=start, end=end)
        yield replace(piece, scrapes=0, seconds_total=0.0) if number else piece


def runs(rows: Iterable[Run]) -> list[Run]:
    """Return runs, one at each instant of a series, of the smallest agent that reports it.

    Agents are compared per metric of a source, and per topic or group.
    """
    found = [run for run in rows if run.reason is not None]
    usable = [run for run in rows if run.reason is None]
    for own in _grouped(usable, _thing):
        of_agent: dict[str, list[Run]] = defaultdict(list)
        for run in own:
            of_agent[run.agent].append(run)
        told: list[Run] = []
        for agent in sorted(of_agent):
            for series in _grouped(of_agent[agent], _series):
                found += _runs_of_series(series, told)
            told += of_agent[agent]
    return found


def _thing(run: Run) -> tuple[Any, ...]:
    of = run.group if run.group is not None else run.topic or ""
    return (run.cluster, run.window, run.source, run.metric, of)


def _series(run: Run) -> tuple[Any, ...]:
    kind = ("increase" in run.flags, "distribution" in run.flags)
    subject = (run.topic, run.partition, run.user, run.client_id, run.group)
    return (*subject, run.labels, run.members, run.series, kind)


def _runs_of_series(series: Iterable[Run], others: Sequence[Run]) -> Iterable[Run]:
    before: list[Run] = []
    for run in sorted(series, key=_turn_of_runs):
        first = _without([(run.start, run.end)], before)
        pieces = _without(first, others)
        if pieces == [(run.start, run.end)]:
            yield run
        else:
            yield replace(run, reason=_why(run, before))
            yield from _pieces(run, pieces)
        before.append(run)


def _turn_of_runs(run: Run) -> tuple[Any, ...]:
    may = max(run.window, run.start - run.lead_edge)
    sure = max(run.start, run.end - run.tail_edge)
    value = (run.value is None, run.value or 0.0)
    edges = (run.lead, run.tail, may, sure, "known_wrong" in run.flags)
    return (run.batch, run.start, run.end, *value, *edges)


def _pieces(run: Run, pieces: Sequence[Span]) -> Iterable[Run]:
    """Yield the remaining pieces of a run; the increase of a counter in a piece is unknown.

    The value may have held in the removed time as well.
    """
    until = None
    for start, end in pieces:
        piece = replace(
            run, start=start, end=end, tail=max(0, run.tail - (run.end - end)),
            value=None if run.counter else run.value,
        )  # fmt: skip
        if start > run.start:
            lead = start - (run.start - run.lead if until is None else until)
            piece = replace(piece, lead=lead, flags=run.flags - {"previous_positive"})
        until = end
        yield piece


def _why(row: Any, before: Sequence[Any]) -> str:
    over = [one for one in before if one.start < row.end and row.start < one.end]
    if any(replace(one, batch=row.batch) == row for one in over):
        return TWICE
    return ANOTHER if any(one.agent != row.agent for one in over) or not over else ITSELF


def _without(spans: Sequence[Span], rows: Sequence[Any]) -> list[Span]:
    """Return the parts of spans that no row covers."""
    taken = union((row.start, row.end) for row in rows)
    left = [
        (start, end)
        for start, end in cuts([*spans, *taken])
        if any(a <= start and end <= b for a, b in spans)
        and not any(a <= start and end <= b for a, b in taken)
    ]
    return union(left)


def _grouped(rows: Iterable[Any], key: Callable[[Any], Any]) -> Iterable[list[Any]]:
    groups: defaultdict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups.values()
