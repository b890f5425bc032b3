"""Scrapes in a file: what was recorded once, to be played any time.

Each is told by how it differs from the one before of its family, names are written once, and all
of it is msgpack in xz.
"""

from __future__ import annotations

import lzma
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from collector.model import Answer, Commit, Offsets, Partition, Reading, Scrape, Series

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping
    from pathlib import Path

_KEYS: Final = (Series, Partition, Commit)
_WHOLE: Final = 1 << 53


class Change(NamedTuple):
    """How a mapping differs from the one before: keys by number, their values; keys that went."""

    keys: list[int]
    values: list[Any]
    gone: list[int]


class ReadingChange(msgspec.Struct, array_like=True):
    """One reading: what names it, and how its series differ."""

    bare: Reading
    zeros: Change
    values: Change


class Entry(msgspec.Struct, array_like=True):
    """One scrape.

    Attributes:
        scrape: Without instants, readings and offsets.
        instants: Tick; asked and answered after it.
        names: Keys that were not met before, with the kind of each.
        readings: In their order.
        offsets: Of the three mappings, where there are any.
    """

    scrape: Scrape
    instants: tuple[int, int, int]
    names: list[tuple[int, list[Any]]]
    readings: list[ReadingChange]
    offsets: list[Change]


class _Memory:
    """What both ends know: the keys by number, and every mapping as it was last."""

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.numbers: dict[Hashable, int] = {}
        self.mappings: dict[Hashable, Mapping[Any, Any]] = {}

    def learn(self, key: Hashable) -> None:
        self.numbers[key] = len(self.keys)
        self.keys.append(key)

    def change(self, what: Hashable, after: Mapping[Any, Any]) -> Change:
        before = self.mappings.get(what, {})
        self.mappings[what] = after
        changed = sorted(
            self.numbers[key]
            for key, value in after.items()
            if key not in before or before[key] != value
        )
        gone = sorted(self.numbers[key] for key in before if key not in after)
        return Change(changed, [_short(after[self.keys[number]]) for number in changed], gone)

    def apply(self, what: Hashable, change: Change) -> Mapping[Any, Any]:
        after = self.mappings.get(what, {})
        if change.keys or change.gone:
            gone = {self.keys[number] for number in change.gone}
            after = {key: value for key, value in after.items() if key not in gone}
            after |= zip((self.keys[number] for number in change.keys), change.values, strict=True)
        self.mappings[what] = after
        return after


def write(path: Path, scrapes: Iterable[Scrape]) -> None:
    """Keep scrapes, in their order."""
    memory = _Memory()
    entries = [_entry(scrape, memory) for scrape in scrapes]
    packed = msgspec.msgpack.encode(entries)
    path.write_bytes(lzma.compress(packed, preset=9 | lzma.PRESET_EXTREME))


def read(path: Path) -> Iterator[Scrape]:
    """The scrapes of a file, in their order."""
    memory = _Memory()
    sets: dict[Hashable, tuple[Mapping[Any, Any], frozenset[Series]]] = {}
    for entry in msgspec.msgpack.decode(lzma.decompress(path.read_bytes()), type=list[Entry]):
        for kind, fields in entry.names:
            memory.learn(_named(kind, fields))
        tick, asked, answered = entry.instants
        scrape = replace(
            entry.scrape, tick_us=tick, asked_us=tick + asked, answered_us=tick + answered
        )
        if scrape.answer is not None:
            readings = tuple(_reading(scrape.family, one, memory, sets) for one in entry.readings)
            offsets = _offsets(scrape.family, entry.offsets, memory)
            scrape = replace(
                scrape, answer=replace(scrape.answer, readings=readings, offsets=offsets)
            )
        yield scrape


def _entry(scrape: Scrape, memory: _Memory) -> Entry:
    tick = scrape.tick_us
    instants = tick, scrape.asked_us - tick, scrape.answered_us - tick
    bare = replace(scrape, tick_us=0, asked_us=0, answered_us=0)
    answer = scrape.answer
    if answer is None:
        return Entry(bare, instants, [], [], [])
    names = _names(answer, memory)
    family = scrape.family
    readings = [
        ReadingChange(
            replace(one, zeros=frozenset(), values={}),
            memory.change((family, one.metric, one.kind, "zeros"), dict.fromkeys(one.zeros, 0)),
            memory.change((family, one.metric, one.kind, "values"), one.values),
        )
        for one in answer.readings
    ]
    offsets = [
        memory.change((family, number), mapping)
        for number, mapping in enumerate(_mappings(answer.offsets))
    ]
    bare = replace(bare, answer=replace(answer, readings=(), offsets=None))
    return Entry(bare, instants, names, readings, offsets)


def _names(answer: Answer, memory: _Memory) -> list[tuple[int, list[Any]]]:
    told: list[tuple[int, list[Any]]] = []
    zeros = [sorted(one.zeros, key=repr) for one in answer.readings]
    values = [one.values for one in answer.readings]
    for key in chain(*zeros, *values, *_mappings(answer.offsets)):
        if key not in memory.numbers:
            memory.learn(key)
            told.append((_KEYS.index(type(key)), list(key)))
    return told


def _named(kind: int, fields: list[Any]) -> Hashable:
    if kind == _KEYS.index(Series):
        *subject, labels = fields
        return Series._make((*subject, tuple((name, value) for name, value in labels)))
    return _KEYS[kind](*fields)


def _reading(
    family: str,
    change: ReadingChange,
    memory: _Memory,
    sets: dict[Hashable, tuple[Mapping[Any, Any], frozenset[Series]]],
) -> Reading:
    name = (family, change.bare.metric, change.bare.kind)
    zeros = memory.apply((*name, "zeros"), change.zeros)
    values = memory.apply((*name, "values"), change.values)
    known = sets.get(name)
    if known is None or known[0] is not zeros:  # else the same set again, as a source does
        known = sets[name] = zeros, frozenset(zeros)
    floats = {key: None if value is None else float(value) for key, value in values.items()}
    return replace(change.bare, zeros=known[1], values=floats)


def _offsets(family: str, changes: list[Change], memory: _Memory) -> Offsets | None:
    if not changes:
        return None
    before, starts, after = (
        memory.apply((family, number), change) for number, change in enumerate(changes)
    )
    return Offsets(before, starts, after)


def _mappings(offsets: Offsets | None) -> tuple[Mapping[Any, Any], ...]:
    if offsets is None:
        return ()
    return offsets.commits_before, offsets.log_starts, offsets.commits_after


def _short(value: Any) -> Any:
    """Whole numbers take one to five bytes, doubles nine."""
    whole = isinstance(value, float) and abs(value) < _WHOLE and value.is_integer()
    return int(value) if whole else value
