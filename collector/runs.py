"""The encoder: scrapes in, runs out.

A scrape vouches for what it saw until the next attempt, at most ``MAX_GAP_INTERVALS`` intervals.
A failed attempt ends vouching at once. Runs are cut at wall-clock windows; a window is sealed when
nothing can change it any longer. State is plain data, so that the spool can keep it.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import msgspec

from collector import non_consumed
from collector.accounts import Account
from collector.families import FamilyTrack
from collector.folding import fold
from collector.ledger import Ledger, Piece
from collector.non_consumed import NonConsumed
from collector.samples import Answer, Identity, Notice, Scrape, Series
from collector.sealed import Event, Sealed
from lakehouse.tables import MAX_GAP_INTERVALS

_HELD_WINDOWS: Final = 12  # of an exact history that is told at once, before some are sealed
_NEVER_US: Final = 1 << 62
_TOLD: Final = 16  # spans between jumps of the clock that are remembered

Told = tuple[list[Piece], list[Account]]


class Encoder(msgspec.Struct):
    """All that is known of one source, and the pieces whose window is not sealed yet.

    Attributes:
        window_us: Length of the windows at which runs are cut.
        memory_us: Per metric, how long its bean shows a value after its cause has ended.
        sealed_us: What starts before this instant is final, and nothing may start before it.
        began_us: Since when the clock has run without a jump.
        told: Spans that were told before the clock jumped; they are not told again.
        started_us: When the agent started, or its clock was set.
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
    started_us: int = 0

    def accepts(self, scrape: Scrape) -> bool:
        """Whether an attempt is to be recorded: in order, and of a time that was not told yet."""
        family = self.families.get(scrape.family)
        if family is not None and family.exact:
            return not scrape.exact or scrape.asked_us >= max(family.last_us, family.sealed_us)
        last_us = family.last_us if family else 0
        if scrape.exact:  # what is older may have been told, or by another that had this spool
            return scrape.asked_us >= max(last_us, self.sealed_us)
        told = any(start <= scrape.answered_us < end for start, end in self.told)
        if self.told and scrape.asked_us < self.began_us:
            return False  # under way when the clock was set
        in_order = scrape.answered_us >= self.sealed_us and scrape.asked_us >= last_us
        return in_order and not told and scrape.answered_us >= scrape.asked_us

    def record(self, scrape: Scrape) -> None:
        """Take in one attempt that is accepted."""
        known = self.families.get(scrape.family)
        if scrape.exact or (known is not None and known.exact):
            self._record_exact(scrape)
            return
        floor_us = max([self.sealed_us, *(e for s, e in self.told if s <= scrape.asked_us < e)])
        if scrape.asked_us < floor_us:
            scrape = dataclasses.replace(scrape, asked_us=floor_us)
        self.began_us = self.began_us or scrape.asked_us
        max_gap_us = round(scrape.interval_us * MAX_GAP_INTERVALS)
        family = self.families.setdefault(scrape.family, FamilyTrack(max_gap_us))
        if scrape.outcome == "skipped":
            family.account.skip(scrape, self.window_us, max_gap_us)
            return
        # A shorter cadence must not take back what the scrape before still vouches for.
        self._elapse(family, scrape.asked_us)
        family.max_gap_us = max_gap_us
        if scrape.identity is not None:
            self._meet(scrape.identity, scrape.answered_us)
        if scrape.answer is not None and scrape.identity is not None:
            family.cut(scrape.answered_us, self.window_us, self.ledger)
            self._observe(family, scrape, scrape.answer, scrape.identity, self.ledger)
            family.answered_us = scrape.answered_us
        else:
            family.stop(scrape.asked_us, self.ledger)
        family.account.attempt(scrape, family.max_gap_us)
        family.attempted_us = scrape.asked_us

    def seal(self, now_us: int) -> Sealed:
        """Take out the windows that nothing can change any longer."""
        end_us = self.sealable_us(now_us)
        for family in self._families(exact=False):
            self._elapse(family, end_us)
        told = [
            family.take_told(family.settle(now_us, end_us, self.window_us))
            for family in self._families(exact=True)
        ]
        return self._take(end_us, told)

    def seal_told(self) -> Sealed:
        """Take out the windows that exact families have told wholly."""
        told = [
            family.take_told(family.told_windows_us(self.window_us))
            for family in self._families(exact=True)
        ]
        return self._take(self.sealed_us, told)

    def has_sealable(self, now_us: int) -> bool:
        """Whether there are windows that nothing can change any longer."""
        end_us = self.sealable_us(now_us)
        return end_us > self.sealed_us or any(
            family.sealed_us < min(end_us, family.told_windows_us(self.window_us))
            for family in self._families(exact=True)
        )

    def holds_much(self) -> bool:
        """Whether an exact family has told so much that some should be sealed at once."""
        return any(
            family.last_us - family.sealed_us > _HELD_WINDOWS * self.window_us
            for family in self._families(exact=True)
        )

    def begin(self, now_us: int) -> None:
        """An agent starts: what exact families missed is waited for from now on."""
        self.started_us = now_us
        for family in self._families(exact=True):
            family.heard_us = max(family.heard_us, now_us)

    def break_off(self) -> None:
        """What was recorded last may be lost: of the time since the last attempt nothing is known.

        Exact families are read again from where they were recorded last.
        """
        for family in self._families(exact=False):
            family.break_off(self.ledger)

    def successor(self) -> Encoder:
        """One that knows nothing yet, and records nothing of the time before now."""
        end_us = self.ended_us()
        families = {
            name: FamilyTrack(
                one.max_gap_us, exact=True, heard_us=one.heard_us,
                sealed_us=max(end_us, one.last_us, one.sealed_us),
            )
            for name, one in self.families.items()
            if one.exact
        }  # fmt: skip
        return Encoder(
            self.window_us, dict(self.memory_us), families, identity=self.identity,
            sealed_us=end_us, began_us=self.began_us, told=self.told, started_us=self.started_us,
        )  # fmt: skip

    def leaves_cluster(self, scrape: Scrape) -> bool:
        """Whether an attempt found a source of another cluster than all before."""
        found = scrape.identity
        if found is None or self.identity is None or not found.started_us:
            return False
        return found.cluster != self.identity.cluster

    def leave_cluster(self) -> Sealed:
        """End and take out everything that is known of one cluster; of another one none is."""
        sealed = self.flush(self.ended_us())
        for family in self.families.values():
            family.gauges.clear()
            family.counters.clear()
        self.non_consumed = NonConsumed()
        return sealed

    def told_us(self, name: str) -> int:
        """Up to when a family was told; of one that is new, up to when all the others were."""
        family = self.families.get(name)
        if family is None:
            return max(self.last_attempt_us(), self.sealed_us)
        return max(family.last_us, family.sealed_us)

    def sealable_us(self, now_us: int) -> int:
        """The start of the oldest window that may still change; at least ``sealed_us``."""
        gaps = [family.max_gap_us for family in self._families(exact=False)]
        past_us = now_us - max([*self.memory_us.values(), 0]) - max([*gaps, 0])
        return max(past_us - past_us % self.window_us, self.sealed_us)

    def flush(self, now_us: int) -> Sealed:
        """End everything at an orderly stop and take out all there is.

        An exact family ends where its history does: what follows can be told after the next start.
        """
        told = []
        for family in self._families(exact=True):
            family.end_exact()
            told.append(family.take_told(max(family.last_us, family.sealed_us)))
        return self._end(now_us, told)

    def step_clock(self, from_us: int, to_us: int) -> Sealed:
        """The wall clock jumped: end everything where the old clock stood, and take it out.

        What was told under the old clock is remembered, so that the new one does not tell it again
        when it comes by there. Exact families go by another clock.
        """
        sealed = self._end(from_us, [])
        for family in self._families(exact=False):
            family.attempted_us, family.cut_us = None, 0
        for family in self._families(exact=True):
            family.heard_us += to_us - from_us
        self.told = [*self.told, (self.began_us or from_us, from_us)][-_TOLD:]
        self.began_us = to_us
        self.sealed_us = 0
        self.started_us = to_us
        event = Event(to_us, "clock_step", Series(""), str(from_us), str(to_us))
        return sealed._replace(events=[*sealed.events, event])

    def ended_us(self) -> int:
        """The first instant of which nothing is known yet."""
        return max(self.last_attempt_us() + 1, self.sealed_us, self.started_us)

    def last_attempt_us(self) -> int:
        """When the last attempt was made by our own clock, 0 before the first."""
        return max((family.last_us for family in self._families(exact=False)), default=0)

    def _elapse(self, family: FamilyTrack, now_us: int) -> None:
        family.elapse(now_us, self.window_us, self.ledger, self._bar_us(family))

    def _bar_us(self, family: FamilyTrack) -> int:
        """Where the next time begins that was told before the clock was set back."""
        return min((start for start, _ in self.told if start >= family.last_us), default=_NEVER_US)

    def _families(self, *, exact: bool) -> list[FamilyTrack]:
        return [family for family in self.families.values() if family.exact == exact]

    def _record_exact(self, scrape: Scrape) -> None:
        """A moment of a history; a failed attempt to read it, which may be told later after all."""
        max_gap_us = round(scrape.interval_us * MAX_GAP_INTERVALS)
        family = self.families.setdefault(scrape.family, FamilyTrack(max_gap_us))
        family.max_gap_us = max_gap_us
        if not scrape.exact:
            family.failure = None if scrape.outcome == "skipped" else scrape
            return
        at_us = scrape.asked_us
        family.begin_exact(scrape, self.window_us)
        family.cut(at_us, self.window_us, family.told)
        if scrape.answer is not None and scrape.identity is not None:
            self._meet(scrape.identity, at_us)
            self._observe(family, scrape, scrape.answer, scrape.identity, family.told)
            family.answered_us = at_us
        else:
            family.stop(at_us, family.told)
        family.account.attempt(scrape, max_gap_us)
        family.attempted_us = at_us

    def _observe(
        self,
        family: FamilyTrack,
        scrape: Scrape,
        answer: Answer,
        identity: Identity,
        ledger: Ledger,
    ) -> None:
        family.observe(scrape, answer.readings, identity.started_us, self.memory_us, ledger)
        if answer.offsets is not None:
            gap = family.answered_us is None
            losses = self.non_consumed.advance(answer.offsets, after_gap=gap)
            low, high = non_consumed.increases(losses)
            family.add(scrape, non_consumed.LOW, low, self.ledger)
            family.add(scrape, non_consumed.HIGH, high, self.ledger)
        self.events.extend(_event(scrape.answered_us, notice) for notice in answer.notices)

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

    def _end(self, now_us: int, told: list[Told]) -> Sealed:
        for family in self._families(exact=False):
            self._elapse(family, now_us)
            family.stop(now_us, self.ledger)
            family.account.stop(now_us)
        return self._take(now_us, told)

    def _take(self, end_us: int, told: list[Told]) -> Sealed:
        taken = [(self.ledger.take_before(end_us), list[Account]()), *told]
        taken += [([], one.account.take_before(end_us)) for one in self._families(exact=False)]
        pieces = [piece for some, _ in taken for piece in some]
        accounts = [account for _, some in taken for account in some]
        events, self.events = self.events, []
        self.sealed_us = max(self.sealed_us, end_us)
        return Sealed(fold(pieces), accounts, events)


def _event(at_us: int, notice: Notice) -> Event:
    return Event(at_us, notice.kind, notice.subject, notice.old, notice.new)
