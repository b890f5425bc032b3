"""Ways to read the same beans of one broker, ours among them."""

from __future__ import annotations

from typing import Protocol


class Peer(Protocol):
    """A tool that reads a broker; what it needs was started before.

    Attributes:
        name: How the table calls it.
        pid: The process beside the broker that does its work, if there is one that stays.
    """

    name: str
    pid: int | None

    def prepare(self) -> None:
        """What comes before a scrape and is not timed: a connection that is still open."""
        ...

    def scrape(self) -> None:
        """Read everything once."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...
