"""Every table of a lake, declared once and free of any engine.

delta-rs (the agents) and Spark (the rollup) both build their schemas from these declarations.
Types are written as Spark SQL spells them. Durations are whole microseconds (``_us``), so that
sums do not depend on the order of addition; instants are UTC with microseconds; a value that was
observed as idle (NaN on the bean) is NULL, never NaN.
"""

from lakehouse.tables.bronze import (
    BRONZE,
    BRONZE_VERSION,
    COMMIT_AGENT,
    COMMIT_VERSION,
    DEFAULT_WINDOW_SECONDS,
    EVENTS,
    FLAG_DISTRIBUTION,
    FLAG_GAP,
    FLAG_INCREASE,
    FLAG_KNOWN_WRONG,
    FLAG_NEXT_POSITIVE,
    FLAG_PREVIOUS_POSITIVE,
    LONGEST_NAME,
    MAX_GAP_INTERVALS,
    MEMBERS,
    METRIC_NAME,
    OTHER,
    RUNS,
    SCRAPES,
)
from lakehouse.tables.columns import Column, Table
from lakehouse.tables.gold import (
    BROKERS,
    CLIENTS,
    COVERAGE,
    DISTRIBUTIONS,
    GOLD,
    GROUPS,
    NON_CONSUMED,
    PARTITIONS,
    REJECTED,
    SLA,
    SLI,
    SUBJECTS,
    TOPICS,
)
from lakehouse.tables.running import CONDENSED, LEASE, PROGRESS, ROLLUP_STATE, STRETCHES

__all__ = [
    "BROKERS",
    "BRONZE",
    "BRONZE_VERSION",
    "CLIENTS",
    "COMMIT_AGENT",
    "COMMIT_VERSION",
    "CONDENSED",
    "COVERAGE",
    "DEFAULT_WINDOW_SECONDS",
    "DISTRIBUTIONS",
    "EVENTS",
    "FLAG_DISTRIBUTION",
    "FLAG_GAP",
    "FLAG_INCREASE",
    "FLAG_KNOWN_WRONG",
    "FLAG_NEXT_POSITIVE",
    "FLAG_PREVIOUS_POSITIVE",
    "GOLD",
    "GROUPS",
    "LEASE",
    "LONGEST_NAME",
    "MAX_GAP_INTERVALS",
    "MEMBERS",
    "METRIC_NAME",
    "NON_CONSUMED",
    "OTHER",
    "PARTITIONS",
    "PROGRESS",
    "REJECTED",
    "ROLLUP_STATE",
    "RUNS",
    "SCRAPES",
    "SLA",
    "SLI",
    "STRETCHES",
    "SUBJECTS",
    "TOPICS",
    "Column",
    "Table",
]
