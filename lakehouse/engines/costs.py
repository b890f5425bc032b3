"""What the parts of a batch cost, and how far their computation is."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakehouse.engines.packets import Cost


class PartDone(NamedTuple):
    """A part of a batch is computed.

    Attributes:
        label: What the batch is, such as "batch 3 of 24".
        part: The number of parts that are computed.
        parts: The number of parts of the batch.
        rows: Rows of bronze/runs in the parts that are computed.
    """

    label: str
    part: int
    parts: int
    rows: int


class Costs(NamedTuple):
    """The cost of a batch, or of a rollup; None: nothing was computed.

    Attributes:
        parts: Parts that were computed.
        computed_rows: Rows of bronze/runs in them.
        part_seconds: Time of all parts together, in their workers.
        longest_part_seconds: Time of the slowest part.
        skew: Time of a batch's slowest part, in times of its median part; the largest of the
            batches.
        peak_bytes: The most memory that the DuckDB of a part took.
    """

    parts: int | None = None
    computed_rows: int | None = None
    part_seconds: float | None = None
    longest_part_seconds: float | None = None
    skew: float | None = None
    peak_bytes: int | None = None


NO_COSTS: Final = Costs()


def of_batch(costs: Sequence[Cost]) -> Costs:
    """The cost of a batch, by those of its parts."""
    if not costs:
        return NO_COSTS
    seconds = [one.seconds for one in costs]
    longest = max(seconds)
    return Costs(
        len(costs), sum(one.rows for one in costs), sum(seconds), longest,
        longest / statistics.median(seconds), max(one.peak_bytes for one in costs),
    )  # fmt: skip


def together(batches: Iterable[Costs]) -> Costs:
    """The cost of a rollup, by those of its batches."""
    computed = [one for one in batches if one.parts is not None]
    if not computed:
        return NO_COSTS
    parts, rows, seconds, longest, skews, peaks = zip(*computed, strict=True)
    return Costs(sum(parts), sum(rows), sum(seconds), max(longest), max(skews), max(peaks))
