"""How long brokers were slow, beside what clients waited for.

A broker's time of a request is a part of what its client measures, so clients bound it from above
only. Of some writes more is known: their leaders hold them until a replica that died is left out,
all at once, and they are more than one in a hundred of the broker's sample for a minute at least.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from demo.clock import seconds
from tests.demo_truth.figure import Figure, nearest, stated_us

if TYPE_CHECKING:
    from collections.abc import Iterator

_SURE_SECONDS: Final = 60.0
"""Later than this, newer answers may outweigh them: a sample forgets the half every 46 s."""


def figures(truth: Any, report: Any) -> Iterator[Figure]:
    """Of each leader for how long its p99 was above the limit, and how high it was."""
    rows = {
        row["source"]: row for row in report["service"]["latency"] if row["request"] == "produce"
    }
    end = seconds(truth["to"])
    for held in truth.get("held_writes", ()):
        row = rows.get(held["source"])
        if row is not None:
            assert held["shortest_ms"] > row["threshold_ms"], "the writes were no slow ones"
        low, high = stated_us(row, "slow_low_us", "slow_high_us")
        # It was slow as soon as enough of the answers were in its sample.
        least, most = ((end - seconds(held[one])) * 1e6 for one in ("last_answer", "first_answer"))
        least = min(least, _SURE_SECONDS * 1e6)
        yield Figure(
            f"microseconds that {held['source']} was slow",
            low,
            high,
            nearest((least, most), (low, high)),
        )
        # No reading of a p99 is longer than the longest wait: hundreds are as long as that.
        yield Figure(
            f"milliseconds of the highest p99 on {held['source']}",
            row["p99_ms_max"] or 0.0 if row else 0.0, math.inf, held["longest_ms"],
        )  # fmt: skip
