"""Numbers with a unit, as people write them in a configuration."""

import re
from typing import ClassVar, Self


class Quantity(int):
    """A number with a unit, as the amount in the smallest one."""

    units: ClassVar[dict[str, int]]
    expected: ClassVar[str]

    def __new__(cls, text: str) -> Self:
        """The amount that a text says.

        Raises:
            ValueError: It is no number with a unit.
        """
        match = re.fullmatch(r"(\d+)\s*([A-Za-z]+)", text)
        if match is None or match[2] not in cls.units:
            raise ValueError(f"expected {cls.expected}, got {text!r}")
        return super().__new__(cls, int(match[1]) * cls.units[match[2]])


class Duration(Quantity):
    """A span of time, written as ``10s``, ``500ms``, ``5m`` or ``1h``."""

    units: ClassVar = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
    expected = "a duration such as 10s or 5m"

    @property
    def us(self) -> int:
        """In microseconds."""
        return int(self)

    @property
    def seconds(self) -> float:
        """In seconds."""
        return self / 1e6


class Size(Quantity):
    """Bytes of memory or disk, written as ``512MiB`` or ``1GiB``."""

    units: ClassVar = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    expected = "a size such as 512MiB"
