"""What happened and could not be kept, since the disk was full or broken.

It is kept as soon as that works again, in the order in which it happened. Attempts are without what
they read then: an attempt ends what the one before it vouches for, so what was seen before never
stands for what was seen and not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from collector.samples import Repeats, Scrape

if TYPE_CHECKING:
    from collector.runs import Encoder
    from collector.sealed import Sealed

Change = Callable[["Encoder"], "Sealed"]
"""Something other than an attempt that the encoder is told, as that its clock was set."""


class Missed:
    """Attempts, those of one family as one, and the changes between them."""

    def __init__(self) -> None:
        self._waiting: list[Scrape | Change] = []

    def attempt(self, scrape: Scrape, error: Exception) -> None:
        """An attempt could not be kept.

        A history is told again from where it was recorded last, and a tick that was skipped is no
        attempt.
        """
        if scrape.outcome == "skipped" or scrape.exact:
            return
        for at in reversed(range(len(self._waiting))):
            before = self._waiting[at]
            if not isinstance(before, Scrape):
                break  # another clock, perhaps
            if before.family == scrape.family:
                self._waiting[at] = _repeated(before, scrape)
                return
        why = f"it was made, but could not be kept: {error}"
        bare = replace(scrape, outcome="error", identity=None, answer=None, error=why)
        self._waiting.append(bare)

    def change(self, change: Change) -> None:
        """A change is to be kept, after all that waits."""
        self._waiting.append(change)

    def oldest(self) -> Scrape | Change | None:
        """What is to be kept first; None where all was."""
        return self._waiting[0] if self._waiting else None

    def kept(self) -> None:
        """The oldest is on disk now."""
        del self._waiting[0]


def _repeated(first: Scrape, last: Scrape) -> Scrape:
    seconds = (last.answered_us - last.asked_us) / 1e6
    before = first.repeats or Repeats(0, 0, 0.0, 0.0)
    repeats = Repeats(
        before.attempts + 1,
        last.asked_us,
        before.seconds_total + seconds,
        max(before.seconds_max, seconds),
    )
    return replace(first, repeats=repeats)
