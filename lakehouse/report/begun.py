"""What was first seen just after a period, and may have begun in it: its upper bounds take it in.

Gold adds a lead that reaches back over the start of a window to that window's upper bound, for no
window knows the next one. The window after a period is not summed up, but it says how much of its
own bound lies before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lakehouse import tables
from lakehouse.gold_rows import Row, before_window

if TYPE_CHECKING:
    from lakehouse.report.gather import Gold

Key = tuple[Any, ...]
"""Metric, and what tells the subjects of its table apart."""

_KEYS: Final = {
    tables.TOPICS: ("topic",),
    tables.PARTITIONS: ("topic", "partition"),
    tables.CLIENTS: ("user", "client_id"),
}
_HIGH: Final = {
    "any_high_us": ("spill_us", "any_us"),
    "positive_high_us": ("spill_sum_us", "positive_us"),
}
"""The upper bounds: what of one lies before its window, and what was seen."""

_ZERO: Final = dict.fromkeys(("positive_us", "positive_low_us", "positive_high_us"), 0)


@dataclass(frozen=True, slots=True)
class Begun:
    """What may have begun in the period.

    Attributes:
        of: By the columns that tell a table's subjects apart: of each that was first seen just
            after the period what is added to which upper bound, microseconds.
    """

    of: Mapping[tuple[str, ...], Mapping[Key, Mapping[str, int]]]

    def raised(self, rows: Iterable[Row], keys: Sequence[str]) -> list[Row]:
        """Sums of gold with upper bounds that take it in.

        Args:
            rows: Of gold/topics, gold/partitions or gold/clients, ``metric`` among them.
            keys: What tells their subjects apart, but for the metric. Of a partition gold has no
                row while it was zero; then there is one here.
        """
        names, mine = ("metric", *keys), dict(self.of.get(tuple(keys), {}))
        found = [_raised(row, mine.pop(tuple(row[name] for name in names), {})) for row in rows]
        if "partition" in keys:
            absent = (dict(zip(names, key, strict=True)) | _ZERO for key in mine)
            found += [_raised(row, more) for row, more in zip(absent, mine.values(), strict=True)]
        return found


def begun(gold: Gold) -> Begun:
    """What gold tells of the window after the period."""
    return Begun({keys: _after(gold, table, ("metric", *keys)) for table, keys in _KEYS.items()})


def _after(gold: Gold, table: tables.Table, names: Sequence[str]) -> dict[Key, dict[str, int]]:
    before = {
        high: before_window(spill, high, seen)
        for high, (spill, seen) in _HIGH.items()
        if high in table.column_names
    }
    chosen = [f"r.{name}" for name in names] + [f"{us} AS {high}" for high, us in before.items()]
    rows = gold.ask(
        f"SELECT {', '.join(chosen)} FROM {{rows}} r "
        f"WHERE greatest(0, {', '.join(before.values())}) > 0",
        rows=gold.after(table),
    )
    return {tuple(row[name] for name in names): {h: row[h] for h in before} for row in rows}


def _raised(row: Row, more: Mapping[str, int]) -> Row:
    return row | {name: row[name] + us for name, us in more.items() if row.get(name) is not None}
