"""Exactly-once check: compares what an agent was really given with what the lake tells.

Every sample must be given back by just one run, with its value, unless the lake itself says that
the time is unknown and why. Every increase of a counter must be told once, in its window. Nothing
may be told that nobody read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from lakehouse.tables import MAX_GAP_INTERVALS
from tests.rig.counts import Counts
from tests.rig.spans import Spans
from tests.rig.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.model import Reading, Scrape, Series
    from tests.rig.testimony import Life
    from tests.rig.told import Held, Told

_GONE: Final = ("batch_dropped", "batch_refused")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def judge(lives: Sequence[Life], told: Told, window_us: int, *, tail_lost: bool = False) -> Verdict:
    """Compare the lives of one agent, in order, with what the lake tells of its source.

    Args:
        lives: What the agent was given.
        told: What the lake tells.
        window_us: Length of its windows.
        tail_lost: Whether the end of the spool's log was taken away after a kill. Nothing says more
            of it than that an agent was started, and that before it a time is not known.
    """
    if tail_lost:
        told = replace(told, lost_before=("spool_damaged", "agent_start"))
    verdict = Verdict(refused=sum(len(life.refused) for life in lives))
    for text in told.broken:
        verdict.miss(text)
    kept: defaultdict[str, list[Scrape]] = defaultdict(list)
    for life in lives:
        for scrape in life.kept:
            kept[scrape.family].append(scrape)
    for name, scrapes in kept.items():
        _Case(name, scrapes, lives, told, window_us, verdict).judge()
    _judge_strangers(kept, told, verdict)
    _judge_events(lives, told, verdict)
    return verdict


class _Case:
    """One family."""

    def __init__(
        self,
        name: str,
        kept: list[Scrape],
        lives: Sequence[Life],
        told: Told,
        window_us: int,
        verdict: Verdict,
    ) -> None:
        self._name, self._kept, self._lives, self._told = name, kept, lives, told
        self._window_us, self._verdict = window_us, verdict
        self._accounts = told.accounts.get(name, [])
        self._known = Spans((one.start, one.end) for one in self._accounts if one.outcome == "ok")
        self._excuses = _excuses(self._known, told)
        self._metrics: dict[str, str] = {}

    def judge(self) -> None:
        read: dict[str, set[Series]] = defaultdict(set)
        for scrape in self._kept:
            for reading in scrape.answer.readings if scrape.answer else ():
                self._metrics[reading.metric] = reading.kind
                read[reading.metric].update(reading.zeros, reading.values)
        self._judge_accounts()
        for scrape in self._kept:
            for reading in scrape.answer.readings if scrape.answer else ():
                self._judge_samples(scrape.answered_us, reading, read[reading.metric])
        vouched = self._vouched()
        for series, runs in self._told.runs.items():
            if series.metric in self._metrics:
                self._judge_runs(series, runs, vouched)
        self._judge_counts()
        self._measure_silence()

    def _excused(self, at_us: int) -> bool:
        return at_us in self._excuses and at_us not in self._known

    def _judge_accounts(self) -> None:
        """Every attempt counts once, no two accounts of one instant."""
        attempts = [one for one in self._accounts if one.outcome != "skipped"]
        for one, after in pairwise(attempts):
            if after.start < one.end:
                self._verdict.double(f"{self._name}: accounts {one} and {after} overlap")
        counted = sum(one.scrapes for one in attempts)
        missing = len(self._kept) - counted
        excused = sum(self._excused(_instant(scrape)) for scrape in self._kept)
        owned_up = sum(one.family == self._name for life in self._lives for one in life.failed)
        if -missing > owned_up:
            self._verdict.double(f"{self._name}: {-missing} more attempts than were made", -missing)
        elif missing > excused:
            self._verdict.miss(f"{self._name}: {missing} attempts are not told", missing - excused)

    def _judge_samples(self, at_us: int, reading: Reading, known: set[Series]) -> None:
        for series in known:
            held = _at(self._told.runs.get(series, ()), at_us)
            present = series in reading.zeros or series in reading.values
            if not present:
                if held and not (reading.kind == "counter" and held[-1].start == at_us):
                    self._verdict.double(f"{series} at {at_us}: not there, but told {held}")
                continue
            self._verdict.samples += 1
            value = reading.values.get(series, 0.0)
            if not held and self._excused(at_us):
                self._verdict.excused += 1
            elif not held:
                self._verdict.miss(f"{series} at {at_us}: {value} was read, nothing is told")
            elif reading.kind == "gauge" and held[-1].value != value:
                self._verdict.miss(f"{series} at {at_us}: {value} was read, told is {held}")

    def _judge_runs(self, series: Series, runs: Sequence[Held], vouched: Spans) -> None:
        for run, after in pairwise(runs):
            if after.start < run.end:
                self._verdict.double(f"{series}: {run} and {after} overlap")
        for run in runs:
            if run.start >= run.end or run.start // self._window_us != (run.end - 1) // (
                self._window_us
            ):
                self._verdict.double(f"{series}: {run} is empty or crosses a window")
            if not vouched.covers(run.start, run.end - 1):
                self._verdict.double(f"{series}: {run} is told of time that no scrape vouches for")

    def _vouched(self) -> Spans:
        """Up to ``max_gap`` after each answer, but not beyond an attempt that failed.

        One that was under way by then and succeeded vouches for the time it took.
        """
        spans = []
        for scrape, after in zip(self._kept, [*self._kept[1:], None], strict=True):
            if scrape.outcome != "ok":
                continue
            limit_us = scrape.answered_us + round(scrape.interval_us * MAX_GAP_INTERVALS)
            if after is not None and scrape.asked_us < after.asked_us <= limit_us:
                limit_us = after.answered_us if after.outcome == "ok" else after.asked_us
            spans.append((scrape.answered_us, limit_us))
        return Spans(spans)

    def _judge_counts(self) -> None:
        for metric, kind in self._metrics.items():
            if kind == "counter":
                counts = Counts(metric, self._window_us)
                for scrape in self._kept:
                    counts.read(scrape)
                zones = self._loss_zones()
                for text, lost, doubled in counts.compare(self._told.runs, zones):
                    if lost:
                        self._verdict.miss(text)
                    if doubled:
                        self._verdict.double(text)

    def _loss_zones(self) -> Spans:
        """Where increases may be missing: excused time, and the window of the scrape after it."""
        margin_us = 2 * self._window_us
        return Spans((start, end + margin_us) for start, end in self._excuses)

    def _measure_silence(self) -> None:
        told = Spans([(one.start, one.end) for one in self._accounts] + list(self._excuses))
        for life in self._lives:
            if life.began_us and life.last_us > life.began_us:
                silence = told.longest_gap(life.began_us, life.last_us)
                self._verdict.max_unaccounted_us = max(self._verdict.max_unaccounted_us, silence)


def _excuses(known: Spans, told: Told) -> Spans:
    """The times of which the lake itself says that something is missing, and why."""
    spans = []
    for event in told.events:
        if event.kind in told.lost_before:  # from when it was known last
            spans.append((known.last_before(event.at), event.at))
        elif event.kind == "spool_restored":
            spans.append((0, event.at))
        elif event.kind in _GONE:
            first, _, last = (event.new or "").partition(": ")[0].partition("..")
            spans.append((_micros(first), _micros(last)))
        elif event.kind == "clock_step":  # a jump is noticed a second after it, at most
            clocks = [int(instant) for instant in (event.old, event.new) if instant is not None]
            spans.append((min(clocks), max(clocks)))
    return Spans(spans)


def _judge_strangers(kept: Iterable[str], told: Told, verdict: Verdict) -> None:
    for family in told.accounts.keys() - set(kept):
        attempts = [one for one in told.accounts[family] if one.outcome != "skipped"]
        if attempts:
            verdict.double(f"{family} was never read, but told", len(attempts))


def _judge_events(lives: Sequence[Life], told: Told, verdict: Verdict) -> None:
    """What was noted stands there once; what the encoder noticed by itself, at most once."""
    found = Counter(told.events)
    for event, count in found.items():
        if count > 1:
            verdict.double(f"{event} is told {count} times", count - 1)
    noted = Counter((event.at, event.kind) for event in told.events)
    kinds = (*told.lost_before, "spool_restored", *_GONE)
    excuses = [event.at for event in told.events if event.kind in kinds]
    for life in lives:
        notices = [
            (scrape.answered_us, notice.kind)
            for scrape in life.kept
            for notice in (scrape.answer.notices if scrape.answer else ())
        ]
        for at_us, kind in [*((event.at, event.kind) for event in life.notes), *notices]:
            if noted[at_us, kind] == 0 and not any(excuse >= at_us for excuse in excuses):
                verdict.miss(f"event {kind} at {at_us} is not told")


def _micros(instant: str) -> int:
    return (datetime.fromisoformat(instant) - _EPOCH) // timedelta(microseconds=1)


def _instant(scrape: Scrape) -> int:
    return scrape.answered_us if scrape.outcome == "ok" else scrape.asked_us


def _at(runs: Sequence[Held], at_us: int) -> list[Held]:
    """The runs that cover an instant."""
    last = bisect_right(runs, at_us, key=lambda run: run.start)
    return [run for run in runs[max(0, last - 3) : last] if run.end > at_us]
