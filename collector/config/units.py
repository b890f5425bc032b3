"""Numbers with a unit, as people write them in a configuration."""

import re
from typing import ClassVar, Self

_SHOWN = 40


class Quantity(int):
    """A number with a unit, as the amount in the smallest one.

    Attributes:
        units: Amount of each unit.
        expected: Description of a value.
        most: Largest value of any key; a key can have a lower limit.
    """

    units: ClassVar[dict[str, int]]
    expected: ClassVar[str]
    most: ClassVar[str]

    def __new__(cls, text: str) -> Self:
        """Return the amount that a text has.

        Raises:
            ValueError: It is not a number with a unit, or is above the limit.
        """
        amount = cls._amount(text)
        if amount is None:
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            raise ValueError(f"expected {cls.expected}, got {shown!r}")
        if amount > (cls._amount(cls.most) or 0):
            raise ValueError(f"must be at most {cls.most}")
        return super().__new__(cls, amount)

    @classmethod
    def _amount(cls, text: str) -> int | None:
        match = re.fullmatch(r"([0-9]{1,4000})\s*([A-Za-z]+)", text)
        unit = cls.units.get(match[2]) if match else None
        return int(match[1]) * unit if match and unit else None


class Duration(Quantity):
    """A span of time, written as ``10s``, ``500ms``, ``5m`` or ``1h``."""

    units: ClassVar = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
    expected = "a duration such as 10s or 5m"
    most = "24h"

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
    most = "16384GiB"
