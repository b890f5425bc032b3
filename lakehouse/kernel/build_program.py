"""The program of the kernel: SQL files in order, with gold's tables and the objectives."""

import datetime as dt
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from lakehouse import tables
from lakehouse.core import metrics
from lakehouse.core.objective import Objective, regexes
from lakehouse.core.periods import micros, window_name
from lakehouse.kernel import arrow_types
from lakehouse.kernel.run_in_duckdb import FLAGS, Program
from lakehouse.tables.table import identifier, standard_text

CLOCK_SLACK: Final = dt.timedelta(hours=1)
"""Maximum time that a row is later than bronze's newest commit; clocks differ by less."""

_STAGES: Final = {
    "setup": (
        "subjects/table", "sli/finest", "topics/incidents_joined", "attempts/rejected_summed",
    ),
    "attempts": ("attempts/scrapes", "attempts/readings", "sli/sources"),
    "runs": ("values/runs", "values/once", "values/sums"),
    "described": ("topics/described",),
    "parts": (
        "values/additive", "values/gauges", "values/doubts", "values/claims",
        "values/client_claims", "values/atoms", "topics/topics", "topics/incidents",
        "subjects/subjects", "sli/topics", "sli/clients", "sli/groups", "sli/limits",
    ),
}  # fmt: skip
_INPUTS: Final = {
    "runs": "u source metric topic partition user client_id group labels start_us end_us lead_us "
    "tail_us value series members flags agent batch",
    "scrapes": "u source family start_us end_us outcome scrapes seconds_total seconds_max "
    "interval_us error agent batch",
    "sets": "cluster members topic partitions clients",
}
_MADE: Final = {"u": "int", "start_us": "bigint", "end_us": "bigint", "flags": "int"}
"""Columns of inputs that differ from bronze."""
_TYPES: Final = {
    "string": "VARCHAR", "int": "INTEGER", "bigint": "BIGINT", "double": "DOUBLE",
    "boolean": "BOOLEAN", "date": "DATE",
    "struct<user:string,client_id:string>": 'STRUCT("user" VARCHAR, client_id VARCHAR)',
}  # fmt: skip
_BY_LEADERS: Final = frozenset({metrics.UNDER_MIN_ISR, metrics.LEADERLESS, metrics.UNAVAILABLE})
_AGGREGATES: Final = {"sum": "sum", "max": "max", "min": "min", "any": "bool_or"}
_HOUR: Final = "hour_of(w)"


def build_program(
    window_seconds: int,
    committed: dt.datetime,
    objectives: Sequence[Objective],
    meanings: metrics.Meanings,
) -> Program:
    """Return the program of a rollup.

    Args:
        window_seconds: Length of gold's windows.
        committed: Time of bronze's newest commit. Later rows are in the future.
        objectives: Objectives of gold/sli.
        meanings: The families and traits of metrics.
    """
    import duckdb  # noqa: PLC0415 - readers of gold do not need it

    finish, merge = dict(_finish()), _subjects("subjects/merge")
    of_one_table = resources.files("lakehouse.kernel").joinpath("sql/tables").iterdir()
    names = sorted(f"tables/{one.name.removesuffix('.sql')}" for one in of_one_table)
    files = {**_STAGES, "parts": (*_STAGES["parts"], *names)}
    stages = {
        stage: tuple(one for name in names for one in _statements(name))
        for stage, names in files.items()
    }
    texts = map(_text, ("macros", *chain.from_iterable(files.values())))
    everything = "\n".join((*texts, *finish.values(), merge))
    others = ((f"other parts {one.name}", f"TRUNCATE out_{one.name}") for one in _OF_ATTEMPTS)
    constants = (
        ("window", f"CREATE MACRO window_us() AS {window_seconds * 1_000_000}::BIGINT"),
        ("latest", f"CREATE MACRO latest_us() AS {micros(committed + CLOCK_SLACK)}::BIGINT"),
        *(
            (flag, f"CREATE MACRO is_{flag}(flags) AS flags & {bit} <> 0")
            for flag, bit in FLAGS.items()
        ),
        ("name", f"CREATE MACRO window_name() AS {standard_text(window_name(window_seconds))}"),
    )
    results = (("results", _result_table(table)) for table in _COMPUTED)
    return Program(
        kernel=hashlib.sha256(everything.encode()).hexdigest()[:12],
        duckdb=duckdb.__version__,
        schemas={
            table.name: {one.name: one.type.replace("timestamp", "bigint") for one in table.columns}
            for table in (*tables.OF_HOURS, tables.SUBJECTS)
        },
        inputs=_inputs(),
        window_us=window_seconds * 1_000_000,
        describing=_describing(objectives, meanings),
        literals=_literals(objectives, meanings),
        stages=stages
        | {"other_parts": tuple(others)}
        | {"setup": (*constants, *_statements("macros"), *results, *stages["setup"])},
        finish=finish,
        merge=merge,
    )


_COMPUTED: Final = (
    *tables.HOURS, tables.DISTRIBUTIONS, tables.READINGS, tables.LAGS, tables.REJECTED,
)  # fmt: skip
"""Tables with rows in ``out_NAME`` during a kernel run: per hour for readings, else per window."""
_OF_ATTEMPTS: Final = (
    tables.COVERAGE, tables.READINGS, tables.REJECTED, tables.SLI, tables.SUBJECTS,
)  # fmt: skip
"""Tables with rows of attempts, which only one of several parts adds."""


def _text(name: str) -> str:
    return resources.files("lakehouse.kernel").joinpath(f"sql/{name}.sql").read_text("utf-8")


def _statements(name: str) -> Iterator[tuple[str, str]]:
    """Yield the statements of a file, each with its place in the file."""
    import duckdb  # noqa: PLC0415 - as above

    for number, statement in enumerate(duckdb.extract_statements(_text(name)), 1):
        yield f"{name}.sql/{number}", statement.query


def _describing(objectives: Sequence[Objective], meanings: metrics.Meanings) -> tuple[str, ...]:
    described = {name for name, one in meanings.traits.items() if one.describes}
    return tuple(sorted(described.union(*(one.where for one in objectives))))


def _inputs() -> dict[str, pa.Schema]:
    bronze = (tables.MEMBERS, tables.SCRAPES, tables.RUNS)
    types = {one.name: one.type for table in bronze for one in table.columns} | _MADE
    return {
        name: arrow_types.schema((column, types[column]) for column in columns.split())
        for name, columns in _INPUTS.items()
    }


def _literals(objectives: Sequence[Objective], meanings: metrics.Meanings) -> dict[str, pa.Table]:
    """Return small tables that statements read."""
    timed = [one for one in objectives if one.events is None]
    # A leader's reports of these metrics show that it was scraped.
    of_others = (one.metric for one in timed if one.kind in {"topic", "client", "group"})
    by_others = {metrics.GROUP_LAG, *of_others} - _BY_LEADERS
    watched = {*metrics.WATCHED, *(one.metric for one in timed if one.is_at_zero)}
    return {
        "traits": _rows(
            "metric base side describes is_position by_replicas",
            (
                [
                    name, one.bound_of or name, one.side, one.describes or None,
                    one.is_position, one.by_replicas,
                ]
                for name, one in sorted(meanings.traits.items())
            ),
        ),
        "watched": _rows("metric", ([one] for one in sorted(watched))),
        "objectives": _rows(
            "objective level metric threshold op by_controllers conditions",
            (
                [
                    one.name, one.kind, one.metric, one.threshold, one.op,
                    meanings.traits_of(one.metric).by_controllers, len(one.where),
                ]
                for one in timed
            ),
        ),
        "read_with": _rows(
            "metric family",
            (
                [metric, family]
                for metric in sorted(by_others)
                for family in sorted(meanings.families_of(metric))
            ),
        ),
        "conditions": _rows(
            "objective attribute value number",
            (
                [one.name, key, value, len(one.where)]
                for one in timed
                for key, value in one.where.items()
            ),
        ),
        "label_patterns": _rows(
            "objective label excluding regex",
            (
                [one.name, label, excluding, regex]
                for one in timed
                for label, patterns in one.series.items()
                for excluding, regex in enumerate(regexes(patterns))
                if regex
            ),
        ),
    }  # fmt: skip


_NUMBERS: Final = {
    "threshold": "double", "value": "double", "by_controllers": "boolean",
    "is_position": "boolean", "by_replicas": "boolean", "conditions": "int", "number": "int",
    "excluding": "int",
}  # fmt: skip
"""Types of columns of small tables; all other columns are text."""


def _rows(columns: str, rows: Iterable[Sequence[Any]]) -> pa.Table:
    shape = arrow_types.schema((name, _NUMBERS.get(name, "string")) for name in columns.split())
    return arrow_types.rows(shape, rows)


def duckdb_type(kind: str, instant: str = "BIGINT") -> str:
    """Return DuckDB's name of a type that is written as Spark writes it."""
    if kind.startswith("array<"):
        return f"{duckdb_type(kind[6:-1], instant)}[]"
    if kind.startswith("map<string,"):
        return f"MAP(VARCHAR, {duckdb_type(kind[11:-1], instant)})"
    return instant if kind == "timestamp" else _TYPES[kind]


def _result_table(table: tables.Table) -> str:
    """Return the statement that creates ``out_NAME`` of a table; sums of doubles stay exact."""
    exact = {("sum", "double"): "DECIMAL(38, 6)"}
    columns = ", ".join(
        f"{identifier(column.name)} "
        + exact.get((column.over, column.type), duckdb_type(column.type))
        for column in table.columns
        if column.name not in {"date", "cluster", table.start} and column.over != "mean"
    )
    return f"CREATE TABLE out_{table.name} (w BIGINT, {columns})"


def _finish() -> Iterator[tuple[str, str]]:
    """Yield the query of each table of gold."""
    for table in tables.HOURS:
        windows, is_sli = tables.WINDOWS[table.name], table is tables.SLI
        source = "sli_finest" if is_sli else f"out_{table.name}"
        kept = " WHERE NOT good_throughout" if is_sli else ""
        yield table.name, _summed(table, _HOUR, source)
        yield windows.name, _summed(windows, "w", f"{source}{kept}")
    yield tables.DISTRIBUTIONS.name, _summed(tables.DISTRIBUTIONS, _HOUR, "out_distributions")
    yield tables.INCIDENTS.name, _rows_of(tables.INCIDENTS, "incidents_joined")
    yield tables.READINGS.name, _rows_of(tables.READINGS, "out_readings")
    yield tables.LAGS.name, _rows_of(tables.LAGS, "out_lags")
    yield tables.REJECTED.name, _rows_of(tables.REJECTED, "rejected_summed")
    yield tables.SUBJECTS.name, _subjects("subjects/reported")


def _subjects(each: str) -> str:
    """Return the query of subjects, from a file that defines ``each``."""
    return f"WITH {_text(each)}, {_text('subjects/latest')}"


def _summed(table: tables.Table, place: str, source: str) -> str:
    """Return the query of a table's rows, summed over parts and over windows of ``place``."""
    keys = ", ".join(identifier(key) for key in table.keys if key != "cluster")
    measures = ", ".join(
        f"{_over(column, place)} AS {identifier(column.name)}"
        for column in table.measures
        if column.over != "mean"
    )
    grouped = f"SELECT {place} AS w, {keys}, {measures} FROM {source} GROUP BY ALL"
    return _rows_of(table, f"({grouped})")


_START: Final = "hour_us + w % stride()"
_PLACE: Final = (
    f"DATE '1970-01-01' + (({_START}) // 86400000000)::INTEGER AS date, cluster, ({_START})::BIGINT"
)


def _rows_of(table: tables.Table, source: str) -> str:
    """Return the query of the rows in ``source``, with instants in UTC."""
    named = (c for c in table.columns if c.name not in {"date", "cluster", table.start})
    columns = ", ".join(map(_final, named))
    keys = ", ".join(identifier(key) for key in table.keys if key != "cluster")
    return (
        f"SELECT {_PLACE} AS {table.start}, {columns} "
        f"FROM {source} JOIN units ON units.u = w // stride() ORDER BY cluster, w, {keys}"
    )


def _over(column: tables.Column, place: str) -> str:
    name = identifier(column.name)
    if column.over != "first":
        return f"{_AGGREGATES[column.over]}({name})"
    if place != _HOUR:
        return f"max({name})"
    first = f"max({name}) FILTER (w = {_HOUR})"
    return f"CASE WHEN count({name}) > 0 THEN coalesce({first}, 0) END"


def _final(column: tables.Column) -> str:
    name = identifier(column.name)
    if column.over == "mean":
        return (
            "CASE WHEN series_seen_us > 0 "
            f"THEN value_seconds::DOUBLE / (series_seen_us::DOUBLE / 1e6) END AS {name}"
        )
    if column.type == "timestamp":
        return f"off_axis(u, hour_us, {name}) AS {name}"
    return f"{name}::{duckdb_type(column.type)} AS {name}"
