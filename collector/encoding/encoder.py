"""Encoder of one source: takes scrapes and returns runs.

A failed scrape ends coverage at once. Runs are split at wall-clock windows. A window is closed when
nothing can change it. State is plain data, so that the spool can store it.
"""

from collections.abc import Callable
from typing import Final, Self

import msgspec

from collector.catalogue.entries import Delays
from collector.encoding.bronze_rows import AttemptSpan, Ledger, SealedRows, fold
from collector.encoding.expired_offsets import HIGH, LOW, NonConsumed, add_up, increases, series_of
from collector.encoding.family import NEVER_US, ExactFamily, FamilyTrack, PolledFamily
from collector.encoding.metric_tracks import AnswerSpan, CounterTrack
from collector.model import Answer, Event, Identity, Scrape, Series

_HELD_WINDOWS: Final = 12  # of an exact history that arrives at once, before some are closed
_MOST_SPANS: Final = 16  # stored clock steps


class Encoder(msgspec.Struct):
    """State of one source, and the pieces whose window is not closed.

    Attributes:
        window_us: Window length.
        delays: Delay of the MBean, by metric.
        sealed_us: End of the closed windows. Later rows start after it.
        began_us: Time of the last clock step, or of the first scrape.
        recorded_spans: Intervals recorded before clock steps. They are not recorded again.
        started_us: Start of the agent, or the last clock step.
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

    def before(self, scrape: Scrape) -> SealedRows | None:
        """Return the rows to store before a scrape is recorded. None if there are none.

        A source of another cluster ends everything of the current cluster. A long exact history
        that arrives at once is closed in part, so that it never is in memory as a whole.
        """
        if self._leaves_cluster(scrape.identity):
            return self._leave_cluster()
        held_us = max((family.held_us for family in self._exact), default=0)
        if held_us > _HELD_WINDOWS * self.window_us:
            return self._take(self.sealed_us, lambda family: family.complete_us)
        return None

    def accepts(self, scrape: Scrape) -> bool:
        """Return True for a scrape that is in order and whose time was not recorded before."""
        track = self.families.get(scrape.family) or FamilyTrack(scrape.max_gap_us)
        if scrape.exact and not track.exact:  # the agent of an earlier spool may have recorded it
            return scrape.asked_us >= max(track.last_us, self.sealed_us)
        return self._kind(track).accepts(scrape)

    def record(self, scrape: Scrape) -> None:
        """Record an accepted scrape."""
        track = self.families.setdefault(scrape.family, FamilyTrack(scrape.max_gap_us))
        if scrape.exact and not track.exact:
            ExactFamily(track, self.window_us).start(scrape)
        family = self._kind(track)
        admitted = family.admit(scrape)
        if admitted is not None:
            self._enter(track, admitted, family.ledger)

    def seal(self, now_us: int, most_us: int = NEVER_US) -> SealedRows:
        """Close the windows that nothing can change, up to an instant, and return their rows.

        A family without a scrape in time claims nothing after its last scrape.
        """
        end_us = min(self.sealable_us(now_us), most_us)
        for family in map(self._kind, self.families.values()):
            family.settle(now_us, end_us)
        return self._take(end_us, lambda family: min(end_us, family.complete_us))

    def has_sealable(self, now_us: int, most_us: int = NEVER_US) -> bool:
        """Return True if there are windows up to an instant that nothing can change."""
        end_us = min(self.sealable_us(now_us), most_us)
        return end_us > self.sealed_us or any(
            family.track.sealed_us < min(end_us, family.complete_us) for family in self._exact
        )

    def begin(self, now_us: int) -> None:
        """Start with the agent: wait from now on for the history that exact families missed."""
        self.started_us = now_us
        for family in self._exact:
            family.wait(now_us)

    def break_off(self) -> None:
        """End coverage at the last scrape, because later scrapes may be lost.

        The agent reads exact families again from the last recorded moment.
        """
        for family in self._polled:
            family.break_off()

    def successor(self) -> Self:
        """Return an empty encoder that records nothing before now."""
        end_us = self.ended_us()
        families = {
            name: ExactFamily(track, self.window_us).successor(end_us)
            for name, track in self.families.items()
            if track.exact
        }
        return msgspec.structs.replace(
            self, families=families, ledger=Ledger(), non_consumed=NonConsumed(), events=[],
            sealed_us=end_us,
        )  # fmt: skip

    def recorded_until_us(self, name: str) -> int:
        """Return the end of the recorded time of a family. A new family has the end of all."""
        family = self.families.get(name)
        if family is None:
            return max(self.last_attempt_us(), self.sealed_us)
        return max(family.last_us, family.sealed_us)

    def sealable_us(self, now_us: int) -> int:
        """Return the start of the oldest window that can still change; at least ``sealed_us``."""
        families = self._polled
        gap_us = max((family.track.max_gap_us for family in families), default=0)
        # No later scrape changes anything before this instant.
        past_us = now_us - max(map(sum, self.delays.values()), default=0) - gap_us
        past_us = max(
            past_us, min((family.settled_us(now_us) for family in families), default=past_us)
        )
        return max(past_us - past_us % self.window_us, self.sealed_us)

    def flush(self, now_us: int) -> SealedRows:
        """End everything at an orderly stop and return all rows.

        An exact family ends where its history ends. Later moments can follow after the next start.
        """
        for family in self._exact:
            family.finish()
        for polled in self._polled:
            polled.finish(now_us)
        return self._take(now_us, lambda family: family.whole_us)

    def step_clock(self, from_us: int, to_us: int) -> SealedRows:
        """End everything at the last instant of the old clock, and return its rows.

        Intervals of the old clock are stored, so that they are not recorded again when the new
        clock reaches them. Exact families have another clock.
        """
        for family in self._polled:
            family.finish(from_us)
        sealed = self._take(from_us, lambda family: family.track.sealed_us)
        for family in self._polled:
            family.set_clock()
        for exact in self._exact:
            exact.set_clock(to_us - from_us)
        span = self.began_us or from_us, from_us
        self.recorded_spans = [*self.recorded_spans, span][-_MOST_SPANS:]
        self.began_us, self.sealed_us, self.started_us = to_us, 0, to_us
        event = Event(to_us, "clock_step", Series(""), str(from_us), str(to_us))
        return sealed._replace(events=[*sealed.events, event])

    def ended_us(self) -> int:
        """Return the first instant after everything recorded."""
        return max(self.last_attempt_us() + 1, self.sealed_us, self.started_us)

    def last_attempt_us(self) -> int:
        """Return the time of the last scrape by the agent's clock. 0 before the first."""
        return max((family.track.last_us for family in self._polled), default=0)

    @property
    def _polled(self) -> list[PolledFamily]:
        return [PolledFamily(track, self) for track in self.families.values() if not track.exact]

    @property
    def _exact(self) -> list[ExactFamily]:
        return [
            ExactFamily(track, self.window_us) for track in self.families.values() if track.exact
        ]

    def _kind(self, track: FamilyTrack) -> PolledFamily | ExactFamily:
        return ExactFamily(track, self.window_us) if track.exact else PolledFamily(track, self)

    def _enter(self, family: FamilyTrack, scrape: Scrape, ledger: Ledger) -> None:
        """Record a scrape, with its response if there was one."""
        answer, identity = scrape.answer, scrape.identity
        failed = scrape.outcome != "ok"
        if failed:  # coverage ends at its request, even with a partial response
            family.stop_unread(scrape, ledger)
            family.account.attempt(scrape, family.max_gap_us)
        if answer is not None and identity is not None:
            # A failed scrape can have the identity of the previous process.
            self._meet(identity, scrape.answered_us)
            family.cut(scrape.answered_us, self.window_us, ledger)
            family.observe(scrape, identity.started_us, self.delays, ledger)
            self._observe(family, scrape, answer)
            family.answered_us = scrape.answered_us
        if not failed:
            family.account.attempt(scrape, family.max_gap_us)
        family.attempted_us = scrape.asked_us

    def _observe(self, family: FamilyTrack, scrape: Scrape, answer: Answer) -> None:
        """Record the offsets and events of a response."""
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
            Event(scrape.answered_us if notice.at_us is None else notice.at_us, *notice[:-1])
            for notice in answer.notices
        )

    def _open_windows(self, family: FamilyTrack) -> tuple[int, ...]:
        """Return the starts of the current and the previous window, if pieces can start there."""
        opened = (family.cut_us - self.window_us, family.cut_us)
        return tuple(
            max(start, self.sealed_us)
            for start in opened
            if start + self.window_us > self.sealed_us
        )

    def _meet(self, identity: Identity, at_us: int) -> None:
        known = self.identity
        if known is not None and not identity.started_us:
            return  # the Admin API reports the cluster, but not the start of the broker
        self.identity = identity
        if known is None or not known.started_us:
            return
        if known.started_us != identity.started_us:
            old, new = str(known.started_us), str(identity.started_us)
            self.events.append(Event(at_us, "source_restart", Series(""), old, new))
        if known.kafka_version != identity.kafka_version:
            old_version, new_version = known.kafka_version, identity.kafka_version
            self.events.append(Event(at_us, "version_change", Series(""), old_version, new_version))

    def _leaves_cluster(self, found: Identity | None) -> bool:
        known = self.identity
        if found is None or known is None or not found.started_us:
            return False
        return found.cluster != known.cluster

    def _leave_cluster(self) -> SealedRows:
        """End everything of this cluster and return it. Its baselines do not hold for another."""
        sealed = self.flush(self.ended_us())
        for family in self.families.values():
            family.gauges.clear()
            family.counters.clear()
        self.non_consumed, self.lost = NonConsumed(), {}
        return sealed

    def _take(self, end_us: int, exact_end_us: Callable[[ExactFamily], int]) -> SealedRows:
        """Return the rows before an instant. Each exact family has its own instant."""
        for family in self._polled:
            family.give_up(end_us)
        pieces, accounts = self.ledger.take_before(end_us), list[AttemptSpan]()
        for exact in self._exact:
            own_pieces, own_accounts = exact.take(exact_end_us(exact))
            pieces += own_pieces
            accounts += own_accounts
        for family in self._polled:
            accounts += family.track.account.take_before(end_us)
        events, self.events = self.events, []
        self.sealed_us = max(self.sealed_us, end_us)
        return SealedRows(fold(pieces), accounts, events)
