"""The witness: what an agent was really given, on disk apart from it, whatever ends the agent.

Every scrape is written down before the recorder is asked to keep it, and again when the recorder
has said that it did. Each life of an agent has a file of its own, written by appends, which outlive
``kill -9``. Of a scrape that was never confirmed the next life tells: it knows up to when a family
was told (see ``tests.rig.testimony``).
"""

from __future__ import annotations

import itertools
import os
import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from collector.errors import JmxlakeError
from collector.model import Event, Scrape
from collector.spool.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LENGTH: Final = struct.Struct("<I")


class Began(msgspec.Struct, tag=True):
    """A life began; ``told`` says up to when each family was told by those before."""

    at_us: int
    told: dict[str, int]


class Meant(msgspec.Struct, tag=True):
    """The recorder is asked to keep a scrape."""

    number: int
    scrape: Scrape


class Noted(msgspec.Struct, tag=True):
    """The recorder is asked to keep an event."""

    number: int
    event: Event


class Kept(msgspec.Struct, tag=True):
    """It returned; ``accepted``: it was of a time that it could still tell."""

    number: int
    accepted: bool


class Failed(msgspec.Struct, tag=True):
    """It raised, and so says that it has not kept it."""

    number: int


class Ended(msgspec.Struct, tag=True):
    """The life ended in order."""

    at_us: int


Record = Began | Meant | Noted | Kept | Failed | Ended


class Witness:
    """Writes the file of one life.

    Attributes:
        taken: The attempt that the recorder took last, by family: each has one thread.
    """

    def __init__(self, path: Path) -> None:
        self.taken: dict[str, Scrape] = {}
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._numbers = itertools.count()

    def number(self) -> int:
        """A number for what follows."""
        return next(self._numbers)

    def write(self, record: Record) -> None:
        """One append: it is there whole or, at the very end of the file, in part."""
        told = msgspec.msgpack.encode(record)
        os.write(self._file, LENGTH.pack(len(told)) + told)


class WitnessedRecorder(Recorder):
    """The real recorder, watched."""

    witness: Witness

    def record(self, *scrapes: Scrape) -> None:
        (scrape,) = scrapes  # there is no exact history here
        if scrape.outcome == "skipped":  # no attempt: nothing was read
            super().record(scrape)
            return
        number = self.witness.number()
        self.witness.write(Meant(number, scrape))
        with self._watched(number):
            super().record(scrape)
        self.witness.write(Kept(number, self.witness.taken.get(scrape.family) is scrape))

    def _taken(self, scrape: Scrape) -> bytes:
        # Not by told_us() afterwards: a step of the clock may come between, and take it back.
        if scrape.outcome != "skipped":  # the schedule's thread says that, at any moment
            self.witness.taken[scrape.family] = scrape
        return super()._taken(scrape)

    def note(self, event: Event) -> None:
        number = self.witness.number()
        self.witness.write(Noted(number, event))
        with self._watched(number):
            super().note(event)
        self.witness.write(Kept(number, accepted=True))

    @contextmanager
    def _watched(self, number: int) -> Iterator[None]:
        try:
            yield
        except JmxlakeError:
            self.witness.write(Failed(number))
            raise
