"""Numbers with a unit, as people write them in a configuration."""

from __future__ import annotations

import re
from typing import ClassVar, Final

_UNITS: Final = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
_SIZES: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class Quantity:
    """A number with a unit; equal where the amounts are."""

    units: ClassVar[dict[str, int]]
    expected: ClassVar[str]

    def __init__(self, text: str) -> None:
        match = re.fullmatch(r"(\d+)\s*([A-Za-z]+)", text)
        if match is None or match[2] not in self.units:
            raise ValueError(f"expected {self.expected}, got {text!r}")
        self.amount = int(match[1]) * self.units[match[2]]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.amount == other.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.amount})"


class Duration(Quantity):
    """A span of time, written as ``10s``, ``500ms``, ``5m`` or ``1h``."""

    units = _UNITS
    expected = "a duration such as 10s or 5m"

    @property
    def us(self) -> int:
        """In microseconds."""
        return self.amount

    @property
    def seconds(self) -> float:
        """In seconds."""
        return self.amount / 1e6


class Size(Quantity):
    """An amount of memory or disk, written as ``512MiB`` or ``1GiB``."""

    units = _SIZES
    expected = "a size such as 512MiB"

    @property
    def bytes(self) -> int:
        """In bytes."""
        return self.amount
