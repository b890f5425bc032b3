"""Journal entries: scrapes as bytes, and back.

An entry contains only values that changed since the previous scrape, because the encoder has the
others. Replaying the journal into the last snapshot of the encoder restores the encoder.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec

from collector.encoding.encoder import Encoder
from collector.encoding.metric_tracks import CounterTrack, GaugeTrack
from collector.model import Reading, Scrape, Series
from lakehouse.tables.error_text import unexpected


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


def encode(scrape: Scrape, encoder: Encoder) -> bytes:
    """Return the journal entry of a scrape. Call it before the encoder records the scrape."""
    if scrape.answer is None:
        return msgspec.msgpack.encode(Entry(scrape))
    readings = scrape.answer.readings
    deltas = [_delta(reading, _track(encoder, scrape.family, reading)) for reading in readings]
    bare = tuple(dataclasses.replace(reading, zeros=frozenset(), values={}) for reading in readings)
    answer = dataclasses.replace(scrape.answer, readings=bare, moments=())
    return msgspec.msgpack.encode(Entry(dataclasses.replace(scrape, answer=answer), (), deltas))


def state_of(encoders: Mapping[str, Encoder]) -> bytes:
    """Return the snapshot of the encoders of all sources."""
    return msgspec.msgpack.encode({"encoders": {**encoders}})


def scrape_of(decoded: Entry, encoder: Encoder) -> Scrape:
    """Return the scrape of an entry. The encoder must have the state of that time."""
    if decoded.scrape.answer is None:
        return decoded.scrape
    readings = []
    for reading, delta in zip(decoded.scrape.answer.readings, decoded.deltas, strict=True):
        track = _track(encoder, decoded.scrape.family, reading)
        zeros, values = _applied(delta, track)
        readings.append(dataclasses.replace(reading, zeros=zeros, values=values))
    answer = dataclasses.replace(decoded.scrape.answer, readings=tuple(readings))
    return dataclasses.replace(decoded.scrape, answer=answer)


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
