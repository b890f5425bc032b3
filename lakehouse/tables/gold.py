"""Gold: the tables that the rollup computes from bronze.

A table ``X`` has a row an hour and is kept. ``X_windows`` has the same rows at the finest windows,
those at which agents cut their runs, and is kept for a time. They are two tables so that no sum can
take both. Days and weeks are sums of hours, computed by readers (``Column.over`` says how).

Names of columns need no quotes in any engine, and say their unit: ``_us`` is microseconds of wall
time, ``series_..._us`` microseconds summed over series, which several series add up to more than
the wall time. A share of wall time is a figure of ``sli``.
"""

from dataclasses import replace
from typing import Final

from lakehouse.tables.rollup_state import PROGRESS
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
    """The measures of every metric row; durations are summed over ``each``.

    Values are added up as decimals of six places, so that sums do not depend on their order. Bounds
    take the edges of runs: the low one leaves ``tail_us`` out as far as the run goes; the high one
    adds ``lead_us``, and what of it lies before the window once, unless the value was above 0 from
    the window's very start. An edge between two values above 0 (flags) is none.
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
        Column("increase", "double", "of a counter: by how much it rose", "sum"),
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


_BEFORE: Final = "a value first seen in its first window may have started that long before"
_BEFORE_US: Final = Column(
    "before_us", "bigint", f"part of the union's bound before the window: {_BEFORE}", "first"
)


def _series_before(each: str) -> Column:
    comment = f"part of series_affected_high_us before the window, summed over {_several(each)}"
    return Column("series_before_us", "bigint", comment, "first")


def _gold(
    name: str, comment: str, *columns: Column, at: Column = HOUR, shelf: Shelf = ""
) -> Table:  # fmt: skip
    """A table whose rows are of hours, or of windows where ``at`` says so."""
    return of_gold(
        name, comment, _DATE, CLUSTER, at, *columns, partition_by=("date",),
        cluster_by=("date", "cluster"), shelf=shelf,
    )  # fmt: skip


def _of_metric(
    name: str, comment: str, *columns: Column, at: Column = HOUR, shelf: Shelf = ""
) -> Table:  # fmt: skip
    """A table whose rows are of a metric."""
    return _gold(name, comment, _METRIC, *columns, at=at, shelf=shelf)


def _us(name: str, comment: str) -> Column:
    """A time that is never null, summed over windows."""
    return required(name, "bigint", comment, "sum")


def _windows(table: Table) -> Table:
    """The same rows at the finest windows."""
    comment = f"{table.comment} (finest windows; {table.name} has the same an hour)"
    columns = tuple(WINDOW_START if column is HOUR else column for column in table.columns)
    name = f"{table.name}_windows"
    return replace(table, name=name, comment=comment, columns=columns, shelf="windows")


PARTITIONS: Final = _of_metric(
    "partitions",
    "Metrics per partition, the union over the sources that report it: observed once, above 0 if "
    "any source reports so, its value the mean of those above 0, else of all. A row where it was "
    "not zero; an hour is the sum of such windows, its series_seen_us and value_mean too",
    _TOPIC,
    required("partition_id", "int", "partition"),
    *_measures("partition"),
    _series_before("partition"),
)

TOPICS: Final = _of_metric(
    "topics",
    "Metrics per topic: of partitions summed over partitions, of brokers summed over brokers. Of "
    "replicas (kafka.log) summed over all of them like those of gold/sources, where any was above "
    "0, without the union over time",
    _TOPIC,
    *_measures("series"),
    *_union(
        "series",
        "greatest total of the brokers at one instant, for metrics reported per topic; null "
        "for those of partitions",
    ),
)

CLIENTS: Final = _of_metric(
    "clients",
    "Metrics per user and client id, over all brokers; affected_us is the union over brokers. A "
    "row where it was not zero; an hour is the sum of such windows",
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
    "Metrics per source, summed over all that the source reports (partitions, topics, clients); "
    "bounds are sums of the edges of all runs",
    SOURCE,
    *_measures("series", series=f"most series {_IN_A_ROW}"),
)

LABELLED: Final = _of_metric(
    "labelled",
    "Metrics per source and those labels that have no column of their own, such as an error code: "
    "each series by itself; gold/sources has their sum",
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
    "How long each source was seen, per family and outcome",
    SOURCE,
    _FAMILY,
    _OUTCOME,
    _us("outcome_us", "microseconds that the outcome covers"),
    required("scrapes", "bigint", "attempts", "sum"),
    Column("interval_us", "bigint", "longest scrape interval in force, microseconds", "max"),
    Column("seconds_total", "double", "seconds the attempts took together", "sum"),
    Column("seconds_max", "double", "seconds the slowest attempt took", "max"),
)

LOST_OFFSETS: Final = _gold(
    "lost_offsets",
    "Offsets that expired before a group consumed them (KIP-490), with bounds",
    _GROUP,
    _TOPIC,
    Column("partition_id", "int", "partition; null: all beyond the agent's cap"),
    required("offsets_low", "double", "offsets lost, at least", "sum"),
    required("offsets_high", "double", "offsets lost, at most", "sum"),
    _us("series_seen_us", "partition-microseconds for which the bounds hold"),
    _us("series_unknown_us", "partition-microseconds in which the loss is unknown (a rewind)"),
)

CONSUMER_LAG: Final = _gold(
    "consumer_lag",
    "How far consumer groups were behind in a topic, over all brokers",
    _GROUP,
    _TOPIC,
    _us(
        "seen_us", "microseconds in which as many brokers as ever in it reported, and all were read"
    ),
    Column(
        "records_max",
        "double",
        "most records not read at one instant, summed over brokers, each rounded up by less "
        "than a fifth; while a partition moves, both its leaders may count",
        "max",
    ),
    _us("behind_us", "microseconds with a lag above 0 on any broker"),
    _us("behind_low_us", "lower bound of behind_us"),
    _us("behind_high_us", "upper bound of behind_us"),
    Column("seconds_low_max", "double", "longest time behind, seconds, at least", "max"),
    Column("seconds_high_max", "double", "the same, at most, as far as it is known", "max"),
    _us(
        "seconds_unknown_us", "microseconds in which for how long it was behind has no upper bound"
    ),
    _BEFORE_US,
)

DISTRIBUTIONS: Final = _of_metric(
    "distributions",
    "Time per bucket of value and hour, for metrics whose catalogue entry asks for percentiles: "
    "buckets of OpenTelemetry's exponential histogram of scale 6. Sums over hours, subjects and "
    "clusters are distributions again. Time without a value (idle, unknown) is in no bucket",
    Column("topic", "string", "of topics the brokers' total, of partitions each one's value"),
    *_CLIENT,
    Column("consumer_group", "string", "consumer group, each series' value"),
    Column("source", "string", "source; null: the value is of a topic, client or group"),
    required("sign", "int", "1 or -1: which side of zero; 0: no further from it than 1e-12"),
    required("bucket", "int", "amounts above 2^(bucket/64), up to 2^((bucket+1)/64)"),
    _us("series_us", "series-microseconds with such a value"),
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
    "a row of zeros for a client means that it existed. Finest windows are kept only for subjects "
    "and hours that were not good throughout",
    *_SLI_SUBJECT,
    _us(
        "good_us",
        "microseconds good and wholly seen: of a topic every partition reported by a leader; "
        "of a client, group or source as many brokers, partitions or families as ever in it; "
        "of a lag all leaders read, of a client all brokers",
    ),
    _us("bad_us", "microseconds seen bad"),
    _us("bad_low_us", "lower bound of bad_us"),
    _us("bad_high_us", "upper bound of bad_us"),
    Column(
        "seen_us",
        "bigint",
        "of a topic: microseconds wholly seen, good or bad (a partition reported as "
        "leaderless is seen to be unavailable); null for other subjects and in older rows",
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
    "Attainment per objective, subject and period; a changed figure is a further statement",
    required(
        "period_kind",
        "string",
        "length of the period: 1w for an ISO week, such as 28d or 1M for another one, else span",
    ),
    required("period_year", "string", "ISO year of weeks, else the year"),
    CLUSTER,
    required("period_start", "timestamp", "start of the period, UTC"),
    required("period_end", "timestamp", "end of the period, UTC"),
    required("statement", "int", "1 is the first published; the highest is current"),
    required("stated_at", "timestamp", "when it was stated"),
    *_SLI_SUBJECT,
    Column("partition_id", "int", "partition, of objectives of level partition"),
    required("target", "double", "share of time that must be good"),
    Column(
        "unknown_as",
        "string",
        "how the verdict takes unknown time: exclude, good or bad; null: as an interval",
    ),
    Column("time_zone", "string", "time zone of the period's week; null in older rows"),
    Column("corrections", "string", "JSON of the corrections that concern it; null: none does"),
    required("expected_us", "bigint", "microseconds in which the subject existed"),
    required("good_us", "bigint", "microseconds seen wholly and good"),
    required("bad_us", "bigint", "microseconds seen bad"),
    required("bad_low_us", "bigint", "lower bound of bad_us"),
    required("bad_high_us", "bigint", "upper bound of bad_us"),
    required("unknown_us", "bigint", "microseconds not wholly seen"),
    Column("attainment", "double", "good per good and bad time; null without data"),
    Column("attainment_low", "double", "with unknown time bad and bad_us at its most"),
    Column("attainment_high", "double", "with unknown time good and bad_us at its least"),
    required("budget_us", "bigint", "microseconds that may be bad, of the time so far"),
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
    "Subjects that exist or existed: topics, clients, groups and sources",
    CLUSTER,
    required("kind", "string", "topic, client, group, quota or source"),
    Column("topic", "string", "topic"),
    *_CLIENT,
    Column("consumer_group", "string", "consumer group"),
    Column("source", "string", "source; also a broker that no agent ever read"),
    required("first_seen", "timestamp", "first instant at which a source reported it"),
    required("last_seen", "timestamp", "last instant until which a source reported it"),
    Column("seen_whole_until", "timestamp", "of a source: last instant its topology was read"),
    Column("attributes_at", "timestamp", "end of the last run of any attribute"),
    Column("attributes", "map<string,double>", "last value of each metric that describes it"),
    Column(
        "attribute_instants",
        "map<string,timestamp>",
        "end of the last run of each attribute; null in older rows",
    ),
    Column("rack", "string", "of a broker: its rack as it was reported last"),
)

INCIDENTS: Final = _of_metric(
    "incidents",
    "Stretches of an hour in which a source reported a value above 0 without a break, for watched "
    "metrics and those of objectives. A stretch that touches one of the hour before continues it",
    required("level", "string", "what the series is of: partition, topic, client, group or source"),
    Column("topic", "string", "topic"),
    Column("partition_id", "int", "partition"),
    *_CLIENT,
    Column("consumer_group", "string", "consumer group"),
    SOURCE,
    required("started_at", "timestamp", "start of the stretch"),
    required("ended_at", "timestamp", "end of the stretch"),
    required("lead_us", "bigint", "it may have started this long before its start"),
    required(
        "tail_us",
        "bigint",
        "it may have ended this long before its end; if this is its whole length, it may not "
        "have been above 0 at all, and the stretch that ends at its start has the rest",
    ),
    required("worst", "double", "greatest value", "max"),
    required("total", "double", "sum of its runs' values: by how much a counter rose", "sum"),
    required("runs", "bigint", "runs that it is made of", "sum"),
    required("known_wrong", "boolean", _WRONG, "any"),
)

READINGS: Final = _gold(
    "readings",
    "Stretches of an hour in which all attempts to read a family of a source had one outcome",
    SOURCE,
    _FAMILY,
    _OUTCOME,
    required("started_at", "timestamp", "start of the stretch"),
    required("ended_at", "timestamp", "end of the stretch"),
    required("scrapes", "bigint", "attempts"),
    Column("seconds_max", "double", "seconds the slowest attempt took"),
    Column("interval_us", "bigint", "longest scrape interval in force, microseconds"),
    Column("error", "string", "error of the first attempt that has one"),
    shelf="state",
)

LAGS: Final = _of_metric(
    "lags",
    "The last value that each source reported in a finest window for bytes that wait for tiering",
    _TOPIC,
    SOURCE,
    required("ended_at", "timestamp", "end of the last run in the window"),
    required("value_last", "double", "bytes that wait; idle is 0"),
    at=WINDOW_START,
    shelf="windows",
)

REJECTED: Final = _gold(
    "rejected",
    "Rows of bronze that the rollup could not use, and why, per finest window",
    required("reason", "string", "why it was not used"),
    required("table_name", "string", "runs or scrapes"),
    Column("source", "string", "source"),
    Column("metric", "string", "metric, or family of scrapes"),
    Column("members", "string", "the set that is not known yet"),
    Column("started_at", "timestamp", "start of the row"),
    Column("ended_at", "timestamp", "end of the row"),
    Column("agent", "string", "agent that wrote it"),
    Column("batch", "bigint", "batch that brought it"),
    required("row_count", "bigint", "how many such rows"),
    at=WINDOW_START,
    shelf="state",
)

SET_NOT_KNOWN: Final = "its member set is not known"
"""Reason in gold/rejected; the rows are used as soon as bronze/members holds the set."""

IN_THE_FUTURE: Final = "it lies in the future"
"""Reason in gold/rejected; the rows are used as soon as their time has come."""

TOO_LATE: Final = "its hour is not recomputed any more"
"""Reason in gold/rejected of rows of frozen hours."""

MISDATED: Final = "its date is not that of its start"
"""Reason in gold/rejected of rows in the partition of another date."""

BEYOND: Final = "no calendar has its start"
"""Reason in gold/rejected of rows that start before 1970 or after 9998."""

LOST: Final = "its data file is gone"
"""Reason in gold/rejected of hours of bronze that are lost: no rollup computes them."""

HOURS: Final = (
    PARTITIONS, TOPICS, CLIENTS, GROUPS, SOURCES, LABELLED, COVERAGE, LOST_OFFSETS,
    CONSUMER_LAG, SLI,
)  # fmt: skip
"""Tables with a row an hour, each with one of finest windows beside it."""

WINDOWS: Final = {table.name: _windows(table) for table in HOURS}
"""The tables of finest windows, by the name of that of hours."""

EXPIRING: Final = (*WINDOWS.values(), LAGS)
"""Tables of finest windows, which are kept for a time."""

OF_HOURS: Final = (*HOURS, *WINDOWS.values(), DISTRIBUTIONS, INCIDENTS, READINGS, LAGS, REJECTED)
"""Tables whose rows are a function of an hour of a cluster."""

GOLD: Final = (SUBJECTS, *OF_HOURS, SLA, PROGRESS)
