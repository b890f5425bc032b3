"""Findings of the exactly-once check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

_COMPLAINTS: Final = 12


@dataclass
class Verdict:
    """What was lost or told twice.

    Attributes:
        samples: Values that were read and kept.
        excused: Samples of which the lake says that they are missing.
        refused: Scrapes that the recorder did not take: of a time that it could not tell any more.
        lost: Samples, attempts, increases and events that are missing in silence.
        dup: What is told twice, or was never read.
        max_unaccounted_us: The longest time, while the agent ran, of which the lake says nothing.
        complaints: The first of them, in words.
    """

    samples: int = 0
    excused: int = 0
    refused: int = 0
    lost: int = 0
    dup: int = 0
    max_unaccounted_us: int = 0
    complaints: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether nothing is lost and nothing doubled."""
        return self.lost == 0 and self.dup == 0

    def miss(self, what: str, count: int = 1) -> None:
        """Something is missing."""
        self.lost += count
        self._complain("lost", what)

    def double(self, what: str, count: int = 1) -> None:
        """Something is told that is not so, or is so only once."""
        self.dup += count
        self._complain("dup", what)

    def _complain(self, kind: str, what: str) -> None:
        if len(self.complaints) < _COMPLAINTS:
            self.complaints.append(f"{kind}: {what}")

    def __str__(self) -> str:
        head = f"{self.samples} samples, {self.lost} lost, {self.dup} dup, {self.excused} excused"
        return "; ".join([head, *self.complaints])
