"""What the tables of these tests are made for."""

from __future__ import annotations

from lakehouse.core.objective import Events, Objective
from lakehouse.slo.openslo import objective_files

_ISR = "kafka.partition.under_min_isr"
_LAG = "kafka.topic.remote_"

_GROUP = "kafka.group."

OBJECTIVES = (
    *objective_files.load(),
    Objective("copied-late", "", "", "topic", f"{_LAG}copy_lag.bytes", 6.0, 0.99),
    Objective("copied-much-later", "", "", "topic", f"{_LAG}copy_lag.bytes", 10.0, 0.99),
    Objective("own-bean", "", "", "topic", "my.own.bean", 11.0, 0.99),
    Objective(
        "deleted-late", "", "", "topic", f"{_LAG}delete_lag.bytes", 6.5, 0.99,
        {"kafka.topic.remote_storage_enabled": 1.0},
    ),
    Objective("active", "", "", "source", "kafka.controller.active", 6.0, 0.99, op="gte"),
    Objective("idle", "", "", "source", "my.own.idle", 6.0, 0.99, op="gt"),
    Objective("busy", "", "", "source", "my.own.idle", 12.0, 0.99, op="lt"),
    Objective(
        "one-processor", "", "", "source", "my.own.idle", 6.0, 0.99, op="gt",
        match={"processor": ("[1-9]", "?")},
    ),
    Objective(
        "not-one-processor", "", "", "source", "my.own.idle", 6.0, 0.99, op="gt",
        match={"processor": ("!0",)},
    ),
    Objective(
        "some-caches", "", "", "source", "acme.cache.misses", 7.0, 0.99,
        match={"cache": ("?*", "!b"), "shard": ("",)},
    ),
    Objective("lag", "", "", "group", f"{_GROUP}lag", 12.0, 0.99),
    Objective("no-lag", "", "", "group", f"{_GROUP}lag", 0.0, 0.99),
    Objective("in-time", "", "", "group", f"{_GROUP}time_lag", 6.0, 0.99),
    Objective("behind", "", "", "group", "my.group.behind", 6.0, 0.99),
    Objective("ahead", "", "", "group", "my.group.behind", 6.0, 0.99, op="gt"),
    Objective("age", "", "", "group", "my.group.age", 6.0, 0.99),
    Objective("each-partition", "", "", "partition", _ISR, 0.0, 0.99),
    Objective("all-topics", "", "", "cluster", "kafka.partition.lag", 0.0, 0.99),
    Objective(
        "events", "", "", "topic", f"{_LAG}copy_lag.bytes", 0.0, 0.99,
        events=Events("my.own.errors", are_good=False, total=f"{_LAG}copy_lag.bytes"),
    ),
)  # fmt: skip
"""The shipped ones, and of each kind that is not: with a threshold, of sources, of
groups, of partitions, of events."""
