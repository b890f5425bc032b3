"""What a batch that is dropped leaves to the next: everything but its runs.

The accounts of the time it covered stay, as ``dropped`` where they were ``ok``; so do its events
and the member sets that others refer to. So the lake itself says what is missing, and why. Accounts
may not cross a window, so they cannot be joined; of a very long time the oldest go after all.
"""

from __future__ import annotations

import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from collector.batches import DAY_US, Batch
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

_RUN: Final = tables.RUNS.positions
_ACCOUNT: Final = tables.SCRAPES.positions
_EVENT: Final = tables.EVENTS.positions
_WHY: Final = "the spool was full: spool.max_size"
_TOLD: Final = "batch_dropped"
_SUBJECT: Final = (None,) * 5
# A bequest is unpacked as one: as much as a group of delivery, a day of twenty families.
_GREATEST_BYTES: Final = 128 << 10
_LEAST_BYTES: Final = 16 << 10
_ROWS: Final = 8_192  # what is in hand while many are dropped at once

Row = tuple[Any, ...]


class _Told(NamedTuple):
    """Of one source: which batches were dropped, until when, and until when not even accounts."""

    first: int
    last: int
    at_us: int
    silent: str | None


def inherit(
    heir: Batch,
    dropped: Iterable[tuple[int, Batch]],
    needed_sets: Collection[str],
    max_bytes: int,
) -> Batch:
    """The next batch with what those before it leave.

    Args:
        heir: The oldest that stays.
        dropped: Those before it, with their numbers, oldest first; each is let go of before the
            next is asked for.
        needed_sets: Sets to which the heir or a later batch refers.
        max_bytes: How large a spool may be; a bequest may be a tenth of it.
    """
    parts: list[Batch] = []
    for number, batch in dropped:
        parts += [*batch.bequest, _left(number, batch)]
        parts = _limited(_joined(parts, needed_sets), _ROWS)
    parts = _joined([*parts, *heir.bequest], needed_sets)
    parts = _packed_below(parts, min(max(max_bytes // 10, _LEAST_BYTES), _GREATEST_BYTES))
    return Batch(heir.rows, heir.since, parts)


def _left(number: int, batch: Batch) -> Batch:
    events, rows = tables.EVENTS.name, {**batch.rows}
    runs, accounts = rows.pop(tables.RUNS.name, []), rows.get(tables.SCRAPES.name, [])
    rows[tables.SCRAPES.name] = [_dropped(row) for row in accounts]
    ends = [(row[_RUN["end"]], row[_RUN["cluster"]], row[_RUN["source"]]) for row in runs]
    ends += [
        (row[_ACCOUNT["end"]], row[_ACCOUNT["cluster"]], row[_ACCOUNT["source"]])
        for row in accounts
    ]
    if ends:
        at_us, *whose = max(ends)
        told = _event((whose[0], whose[1]), _Told(number, number, at_us, None))
        rows[events] = [*rows.get(events, []), told]
    return Batch(rows, batch.since)


def _dropped(account: Row) -> Row:
    if account[_ACCOUNT["outcome"]] != "ok":
        return account
    row = list(account)
    row[_ACCOUNT["outcome"]], row[_ACCOUNT["error"]] = "dropped", _WHY
    return tuple(row)


def _joined(parts: Sequence[Batch], needed_sets: Collection[str]) -> list[Batch]:
    """Neighbours of which the same was seen are one part, and what was dropped is one event."""
    told: dict[tuple[str, str], _Told] = {}
    sets: dict[str, Row] = {}
    joined = [Batch({tables.MEMBERS.name: [], tables.EVENTS.name: []})]
    for part in parts:
        rows = {name: [*own] for name, own in part.rows.items()}
        sets |= {row[0]: row for row in rows.pop(tables.MEMBERS.name, []) if row[0] in needed_sets}
        events = rows.get(tables.EVENTS.name, [])
        for row in events:
            if row[_EVENT["kind"]] == _TOLD:
                whose, new = (row[_EVENT["cluster"]], row[_EVENT["source"]]), _read(row)
                told[whose] = _both(told[whose], new) if whose in told else new
        rows[tables.EVENTS.name] = [row for row in events if row[_EVENT["kind"]] != _TOLD]
        if joined[1:] and joined[-1].since == part.since:
            for name, own in rows.items():
                joined[-1].rows.setdefault(name, []).extend(own)
        elif any(rows.values()):
            joined.append(Batch(rows, part.since))
    joined[0].rows[tables.MEMBERS.name] = [*sets.values()]
    joined[0].rows[tables.EVENTS.name] = [_event(whose, one) for whose, one in told.items()]
    return joined


def _packed_below(parts: list[Batch], limit_bytes: int) -> list[Batch]:
    """The same without its oldest accounts and events, as far as it is too large."""
    while (count := _count(parts)) and (size := _size(parts[1:])) > limit_bytes:
        parts = _limited(parts, min(count - 1, count * limit_bytes * 9 // (size * 10)))
    return parts


def _size(parts: list[Batch]) -> int:
    return len(zlib.compress(msgspec.msgpack.encode(parts)))


def _count(parts: Sequence[Batch]) -> int:
    """Rows that can go: those of the first part, sets and what was dropped, cannot."""
    return sum(len(rows) for part in parts[1:] for rows in part.rows.values())


def _limited(parts: list[Batch], rows: int) -> list[Batch]:
    """The newest rows; until when there are none is said with what was dropped."""
    excess = _count(parts) - rows
    gone: list[Row] = []
    kept = [parts[0]]
    for part in parts[1:]:
        left = {}
        for name, own in part.rows.items():
            cut = min(max(excess, 0), len(own))
            excess -= cut
            left[name] = own[cut:]
            gone += own[:cut] if name == tables.SCRAPES.name else []
        if any(left.values()):
            kept.append(Batch(left, part.since))
    if gone:
        until_us = max(row[_ACCOUNT["end"]] for row in gone)
        kept[0] = Batch({**parts[0].rows, tables.EVENTS.name: [*_silent(parts[0], until_us)]})
    return kept


def _silent(first: Batch, until_us: int) -> Iterator[Row]:
    instant = datetime.fromtimestamp(until_us / 1e6, UTC).isoformat(timespec="milliseconds")
    for row in first.rows[tables.EVENTS.name]:
        silent = f"no account until {instant}"
        whose = row[_EVENT["cluster"]], row[_EVENT["source"]]
        yield _event(whose, _read(row)._replace(silent=silent))


def _event(whose: tuple[str, str], told: _Told) -> Row:
    """Said of the source, at the end of what was dropped."""
    numbers = str(told.first) if told.first == told.last else f"{told.first}..{told.last}"
    return (
        told.at_us // DAY_US, *whose, told.at_us, _TOLD, *_SUBJECT, numbers, told.silent,
    )  # fmt: skip


def _read(row: Row) -> _Told:
    first, _, last = row[_EVENT["old"]].partition("..")
    return _Told(int(first), int(last or first), row[_EVENT["at"]], row[_EVENT["new"]])


def _both(one: _Told, other: _Told) -> _Told:
    silent = max((told.silent for told in (one, other) if told.silent), default=None)
    return _Told(
        min(one.first, other.first), max(one.last, other.last), max(one.at_us, other.at_us), silent
    )
