"""Closed pieces of runs, which wait for their window to be sealed.

A piece waits until its window is sealed. Until then the last one can still learn that it may have
ended earlier: a change seen right after a window cut may have happened before it, and a
throttle-time bean remembers for a minute.
"""

import msgspec

from collector.model import Series


class Piece(msgspec.Struct):
    """One run, or the part of one that lies in one window; times in microseconds.

    ``before`` names the piece of the same series that a shortening may reach back to.
    """

    series: Series
    value: float | None
    start: int
    end: int
    lead: int
    tail: int
    scrapes: int
    flags: tuple[str, ...] = ()
    before: int | None = None


class Ledger(msgspec.Struct):
    """Pieces by number, in the order in which they were closed."""

    pieces: dict[int, Piece] = msgspec.field(default_factory=dict)
    next_number: int = 0

    def add(self, piece: Piece) -> int:
        """Keep a piece and return its number."""
        number = self.next_number
        self.next_number += 1
        self.pieces[number] = piece
        return number

    def shorten(self, number: int | None, amount_us: int) -> None:
        """Note that the run that ends with this piece may have ended that much earlier.

        An amount longer than the piece continues into the pieces before it that still wait.
        """
        while number is not None and amount_us > 0 and number in self.pieces:
            piece = self.pieces[number]
            length = piece.end - piece.start
            piece.tail = max(piece.tail, min(amount_us, length))
            amount_us -= length
            number = piece.before

    def take_before(self, instant_us: int) -> list[Piece]:
        """Remove and return the pieces that start before an instant."""
        numbers = [number for number, piece in self.pieces.items() if piece.start < instant_us]
        return [self.pieces.pop(number) for number in numbers]
