"""Which files of a date are worth putting together, so that each row is rewritten a few times only.

delta-rs puts together neighbours that are at most ``target_size`` large, until together they reach
it; neighbours are files of one date in the order of their commits. Called again and again with one
large target it would rewrite the day's whole file for each handful of new ones, and every rewrite
is kept for a month. So files are told apart by size in tiers, each eight times the one before, and
the target is the sum of the tiers in which enough have gathered: a row moves up tier by tier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

LARGEST_FILE: Final = 1 << 30
"""Bytes of the largest file that compaction makes."""

_TIER_BITS: Final = 3


def target(sizes: Sequence[int], enough: int) -> int | None:
    """Target size for one compaction of a date; None where nothing is worth it.

    Args:
        sizes: Bytes of its live files, in the table's order.
        enough: How many files of a tier make it worth it, at least 2.
    """
    tiers: dict[int, list[int]] = {}
    for size in sizes:
        if size <= LARGEST_FILE // 2:
            tiers.setdefault(_tier(size), []).append(size)
    below = found = 0
    for tier in sorted(tiers):
        below += sum(tiers[tier])
        # What lower tiers become when they are put together may be as large as these.
        risen = found > 0 and _tier(found) >= tier
        if len(tiers[tier]) + risen >= enough:
            found = below
    wanted = min(found, LARGEST_FILE)
    return wanted if any(len(one) > 1 for one in bins(sizes, wanted)) else None


def bins(sizes: Sequence[int], target_size: int) -> list[list[int]]:
    """What delta-rs puts together for a target size, as it does (operations/optimize.rs)."""
    made: list[list[int]] = []
    neighbour = False
    for size in sizes:
        if size > target_size:
            neighbour = False
            continue
        if neighbour and sum(made[-1]) + size <= target_size:
            made[-1].append(size)
        else:
            made.append([size])
        neighbour = True
    return made


def _tier(size: int) -> int:
    return size.bit_length() // _TIER_BITS
