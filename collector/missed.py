"""Attempts that were made and could not be kept, since the disk was full or broken.

They are recorded as soon as it works again, without what was read: an attempt ends what the one
before it vouches for, so what was seen before never stands for what was seen and not kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.samples import Scrape


class Missed:
    """The first such attempt of each family; what follows it is unknown anyway."""

    def __init__(self) -> None:
        self._scrapes: dict[str, Scrape] = {}

    def add(self, scrape: Scrape, error: Exception) -> None:
        """An attempt could not be kept.

        A history is told again from where it was recorded last, and a tick that was skipped is no
        attempt.
        """
        if scrape.outcome == "skipped" or scrape.exact:
            return
        if scrape.answer is not None:
            why = f"it was read, but could not be kept: {error}"
            scrape = replace(scrape, outcome="error", identity=None, answer=None, error=why)
        self._scrapes.setdefault(scrape.family, scrape)

    def waiting(self) -> list[Scrape]:
        """The attempts."""
        return [*self._scrapes.values()]

    def kept(self, scrape: Scrape) -> None:
        """It is on disk now."""
        del self._scrapes[scrape.family]
