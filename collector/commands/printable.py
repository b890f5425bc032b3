"""Text that came from outside, harmless for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """It, with all that could move a cursor written as an escape."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text
    )
