"""What the tables of these tests are made for."""

from __future__ import annotations

from lakehouse import slo

_LAG = "kafka.topic.remote_"

OBJECTIVES = (
    *slo.load(),
    slo.Objective("copied-late", "", "", "topic", f"{_LAG}copy_lag.bytes", 6.0, 0.99),
    slo.Objective("copied-much-later", "", "", "topic", f"{_LAG}copy_lag.bytes", 10.0, 0.99),
    slo.Objective("own-bean", "", "", "topic", "my.own.bean", 11.0, 0.99),
    slo.Objective(
        "deleted-late", "", "", "topic", f"{_LAG}delete_lag.bytes", 6.5, 0.99,
        {"kafka.topic.remote_storage_enabled": 1.0},
    ),
)  # fmt: skip
"""The shipped ones, and some with a threshold: of those nothing is shipped."""
