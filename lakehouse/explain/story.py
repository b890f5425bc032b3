"""The facts of a story, as docs/explain.md describes them: plain data from plain rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse.existence import floor_us
from lakehouse.explain.intervals import (
    ANY_FAMILY,
    UNSEEN,
    Interval,
    Silence,
    intervals,
    silences,
    unknown,
)
from lakehouse.explain.subject import Asked
from lakehouse.metrics import Watched
from lakehouse.periods import Period, iso, micros
from lakehouse.sla import Statement, Times
from lakehouse.spans import Span, shared, union

if TYPE_CHECKING:
    from lakehouse.explain.evidence import Evidence

Row = dict[str, Any]

FORMAT: Final = 1
NOTICED_LATE_US: Final = 60_000_000
"""Elections and changes are noticed when the topology is read, once a minute."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a story is about, and what it is judged by; instants in microseconds.

    Attributes:
        asked: Whose story it is.
        period: Whole windows.
        window_us: Length of a window.
        now_us: Nothing is expected later than this.
        watched: The metrics that are looked for.
        life: When the subject existed within the period; None: it did not.
        lives: When each source that may tell of it was to be read within the period.
        statements: What is said of it and of its objectives; of a partition, its topic's.
    """

    asked: Asked
    period: Period
    window_us: int
    now_us: int
    watched: Sequence[Watched]
    life: Span | None
    lives: Mapping[str, Span]
    statements: Sequence[Statement]


class _Event(NamedTuple):
    start: int
    end: int
    row: Row


def story(setting: Setting, evidence: Evidence) -> Row:
    """The facts of a story."""
    quiet = silences(setting.lives, evidence.attempts, evidence.read)
    found = _intervals(setting, evidence, quiet)
    floors = [
        floor_us(one.interval_us, one.slowest_us)
        for one in evidence.attempts
        if one.outcome == "ok" and one.interval_us
    ]
    first, last = setting.life or (None, None)
    return {
        "format": FORMAT,
        "cluster": setting.asked.subject.cluster,
        "subject": setting.asked.as_json(),
        "from": iso(micros(setting.period.start)),
        "to": iso(micros(setting.period.end)),
        "generated_at": iso(setting.now_us),
        "window_seconds": setting.window_us // 1_000_000,
        "exists": None if first is None else {"from": iso(first), "to": iso(last or 0)},
        "objectives": [_objective(one, setting, evidence) for one in setting.statements],
        "sums": [
            _sum(watched, [one for one in found if one.watched == watched])
            for watched in (*setting.watched, *_unseen(setting))
        ],
        "intervals": _told(found, quiet, evidence.events),
        "silences": [_silence(one) for one in quiet],
        "events": [_event(row) for row in evidence.events],
        "until": None if evidence.until is None else iso(evidence.until),
        "detection_floor_us": max(floors, default=None),
    }


def _unseen(setting: Setting) -> tuple[Watched, ...]:
    return (UNSEEN,) if setting.asked.kind == "source" else ()


def _intervals(setting: Setting, evidence: Evidence, quiet: Sequence[Silence]) -> list[Interval]:
    """All bad intervals, oldest first; of a source those too in which it was not read."""
    found = [
        one
        for watched in setting.watched
        for one in intervals(watched, evidence.stretches, evidence.totals.get(watched.metric, ()))
    ]
    if _unseen(setting):
        spans = union((one.start, one.end) for one in quiet)
        found += [
            Interval(UNSEEN, *span, 0, 0, span[1] - span[0], (0, 0), (), ()) for span in spans
        ]
    return sorted(found, key=lambda one: (one.start, one.end, one.watched.metric))


def _objective(one: Statement, setting: Setting, evidence: Evidence) -> Row:
    times = evidence.times.get(one.objective.name, {})
    known = {window: told.good_us + told.bad_us for window, told in times.items()}
    if setting.asked.kind == "partition":  # while another was bad, it may have been unseen
        known = evidence.seen.get(one.objective.name, {})
    spans = unknown(setting.life, setting.window_us, known) if setting.life else []
    # Windows are the topic's: when a single partition was bad, the intervals say.
    of_topic = one.subject.partition is None
    bad = sorted(window for window, told in times.items() if told.bad_high_us and of_topic)
    return {
        "objective": one.objective.name,
        "title": one.objective.title,
        "metric": one.objective.metric,
        "level": one.objective.level,
        "above": one.objective.above,
        "target": one.objective.target,
        **one.figures(),
        "bad": [
            _bad(span, [times[window] for window in bad if span[0] <= window < span[1]])
            for span in union((window, window + setting.window_us) for window in bad)
        ],
        "unknown": [
            {"start": iso(start), "end": iso(end), "unknown_us": us} for start, end, us in spans
        ],
    }


def _bad(span: Span, times: Sequence[Times]) -> Row:
    """Bad time of windows side by side, as gold has it."""
    bad = Times(*map(sum, zip(*times, strict=True)))
    names = ("bad_us", "bad_low_us", "bad_high_us")
    return {"start": iso(span[0]), "end": iso(span[1]), **{n: getattr(bad, n) for n in names}}


def _sum(watched: Watched, found: Sequence[Interval]) -> Row:
    """All intervals of a metric together; leads are told in one of them each, so they add up."""
    times = (
        sum(one.end - one.start for one in found),
        sum(one.sure_us for one in found),
        sum(one.most_us for one in found),
    )
    return {
        "metric": watched.metric,
        "title": watched.title,
        "intervals": len(found),
        **_lasted(watched, times),
        **_worst(watched, found),
    }


def _lasted(watched: Watched, times: tuple[int, int, int]) -> Row:
    names = ("lasted_us", "lasted_low_us", "lasted_high_us")
    nothing = (None, None, None)
    return dict(zip(names, nothing if watched.is_counter else times, strict=True))


def _worst(watched: Watched, found: Sequence[Interval]) -> Row:
    """The greatest of gauges, the sum of counters; of time that was not seen there is none."""
    if watched == UNSEEN or not found:
        none = None if watched == UNSEEN else 0.0
        return {"worst_low": none, "worst_high": none, "unit": watched.unit}
    combine = sum if watched.is_counter else max
    low, high = (combine(one.worst[at] for one in found) for at in (0, 1))
    return {"worst_low": low, "worst_high": high, "unit": watched.unit}


def _told(found: Sequence[Interval], quiet: Sequence[Silence], events: Sequence[Row]) -> list[Row]:
    """The intervals, each with who was silent in it and what was noticed about it."""
    moments = [_Event(row["at"], row["at"] + 1, row) for row in events]
    told: dict[Interval, Row] = {}
    for watched in dict.fromkeys(one.watched for one in found):
        mine = [one for one in found if one.watched == watched]
        spans = [(one.start - one.lead_us, one.end) for one in mine]
        wide = [(start - NOTICED_LATE_US, end + NOTICED_LATE_US) for start, end in spans]
        silent = shared(spans, [one for one in quiet if _may_tell(one, watched)])
        noticed = shared(wide, moments)
        for one, span, who, what in zip(mine, spans, silent, noticed, strict=True):
            told[one] = {
                **_interval(one),
                "silent": [_silence(part) for each in who if (part := each.within(span))],
                "events": [_event(each.row) for each in what],
            }
    return [told[one] for one in found]


def _may_tell(one: Silence, watched: Watched) -> bool:
    return not watched.families or one.family in watched.families or one.family == ANY_FAMILY


def _interval(one: Interval) -> Row:
    return {
        "metric": one.watched.metric,
        "title": one.watched.title,
        "start": iso(one.start),
        "end": iso(one.end),
        "lead_us": None if one.watched.is_counter else one.lead_us,
        "tail_us": None if one.watched.is_counter else one.tail_us,
        **_lasted(one.watched, (one.end - one.start, one.sure_us, one.most_us)),
        **_worst(one.watched, [one]),
        "parts": list(one.parts),
        "told_by": list(one.told_by),
    }


def _silence(one: Silence) -> Row:
    return {**one._asdict(), "start": iso(one.start), "end": iso(one.end)}


def _event(row: Row) -> Row:
    return {**row, "at": iso(row["at"])}
