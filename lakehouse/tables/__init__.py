"""Every table of a lake, declared once and free of any engine.

delta-rs (the agents) and Spark (the rollup) both build their schemas from these declarations.
Types are written as Spark SQL spells them. Durations are whole microseconds (``_us``), so that
sums do not depend on the order of addition; instants are UTC with microseconds; a value that was
observed as idle (NaN on the bean) is NULL, never NaN.
"""

from lakehouse.tables.bronze import (
    BRONZE as BRONZE,
    BRONZE_VERSION as BRONZE_VERSION,
    COMMIT_AGENT as COMMIT_AGENT,
    COMMIT_VERSION as COMMIT_VERSION,
    DEFAULT_WINDOW_SECONDS as DEFAULT_WINDOW_SECONDS,
    EVENTS as EVENTS,
    FLAG_DISTRIBUTION as FLAG_DISTRIBUTION,
    FLAG_GAP as FLAG_GAP,
    FLAG_INCREASE as FLAG_INCREASE,
    FLAG_KNOWN_WRONG as FLAG_KNOWN_WRONG,
    FLAG_NEXT_POSITIVE as FLAG_NEXT_POSITIVE,
    FLAG_PREVIOUS_POSITIVE as FLAG_PREVIOUS_POSITIVE,
    LONGEST_NAME as LONGEST_NAME,
    MAX_GAP_INTERVALS as MAX_GAP_INTERVALS,
    MEMBERS as MEMBERS,
    METRIC_DEFINITIONS as METRIC_DEFINITIONS,
    METRIC_NAME as METRIC_NAME,
    OTHER as OTHER,
    RUNS as RUNS,
    SCRAPES as SCRAPES,
)
from lakehouse.tables.columns import Column as Column, Table as Table
from lakehouse.tables.gold import (
    BROKERS as BROKERS,
    CLIENTS as CLIENTS,
    COVERAGE as COVERAGE,
    DISTRIBUTIONS as DISTRIBUTIONS,
    EXPIRING as EXPIRING,
    GOLD as GOLD,
    GROUPS as GROUPS,
    HOURS as HOURS,
    INCIDENTS as INCIDENTS,
    LAGS as LAGS,
    NON_CONSUMED as NON_CONSUMED,
    PARTITIONS as PARTITIONS,
    READINGS as READINGS,
    REJECTED as REJECTED,
    SLA as SLA,
    SLA_FIGURES as SLA_FIGURES,
    SLI as SLI,
    SUBJECTS as SUBJECTS,
    TOPICS as TOPICS,
    WINDOWS as WINDOWS,
)
from lakehouse.tables.rollup_state import (
    LEASE as LEASE,
    PROGRESS as PROGRESS,
    ROLLUP_STATE as ROLLUP_STATE,
    STRETCHES as STRETCHES,
)
