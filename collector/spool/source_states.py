"""Encoders of all sources of an agent. Pure state: no lock and no disk."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from collector.catalogue.entries import Delays
from collector.encoding.bronze_rows import Batch, Origin, Row, SealedRows, batches_of, event_row
from collector.encoding.encoder import Encoder
from collector.model import Event, Scrape, Series

Sources = Mapping[str, str | None]
"""Cluster ID by source."""
DelaysOf = Mapping[str, Delays]
"""Delay by metric."""
Encoders = dict[str, Encoder]
"""Encoder by source."""
Sealed = dict[str, SealedRows]
"""Final rows by source."""
UNKNOWN_CLUSTER: Final = "unknown"
"""Cluster of a source that never answered and has no configured cluster."""


class Scope(NamedTuple):
    """Sources, delays and catalogue that are read.

    Attributes:
        sources: Every source by its name in bronze, with its cluster ID if that is configured. The
            ID that the source reports takes precedence.
        delays: Delay of the MBean, by metric.
        catalogue: Hash of the catalogue.
    """

    sources: Sources
    delays: DelaysOf
    catalogue: str


class SourceStates:
    """Encoders of current and removed sources.

    A removed source keeps an empty encoder, so that none of its time is recorded twice if it
    returns.

    Args:
        scope: Current sources, delays and catalogue.
        window_us: Window length.

    Attributes:
        scope: Current sources, delays and catalogue.
        window_us: Window length.
        encoders: Encoders of current and removed sources.
    """

    def __init__(self, scope: Scope, window_us: int) -> None:
        self.scope, self.window_us = scope, window_us
        self.encoders: Encoders = {}
        self._clusters = dict(scope.sources)  # with removed sources
        self._early: list[Event] = []

    @property
    def present(self) -> Encoders:
        """The encoders of current sources."""
        return {name: self.encoders[name] for name in self.scope.sources}

    @property
    def first(self) -> str:
        """The first source, which stands for all in an agent with one source."""
        return next(iter(self.scope.sources))

    @property
    def sealed_us(self) -> int:
        """End of the windows closed for all sources but new ones. 0 before the first window."""
        return min(
            (encoder.sealed_us for encoder in self.present.values() if encoder.sealed_us), default=0
        )

    def completed(self, encoders: Encoders) -> Encoders:
        """Return encoders from disk with one for each source, and with the delays in force."""
        found = dict(encoders)
        former = found.pop("", None)
        if former is not None and self.scope.sources:  # of a version with one source
            found[self.first] = former
        found = {name: Encoder(self.window_us) for name in self.scope.sources} | found
        for encoder in found.values():
            encoder.delays = dict(self.scope.delays)
        return found

    def reconfigure(self, scope: Scope, start: Event) -> None:
        """Set sources, delays and catalogue. New sources start with an event."""
        known = self.scope.sources.keys()
        self.scope = scope
        self._clusters |= scope.sources
        self.encoders = self.completed(self.encoders)
        for name in scope.sources.keys() - known:
            self.encoders[name].begin(start.at)
            if known:
                self.encoders[name].events.append(start)
        self.tell()

    def named(self, scrape: Scrape) -> Scrape:
        """Return a scrape with the name of its source."""
        return scrape if scrape.source else replace(scrape, source=self.first)

    def tell(self, *events: Event) -> None:
        """Give events to every source. Without a source they wait for the first one."""
        waiting, self._early = [*self._early, *events], []
        if not self.scope.sources:
            self._early = waiting
        for encoder in self.present.values():
            encoder.events += waiting

    def report(self, kind: str, old: str, new: str) -> None:
        """Give every source an event of now."""
        for encoder in self.present.values():
            encoder.events.append(Event(encoder.ended_us(), kind, Series(""), old, new))

    def begin(self, now_us: int) -> None:
        """Start all sources with the agent."""
        for encoder in self.present.values():
            encoder.begin(now_us)

    def break_off(self) -> None:
        """End coverage at the last scrape, because later scrapes may be lost."""
        for encoder in self.encoders.values():
            encoder.break_off()

    def seal(self, now_us: int) -> Sealed:
        """Close the windows that are final for all sources, and return their rows.

        Sources close a window together: brokers and clients have other intervals and delays.
        """
        end_us = min((encoder.sealable_us(now_us) for encoder in self.present.values()), default=0)
        return {
            name: encoder.seal(now_us, end_us)
            for name, encoder in self.present.items()
            if encoder.has_sealable(now_us, end_us)
        }

    def flush(self, now_us: int) -> Sealed:
        """End everything at an orderly stop and return all rows."""
        return self._of_each(lambda encoder: encoder.flush(now_us))

    def step_clock(self, from_us: int, to_us: int) -> Sealed:
        """End everything where the wall clock was set, and return the rows."""
        return self._of_each(lambda encoder: encoder.step_clock(from_us, to_us))

    def catch_up(self, now_us: int, at_least_us: int = 1) -> Sealed:
        """End everything if the clock was set back before the last scrape, and return the rows."""

        def caught_up(encoder: Encoder) -> SealedRows | None:
            last_us = encoder.last_attempt_us()
            if last_us - now_us < at_least_us:
                return None
            return encoder.step_clock(max(last_us + 1, encoder.sealed_us), now_us)

        return self._of_each(caught_up)

    def cut_windows(self) -> Sealed:
        """End all runs if the configured window length has changed, and return the rows."""

        def cut(encoder: Encoder) -> SealedRows | None:
            if encoder.window_us == self.window_us:
                return None
            sealed = encoder.flush(encoder.ended_us())
            encoder.window_us = self.window_us
            for family in encoder.families.values():
                family.cut_us = 0
            return sealed

        return self._of_each(cut)

    def retire(self) -> Sealed:
        """End removed sources at their last scrape, and return their rows."""
        gone = {
            name: encoder
            for name, encoder in self.encoders.items()
            if name not in self.scope.sources
        }
        sealed = {
            name: encoder.flush(encoder.ended_us())
            for name, encoder in gone.items()
            if encoder.families
        }
        for name in sealed:
            self.encoders[name] = self.encoders[name].successor()
        return sealed

    def restart(self, old: str, new: str) -> None:
        """Empty all encoders, because the spool was an old copy. Each source gets an event."""
        for name, encoder in self.encoders.items():
            self.encoders[name] = encoder.successor()
            if name in self.scope.sources:
                event = Event(encoder.ended_us(), "spool_restored", Series(""), old, new)
                self.encoders[name].events.append(event)

    def batches(self, sealed: Sealed) -> Iterator[Batch]:
        """Yield batches of final rows."""
        return batches_of([(rows, self._origin(name)) for name, rows in sealed.items()])

    def event_rows(self, event: Event) -> list[Row]:
        """Return an event as a row of bronze/events for each source."""
        return [event_row(event, self._origin(name)) for name in self.scope.sources]

    def _of_each(self, work: Callable[[Encoder], SealedRows | None]) -> Sealed:
        """Return the final rows of each current source. Drop the rows of removed sources."""
        done = {name: work(encoder) for name, encoder in self.encoders.items()}
        return {name: rows for name, rows in done.items() if rows and name in self.scope.sources}

    def _origin(self, name: str) -> Origin:
        identity = self.encoders[name].identity
        cluster = identity.cluster if identity else self._clusters.get(name) or UNKNOWN_CLUSTER
        return Origin(cluster, name, self.scope.catalogue)
