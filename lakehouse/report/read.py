"""What was to be read in each window of a chart, and what was: whether nothing found is zero."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lakehouse import tables
from lakehouse.existence import with_ends
from lakehouse.periods import micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.existence import Subject
    from lakehouse.report.gather import Gold

_SEEN: Final = 0.95
"""Share of a window in which a source must have been read."""


@dataclass(frozen=True, slots=True)
class Read:
    """What was to be read and what was; microseconds.

    Attributes:
        windows: The windows of the period, by their starts.
        size: Their length.
        lives: From when to when each source was to be read.
        families: The families that anybody tried to read, per source.
        ok: How long a family of a source was read, per window.
    """

    windows: range
    size: int
    lives: Mapping[str, tuple[int, int]]
    families: Mapping[str, set[str]]
    ok: Mapping[tuple[int, str, str], int]

    def expected(self, source: str, window: int) -> int:
        """For how long of a window a source was to be read."""
        first, end = self.lives[source]
        return max(0, min(end, window + self.size) - max(first, window))

    def looked(self, families: frozenset[str]) -> set[int]:
        """Windows in which every source was read, but for a scrape or two.

        Args:
            families: One of them is enough. Who was never asked for any of them is not waited for.
        """
        sources = [one for one in self.lives if families & self.families.get(one, set())]
        found = set()
        for window in self.windows:
            expected = {one: us for one in sources if (us := self.expected(one, window))}
            if expected and all(
                max(self.ok.get((window, one, family), 0) for family in families) >= _SEEN * us
                for one, us in expected.items()
            ):
                found.add(window)
        return found


def read_of(gold: Gold, subjects: Sequence[Subject], now_us: int, seconds: int) -> Read:
    """What gold tells of reading, per window of so many seconds."""
    families: defaultdict[str, set[str]] = defaultdict(set)
    ok = {}
    for row in gold.by_window(tables.COVERAGE, ("source", "family", "outcome"), seconds):
        families[row["source"]].add(row["family"])
        if row["outcome"] == "ok":
            ok[row["window"], row["source"], row["family"]] = row["duration_us"]
    lives = {
        one.source: (one.first_us, now_us if end is None else min(end, now_us))
        for one, end in with_ends(subjects)
        if one.kind == "source" and one.source is not None
    }
    size = seconds * 1_000_000
    start, last = micros(gold.period.start), min(micros(gold.period.end), now_us)
    return Read(range(start // size * size, last, size), size, lives, families, ok)
