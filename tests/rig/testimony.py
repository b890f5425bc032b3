"""What the witness wrote of an agent's lives, read back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from collector.model import Event, Scrape
from tests.rig.witness import LENGTH, Began, Ended, Failed, Kept, Meant, Noted, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_DECODER: Final = msgspec.msgpack.Decoder(Record)


@dataclass
class Life:
    """What one life of an agent was given.

    Attributes:
        began_us: When it began to read; 0: it did not come that far.
        last_us: The last instant that it told of.
        told: Up to when each family was told when it began.
        kept: Scrapes that the recorder kept, in order.
        doubtful: Scrapes that it was asked to keep, and never said.
        refused: Scrapes of a time that it could not tell any more.
        failed: Scrapes that it said it could not keep; it may own up to them later.
        notes: Events that it kept.
        doubtful_notes: Events that it was asked to keep, and never said.
    """

    began_us: int = 0
    last_us: int = 0
    told: dict[str, int] = field(default_factory=dict)
    kept: list[Scrape] = field(default_factory=list)
    doubtful: list[Scrape] = field(default_factory=list)
    refused: list[Scrape] = field(default_factory=list)
    failed: list[Scrape] = field(default_factory=list)
    notes: list[Event] = field(default_factory=list)
    doubtful_notes: list[Event] = field(default_factory=list)


def testimony(paths: Iterable[Path]) -> list[Life]:
    """The lives of one agent in order; what was doubtful is decided by the lives that follow."""
    lives = [_life(path) for path in paths]
    told: dict[str, int] = {}
    for life in reversed(lives):
        known = [one for one in life.doubtful if _told(one, told.get(one.family, 0))]
        life.kept += known  # each is the last of its family
        life.doubtful = [one for one in life.doubtful if one not in known]
        told = life.told or told
    return lives


def _life(path: Path) -> Life:
    life, pending = Life(), dict[int, Scrape | Event]()
    for record in _records(path):
        match record:
            case Began(at_us, told):
                life.began_us, life.told = at_us, told
            case Meant(number, scrape):
                pending[number] = scrape
                life.last_us = max(life.last_us, scrape.answered_us)
            case Noted(number, event):
                pending[number] = event
            case Kept(number, accepted):
                _settle(life, pending.pop(number), accepted=accepted)
            case Failed(number):
                _fail(life, pending.pop(number))
            case Ended(at_us):
                life.last_us = max(life.last_us, at_us)
    for left in pending.values():
        if isinstance(left, Scrape):
            life.doubtful.append(left)
        else:
            life.doubtful_notes.append(left)
    return life


def _fail(life: Life, what: Scrape | Event) -> None:
    if isinstance(what, Scrape):
        life.failed.append(what)


def _told(last: Scrape, told_us: int) -> bool:
    """Whether a family was told up to its last scrape; of another instant it says nothing."""
    return last.asked_us <= told_us <= last.answered_us


def _settle(life: Life, what: Scrape | Event, *, accepted: bool) -> None:
    if isinstance(what, Event):
        life.notes.append(what)
    elif accepted:
        life.kept.append(what)
    else:
        life.refused.append(what)


def _records(path: Path) -> Iterator[Record]:
    told = path.read_bytes() if path.exists() else b""
    at = 0
    while at + LENGTH.size <= len(told):
        (length,) = LENGTH.unpack_from(told, at)
        at += LENGTH.size
        if at + length > len(told):
            return  # killed in the middle of it
        yield _DECODER.decode(told[at : at + length])
        at += length
