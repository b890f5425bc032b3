"""Gold: the tables that the rollup computes from bronze.

Table ``X`` has one row per hour and does not expire. ``X_windows`` has the same rows per window of
the agents (5 minutes by default) and expires. They are two tables, so no sum counts both. Readers
add up hours to days and weeks; ``Column.over`` defines how each column combines.

Column names need no quotes in any engine and include the unit. ``_us`` is microseconds of wall
time. ``series_..._us`` is microseconds summed over series, so it can exceed the wall time. Only
``sli`` has shares of wall time.
"""

from dataclasses import replace
from typing import Final

from lakehouse.tables.gold_without_hours import DIMENSIONS, PROGRESS
from lakehouse.tables.table import (
    CLUSTER,
    HOUR,
    KEPT_PROPERTIES,
    SOURCE,
    WINDOW_START,
    Column,
    Shelf,
    Table,
    of_gold,
    required,
)

_DATE: Final = required("date", "date", "UTC date of the hour or window")
_METRIC: Final = required("metric", "string", "metric name of the catalogue")
_TOPIC: Final = required("topic", "string", "topic")
_GROUP: Final = required("consumer_group", "string", "consumer group")
_CLIENT: Final = (
    Column("user_name", "string", "authenticated principal, decoded; null: the quota has no user"),
    Column("client_id", "string", "client id, unquoted; null: the quota has no client id"),
)
_FAMILY: Final = required("family", "string", "family of the catalogue")
_OUTCOME: Final = required("outcome", "string", "outcome of the scrapes")
_WRONG: Final = "this Kafka version is known to report it wrongly"
_IN_A_ROW: Final = "that one row of bronze represents"
_OF_ROWS: Final = "of a counter the most that one row of bronze represents"


def _several(each: str) -> str:
    return each if each.endswith("s") else f"{each}s"


def _measures(each: str, *, series: str | None = None) -> tuple[Column, ...]:
    """Return the measures of every metric row; durations are summed over ``each``.

    Values are summed as decimals of six places, so sums do not depend on the order. Bounds contain
    the edges of runs. The low bound excludes ``tail_us``, up to the length of the run. The high
    bound includes ``lead_us``. The part of ``lead_us`` before the window counts once, unless the
    value was above 0 from the start of the window. Between two values above 0 (flags) a run has no
    edge.
    """
    several = _several(each)
    seen = f"{each}-microseconds that scrapes cover; a share of wall time is a figure of gold/sli"
    most = series or f"most {several} observed at one instant; {_OF_ROWS}"
    return (
        Column("series_seen_us", "bigint", seen, "sum"),
        Column("value_seconds", "double", f"value times seconds, over {several}; idle is 0", "sum"),
        Column("value_mean", "double", f"value_seconds per observed {each}-second", "mean"),
        Column("value_min", "double", f"least value of one {each}", "min"),
        Column("value_max", "double", f"greatest value of one {each}", "max"),
        Column("series_affected_us", "bigint", f"{each}-microseconds with a value above 0", "sum"),
        Column("series_affected_low_us", "bigint", "lower bound of series_affected_us", "sum"),
        Column("series_affected_high_us", "bigint", "upper bound of series_affected_us", "sum"),
        Column("increase", "double", "increase of a counter", "sum"),
        Column("series", "bigint", most, "max"),
        Column("known_wrong", "boolean", _WRONG, "any"),
    )


def _union(each: str, total: str) -> tuple[Column, ...]:
    one = f"microseconds of wall time in which at least one {each} was above 0"
    return (
        Column("affected_us", "bigint", one, "sum"),
        Column("affected_low_us", "bigint", "lower bound of affected_us", "sum"),
        Column("affected_high_us", "bigint", "upper bound of affected_us", "sum"),
        Column("max_concurrent", "bigint", f"most {_several(each)} above 0 at one instant", "max"),
        Column("max_total", "double", total, "max"),
        _BEFORE_US,
        _series_before(each),
    )


_BEFORE: Final = "a value observed in its first window may have started up to this much earlier"
_BEFORE_US: Final = Column(
    "before_us", "bigint", f"part of the union's bound before the window: {_BEFORE}", "first"
)


def _series_before(each: str) -> Column:
    comment = f"part of series_affected_high_us before the window, summed over {_several(each)}"
    return Column("series_before_us", "bigint", comment, "first")


def _gold(
    name: str, comment: str, *columns: Column, at: Column = HOUR, shelf: Shelf = ""
) -> Table:  # fmt: skip
    """Return a table with rows per hour, or per window with ``at``."""
    return of_gold(
        name, comment, _DATE, CLUSTER, at, *columns, partition_by=("date",),
        cluster_by=("date", "cluster"), shelf=shelf,
    )  # fmt: skip


def _of_metric(
    name: str, comment: str, *columns: Column, at: Column = HOUR, shelf: Shelf = ""
) -> Table:  # fmt: skip
    """Return a table with rows per metric."""
    return _gold(name, comment, _METRIC, *columns, at=at, shelf=shelf)


def _us(name: str, comment: str) -> Column:
    """Return a duration that is never null and is summed over windows."""
    return required(name, "bigint", comment, "sum")


def _windows(table: Table) -> Table:
    """Return the table with the same rows per window."""
    comment = f"{table.comment} (per window; {table.name} has the same per hour)"
    columns = tuple(WINDOW_START if column is HOUR else column for column in table.columns)
    name = f"{table.name}_windows"
    return replace(table, name=name, comment=comment, columns=columns, shelf="windows")


PARTITIONS: Final = _of_metric(
    "partitions",
    "Metrics per partition, as the union over the sources that report it. The partition is above 0 "
    "if any source reports a value above 0. Its value is the mean of the values above 0, or of all "
    "values if none is. Only windows in which it was not zero have rows, and hours are their sums",
    _TOPIC,
    required("partition_id", "int", "partition"),
    *_measures("partition"),
    _series_before("partition"),
)

TOPICS: Final = _of_metric(
    "topics",
    "Metrics per topic. Metrics of partitions are summed over partitions, metrics of brokers over "
    "brokers. Metrics of replicas, such as kafka.log.size, are summed over all replicas if one was "
    "above 0, and have no union over time",
    _TOPIC,
    *_measures("series"),
    *_union(
        "series",
        "greatest total of the brokers at one instant, for metrics reported per topic; null "
        "for metrics of partitions",
    ),
)

CLIENTS: Final = _of_metric(
    "clients",
    "Metrics per user and client id, over all brokers; affected_us is the union over brokers. Only "
    "windows in which the value was not zero have rows, and hours are their sums",
    *_CLIENT,
    *_measures("broker"),
    *_union("broker", "greatest total of the brokers at one instant"),
)

GROUPS: Final = _of_metric(
    "groups",
    "Metrics per consumer group and topic; bounds are sums of the edges of all runs",
    _GROUP,
    Column("topic", "string", "topic; null: the metric is of the group as a whole"),
    *_measures("partition", series=f"most partitions {_IN_A_ROW}"),
)

SOURCES: Final = _of_metric(
    "sources",
    "Metrics per source, summed over all its series (partitions, topics, clients); "
    "bounds are sums of the edges of all runs",
    SOURCE,
    *_measures("series", series=f"most series {_IN_A_ROW}"),
)

LABELLED: Final = _of_metric(
    "labelled",
    "Metrics per source and labels without a column of their own, such as an error code: a row for "
    "each series; gold/sources has their sum",
    SOURCE,
    required(
        "labels",
        "string",
        "key=value by key, joined by commas; in a name \\, = and , follow a \\",
    ),
    *_measures("series", series=f"most series {_IN_A_ROW}"),
)

COVERAGE: Final = _gold(
    "coverage",
    "Time of each outcome of scrapes, per source and family",
    SOURCE,
    _FAMILY,
    _OUTCOME,
    _us("outcome_us", "microseconds that the outcome covers"),
    required("scrapes", "bigint", "attempts", "sum"),
    Column("interval_us", "bigint", "longest scrape interval in force, microseconds", "max"),
    Column("seconds_total", "double", "total duration of the attempts, seconds", "sum"),
    Column("seconds_max", "double", "longest duration of an attempt, seconds", "max"),
)

LOST_OFFSETS: Final = _gold(
    "lost_offsets",
    "Offsets that expired before a group consumed them (KIP-490), with bounds",
    _GROUP,
    _TOPIC,
    Column("partition_id", "int", "partition; null: all partitions beyond the agent's limit"),
    required("offsets_low", "double", "offsets lost, at least", "sum"),
    required("offsets_high", "double", "offsets lost, at most", "sum"),
    _us("series_seen_us", "partition-microseconds for which the bounds hold"),
    _us("series_unknown_us", "partition-microseconds in which the loss is unknown (a rewind)"),
)

CONSUMER_LAG: Final = _gold(
    "consumer_lag",
    "Lag of consumer groups per topic, over all brokers",
    _GROUP,
    _TOPIC,
    _us("seen_us", "microseconds in which all brokers were scraped and no report was missing"),
    Column(
        "records_max",
        "double",
        "most unread records at one instant, summed over brokers, each rounded up by less "
        "than a fifth; while a partition moves, both of its leaders can count",
        "max",
    ),
    _us("behind_us", "microseconds with a lag above 0 on any broker"),
    _us("behind_low_us", "lower bound of behind_us"),
    _us("behind_high_us", "upper bound of behind_us"),
    Column("seconds_low_max", "double", "age of the oldest unread record, s, at least", "max"),
    Column("seconds_high_max", "double", "that age, s, at most; null: not known", "max"),
    _us("seconds_unknown_us", "microseconds in which that age has no upper bound"),
    _BEFORE_US,
)

DISTRIBUTIONS: Final = _of_metric(
    "distributions",
    "Time per bucket of values and hour, for metrics with percentiles in the catalogue. Buckets "
    "are those of OpenTelemetry's exponential histogram (scale 6). Sums over hours, subjects and "
    "clusters are distributions again. Time without a value (idle, unknown) is in no bucket",
    Column("topic", "string", "topic: the total of its brokers, or the value of each partition"),
    *_CLIENT,
    Column("consumer_group", "string", "consumer group: the value of each series"),
    Column("source", "string", "source; null: the value is of a topic, client or group"),
    required("sign", "int", "sign of the value: 1 or -1; 0: at most 1e-12 from zero"),
    required("bucket", "int", "absolute values above 2^(bucket/64), up to 2^((bucket+1)/64)"),
    _us("series_us", "series-microseconds with a value in the bucket"),
    required("value_seconds", "double", "value times seconds: the histogram's sum", "sum"),
)

_SLI_SUBJECT: Final = (
    required("objective", "string", "name of the objective"),
    Column("topic", "string", "topic"),
    *_CLIENT,
    Column("consumer_group", "string", "consumer group"),
    Column("source", "string", "source"),
)

SLI: Final = _gold(
    "sli",
    "Good and bad time per objective and subject; other time is unknown. A missing row means zero; "
    "a row of zeros for a client means that it existed. Windows are kept only for subjects and "
    "hours that were not completely good",
    *_SLI_SUBJECT,
    _us(
        "good_us",
        "microseconds good and completely observed. Topic: a leader reports every partition, and "
        "for a lag all leaders were scraped. Client: all brokers were scraped. Client, group or "
        "source: no broker, partition or family that reports in the window was missing",
    ),
    _us("bad_us", "microseconds observed bad"),
    _us("bad_low_us", "lower bound of bad_us"),
    _us("bad_high_us", "upper bound of bad_us"),
    Column(
        "seen_us",
        "bigint",
        "microseconds in which a topic was completely observed, good or bad (a report of an "
        "offline partition counts as observed); null for other subjects and in older rows",
        "sum",
    ),
    Column(
        "before_us",
        "bigint",
        f"part of bad_high_us before the window: {_BEFORE}; null in older rows",
        "first",
    ),
)

SLA: Final = of_gold(
    "sla",
    "Published SLO results per objective, subject and period; a changed figure is a new result",
    required(
        "period_kind",
        "string",
        "length of the period: 1w (an ISO week), another length such as 28d or 1M, or span",
    ),
    required("period_year", "string", "year of the period; of a week its ISO year"),
    CLUSTER,
    required("period_start", "timestamp", "start of the period, UTC"),
    required("period_end", "timestamp", "end of the period, UTC"),
    required("statement", "int", "number of the result, from 1; the highest is current"),
    required("stated_at", "timestamp", "time of publication"),
    *_SLI_SUBJECT,
    Column("partition_id", "int", "partition, of objectives of level partition"),
    required("target", "double", "share of time that must be good"),
    Column(
        "unknown_as",
        "string",
        "meaning of unknown time in the verdict: exclude, good or bad; null: an interval",
    ),
    Column("time_zone", "string", "time zone of the period's week; null in older rows"),
    Column("corrections", "string", "corrections of the result, as JSON; null: none"),
    required("expected_us", "bigint", "microseconds in which the subject existed"),
    required("good_us", "bigint", "microseconds good and completely observed"),
    required("bad_us", "bigint", "microseconds observed bad"),
    required("bad_low_us", "bigint", "lower bound of bad_us"),
    required("bad_high_us", "bigint", "upper bound of bad_us"),
    required("unknown_us", "bigint", "microseconds not completely observed"),
    Column("attainment", "double", "good time / (good + bad time); null: no data"),
    Column("attainment_low", "double", "its lower bound: unknown time and bad_high_us are bad"),
    Column("attainment_high", "double", "its upper bound: unknown time is good, bad_low_us bad"),
    required("budget_us", "bigint", "allowed bad time in the period so far, microseconds"),
    required("budget_left_us", "bigint", "budget_us less bad_us"),
    required("verdict", "string", "met, missed, uncertain or no_data"),
    Column("agreed_attainment", "double", "attainment outside the corrections' time"),
    Column("agreed_attainment_low", "double", "its lower bound"),
    Column("agreed_attainment_high", "double", "its upper bound"),
    Column("agreed_verdict", "string", "verdict outside that time; null: no correction"),
    partition_by=("period_kind", "period_year"),
    properties=KEPT_PROPERTIES,
)

_EXPECTED, _AGREED = map(SLA.column_names.index, ("expected_us", "agreed_attainment"))
SLA_FIGURES: Final = SLA.column_names[_EXPECTED:_AGREED]
"""Columns of gold/sla that are figures of a statement."""

SLA_AGREED: Final = SLA.column_names[_AGREED:]
"""Columns of gold/sla that are figures outside corrections."""

SUBJECTS: Final = of_gold(
    "subjects",
    "Topics, clients, groups, quotas and sources that exist or existed",
    CLUSTER,
    required("kind", "string", "topic, client, group, quota or source"),
    Column("topic", "string", "topic"),
    *_CLIENT,
    Column("consumer_group", "string", "consumer group"),
    Column("source", "string", "source; brokers that no agent scraped are included"),
    required("first_seen", "timestamp", "start of the first report by a source"),
    required("last_seen", "timestamp", "end of the last report by a source"),
    Column("seen_whole_until", "timestamp", "end of the last scrape of a source's topology"),
    Column("attributes_at", "timestamp", "end of the last run of any attribute"),
    Column("attributes", "map<string,double>", "last value of each metric that describes it"),
    Column(
        "attribute_instants",
        "map<string,timestamp>",
        "end of the last run of each attribute; null in older rows",
    ),
    Column("rack", "string", "last reported rack of a broker"),
)

INCIDENTS: Final = _of_metric(
    "incidents",
    "Intervals of an hour in which a source reported a value above 0 without a break, for watched "
    "metrics and metrics of objectives. An interval continues one of the hour before if they touch",
    required("level", "string", "subject type: partition, topic, client, group or source"),
    Column("topic", "string", "topic"),
    Column("partition_id", "int", "partition"),
    *_CLIENT,
    Column("consumer_group", "string", "consumer group"),
    SOURCE,
    required("started_at", "timestamp", "start of the interval"),
    required("ended_at", "timestamp", "end of the interval"),
    required("lead_us", "bigint", "it may have started up to this much earlier"),
    required(
        "tail_us",
        "bigint",
        "it may have ended up to this much earlier; if this is its whole length, it may not have "
        "been above 0 at all, and the interval before it has the remaining uncertainty",
    ),
    required("worst", "double", "greatest value", "max"),
    required("total", "double", "sum of the values of its runs: the increase of a counter", "sum"),
    required("runs", "bigint", "number of its runs", "sum"),
    required("known_wrong", "boolean", _WRONG, "any"),
)

READINGS: Final = _gold(
    "readings",
    "Intervals of an hour in which all scrapes of a family of a source had one outcome",
    SOURCE,
    _FAMILY,
    _OUTCOME,
    required("started_at", "timestamp", "start of the interval"),
    required("ended_at", "timestamp", "end of the interval"),
    required("scrapes", "bigint", "attempts"),
    Column("seconds_max", "double", "longest duration of an attempt, seconds"),
    Column("interval_us", "bigint", "longest scrape interval in force, microseconds"),
    Column("error", "string", "error of the first attempt that has one"),
    shelf="state",
)

LAGS: Final = _of_metric(
    "lags",
    "The last value per window and source of bytes that wait for upload or deletion (tiering)",
    _TOPIC,
    SOURCE,
    required("ended_at", "timestamp", "end of the last run in the window"),
    required("value_last", "double", "bytes; idle is 0"),
    at=WINDOW_START,
    shelf="windows",
)

REJECTED: Final = _gold(
    "rejected",
    "Rows of bronze that the rollup could not use, with the reason, per window",
    required("reason", "string", "reason"),
    required("table_name", "string", "runs or scrapes"),
    Column("source", "string", "source"),
    Column("metric", "string", "metric, or family of scrapes"),
    Column("members", "string", "set that is not known yet"),
    Column("started_at", "timestamp", "start of the row"),
    Column("ended_at", "timestamp", "end of the row"),
    Column("agent", "string", "agent that wrote it"),
    Column("batch", "bigint", "batch of the row"),
    required("row_count", "bigint", "number of rows"),
    at=WINDOW_START,
    shelf="state",
)

SET_NOT_KNOWN: Final = "its member set is not known"
"""Reason in gold/rejected; the rows are used as soon as bronze/members has the set."""

IN_THE_FUTURE: Final = "it lies in the future"
"""Reason in gold/rejected; the rows are used as soon as their time has passed."""

TOO_LATE: Final = "its hour is not recomputed any more"
"""Reason in gold/rejected of rows of frozen hours."""

MISDATED: Final = "its date is not that of its start"
"""Reason in gold/rejected of rows in the partition of another date."""

BEYOND: Final = "no calendar has its start"
"""Reason in gold/rejected of rows that start before 1970 or after 9998."""

LOST: Final = "its data file is gone"
"""Reason in gold/rejected of hours of bronze that are lost: no rollup computes them."""

CONTRADICTED: Final = "another agent contradicts it"
"""Reason in gold/rejected of values above zero; they are used, but not as sure."""

HOURS: Final = (
    PARTITIONS, TOPICS, CLIENTS, GROUPS, SOURCES, LABELLED, COVERAGE, LOST_OFFSETS,
    CONSUMER_LAG, SLI,
)  # fmt: skip
"""Tables with a row per hour; each has a table of windows."""

WINDOWS: Final = {table.name: _windows(table) for table in HOURS}
"""Tables of windows, by the name of their table of hours."""

EXPIRING: Final = (*WINDOWS.values(), LAGS)
"""Tables of windows, which expire."""

OF_HOURS: Final = (*HOURS, *WINDOWS.values(), DISTRIBUTIONS, INCIDENTS, READINGS, LAGS, REJECTED)
"""Tables whose rows are a function of an hour of a cluster."""

GOLD: Final = (SUBJECTS, *OF_HOURS, SLA, *DIMENSIONS, PROGRESS)
