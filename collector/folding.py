"""Rows of bronze/runs: pieces that say the same of many series become one.

The series of one metric and topic (or all clients of one metric) that were zero or idle for the
same span fold into one row, which names their set by its hash; bronze/members holds the set once.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from collector.samples import Series

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.ledger import Piece


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


def fold(pieces: Iterable[Piece]) -> list[Run]:
    """Fold what can be folded; sorted by metric, topic, partition and start."""
    groups: defaultdict[tuple[object, ...], list[Series]] = defaultdict(list)
    for piece in pieces:
        folded = _folded(piece.series) if not piece.value else piece.series
        key = (
            folded, piece.start, piece.end, piece.lead, piece.tail, piece.value, piece.scrapes,
            piece.flags,
        )  # fmt: skip
        groups[key].append(piece.series)
    return sorted((_run(key, members) for key, members in groups.items()), key=_order)


def _folded(series: Series) -> Series:
    """The series without what distinguishes it from those it may be folded with."""
    if series.partition is not None:
        return series._replace(partition=None)
    return series._replace(user=None, client_id=None)


def _run(key: tuple[object, ...], members: list[Series]) -> Run:
    _, start, end, lead, tail, value, scrapes, flags = key
    if len(members) == 1:
        return Run(members[0], start, end, lead, tail, value, scrapes, 1, None, flags)  # type: ignore[arg-type]
    series = _folded(members[0])
    return Run(series, start, end, lead, tail, value, scrapes, len(members), _set(members), flags)  # type: ignore[arg-type]


def _set(members: list[Series]) -> MemberSet:
    if members[0].partition is not None:
        partitions = sorted(series.partition for series in members if series.partition is not None)
        return MemberSet("partitions", members[0].topic, tuple(partitions), None)
    clients = {(series.user, series.client_id) for series in members}
    return MemberSet("clients", None, None, tuple(sorted(clients, key=_client_order)))


def _client_order(client: tuple[str | None, str | None]) -> tuple[tuple[bool, str], ...]:
    return tuple((name is not None, name or "") for name in client)


def _order(run: Run) -> tuple[object, ...]:
    series = run.series
    partition = -1 if series.partition is None else series.partition
    others = (series.user or "", series.client_id or "", series.group or "", series.labels)
    members = run.members.hash if run.members else ""
    return (series.metric, series.topic or "", partition, run.start, *others, run.end, members)
