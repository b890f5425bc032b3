"""What maintenance puts together: few files stay, and no row is rewritten often."""

from __future__ import annotations

import random

import pytest

from lakehouse.ops.maintain.plan import LARGEST_FILE, bins, compaction_target

KIB = 1 << 10
ROUNDS_A_DAY = 24 * 60


def compacted(sizes: list[int], target: int) -> tuple[list[int], int]:
    """Live files after a compaction as delta-rs does it, and the bytes it wrote."""
    made = [one for one in bins(sizes, target) if len(one) > 1]
    gone = [size for one in made for size in one]
    kept = sizes.copy()
    for size in gone:
        kept.remove(size)
    return [*(sum(one) for one in made), *kept], sum(gone)


def settled(sizes: list[int], enough: int) -> tuple[list[int], int]:
    wrote = 0
    while (target := compaction_target(sizes, enough)) is not None:
        sizes, written = compacted(sizes, target)
        wrote += written
    return sizes, wrote


def test_nothing_is_put_together_before_enough_have_gathered() -> None:
    assert compaction_target([20 * KIB] * 31, 32) is None
    assert compaction_target([20 * KIB] * 32, 32) == 640 * KIB
    assert compaction_target([], 2) is None
    assert compaction_target([5], 2) is None


def test_a_few_late_files_do_not_rewrite_the_file_of_their_date() -> None:
    sizes = [10 * KIB, 12 * KIB, 90 << 20]
    target = compaction_target(sizes, 2)
    assert target == 22 * KIB
    assert [one for one in bins(sizes, target) if len(one) > 1] == [sizes[:2]]


def test_a_closed_date_becomes_one_file() -> None:
    sizes = [20 * KIB] * 7 + [700 * KIB] * 9 + [5_000 * KIB] * 2
    assert settled(sizes, 2) == ([sum(sizes)], sum(sizes))


def test_files_beyond_the_largest_are_left_alone() -> None:
    large = LARGEST_FILE
    sizes, _ = settled([large // 3] * 7 + [large * 3 // 4], 2)
    assert max(sizes) <= large
    assert len(sizes) == 4
    assert compaction_target([large, large * 2], 2) is None


def test_a_target_that_would_bring_nothing_is_not_given() -> None:
    """Neighbours count: a large file between two small ones keeps them apart."""
    assert compaction_target([KIB, 90 << 20, KIB], 2) is None


@pytest.mark.parametrize("agents", [1, 30, 600])
def test_a_day_of_commits_every_five_minutes(agents: int) -> None:
    chance = random.Random(agents)
    sizes: list[int] = []
    brought = wrote = most = 0
    for _ in range(ROUNDS_A_DAY):
        came = sum(chance.random() < 1 / 5 for _ in range(agents))
        fresh = [chance.randint(3 * KIB, 60 * KIB) for _ in range(came)]
        sizes, brought = [*fresh, *sizes], brought + sum(fresh)
        most = max(most, len(sizes))
        sizes, written = settled(sizes, 32)
        wrote += written
    sizes, written = settled(sizes, 2)
    assert len(sizes) <= 3 + 2 * brought // LARGEST_FILE
    assert most < 300
    assert wrote + written < 5 * brought
