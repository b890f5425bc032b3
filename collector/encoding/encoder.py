"""The encoder: scrapes in, runs out.

A scrape covers the time until the next attempt, at most ``MAX_GAP_INTERVALS`` intervals. A failed
attempt ends coverage at once. Runs are cut at wall-clock windows; a window is sealed when
nothing can change it any longer. State is plain data, so that the spool can keep it.
"""

import dataclasses
from collections.abc import Callable
from typing import Final, NamedTuple, Self

import msgspec

from collector.catalogue.entries import Delays
from collector.encoding.attempts import AttemptSpan
from collector.encoding.closed_runs import Ledger, Run, fold
from collector.encoding.counter import AnswerSpan, CounterTrack
from collector.encoding.expired_offsets import (
    HIGH,
    LOW,
    NonConsumed,
    add_up,
    increases,
    series_of,
)
from collector.encoding.family import FamilyTrack
from collector.model import Answer, Event, Identity, Scrape, Series
from lakehouse.tables import MAX_GAP_INTERVALS

_HELD_WINDOWS: Final = 12  # of an exact history that arrives at once, before some are sealed
_NEVER_US: Final = 1 << 62
_MOST_SPANS: Final = 16  # spans between jumps of the clock that are remembered


class SealedRows(NamedTuple):
    """Final rows that leave the encoder: runs, attempts, events."""

    runs: list[Run]
    accounts: list[AttemptSpan]
    events: list[Event]


class Encoder(msgspec.Struct):
    """All that is known of one source, and the pieces whose window is not sealed yet.

    Attributes:
        window_us: Length of the windows at which runs are cut.
        delays: Per metric, by how much its bean may be late.
        sealed_us: What starts before this instant is final, and nothing may start before it.
        began_us: Since when the clock has run without a jump.
        recorded_spans: Spans recorded before the clock jumped; they are not recorded again.
        started_us: When the agent started, or its clock was set.
        lost: Offsets that groups lost in this cluster, by group and topic (see ``add_up``).
    """

    window_us: int
    delays: dict[str, Delays] = msgspec.field(default_factory=dict)
    families: dict[str, FamilyTrack] = msgspec.field(default_factory=dict)
    ledger: Ledger = msgspec.field(default_factory=Ledger)
    non_consumed: NonConsumed = msgspec.field(default_factory=NonConsumed)
    events: list[Event] = msgspec.field(default_factory=list)
    identity: Identity | None = None
    sealed_us: int = 0
    began_us: int = 0
    recorded_spans: list[tuple[int, int]] = msgspec.field(default_factory=list, name="told")
    started_us: int = 0
    lost: dict[Series, float] = msgspec.field(default_factory=dict)

    def accepts(self, scrape: Scrape) -> bool:
        """Whether to record an attempt: it is in order, and its time was not recorded before."""
        family = self.families.get(scrape.family)
        if family is not None and family.exact:
            return not scrape.exact or scrape.asked_us >= max(family.last_us, family.sealed_us)
        last_us = family.last_us if family else 0
        if scrape.exact:  # older moments may be recorded already, also by an earlier spool's agent
            return scrape.asked_us >= max(last_us, self.sealed_us)
        recorded = any(start <= scrape.answered_us < end for start, end in self.recorded_spans)
        if self.recorded_spans and scrape.asked_us < self.began_us:
            return False  # under way when the clock was set
        in_order = scrape.answered_us >= self.sealed_us and scrape.asked_us >= last_us
        return in_order and not recorded and scrape.answered_us >= scrape.asked_us

    def record(self, scrape: Scrape) -> None:
        """Take in one attempt that is accepted."""
        max_gap_us = round(scrape.interval_us * MAX_GAP_INTERVALS)
        family = self.families.setdefault(scrape.family, FamilyTrack(max_gap_us))
        if scrape.exact or family.exact:
            family.max_gap_us = max_gap_us
            self._record_exact(family, scrape)
            return
        asked_us = scrape.asked_us
        ends = (end for start, end in self.recorded_spans if start <= asked_us < end)
        scrape = dataclasses.replace(scrape, asked_us=max(asked_us, self.sealed_us, *ends))
        self.began_us = self.began_us or scrape.asked_us
        if scrape.outcome == "skipped":
            family.account.skip(scrape, self.window_us, max_gap_us)
            return
        # A shorter cadence must not take back time that the scrape before still covers.
        self._elapse(family, scrape.asked_us)
        family.max_gap_us = max_gap_us
        self._enter(family, scrape, self.ledger)

    def seal(self, now_us: int, most_us: int = _NEVER_US) -> SealedRows:
        """Take out the windows that nothing can change any longer, up to an instant at most.

        A family that was not read in time claims nothing after its last attempt.
        """
        end_us = min(self.sealable_us(now_us), most_us)
        for family in self._families(exact=False):
            if end_us > self.sealed_us:
                family.end_unread(now_us, end_us, self.ledger)
            self._elapse(family, end_us)
        return self._take(end_us, lambda one: one.settle(now_us, end_us, self.window_us))

    def seal_exact(self) -> SealedRows:
        """Take out the windows for which exact families have delivered all moments."""
        return self._take(self.sealed_us, lambda one: one.complete_windows_us(self.window_us))

    def has_sealable(self, now_us: int, most_us: int = _NEVER_US) -> bool:
        """Whether there are windows that nothing can change any longer, up to an instant."""
        end_us = min(self.sealable_us(now_us), most_us)
        return end_us > self.sealed_us or any(
            family.sealed_us < min(end_us, family.complete_windows_us(self.window_us))
            for family in self._families(exact=True)
        )

    def holds_much(self) -> bool:
        """Whether an exact family holds so many windows that some should be sealed at once."""
        held_us = (one.last_us - one.sealed_us for one in self._families(exact=True))
        return max(held_us, default=0) > _HELD_WINDOWS * self.window_us

    def begin(self, now_us: int) -> None:
        """An agent starts: wait from now on for the history that exact families missed."""
        self.started_us = now_us
        for family in self._families(exact=True):
            family.heard_us = max(family.heard_us, now_us)

    def break_off(self) -> None:
        """End coverage at the last attempt: what was recorded after it may be lost.

        Exact families are read again from where they were recorded last.
        """
        for family in self._families(exact=False):
            family.break_off(self.ledger)

    def successor(self) -> Self:
        """An empty encoder that records nothing of the time before now."""
        end_us = self.ended_us()
        families = {name: one.successor(end_us) for name, one in self.families.items() if one.exact}
        return msgspec.structs.replace(
            self, families=families, ledger=Ledger(), non_consumed=NonConsumed(), events=[],
            sealed_us=end_us,
        )  # fmt: skip

    def leaves_cluster(self, scrape: Scrape) -> bool:
        """Whether an attempt found a source of another cluster than all before."""
        found = scrape.identity
        if found is None or self.identity is None or not found.started_us:
            return False
        return found.cluster != self.identity.cluster

    def leave_cluster(self) -> SealedRows:
        """End everything of this cluster and take it out; baselines do not hold for another."""
        sealed = self.flush(self.ended_us())
        for family in self.families.values():
            family.gauges.clear()
            family.counters.clear()
        self.non_consumed, self.lost = NonConsumed(), {}
        return sealed

    def recorded_until_us(self, name: str) -> int:
        """Up to when a family was recorded; of a new one, up to when all the others were."""
        family = self.families.get(name)
        if family is None:
            return max(self.last_attempt_us(), self.sealed_us)
        return max(family.last_us, family.sealed_us)

    def sealable_us(self, now_us: int) -> int:
        """The start of the oldest window that may still change; at least ``sealed_us``."""
        families = self._families(exact=False)
        gap_us = max((family.max_gap_us for family in families), default=0)
        # Whatever still comes, it changes nothing before this instant.
        past_us = now_us - max(map(sum, self.delays.values()), default=0) - gap_us
        past_us = max(past_us, min((one.settled_us(now_us) for one in families), default=past_us))
        return max(past_us - past_us % self.window_us, self.sealed_us)

    def flush(self, now_us: int) -> SealedRows:
        """End everything at an orderly stop and take out all there is.

        An exact family ends where its history does: later moments can follow after the next start.
        """
        for family in self._families(exact=True):
            family.end_exact()
        return self._end(now_us, lambda one: max(one.last_us, one.sealed_us))

    def step_clock(self, from_us: int, to_us: int) -> SealedRows:
        """The wall clock jumped: end everything where the old clock stood, and take it out.

        Spans recorded under the old clock are remembered, so that they are not recorded again when
        the new clock passes them. Exact families go by another clock.
        """
        sealed = self._end(from_us, lambda one: one.sealed_us)
        for family in self._families(exact=False):
            family.attempted_us, family.cut_us = None, 0
            for counter in family.counters.values():
                counter.waiting.clear()  # those are instants of the old clock
        for family in self._families(exact=True):
            family.heard_us += to_us - from_us
        span = self.began_us or from_us, from_us
        self.recorded_spans = [*self.recorded_spans, span][-_MOST_SPANS:]
        self.began_us, self.sealed_us, self.started_us = to_us, 0, to_us
        event = Event(to_us, "clock_step", Series(""), str(from_us), str(to_us))
        return sealed._replace(events=[*sealed.events, event])

    def ended_us(self) -> int:
        """The first instant after everything that is recorded."""
        return max(self.last_attempt_us() + 1, self.sealed_us, self.started_us)

    def last_attempt_us(self) -> int:
        """When the last attempt was made by our own clock, 0 before the first."""
        return max((family.last_us for family in self._families(exact=False)), default=0)

    def _elapse(self, family: FamilyTrack, now_us: int) -> None:
        later = (start for start, _ in self.recorded_spans if start >= family.last_us)
        family.elapse(now_us, self.window_us, self.ledger, bar_us=min(later, default=_NEVER_US))

    def _families(self, *, exact: bool) -> list[FamilyTrack]:
        return [family for family in self.families.values() if family.exact == exact]

    def _record_exact(self, family: FamilyTrack, scrape: Scrape) -> None:
        """Record a moment of a history, or a failed attempt to read it, which may succeed later."""
        if not scrape.exact:
            family.failure = None if scrape.outcome == "skipped" else scrape
            return
        family.begin_exact(scrape, self.window_us)
        family.cut(scrape.asked_us, self.window_us, family.exact_pieces)
        self._enter(family, scrape, family.exact_pieces)

    def _enter(self, family: FamilyTrack, scrape: Scrape, ledger: Ledger) -> None:
        """Record an attempt, with its answer if there was one."""
        answer, identity = scrape.answer, scrape.identity
        failed = scrape.outcome != "ok"
        if failed:  # from when it was asked, also where its answer is in part
            family.stop_unread(scrape, ledger)
            family.account.attempt(scrape, family.max_gap_us)
        if answer is not None and identity is not None:
            # Of an attempt that failed it may be that of a connection to the process before.
            self._meet(identity, scrape.answered_us)
            family.cut(scrape.answered_us, self.window_us, ledger)
            family.observe(scrape, identity.started_us, self.delays, ledger)
            self._observe(family, scrape, answer)
            family.answered_us = scrape.answered_us
        if not failed:
            family.account.attempt(scrape, family.max_gap_us)
        family.attempted_us = scrape.asked_us

    def _observe(self, family: FamilyTrack, scrape: Scrape, answer: Answer) -> None:
        """Enter what an answer brought beside its readings."""
        if answer.offsets is not None:
            gap = family.answered_us is None
            losses = self.non_consumed.advance(answer.offsets, after_gap=gap)
            ended = losses.keys() - self.non_consumed.commits.keys()
            for metric, rises in zip((LOW, HIGH), increases(losses), strict=True):
                track = family.counters.setdefault(metric, CounterTrack())
                waiting = series_of(metric, self.non_consumed.delayed)
                span = AnswerSpan(scrape.asked_us, scrape.answered_us, self._open_windows(family))
                track.add(rises, waiting, span, self.ledger)
                track.leave(series_of(metric, ended))
                add_up(self.lost, rises)
        self.events.extend(
            Event(scrape.answered_us if one.at_us is None else one.at_us, *one[:-1])
            for one in answer.notices
        )

    def _open_windows(self, family: FamilyTrack) -> tuple[int, ...]:
        """Starts of the windows, this one and that before, in which pieces may still begin."""
        opened = (family.cut_us - self.window_us, family.cut_us)
        return tuple(
            max(start, self.sealed_us)
            for start in opened
            if start + self.window_us > self.sealed_us
        )

    def _meet(self, identity: Identity, at_us: int) -> None:
        known = self.identity
        if known is not None and not identity.started_us:
            return  # Admin reports the cluster, but not when the broker was started
        self.identity = identity
        if known is None or not known.started_us:
            return
        if known.started_us != identity.started_us:
            old, new = str(known.started_us), str(identity.started_us)
            self.events.append(Event(at_us, "source_restart", Series(""), old, new))
        if known.kafka_version != identity.kafka_version:
            old_version, new_version = known.kafka_version, identity.kafka_version
            self.events.append(Event(at_us, "version_change", Series(""), old_version, new_version))

    def _end(self, now_us: int, exact_end_us: Callable[[FamilyTrack], int]) -> SealedRows:
        for family in self._families(exact=False):
            self._elapse(family, now_us)
            family.end(now_us, self.ledger)
        return self._take(now_us, exact_end_us)

    def _take(self, end_us: int, exact_end_us: Callable[[FamilyTrack], int]) -> SealedRows:
        """Take out what is of the time before an instant; each exact family has its own."""
        for family in self._families(exact=False):
            for counter in family.counters.values():
                counter.give_up(self.sealed_us, end_us, self.window_us, self.ledger)
        pieces, accounts = self.ledger.take_before(end_us), list[AttemptSpan]()
        for family in self._families(exact=True):
            family.sealed_us = max(family.sealed_us, exact_end_us(family))
            pieces += family.exact_pieces.take_before(family.sealed_us)
            accounts += family.account.take_before(family.sealed_us)
        for family in self._families(exact=False):
            accounts += family.account.take_before(end_us)
        events, self.events = self.events, []
        self.sealed_us = max(self.sealed_us, end_us)
        return SealedRows(fold(pieces), accounts, events)
