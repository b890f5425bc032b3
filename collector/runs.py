"""The encoder: scrapes in, runs out.

A scrape vouches for what it saw until the next attempt, at most ``MAX_GAP_INTERVALS`` intervals.
A failed attempt ends vouching at once. Runs are cut at wall-clock windows; a window is sealed when
nothing can change it any longer. State is plain data, so that the spool can keep it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from collector import non_consumed
from collector.accounts import Account, AccountTrack
from collector.counters import CounterTrack
from collector.folding import Run, fold
from collector.gauges import GaugeTrack
from collector.ledger import Ledger
from collector.non_consumed import NonConsumed
from collector.samples import Answer, Identity, Notice, Reading, Scrape, Series

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_GAP_INTERVALS: Final = 2.5
_TOLD: Final = 16  # spans between jumps of the clock that are remembered


class Event(NamedTuple):
    """A row of bronze/events, before the columns that the delivery adds."""

    at: int
    kind: str
    subject: Series
    old: str | None = None
    new: str | None = None


class Sealed(NamedTuple):
    """What is final and leaves the encoder."""

    runs: list[Run]
    accounts: list[Account]
    events: list[Event]

    def __bool__(self) -> bool:
        """Whether there is anything in it."""
        return bool(self.runs or self.accounts or self.events)


class FamilyTrack(msgspec.Struct):
    """What is known of one family on one source; times in microseconds.

    Attributes:
        answered_us: When the last successful scrape was answered; None while nothing vouches.
        attempted_us: When the last attempt was asked.
        cut_us: Start of the window that is open.
    """

    max_gap_us: int
    gauges: dict[str, GaugeTrack] = msgspec.field(default_factory=dict)
    counters: dict[str, CounterTrack] = msgspec.field(default_factory=dict)
    account: AccountTrack = msgspec.field(default_factory=AccountTrack)
    answered_us: int | None = None
    attempted_us: int | None = None
    cut_us: int = 0

    @property
    def last_us(self) -> int:
        """When the last attempt was asked or answered, 0 before the first."""
        return max(self.attempted_us or 0, self.answered_us or 0)

    def tracks(self) -> Iterator[GaugeTrack | CounterTrack]:
        """The tracks of all metrics."""
        yield from self.gauges.values()
        yield from self.counters.values()

    def stop(self, end_us: int, ledger: Ledger) -> None:
        """End vouching."""
        if self.answered_us is not None:
            for track in self.tracks():
                track.stop(end_us, ledger)
            self.answered_us = None

    def cut(self, until_us: int, window_us: int, ledger: Ledger) -> None:
        """Cut at every window's start up to an instant."""
        last = until_us - until_us % window_us
        first = self.cut_us + window_us if self.cut_us else last
        for cut_us in range(first, last + 1, window_us) if self.account.open else ():
            for track in self.tracks():
                track.cut(cut_us, ledger)
            self.account.cut(cut_us)
        self.cut_us = max(self.cut_us, last)

    def elapse(self, now_us: int, window_us: int, ledger: Ledger) -> None:
        """Let time pass without an attempt: cut, and stop where vouching has run out."""
        if self.attempted_us is not None:
            limit_us = self.last_us + self.max_gap_us
            if limit_us < now_us:
                self.cut(limit_us, window_us, ledger)
                self.stop(limit_us, ledger)
                self.account.stop(limit_us)
        self.cut(now_us, window_us, ledger)


class Encoder(msgspec.Struct):
    """All that is known of one source, and the pieces whose window is not sealed yet.

    Attributes:
        window_us: Length of the windows at which runs are cut.
        memory_us: Per metric, how long its bean shows a value after its cause has ended.
        sealed_us: What starts before this instant is final, and nothing may start before it.
        began_us: Since when the clock has run without a jump.
        told: Spans that were told before the clock jumped; they are not told again.
    """

    window_us: int
    memory_us: dict[str, int] = msgspec.field(default_factory=dict)
    families: dict[str, FamilyTrack] = msgspec.field(default_factory=dict)
    ledger: Ledger = msgspec.field(default_factory=Ledger)
    non_consumed: NonConsumed = msgspec.field(default_factory=NonConsumed)
    events: list[Event] = msgspec.field(default_factory=list)
    identity: Identity | None = None
    sealed_us: int = 0
    began_us: int = 0
    told: list[tuple[int, int]] = msgspec.field(default_factory=list)

    def accepts(self, scrape: Scrape) -> bool:
        """Whether an attempt is to be recorded: in order, and of a time that was not told yet."""
        family = self.families.get(scrape.family)
        last_us = family.last_us if family else 0
        told = any(start <= scrape.answered_us < end for start, end in self.told)
        in_order = scrape.answered_us >= self.sealed_us and scrape.asked_us >= last_us
        return in_order and not told and scrape.answered_us >= scrape.asked_us

    def record(self, scrape: Scrape) -> None:
        """Take in one attempt that is accepted."""
        floor_us = max([self.sealed_us, *(e for s, e in self.told if s <= scrape.asked_us < e)])
        if scrape.asked_us < floor_us:
            scrape = dataclasses.replace(scrape, asked_us=floor_us)
        self.began_us = self.began_us or scrape.asked_us
        family = self.families.setdefault(scrape.family, FamilyTrack(0))
        family.max_gap_us = round(scrape.interval_us * MAX_GAP_INTERVALS)
        if scrape.outcome == "skipped":
            family.account.skip(scrape, self.window_us, family.max_gap_us)
            return
        family.elapse(scrape.asked_us, self.window_us, self.ledger)
        if scrape.identity is not None:
            self._meet(scrape.identity, scrape.answered_us)
        if scrape.answer is not None and scrape.identity is not None:
            family.cut(scrape.answered_us, self.window_us, self.ledger)
            self._observe(family, scrape, scrape.answer, scrape.identity)
            family.answered_us = scrape.answered_us
        else:
            family.stop(scrape.asked_us, self.ledger)
        family.account.attempt(scrape, family.max_gap_us)
        family.attempted_us = scrape.asked_us

    def seal(self, now_us: int) -> Sealed:
        """Take out the windows that nothing can change any longer."""
        end_us = self.sealable_us(now_us)
        for family in self.families.values():
            family.elapse(end_us, self.window_us, self.ledger)
        return self._take(end_us)

    def sealable_us(self, now_us: int) -> int:
        """The start of the oldest window that may still change; at least ``sealed_us``."""
        gaps = [family.max_gap_us for family in self.families.values()]
        past_us = now_us - max([*self.memory_us.values(), 0]) - max([*gaps, 0])
        return max(past_us - past_us % self.window_us, self.sealed_us)

    def flush(self, now_us: int) -> Sealed:
        """End everything at an orderly stop and take out all there is."""
        for family in self.families.values():
            family.elapse(now_us, self.window_us, self.ledger)
            family.stop(now_us, self.ledger)
            family.account.stop(now_us)
        return self._take(now_us)

    def step_clock(self, from_us: int, to_us: int) -> Sealed:
        """The wall clock jumped: end everything where the old clock stood, and take it out.

        What was told under the old clock is remembered, so that the new one does not tell it again
        when it comes by there.
        """
        sealed = self.flush(from_us)
        for family in self.families.values():
            family.attempted_us, family.cut_us = None, 0
        self.told = [*self.told, (self.began_us or from_us, from_us)][-_TOLD:]
        self.began_us = to_us
        self.sealed_us = 0
        event = Event(to_us, "clock_step", Series(""), str(from_us), str(to_us))
        return sealed._replace(events=[*sealed.events, event])

    def last_attempt_us(self) -> int:
        """When the last attempt was made, 0 before the first."""
        return max((family.last_us for family in self.families.values()), default=0)

    def _observe(
        self, family: FamilyTrack, scrape: Scrape, answer: Answer, identity: Identity
    ) -> None:
        asked, answered = scrape.asked_us, scrape.answered_us
        read = {reading.metric for reading in answer.readings}
        for reading in self._with_vanished(family, answer.readings, read):
            if reading.kind == "gauge":
                memory_us = self.memory_us.get(reading.metric, 0)
                track = family.gauges.setdefault(reading.metric, GaugeTrack(memory_us))
                track.observe(reading, asked, answered, self.ledger)
            else:
                counter = family.counters.setdefault(reading.metric, CounterTrack())
                counter.observe(reading, identity.started_us, asked, answered, self.ledger)
        if answer.offsets is not None:
            low, high = non_consumed.increases(self.non_consumed.advance(answer.offsets))
            self._add(family, non_consumed.LOW, low, scrape)
            self._add(family, non_consumed.HIGH, high, scrape)
        self.events.extend(_event(answered, notice) for notice in answer.notices)

    def _with_vanished(
        self, family: FamilyTrack, readings: tuple[Reading, ...], read: set[str]
    ) -> Iterator[Reading]:
        """The readings, and an empty one for each metric of which no bean is left."""
        yield from readings
        for metric in family.gauges:
            if metric not in read:
                yield Reading(metric, "gauge")
        for metric in family.counters:
            if metric not in read and metric not in (non_consumed.LOW, non_consumed.HIGH):
                yield Reading(metric, "counter")

    def _add(
        self,
        family: FamilyTrack,
        metric: str,
        increases: Mapping[Series, float | None],
        scrape: Scrape,
    ) -> None:
        track = family.counters.setdefault(metric, CounterTrack())
        track.add(increases, scrape.asked_us, scrape.answered_us, self.ledger)

    def _meet(self, identity: Identity, at_us: int) -> None:
        known = self.identity
        if known is not None and not identity.started_us:
            return  # Admin tells the cluster, but not when the broker was started
        self.identity = identity
        if known is None or not known.started_us:
            return
        if known.started_us != identity.started_us:
            old, new = str(known.started_us), str(identity.started_us)
            self.events.append(Event(at_us, "source_restart", Series(""), old, new))
        if known.kafka_version != identity.kafka_version:
            old_version, new_version = known.kafka_version, identity.kafka_version
            self.events.append(Event(at_us, "version_change", Series(""), old_version, new_version))

    def _take(self, end_us: int) -> Sealed:
        runs = fold(self.ledger.take_before(end_us))
        accounts = [
            account
            for family in self.families.values()
            for account in family.account.take_before(end_us)
        ]
        events, self.events = self.events, []
        self.sealed_us = max(self.sealed_us, end_us)
        return Sealed(runs, accounts, events)


def _event(at_us: int, notice: Notice) -> Event:
    return Event(at_us, notice.kind, notice.subject, notice.old, notice.new)
