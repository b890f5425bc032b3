"""Statements that create the views of ``views.sql`` in one SQL dialect.

``metric_views.yaml`` declares metric views of Unity Catalog and Spark 4.2. Their definitions have
version 0.1 of the specification, which both read. That version has no comments, so the column list
of the statement has them.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Final, NamedTuple

import yaml

from lakehouse import tables
from lakehouse.core.metrics import WATCHED_OF, shipped_meanings
from lakehouse.core.subjects import FLOOR_PERCENT, WHOLE_PERCENT
from lakehouse.gold import event_rules
from lakehouse.tables.agent_names import has_role
from lakehouse.tables.table import identifier, spark_identifier, spark_text, standard_text

_VIEW: Final = re.compile(r"(?ms)^-- VIEW (\w+)\n((?:-- [^\n]*\n)+)(.+?)(?=^-- VIEW |\Z)")
_ALIAS: Final = re.compile(r"(?:^|, |AS )(\w+)(?=,|$)")
_CALL: Final = re.compile(r"\b(utc|local|micros|instant|day_us)\(([^()]+)\)")
_STATE: Final = re.compile(r"state_of\[(\w+); ([^\];]+)(?:; ([^\]]+))?\]")
_METRIC: Final = re.compile(r"FILTER \(WHERE metric = ('[^']+')\)")
_NAME: Final = re.compile(r"\{((?:gold\.)?\w+)\}")
_WEEK: Final = "CAST(date_trunc('week', local(hour)) AS DATE)"
_HOURS: Final = f"""\
date AS date_utc, utc(hour) AS hour_utc, local(hour) AS hour_local, \
{_WEEK} AS week_local, \
-- UTC date: leaves files out | start of the hour, UTC | local time | Monday of its ISO week"""
_OF_WEEK: Final = f"CAST({_WEEK} AS VARCHAR(10)) || cluster"
"""Key of a local week and a cluster: the Monday, which has ten characters, and the cluster."""
_SERIES: Final = "cluster, metric, topic, user_name, client_id, consumer_group, source"
_VALUE: Final = "sign * 2 / (1 + power(2e0, 1 / 64e0)) * power(2e0, (bucket + 1) / 64e0)"
"""Value of a bucket of gold/distributions: the middle of its bounds, 2^(bucket/64) and the next."""

_PERCENTILES: Final = f"""\
sums AS (
    SELECT {_SERIES}, {{place}} AS place, {_VALUE} AS metric_value, sum(series_us) AS us
    FROM {{{{gold.distributions}}}} GROUP BY {_SERIES}, {{place}}, sign, bucket),
ordered AS (
    SELECT s.*, sum(us) OVER (PARTITION BY {_SERIES}, place ORDER BY metric_value) AS so_far,
        sum(us) OVER (PARTITION BY {_SERIES}, place) AS total
    FROM sums s)"""
"""Values of each series and day or week with the time up to them, in whole microseconds."""

_PERCENTILE_COLUMNS: Final = """\
min(metric_value) FILTER (WHERE 2 * so_far >= total) AS p50, \
-- half of the time had at most this value
    min(metric_value) FILTER (WHERE 10 * so_far >= 9 * total) AS p90, -- 90 percent of the time
    min(metric_value) FILTER (WHERE 20 * so_far >= 19 * total) AS p95, -- 95 percent of the time
    min(metric_value) FILTER (WHERE 100 * so_far >= 99 * total) AS p99, -- 99 percent of the time
    max(metric_value) AS greatest, -- greatest value, within 0.55 percent
    max(total) / 6e7 AS seen_minutes -- minutes with a value, summed over series"""
"""Columns of the views of percentiles, from the rows ``ordered`` of a series and day or week."""

_PERSONAL: Final = {"user_name": "user", "client_id": "client id"}
PARENTS: Final = {tables.PARTITIONS: tables.TOPICS, tables.LABELLED: tables.SOURCES}
"""Tables whose rows each belong to a row of another table, by the key of that table."""


class View(NamedTuple):
    """A view of ``views.sql``.

    Attributes:
        name: Name of the view.
        comment: The question that it answers.
        columns: Column comments by column name, in order.
        sql: The query, without comments.
    """

    name: str
    comment: str
    columns: Mapping[str, str]
    sql: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """Differences of an SQL dialect.

    Attributes:
        quote: Quote character of names.
        text: Returns a text as a literal.
        utc: Template of the function ``utc`` of ``views.sql``. ``{0}`` is a timestamp.
        local: Template of ``local``. ``{0}`` is a timestamp, ``{1}`` a time zone.
        micros: Template of ``micros``. ``{0}`` is a timestamp.
        instant: Template of ``instant``. ``{0}`` is a number of microseconds.
        midnight: Template of the microseconds since 1970 at the start of a local day. ``{0}`` is a
            date, ``{1}`` a time zone.
        path: Template of a Delta table by its location, which is ``{0}`` as a literal and ``{1}``
            as a name. Empty: the dialect reads only tables with names.
        comments_inline: Whether CREATE VIEW contains the comments instead of statements for them.
        constraints: Whether to write keys and tags of Unity Catalog.
        drops_metric_views: Whether to drop a metric view first: Spark 4.2 does not replace it.
    """

    quote: str
    text: Callable[[str], str]
    utc: str
    local: str
    micros: str
    instant: str
    midnight: str
    path: str = ""
    comments_inline: bool = False
    constraints: bool = False
    drops_metric_views: bool = False

    def name(self, *parts: str) -> str:
        """Return a quoted name of one or several parts."""
        return identifier(*parts, quote=self.quote)

    def call(self, function: str, of: str, zone: str) -> str:
        """Return the SQL of a function of ``views.sql``."""
        if function == "day_us":  # summer time starts and ends on days of 23 and 25 hours
            next_day = f"({of} + INTERVAL '1' DAY)"
            start, end = (self.midnight.format(day, self.text(zone)) for day in (of, next_day))
            return f"({end} - {start})"
        return str(getattr(self, function)).format(of, self.text(zone))


_SPARK_UTC: Final = (
    "(TIMESTAMP_NTZ'1970-01-01 00:00:00' + "
    "make_dt_interval(0, 0, 0, CAST(unix_micros({0}) / 1000000BD AS DECIMAL(18, 6))))"
)
_SPARK: Final = Dialect(
    "`", spark_text, _SPARK_UTC, f"convert_timezone('UTC', {{1}}, {_SPARK_UTC})",
    "unix_micros({0})", "timestamp_micros({0})",
    "unix_micros(make_timestamp(year({0}), month({0}), day({0}), 0, 0, 0, {1}))",
    path="delta.{1}", comments_inline=True, drops_metric_views=True,
)  # fmt: skip
DIALECTS: Final = {
    "duckdb": Dialect(
        '"', standard_text, "({0} AT TIME ZONE 'UTC')", "({0} AT TIME ZONE {1})", "epoch_us({0})",
        "make_timestamptz({0})", "epoch_us(CAST({0} AS TIMESTAMP) AT TIME ZONE {1})",
        path="delta_scan({0})",
    ),
    "spark": _SPARK,
    "databricks": replace(_SPARK, path="", constraints=True, drops_metric_views=False),
    "trino": Dialect(
        '"', standard_text, "CAST({0} AT TIME ZONE 'UTC' AS timestamp)",
        "CAST({0} AT TIME ZONE {1} AS timestamp)", "CAST(to_unixtime({0}) * 1e6 AS bigint)",
        "from_unixtime_nanos({0} * 1000)",
        "CAST(to_unixtime(with_timezone(CAST({0} AS timestamp), {1})) * 1e6 AS bigint)",
    ),
}  # fmt: skip


@lru_cache
def views() -> tuple[View, ...]:
    """Return all views, each after the views that it reads."""
    return tuple(
        View(name, " ".join(about.replace("-- ", "").split()), dict(_columns(sql)), _query(sql))
        for name, about, sql in _VIEW.findall(_expanded(_text("views.sql")))
    )


def _text(file: str) -> str:
    return resources.files(__package__).joinpath(file).read_text("utf-8")


def _expanded(sql: str) -> str:
    """Return the file with the SQL that other modules provide."""
    words = {
        "hours": _HOURS,
        "stretches": event_rules.stretches(),
        "stretches_of_weeks": event_rules.stretches(_OF_WEEK),
        "week_and_cluster": _OF_WEEK,
        "joined_incidents": event_rules.joined_incidents("stretches"),
        "grouped_incidents": event_rules.grouped_incidents("slacks"),
        "least_slack_us": str(event_rules.SLACK_US),
        "effect_us": str(event_rules.EFFECT_US),
        "is_broker": has_role("source", "broker"),
        "is_cluster": has_role("source", "cluster"),
        "value_of_bucket": _VALUE,
        "percentiles": _PERCENTILE_COLUMNS,
        "percentiles_of_days": _PERCENTILES.format(place="CAST(local(hour) AS DATE)"),
        "percentiles_of_weeks": _PERCENTILES.format(place=_WEEK),
        **{name: ", ".join(map(standard_text, own)) for name, own in _metrics().items()},
    }
    for name, word in words.items():
        sql = sql.replace(f"{{{name}}}", word)
    return sql


def _metrics() -> dict[str, Sequence[str]]:
    """Return metrics that views select, by the names of their placeholders."""
    traits = shipped_meanings().traits
    return {
        "upper_bounds": sorted(name for name, one in traits.items() if one.side == "high"),
        "throttle_times": [one.metric for one in WATCHED_OF["client"]],
        "copy_lags": [f"kafka.topic.remote_copy_lag.{of}" for of in ("bytes", "segments")],
        "delete_lags": [f"kafka.topic.remote_delete_lag.{of}" for of in ("bytes", "segments")],
    }


def _query(sql: str) -> str:
    def state(found: re.Match[str]) -> str:
        shares = dict(re.findall(r"(?m)^    (.+) AS (\w+),? -- ", sql))
        share = next(expression for expression, name in shares.items() if name == found[1])
        return _state(share, found[2], found[3])

    sql = sql.replace("{metrics_of_columns}", ", ".join(_METRIC.findall(sql)))
    return re.sub(r"(?m) *-- .*$", "", _STATE.sub(state, sql)).strip()


def _state(percent: str, bad: str, undecided: str | None) -> str:
    """Return the expression of ``core.subjects.state_of``; nothing undecided is good."""
    floor, whole = (f"{share:g}e0" for share in (FLOOR_PERCENT, WHOLE_PERCENT))
    is_decided = f" AND NOT ({undecided})" if undecided else ""
    return (
        f"CASE WHEN {bad} > 0 THEN 'bad' WHEN {percent} >= {whole}{is_decided} THEN 'good' "
        f"WHEN {percent} >= {floor} THEN 'partly_known' ELSE 'not_known' END"
    )


def _columns(sql: str) -> Iterator[tuple[str, str]]:
    for line, comments in re.findall(r"(?m)^    (.+?),? -- (.+)$", sql):
        yield from zip(_ALIAS.findall(line), comments.split(" | "), strict=True)


def statements(
    dialect: Dialect, schema: str, place: Callable[[tables.Table], str], zone: str,
    *, measures: bool = False,
) -> Iterator[str]:  # fmt: skip
    """Yield the idempotent statements, without semicolons.

    Args:
        dialect: One of ``DIALECTS``.
        schema: Schema of the views. The catalog is a prefix unless it is the current catalog.
        place: Returns the SQL name of a gold table.
        zone: IANA name of the time zone of local timestamps.
        measures: Whether to create metric views, in a dialect that has them.
    """
    within = schema.split(".")
    yield f"CREATE SCHEMA IF NOT EXISTS {dialect.name(*within)}"
    known = {f"gold.{table.name}": place(table) for table in tables.GOLD}
    for view in views():
        known[view.name] = dialect.name(*within, view.name)
        yield _created(view, dialect, known, zone)
        if not dialect.comments_inline:
            yield f"COMMENT ON VIEW {known[view.name]} IS {dialect.text(view.comment)}"
            for column, comment in view.columns.items():
                yield f"COMMENT ON COLUMN {known[view.name]}.{column} IS {dialect.text(comment)}"
    for one in metric_views() if measures else ():
        name = dialect.name(*within, one.name)
        if dialect.drops_metric_views:
            yield f"DROP VIEW IF EXISTS {name}"
        yield _measured(one, name, known[one.source])
    if dialect.constraints:
        yield from _keys(dialect, place)
        yield from _tags(dialect, place, known)


def _created(view: View, dialect: Dialect, known: Mapping[str, str], zone: str) -> str:
    query = _CALL.sub(lambda found: dialect.call(found[1], found[2], zone), view.sql)
    query = query.replace('"', dialect.quote)
    query = _NAME.sub(lambda found: known[found[1]], query)
    about = ""
    if dialect.comments_inline:
        columns = ",\n".join(
            f"    {name} COMMENT {dialect.text(comment)}" for name, comment in view.columns.items()
        )
        about = f" (\n{columns})\nCOMMENT {dialect.text(view.comment)}"
    return f"CREATE OR REPLACE VIEW {known[view.name]}{about} AS\n{query}"


def key(table: tables.Table) -> tuple[str, ...]:
    """Return the primary key columns of a table; empty if a key column can be null."""
    if table not in tables.HOURS:
        return ()
    required = {column.name for column in table.columns if not column.nullable}
    return (table.start, *table.keys) if required.issuperset(table.keys) else ()


def _keys(dialect: Dialect, place: Callable[[tables.Table], str]) -> Iterator[str]:
    """Yield statements for informational keys, which are not enforced."""
    keys = {table: ", ".join(map(dialect.name, key(table))) for table in tables.HOURS}
    for table in filter(key, tables.HOURS):
        yield f"ALTER TABLE {place(table)} DROP PRIMARY KEY IF EXISTS CASCADE"
        named = f"{table.name}_key PRIMARY KEY ({keys[table]})"
        yield f"ALTER TABLE {place(table)} ADD CONSTRAINT {named}"
    for table, above in PARENTS.items():
        yield (
            f"ALTER TABLE {place(table)} ADD CONSTRAINT {table.name}_of_{above.name} "
            f"FOREIGN KEY ({keys[above]}) REFERENCES {place(above)} ({keys[above]})"
        )


def _tags(
    dialect: Dialect, place: Callable[[tables.Table], str], known: Mapping[str, str]
) -> Iterator[str]:
    """Yield statements for tags of columns with personal names, tables before views."""
    for table in tables.GOLD:
        for column in filter(_PERSONAL.get, table.column_names):
            altered = f"ALTER TABLE {place(table)} ALTER COLUMN {dialect.name(column)}"
            yield f"{altered} SET TAGS ('personal_data' = {dialect.text(_PERSONAL[column])})"
    for view in views():
        for column in filter(_PERSONAL.get, view.columns):
            tag = dialect.name(_PERSONAL[column])
            yield f"SET TAG ON COLUMN {known[view.name]}.{column} personal_data = {tag}"


class MetricView(NamedTuple):
    """A metric view.

    Attributes:
        name: Name of the metric view.
        comment: Description of its measures.
        source: The view that it reads.
        filter: Condition on rows of the source. Empty: all rows.
        dimensions: Columns of the source.
        measures: Aggregate expressions by name.
        comments: Comments by name of a dimension or measure, in order.
    """

    name: str
    comment: str
    source: str
    filter: str
    dimensions: Sequence[str]
    measures: Mapping[str, str]
    comments: Mapping[str, str]


def metric_views() -> Iterator[MetricView]:
    """Yield the metric views of ``metric_views.yaml``."""
    columns = {view.name: view.columns for view in views()}
    for name, keys in yaml.safe_load(_text("metric_views.yaml")).items():
        known, more = columns[keys["source"]], keys.get("measures", {})
        plain = {
            column: f"{function}({column})"
            for function in ("sum", "max")
            for column in keys.get(function, ())
        }
        comments = {column: known[column] for column in (*keys["dimensions"], *plain)}
        comments |= {measure: comment for measure, (_, comment) in more.items()}
        yield MetricView(
            name, keys["comment"], keys["source"], keys.get("filter", ""), keys["dimensions"],
            plain | {measure: sql for measure, (sql, _) in more.items()}, comments,
        )  # fmt: skip


def _measured(one: MetricView, name: str, source: str) -> str:
    """Return the statement that creates a metric view.

    Args:
        one: The metric view.
        name: Its name in SQL.
        source: Name of its source in SQL.
    """
    listed = ",\n".join(
        f"    {spark_identifier(column)} COMMENT {spark_text(comment)}"
        for column, comment in one.comments.items()
    )
    return (
        f"CREATE OR REPLACE VIEW {name} (\n{listed})\nWITH METRICS\nLANGUAGE YAML\n"
        f"COMMENT {spark_text(one.comment)}\nAS $$\n{_definition(one, source)}$$"
    )


def _definition(one: MetricView, source: str) -> str:
    columns = [{"name": name, "expr": name} for name in one.dimensions]
    measures = [{"name": name, "expr": sql} for name, sql in one.measures.items()]
    filtered = {"filter": one.filter} if one.filter else {}
    definition = {
        "version": "0.1", "source": source, **filtered, "dimensions": columns, "measures": measures,
    }  # fmt: skip
    return yaml.safe_dump(definition, sort_keys=False, width=1_000)
