"""Plan of a table's maintenance: a function of its state and the time.

delta-rs compacts adjacent files (of one date, in commit order) that are smaller than
``target_size`` until they reach it together. With one large target, every round would rewrite the
day's whole file for a few new files, and each rewrite is kept for a month. Files are therefore
grouped by size into tiers, each eight times the previous tier. The target is the sum of the tiers
with enough files, so a row moves up tier by tier and is rewritten only a few times.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from lakehouse.ops.maintain.table_state import DataFile, ReadPosition, TableState

MOST_UNCHECKPOINTED: Final = 200
"""Budget: commits since the last checkpoint."""

MOST_FILES: Final = 3_000
"""Budget: live files of a table."""

LARGEST_FILE: Final = 1 << 30
"""Bytes of the largest file that compaction makes."""

# Applies to files without a commit as well, because they can belong to a running commit.
_LEAST_RETENTION: Final = dt.timedelta(days=30)
# A hundred commits after a checkpoint cost every agent 20 MB (bench/maintenance.py), and agents
# commit more until the next round.
_CHECKPOINT_AFTER: Final = 50
# A date is closed after its last windows are delivered and no file was added for this time.
_QUIET: Final = dt.timedelta(hours=1)
# The clocks of agents, lake and maintenance differ.
_CLOCKS: Final = dt.timedelta(days=1)
_FULL_EVERY_DAYS: Final = 7


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove whole dates. A later clean-up deletes their files."""

    before: dt.date
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Comment:
    """Write the declared comments to columns of tables that older agents created."""

    columns: int


@dataclass(frozen=True, slots=True)
class Compact:
    """Merge files of a date. ``date`` is None in a table without dates."""

    date: dt.date | None
    target_size: int
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Write a checkpoint and delete the previous checkpoint in its slot."""

    commits: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Expire:
    """Remove the expired part of the log, up to the last version that the rollup has read."""

    read: int


@dataclass(frozen=True, slots=True)
class Vacuum:
    """Delete removed files older than ``hours``, with ``full`` also files without a commit."""

    hours: int
    full: bool


@dataclass(frozen=True, slots=True)
class NoteCleaned:
    """Record the clean-up of this day."""

    day: int


Action = Comment | Drop | Compact | Checkpoint | Expire | Vacuum | NoteCleaned


class Plan(NamedTuple):
    """Actions in order, and reasons for skipped actions."""

    actions: tuple[Action, ...]
    not_done: tuple[str, ...] = ()


def day_of(now: dt.datetime) -> int:
    """Return days since 1970 (UTC)."""
    return int(now.timestamp()) // 86_400


def plan(state: TableState, now: dt.datetime, keep_days: int, unknown: int = 0) -> Plan:
    """Return the due actions of a table.

    Args:
        state: State of the table.
        now: The current time (UTC).
        keep_days: Maximum age of dates that the rollup has read.
        unknown: Number of commits after the last inspection without an engine.
    """
    not_done = [f"{unknown} commits without the name of an engine"] if unknown else []
    drops: list[Drop] = []
    cleaning: list[Action] = []
    if isinstance(state.read, str):
        not_done.append(f"log, removed files and old dates are kept: {state.read}")
    elif state.cleaned < day_of(now):
        drops = _drops(state, state.read, now, keep_days)
        cleaning = _cleaning(state.read, state.cleaned, now)
    dropped = drops[0].before if drops else dt.date.min
    kept = [file for file in state.files if file.date is None or file.date >= dropped]
    compactions = _compactions(kept, now)
    comments = [Comment(state.uncommented)] if state.uncommented else []
    commits = state.uncheckpointed + len(comments) + len(drops) + len(compactions)
    checkpoint = [Checkpoint(commits, now)] if commits >= _CHECKPOINT_AFTER else []
    files = len(kept) - sum(compaction.files - 1 for compaction in compactions)
    if files > MOST_FILES:
        not_done.append(
            f"{files} live files will remain, more than {MOST_FILES}. Keep fewer dates, "
            "or use one lake per cluster"
        )
    return Plan((*comments, *drops, *compactions, *checkpoint, *cleaning), tuple(not_done))


def _drops(state: TableState, read: ReadPosition, now: dt.datetime, keep_days: int) -> list[Drop]:
    before = now.date() - dt.timedelta(days=keep_days)
    old = [file for file in state.files if file.date is not None and file.date < before]
    # A file that was written after the first unread commit can contain unread rows.
    unread = read.unread_since
    if not old or (unread is not None and any(file.written >= unread - _CLOCKS for file in old)):
        return []
    return [Drop(before, len(old), sum(file.size for file in old))]


def _compactions(files: Sequence[DataFile], now: dt.datetime) -> list[Compact]:
    compactions = []
    for date, group in groupby(sorted(files, key=_date), key=_date):
        of_date = list(group)
        sizes = [file.size for file in of_date]
        newest = max(file.written for file in of_date)
        closed = date < now.date() and newest < now - _QUIET
        target = compaction_target(sizes, enough=2 if closed else 32)
        if target is not None:
            merged = [several for several in bins(sizes, target) if len(several) > 1]
            day = None if date == dt.date.max else date
            compactions.append(Compact(day, target, sum(map(len, merged)), sum(map(sum, merged))))
    return compactions


def _date(file: DataFile) -> dt.date:
    return file.date or dt.date.max


def compaction_target(sizes: Sequence[int], enough: int) -> int | None:
    """Return the target size for one compaction of a date; None if it would merge nothing.

    Args:
        sizes: Sizes of the live files in the table's order (bytes).
        enough: Minimum number of files of a tier, at least 2.
    """
    tiers: dict[int, list[int]] = {}
    for size in sizes:
        if size <= LARGEST_FILE // 2:
            tiers.setdefault(_tier(size), []).append(size)
    below = total = 0
    for tier in sorted(tiers):
        below += sum(tiers[tier])
        # The merged file of the lower tiers can belong to this tier.
        risen = total > 0 and _tier(total) >= tier
        if len(tiers[tier]) + risen >= enough:
            total = below
    target = min(total, LARGEST_FILE)
    return target if any(len(several) > 1 for several in bins(sizes, target)) else None


def bins(sizes: Sequence[int], target_size: int) -> list[list[int]]:
    """Return the groups of files that delta-rs merges (its operations/optimize.rs)."""
    groups: list[list[int]] = []
    neighbour = False
    for size in sizes:
        if size > target_size:
            neighbour = False
            continue
        if neighbour and sum(groups[-1]) + size <= target_size:
            groups[-1].append(size)
        else:
            groups.append([size])
        neighbour = True
    return groups


def _tier(size: int) -> int:
    return size.bit_length() // 3  # each tier is eight times the previous tier


def _cleaning(read: ReadPosition, cleaned: int, now: dt.datetime) -> list[Action]:
    age = _LEAST_RETENTION
    if read.unread_since is not None:
        # An unread file was removed after the first unread commit.
        age = max(age, now - read.unread_since + _CLOCKS)
    hours = -int(-age.total_seconds() // 3600)
    day = day_of(now)
    full = day // _FULL_EVERY_DAYS > cleaned // _FULL_EVERY_DAYS
    return [Expire(read.version), Vacuum(hours, full), NoteCleaned(day)]
