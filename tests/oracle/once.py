"""Values that were read twice count once: rows that count, and rejected rows."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.oracle.intervals import Span, count, cuts, union
from tests.oracle.rows import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tests.oracle.rows import Scrapes

TWICE = "it is there twice"
ITSELF = "its agent recorded that time twice"
ANOTHER = "another agent read it as well"
DENIED = "another agent contradicts it"

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


class _Told(NamedTuple):
    """A run, the earlier runs of its series and agent, and its time that these do not have."""

    run: Run
    before: list[Run]
    spans: list[Span]


def runs(rows: Iterable[Run]) -> list[Run]:
    """Return runs, one at each instant of a series, of one agent that reports it.

    Agents are compared per metric of a source, and per topic or group. The agent with the most
    gauges above zero counts, then the smallest one. Values above zero are not sure while another
    agent surely has fewer of them.
    """
    found = [run for run in rows if run.reason is not None]
    usable = [run for run in rows if run.reason is None]
    for own in _grouped(usable, _thing):
        told = [one for series in _grouped(own, _series) for one in _told(series)]
        agreed, denied = _firsts(told)
        for one in told:
            of_agent = [*agreed[one.run.agent], *denied[one.run.agent]]
            sure, unsure = _common(one.spans, of_agent), []
            if _is_bad(one.run):
                sure = _common(one.spans, agreed[one.run.agent])
                unsure = _common(one.spans, denied[one.run.agent])
            if sure == [(one.run.start, one.run.end)]:
                found.append(one.run)
            else:
                why = _why(one.run, one.before)
                why = DENIED if unsure and why == ANOTHER else why
                found.append(replace(one.run, reason=why))
                found += _pieces(one.run, sure, unsure)
    return found


def _told(series: Iterable[Run]) -> Iterable[_Told]:
    before: list[Run] = []
    for run in sorted(series, key=_turn_of_runs):
        yield _Told(run, [*before], _without([(run.start, run.end)], before))
        before.append(run)


def _is_bad(run: Run) -> bool:
    return run.positive and not run.counter


class _Counts(NamedTuple):
    """Bad series that an agent reports in an interval, surely and possibly."""

    bad: int
    low: int
    high: int


def _firsts(told: Sequence[_Told]) -> tuple[dict[str, list[Span]], dict[str, list[Span]]]:
    """Return the time in which each agent counts: what no other agent contradicts, and the rest."""
    agreed: dict[str, list[Span]] = defaultdict(list)
    denied: dict[str, list[Span]] = defaultdict(list)
    edges = [(at, at) for one in told for span in one.spans for at in (*span, *_edges(one.run))]
    for stretch in cuts(edges):
        said = {
            agent: _counts([one for one in told if one.run.agent == agent], stretch)
            for agent in {one.run.agent for one in told if count(one.spans, stretch)}
        }
        if said:
            first = min(said, key=lambda agent: (-said[agent].bad, agent))
            is_denied = said[first].low > min(one.high for one in said.values())
            (denied if is_denied else agreed)[first].append(stretch)
    return agreed, denied


def _counts(told: Sequence[_Told], stretch: Span) -> _Counts:
    bad = low = high = 0
    for one in told:
        may, sure = _edges(one.run)
        for start, end in one.spans:
            least = max(start, min(end, sure))
            most = may if start == one.run.start else start
            is_bad = _is_bad(one.run)
            bad += is_bad and count([(start, end)], stretch)
            low += is_bad and count([(start, least)], stretch)
            high += count([(most if is_bad else least, end)], stretch) * (
                1 if is_bad else one.run.series
            )
    return _Counts(bad, low, high)


def _edges(run: Run) -> Span:
    """Return the first instant that may have the value of a run, and the last that surely has."""
    return max(run.window, run.start - run.lead_edge), max(run.start, run.end - run.tail_edge)


def _common(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    both = [(max(a, c), min(b, d)) for a, b in spans for c, d in others]
    return union(both)


def _thing(run: Run) -> tuple[Any, ...]:
    of = run.group if run.group is not None else run.topic or ""
    return (run.cluster, run.window, run.source, run.metric, of)


def _series(run: Run) -> tuple[Any, ...]:
    kind = ("increase" in run.flags, "distribution" in run.flags)
    subject = (run.topic, run.partition, run.user, run.client_id, run.group)
    return (run.agent, *subject, run.labels, run.members, run.series, kind)


def _turn_of_runs(run: Run) -> tuple[Any, ...]:
    may, sure = _edges(run)
    value = (run.value is None, run.value or 0.0)
    edges = (run.lead, run.tail, may, sure, "known_wrong" in run.flags)
    return (run.batch, run.start, run.end, *value, *edges)


def _pieces(run: Run, sure: Sequence[Span], unsure: Sequence[Span]) -> Iterable[Run]:
    """Yield the remaining pieces of a run; the increase of a counter in a piece is unknown.

    The value may have held in the removed time as well, or not at all in an unsure piece.
    """
    until = None
    for start, end in sorted([*sure, *unsure]):
        piece = replace(
            run, start=start, end=end, tail=max(0, run.tail - (run.end - end)),
            value=None if run.counter else run.value,
        )  # fmt: skip
        if (start, end) in unsure:
            piece = replace(piece, tail=end - start, flags=run.flags - {"next_positive"})
        if start > run.start:
            lead = start - (run.start - run.lead if until is None else until)
            piece = replace(piece, lead=lead, flags=piece.flags - {"previous_positive"})
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
