"""What is final and leaves the encoder: runs, the account of attempts, events."""

from __future__ import annotations

from typing import NamedTuple

from collector.accounts import Account
from collector.folding import Run
from collector.samples import Series


class Event(NamedTuple):
    """A row of bronze/events, before the columns that the delivery adds."""

    at: int
    kind: str
    subject: Series
    old: str | None = None
    new: str | None = None


class Sealed(NamedTuple):
    """What is final and leaves the encoder."""

    runs: list[Run]
    accounts: list[Account]
    events: list[Event]

    def __bool__(self) -> bool:
        """Whether there is anything in it."""
        return bool(self.runs or self.accounts or self.events)
