"""Complaints: what goes wrong is one line of the log, once, and one more when it works again."""

from __future__ import annotations

from collector import logs


class Complaints:
    """Remembers what was said last of each thing."""

    def __init__(self) -> None:
        self._said: dict[str, str | None] = {}

    def say(self, what: str, error: str | None) -> None:
        """It went wrong with this error, or well; said where that is news."""
        if self._said.get(what) == error:
            return
        self._said[what] = error
        if error is None:
            logs.info("works again", what=what)
        else:
            logs.warning("failed", what=what, error=" ".join(error.split()))
