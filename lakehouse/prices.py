"""What tiered storage costs, in money; a part of the file of owners."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_GIB: Final = 1024.0**3
MONTH_SECONDS: Final = 30 * 86_400
_KEYS: Final = ("stored_gib_month", "uploaded_gib", "read_gib")


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in one currency; a month has 30 days.

    Attributes:
        currency: Its name, such as EUR.
        stored_gib_month: A GiB that lies in the remote store for a month.
        uploaded_gib: A GiB that is uploaded.
        read_gib: A GiB that is read from the remote store.
    """

    currency: str
    stored_gib_month: float = 0.0
    uploaded_gib: float = 0.0
    read_gib: float = 0.0

    @classmethod
    def of(cls, given: object) -> Prices:
        """The prices that a file gives.

        Raises:
            ValueError: One is no price.
        """
        if not isinstance(given, Mapping) or not isinstance(given.get("currency"), str):
            raise ValueError("prices has a currency, such as EUR")  # noqa: TRY004 - one line
        unknown = [str(key) for key in given if key not in ("currency", *_KEYS)]
        if unknown:
            raise ValueError(f"prices has no {unknown[0]!r}, but currency, {', '.join(_KEYS)}")
        return cls(
            given["currency"], **{key: _price(key, given[key]) for key in _KEYS if key in given}
        )

    def cost(
        self, *, stored_byte_seconds: float, uploaded_bytes: float, read_bytes: float
    ) -> float:
        """What that costs, in the currency."""
        stored = stored_byte_seconds / _GIB / MONTH_SECONDS * self.stored_gib_month
        moved = uploaded_bytes * self.uploaded_gib + read_bytes * self.read_gib
        return stored + moved / _GIB


def _price(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"prices: {key} is a price of 0 or more")
    return float(value)
