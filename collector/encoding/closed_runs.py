"""Closed pieces of runs, and the rows of bronze/runs that they become.

A piece waits until its window is sealed. Until then the last one can still learn that it may have
ended earlier: a change seen right after a window cut may have happened before it, and a
throttle-time bean remembers for a minute.

The series of one metric and topic (or all clients of one metric) that were zero or idle for the
same span fold into one row, which names their set by its hash; bronze/members holds the set once.
"""

import hashlib
from collections import defaultdict
from typing import NamedTuple

import msgspec

from collector.model import Series


class Piece(msgspec.Struct):
    """One run, or the part of one that lies in one window; times in microseconds.

    ``before`` names the piece of the same series that a shortening may reach back to.
    """

    series: Series
    value: float | None
    start: int
    end: int
    lead: int
    tail: int
    scrapes: int
    flags: tuple[str, ...] = ()
    before: int | None = None


class Ledger(msgspec.Struct):
    """Pieces by number, in the order in which they were closed."""

    pieces: dict[int, Piece] = msgspec.field(default_factory=dict)
    next_number: int = 0

    def add(self, piece: Piece) -> int:
        """Keep a piece and return its number."""
        number = self.next_number
        self.next_number += 1
        self.pieces[number] = piece
        return number

    def shorten(self, number: int | None, amount_us: int) -> None:
        """Note that the run that ends with this piece may have ended that much earlier.

        An amount longer than the piece continues into the pieces before it that still wait.
        """
        while number is not None and amount_us > 0 and number in self.pieces:
            piece = self.pieces[number]
            length = piece.end - piece.start
            piece.tail = max(piece.tail, min(amount_us, length))
            amount_us -= length
            number = piece.before

    def take_before(self, instant_us: int) -> list[Piece]:
        """Remove and return the pieces that start before an instant."""
        numbers = [number for number, piece in self.pieces.items() if piece.start < instant_us]
        return [self.pieces.pop(number) for number in numbers]


class MemberSet(NamedTuple):
    """An immutable set of partitions of one topic, or of clients, as (user, client id)."""

    kind: str
    topic: str | None
    partitions: tuple[int, ...] | None
    clients: tuple[tuple[str | None, str | None], ...] | None

    @property
    def hash(self) -> str:
        """Content hash: 128 bits of SHA-256 over the set's JSON."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:32]


class Run(NamedTuple):
    """One row of bronze/runs, before the columns that the delivery adds."""

    series: Series
    start: int
    end: int
    lead: int
    tail: int
    value: float | None
    scrapes: int
    stands_for: int
    members: MemberSet | None
    flags: tuple[str, ...]


def fold(pieces: list[Piece]) -> list[Run]:
    """Fold what can be folded; sorted by metric, topic, partition and start.

    The list is emptied on the way: pieces and runs together would be twice the memory.
    """
    runs: list[Run] = []
    groups: defaultdict[tuple[object, ...], list[Series]] = defaultdict(list)
    while pieces:
        one = pieces.pop()
        what = one.start, one.end, one.lead, one.tail, one.value, one.scrapes
        if one.value:
            runs.append(Run(one.series, *what, 1, None, one.flags))
        else:
            groups[_folded(one.series), *what, one.flags].append(one.series)
    runs += [_run(key, members) for key, members in groups.items()]
    runs.sort(key=_order)
    return runs


def _folded(series: Series) -> Series:
    """The series without what distinguishes it from those it may be folded with."""
    if series.partition is not None:
        return series._replace(partition=None)
    return series._replace(user=None, client_id=None)


def _run(key: tuple[object, ...], members: list[Series]) -> Run:
    _, start, end, lead, tail, value, scrapes, flags = key
    one = len(members) == 1
    series, found = (members[0], None) if one else (_folded(members[0]), _set(members))
    return Run(series, start, end, lead, tail, value, scrapes, len(members), found, flags)  # type: ignore[arg-type]


def _set(members: list[Series]) -> MemberSet:
    if members[0].partition is not None:
        partitions = sorted(series.partition for series in members if series.partition is not None)
        return MemberSet("partitions", members[0].topic, tuple(partitions), None)
    clients = {(series.user, series.client_id) for series in members}
    in_order = sorted(clients, key=lambda one: [(name is not None, name or "") for name in one])
    return MemberSet("clients", None, None, tuple(in_order))


def _order(run: Run) -> tuple[object, ...]:
    series = run.series
    partition = -1 if series.partition is None else series.partition
    others = (series.user or "", series.client_id or "", series.group or "", series.labels)
    members = run.members.hash if run.members else ""
    return (series.metric, series.topic or "", partition, run.start, *others, run.end, members)
