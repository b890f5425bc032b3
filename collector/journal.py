"""Scrapes as the journal keeps them, and back.

What did not change since the scrape before is left out: the encoder still knows it. Replaying the
journal into the encoder's last snapshot gives the encoder as it was.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec

from collector.gauges import GaugeTrack
from collector.samples import Reading, Scrape, Series

if TYPE_CHECKING:
    from collector.counters import CounterTrack
    from collector.runs import Encoder


class Entry(msgspec.Struct, array_like=True):
    """A scrape without its readings, and what changed in them; None: as the time before."""

    scrape: Scrape
    changes: list[tuple[frozenset[Series] | None, dict[Series, float | None] | None]]


def encode(scrape: Scrape, encoder: Encoder) -> bytes:
    """One journal entry; to be called before the encoder records the scrape."""
    if scrape.answer is None:
        return msgspec.msgpack.encode(Entry(scrape, []))
    changes = []
    bare = []
    for reading in scrape.answer.readings:
        track = _track(encoder, scrape.family, reading)
        zeros = None if reading.zeros is track.zeros else reading.zeros
        values = None if reading.values == track.values else dict(reading.values)
        changes.append((zeros, values))
        bare.append(dataclasses.replace(reading, zeros=frozenset(), values={}))
    answer = dataclasses.replace(scrape.answer, readings=tuple(bare))
    return msgspec.msgpack.encode(Entry(dataclasses.replace(scrape, answer=answer), changes))


def decode(entry: bytes, encoder: Encoder) -> Scrape:
    """The scrape of an entry; the encoder must be as it was when the entry was made."""
    decoded = msgspec.msgpack.decode(entry, type=Entry)
    if decoded.scrape.answer is None:
        return decoded.scrape
    readings = []
    for reading, change in zip(decoded.scrape.answer.readings, decoded.changes, strict=True):
        track = _track(encoder, decoded.scrape.family, reading)
        zeros = track.zeros if change[0] is None else change[0]
        values = dict(track.values) if change[1] is None else change[1]
        readings.append(dataclasses.replace(reading, zeros=zeros, values=values))
    answer = dataclasses.replace(decoded.scrape.answer, readings=tuple(readings))
    return dataclasses.replace(decoded.scrape, answer=answer)


def _track(encoder: Encoder, family: str, reading: Reading) -> GaugeTrack | CounterTrack:
    known = encoder.families.get(family)
    if known is None:
        return GaugeTrack()
    tracks = known.gauges if reading.kind == "gauge" else known.counters
    return tracks.get(reading.metric) or GaugeTrack()
