"""A hanging transaction is the likely cause of an upload lag of its topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse import tables
from lakehouse.core import periods
from lakehouse.core.lake import Lake
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.gold import causes
from lakehouse.gold.causes import Cause
from lakehouse.report.facts.events import event_evidence
from lakehouse.report.facts.gold import Gold
from tests import gold_builder

if TYPE_CHECKING:
    from pathlib import Path

WEEK: Final = periods.week("2026-W47")
START, _ = WEEK.span
WINDOW: Final = 300_000_000
LATE: Final = "kafka.broker.partitions_with_late_transactions"
OPEN: Final = "kafka.partition.last_stable_offset_lag"


def row(metric: str, window: int, value: float, **subject: str) -> dict[str, Any]:
    return {
        "cluster": "c", "window_start": periods.instant(START + window * WINDOW),
        "metric": metric, "value_max": value, "series_seen_us": WINDOW, **subject,
    }  # fmt: skip


def span(first: int, last: int) -> tuple[int, int]:
    return START + first * WINDOW, START + last * WINDOW


@pytest.fixture
def gold(tmp_path: Path) -> Gold:
    """Return gold with a transaction of ``orders`` that hangs in windows 10 to 19."""
    late = [row(LATE, n, 10 <= n < 20, source="broker-1") for n in range(40)]
    hung = [row(OPEN, n, 5.0, topic="orders") for n in range(6, 20)]
    ended = [row(OPEN, n, 5.0, topic="payments") for n in range(24, 30)]
    none = [row(OPEN, n, 0.0, topic="clicks") for n in range(40)]
    gold_builder.put(tmp_path, tables.WINDOWS["sources"], *late)
    gold_builder.put(tmp_path, tables.WINDOWS["topics"], *hung, *ended, *none)
    for table in (tables.SOURCES, tables.TOPICS):
        gold_builder.put(tmp_path, table)
    return Gold(LocalEngine(Lake(str(tmp_path))), "c", WEEK, 300)


def test_only_a_late_transaction_of_the_topic_at_that_time_counts(gold: Gold) -> None:
    wanted = [
        ("orders", [span(8, 12)]),
        ("orders", [span(0, 10)]),  # open, not late yet
        ("orders", [span(20, 30)]),  # ended
        ("orders", [span(0, 1), span(19, 25)]),
        ("payments", [span(20, 30)]),
        ("clicks", [span(8, 12)]),
        ("other", [span(8, 12)]),
        ("orders", []),
    ]
    assert event_evidence.hanging(gold, wanted) == {0, 3}


@pytest.mark.parametrize(
    ("cause", "failed", "hanging", "expected"),
    [
        (Cause(), False, True, Cause("hanging_transaction")),
        (Cause(), None, True, Cause("hanging_transaction")),
        (Cause(), True, True, Cause("copy_errors", also=("hanging_transaction",))),
        (Cause(), True, False, Cause("copy_errors")),
        (Cause(), False, False, Cause()),
        (
            Cause("restarted", ("broker-1",)), False, True,
            Cause("restarted", ("broker-1",), also=("hanging_transaction",)),
        ),
    ],
)  # fmt: skip
def test_cause_of_tiered_storage(
    cause: Cause, expected: Cause, *, failed: bool | None, hanging: bool
) -> None:
    assert causes.of_tier(cause, failed=failed, hanging=hanging) == expected
