"""What is to be done with a table: a function of how it stands, and of the time."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from lakehouse.maintain import compaction
from lakehouse.maintain.state import Read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.maintain.state import DataFile, TableState

MOST_UNCHECKPOINTED: Final = 200
"""Budget: commits since the last checkpoint."""

MOST_FILES: Final = 3_000
"""Budget: live files of a table."""

LEAST_RETENTION: Final = dt.timedelta(days=30)
"""Removed files are kept at least so long, and orphans: they may be of a commit under way."""

# Each hundred commits since a checkpoint cost every agent 20 MB (bench/maintenance.py), and what is
# committed until the next round comes on top.
_CHECKPOINT_AFTER: Final = 50
_OPEN_ENOUGH: Final = 32
_CLOSED_ENOUGH: Final = 2
# A date is closed when its last windows are sealed and delivered, and nothing came for a while.
_QUIET: Final = dt.timedelta(hours=1)
# Clocks of agents, lake and maintenance differ.
_CLOCKS: Final = dt.timedelta(days=1)
_FULL_EVERY_DAYS: Final = 7


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove whole dates; their files go at a later clean-up."""

    before: dt.date
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Compact:
    """Put files of a date together (``date`` None: of a table without dates)."""

    date: dt.date | None
    target_size: int
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Write a checkpoint, and delete one that it supersedes."""

    commits: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Expire:
    """Remove the log's expired part, as far as it has been read."""

    read: int


@dataclass(frozen=True, slots=True)
class Vacuum:
    """Delete removed files, and every week what no commit knows of, if older than that."""

    hours: int
    full: bool


@dataclass(frozen=True, slots=True)
class NoteCleaned:
    """Note that the day's clean-up is done."""

    day: int


Action = Drop | Compact | Checkpoint | Expire | Vacuum | NoteCleaned


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do, in this order, and what is left undone, and why."""

    actions: tuple[Action, ...]
    left: tuple[str, ...] = ()


def day_of(now: dt.datetime) -> int:
    """Days since 1970, UTC."""
    return int(now.timestamp()) // 86_400


def plan(state: TableState, now: dt.datetime, keep_days: int) -> Plan:
    """What to do with a table.

    Args:
        state: How it stands.
        now: The instant, UTC.
        keep_days: Dates older than that are removed, if they have been read.
    """
    unknown = state.unknown_engines
    left = [f"{unknown} commits do not say who wrote them"] if unknown else []
    clean = state.cleaned < day_of(now)
    if isinstance(state.read, Read):
        drops = _drops(state, state.read, now, keep_days) if clean else []
        cleaning = _cleaning(state.read, state.cleaned, now) if clean else []
    else:
        drops, cleaning = [], []
        left.append(f"log, removed files and old dates are kept: {state.read.why}")
    dropped = drops[0].before if drops else dt.date.min
    kept = [one for one in state.files if one.date is None or one.date >= dropped]
    compactions = _compactions(kept, now)
    ours = len(drops) + len(compactions)
    due = state.uncheckpointed + ours >= _CHECKPOINT_AFTER
    checkpoint = [Checkpoint(state.uncheckpointed + ours, now)] if due else []
    files = len(kept) - sum(one.files - 1 for one in compactions)
    if files > MOST_FILES:
        left.append(
            f"{files} live files will be left, more than {MOST_FILES}: keep fewer dates, "
            "or give each cluster a lake of its own"
        )
    return Plan((*drops, *compactions, *checkpoint, *cleaning), tuple(left))


def _drops(state: TableState, read: Read, now: dt.datetime, keep_days: int) -> list[Drop]:
    before = now.date() - dt.timedelta(days=keep_days)
    old = [one for one in state.files if one.date is not None and one.date < before]
    # A file written after the first commit that was not read may hold rows that nobody has seen.
    unread = read.unread_since
    if not old or (unread is not None and any(one.written >= unread - _CLOCKS for one in old)):
        return []
    return [Drop(before, len(old), sum(one.size for one in old))]


def _compactions(files: Sequence[DataFile], now: dt.datetime) -> list[Compact]:
    found = []
    for date, group in groupby(sorted(files, key=_date), key=_date):
        of_date = list(group)
        sizes = [one.size for one in of_date]
        newest = max(one.written for one in of_date)
        closed = date < now.date() and newest < now - _QUIET
        enough = _CLOSED_ENOUGH if closed else _OPEN_ENOUGH
        wanted = compaction.target(sizes, enough)
        if wanted is not None:
            put = [one for one in compaction.bins(sizes, wanted) if len(one) > 1]
            day = None if date == dt.date.max else date
            found.append(Compact(day, wanted, sum(map(len, put)), sum(map(sum, put))))
    return found


def _date(file: DataFile) -> dt.date:
    return file.date or dt.date.max


def _cleaning(read: Read, cleaned: int, now: dt.datetime) -> list[Action]:
    age = LEAST_RETENTION
    if read.unread_since is not None:
        # A file that was not read yet was removed later than that.
        age = max(age, now - read.unread_since + _CLOCKS)
    hours = -int(-age.total_seconds() // 3600)
    day = day_of(now)
    full = day // _FULL_EVERY_DAYS > cleaned // _FULL_EVERY_DAYS
    return [Expire(read.version), Vacuum(hours, full), NoteCleaned(day)]
