"""Encoders of all sources of an agent, and the bytes from which they are restored.

This is pure state: no lock and no disk. The bytes are a snapshot of the encoders and a journal with
an entry per scrape since then. An entry contains only values that changed since the previous
scrape, because the encoder has the others. Replaying the journal into the snapshot restores the
encoders.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import msgspec

from collector.catalogue.entries import Delays
from collector.encoding.bronze_rows import Batch, Origin, Row, SealedRows, batches_of, event_row
from collector.encoding.encoder import Encoder
from collector.encoding.metric_tracks import CounterTrack, GaugeTrack
from collector.model import Event, Reading, Scrape, Series
from lakehouse.tables.error_text import unexpected

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

    sources: Mapping[str, str | None]
    delays: Mapping[str, Delays]
    catalogue: str


class Delta(msgspec.Struct, array_like=True):
    """Difference between a reading and the previous reading of its metric."""

    zeros: frozenset[Series] = frozenset()
    no_zeros: frozenset[Series] = frozenset()
    values: dict[Series, float | None] = msgspec.field(default_factory=dict)
    no_values: list[Series] = msgspec.field(default_factory=list)


class Entry(msgspec.Struct, array_like=True):
    """A scrape without its readings, and the differences of its readings.

    Attributes:
        unused: Always empty.
        deltas: Difference of each reading. None if nothing changed.
    """

    scrape: Scrape
    unused: tuple[()] = ()
    deltas: list[Delta | None] = msgspec.field(default_factory=list)


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

    def snapshot(self) -> bytes:
        """Return the encoders of all sources as bytes."""
        return msgspec.msgpack.encode({"encoders": self.encoders})

    def restored(
        self, state: bytes | None, entries: Sequence[bytes]
    ) -> tuple[Encoders, list[Event]]:
        """Return the encoders of a snapshot and a journal, and an event if a part is unreadable."""
        found, unreadable = replay(state, entries, self.window_us)
        encoders = self.completed(found)
        if unreadable is None:
            return encoders, []
        at_us = max((encoder.ended_us() for encoder in encoders.values()), default=0)
        return encoders, [Event(at_us, "journal_unreadable", Series(""), None, unreadable)]

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


def entry_of(scrape: Scrape, encoder: Encoder) -> bytes:
    """Return the journal entry of a scrape. Call it before the encoder records the scrape."""
    if scrape.answer is None:
        return msgspec.msgpack.encode(Entry(scrape))
    readings = scrape.answer.readings
    deltas = [_delta(reading, _track(encoder, scrape.family, reading)) for reading in readings]
    bare = tuple(replace(reading, zeros=frozenset(), values={}) for reading in readings)
    answer = replace(scrape.answer, readings=bare, moments=())
    return msgspec.msgpack.encode(Entry(replace(scrape, answer=answer), (), deltas))


def scrape_of(decoded: Entry, encoder: Encoder) -> Scrape:
    """Return the scrape of an entry. The encoder must have the state of that time."""
    if decoded.scrape.answer is None:
        return decoded.scrape
    readings = []
    for reading, delta in zip(decoded.scrape.answer.readings, decoded.deltas, strict=True):
        track = _track(encoder, decoded.scrape.family, reading)
        zeros, values = _applied(delta, track)
        readings.append(replace(reading, zeros=zeros, values=values))
    answer = replace(decoded.scrape.answer, readings=tuple(readings))
    return replace(decoded.scrape, answer=answer)


def replay(
    state: bytes | None, entries: Sequence[bytes], window_us: int
) -> tuple[dict[str, Encoder], str | None]:
    """Return the encoders after the readable part of a journal.

    Args:
        state: Snapshot before the journal. None if there is none.
        entries: The journal, oldest first.
        window_us: Window length of new encoders.

    Returns:
        The encoders by source, and why a part of the journal is unreadable (None if it is not).
        The encoder of a version with one source has an empty name.
    """
    try:
        encoders = {} if state is None else _encoders(state)
    except msgspec.MsgspecError as error:
        return {}, f"the state before {len(entries)} entries: {unexpected(error)}"
    for number, entry in enumerate(entries):
        try:
            decoded = msgspec.msgpack.decode(entry, type=Entry)
            encoder = encoders.setdefault(decoded.scrape.source, Encoder(window_us))
            encoder.record(scrape_of(decoded, encoder))
        except Exception as error:  # noqa: BLE001 - any error would repeat at every start
            sound, _ = replay(state, entries[:number], window_us)
            return sound, f"entry {number + 1} of {len(entries)}: {unexpected(error)}"
    return encoders, None


def _encoders(state: bytes) -> dict[str, Encoder]:
    try:
        return msgspec.msgpack.decode(state, type=dict[str, dict[str, Encoder]])["encoders"]
    except msgspec.ValidationError:  # of a version with one source
        return {"": msgspec.msgpack.decode(state, type=Encoder)}


def _delta(reading: Reading, track: GaugeTrack | CounterTrack) -> Delta | None:
    same = reading.zeros is track.zeros or reading.zeros == track.zeros
    if same and reading.values == track.values:
        return None
    before, values = track.values, reading.values
    changed = {
        series: n for series, n in values.items() if series not in before or before[series] != n
    }
    gone = [series for series in before if series not in values]
    if same:
        return Delta(values=changed, no_values=gone)
    return Delta(reading.zeros - track.zeros, track.zeros - reading.zeros, changed, gone)


def _applied(
    delta: Delta | None, track: GaugeTrack | CounterTrack
) -> tuple[frozenset[Series], dict[Series, float | None]]:
    if delta is None:
        return track.zeros, dict(track.values)
    gone = set(delta.no_values)
    values = {series: value for series, value in track.values.items() if series not in gone}
    return (track.zeros - delta.no_zeros) | delta.zeros, {**values, **delta.values}


def _track(encoder: Encoder, family: str, reading: Reading) -> GaugeTrack | CounterTrack:
    known = encoder.families.get(family)
    if known is None:
        return GaugeTrack()
    tracks = known.gauges if reading.kind == "gauge" else known.counters
    return tracks.get(reading.metric) or GaugeTrack()
