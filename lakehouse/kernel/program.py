"""The kernel's program: its SQL files in order, with gold's tables and the objectives."""

import datetime as dt
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, Final

import pyarrow as pa

from lakehouse import tables
from lakehouse.core import metrics
from lakehouse.core.objective import Objective
from lakehouse.core.periods import micros, window_name
from lakehouse.kernel.worker import FLAGS, Program

CLOCK_SLACK: Final = dt.timedelta(hours=1)
"""A row may be this much later than bronze's newest commit; clocks differ by less."""

_ATTEMPTS: Final = ("attempts/scrapes", "attempts/readings", "sli/sources")
_RUNS: Final = ("values/runs",)
_DESCRIBED: Final = ("topics/described",)
_PARTS: Final = (
    "values/additive", "values/gauges", "values/doubts", "values/claims", "values/client_claims",
    "values/atoms", "topics/topics", "topics/incidents", "subjects/subjects", "sli/topics",
    "sli/clients", "sli/groups", "sli/limits",
)  # fmt: skip
_VIEWS: Final = ("sli/finest", "topics/incidents_joined")
_TYPES: Final = {
    "string": "VARCHAR", "int": "INTEGER", "bigint": "BIGINT", "double": "DOUBLE",
    "boolean": "BOOLEAN", "timestamp": "BIGINT", "map<string,double>": "MAP(VARCHAR, DOUBLE)",
    "map<string,timestamp>": "MAP(VARCHAR, BIGINT)",
}  # fmt: skip
_BY_LEADERS: Final = frozenset({metrics.UNDER_MIN_ISR, metrics.LEADERLESS, metrics.UNAVAILABLE})
_SUM: Final = "DECIMAL(38, 6)"
_AGGREGATES: Final = {"sum": "sum", "max": "max", "min": "min", "any": "bool_or"}
_HOUR: Final = "hour_of(w)"


def program(
    window_seconds: int,
    committed: dt.datetime,
    objectives: Sequence[Objective],
    families: metrics.Families,
) -> Program:
    """The program of a rollup.

    Args:
        window_seconds: Finest windows of gold.
        committed: When the newest commit of bronze was made; later rows lie in the future.
        objectives: The objectives of gold/sli.
        families: With which families of beans their metrics are read.
    """
    import duckdb  # noqa: PLC0415 - readers of gold need none of it

    def stage(*names: str) -> tuple[tuple[str, str], ...]:
        return tuple(one for name in names for one in _statements(name))

    finish = tuple(_finish())
    merge = _subjects("subjects/merge")
    parts = (*_PARTS, *_of_one_table())
    files = ("macros", *_ATTEMPTS, *_RUNS, *_DESCRIBED, *parts, *_VIEWS)
    everything = "\n".join((*map(_text, files), *dict(finish).values(), merge))
    constants = (
        ("window", f"CREATE MACRO window_us() AS {window_seconds * 1_000_000}::BIGINT"),
        ("latest", f"CREATE MACRO latest_us() AS {micros(committed + CLOCK_SLACK)}::BIGINT"),
        *(
            (flag, f"CREATE MACRO is_{flag}(flags) AS flags & {bit} <> 0")
            for flag, bit in FLAGS.items()
        ),
        ("name", f"CREATE MACRO window_name() AS '{window_name(window_seconds)}'"),
    )
    results = (("results", _result_table(table)) for table in _COMPUTED)
    return Program(
        kernel=hashlib.sha256(everything.encode()).hexdigest()[:12],
        duckdb=duckdb.__version__,
        schemas={
            table.name: {one.name: one.type.replace("timestamp", "bigint") for one in table.columns}
            for table in (*tables.OF_HOURS, tables.SUBJECTS)
        },
        describing=tuple(
            sorted({*metrics.describing(), *(key for one in objectives for key in one.where)})
        ),
        setup=(*constants, *_statements("macros"), *results, *stage(*_VIEWS)),
        literals=_literals(objectives, families),
        attempts=stage(*_ATTEMPTS),
        runs=stage(*_RUNS),
        described=stage(*_DESCRIBED),
        parts=stage(*parts),
        finish=finish,
        merge=merge,
    )


_FROM_VIEWS: Final = (tables.INCIDENTS, *tables.WINDOWS.values())
_COMPUTED: Final = [
    table for table in (*tables.OF_HOURS, tables.SUBJECTS) if table not in _FROM_VIEWS
]
"""Each has rows in the table ``out_NAME`` until a call ends: readings of hours, all else finest."""


def _of_one_table() -> Iterator[str]:
    """Files that fill one table alone; each has its name."""
    folder = resources.files("lakehouse.kernel").joinpath("sql/tables")
    for name in sorted(table.name for table in _COMPUTED):
        if folder.joinpath(f"{name}.sql").is_file():
            yield f"tables/{name}"


def _text(name: str) -> str:
    return resources.files("lakehouse.kernel").joinpath(f"sql/{name}.sql").read_text("utf-8")


def _statements(name: str) -> Iterator[tuple[str, str]]:
    """A file's statements, each with its place; no text in them has a semicolon."""
    plain = re.sub(r"--[^\n]*", "", _text(name))
    for number, sql in enumerate(filter(None, map(str.strip, plain.split(";"))), 1):
        yield f"{name}.sql/{number}", sql


def _literals(objectives: Sequence[Objective], families: metrics.Families) -> dict[str, pa.Table]:
    """Small tables that statements read."""
    timed = [one for one in objectives if one.events is None]
    # A leader's own readings of these claim the time that it was read.
    of_others = (one.metric for one in timed if one.kind in {"topic", "client", "group"})
    by_others = {metrics.GROUP_LAG, *of_others} - _BY_LEADERS
    watched = {*metrics.WATCHED, *(one.metric for one in timed if one.is_at_zero)}
    return {
        "describing": _rows({"metric": "string"}, ([one] for one in sorted(metrics.describing()))),
        "watched": _rows({"metric": "string"}, ([one] for one in sorted(watched))),
        "objectives": _rows(
            {
                "objective": "string", "level": "string", "metric": "string",
                "threshold": "double", "op": "string",
                "by_controllers": "bool", "conditions": "int32",
            },
            (
                [
                    one.name, one.kind, one.metric, one.threshold, one.op,
                    one.metric.startswith(metrics.CONTROLLER_METRICS), len(one.where),
                ]
                for one in timed
            ),
        ),
        "read_with": _rows(
            {"metric": "string", "family": "string"},
            (
                [metric, family]
                for metric in sorted(by_others)
                for bound in ("", ".high")  # of groups, whose metric may be two bounds
                for family in sorted(families.get(f"{metric}{bound}", ()))
            ),
        ),
        "conditions": _rows(
            {"objective": "string", "attribute": "string", "value": "double", "number": "int32"},
            (
                [one.name, key, value, len(one.where)]
                for one in timed
                for key, value in one.where.items()
            ),
        ),
    }  # fmt: skip


def _rows(types: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> pa.Table:
    named = [dict(zip(types, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, pa.schema(types.items()))


def _result_table(table: tables.Table) -> str:
    """Finest rows of a table while parts are computed: sums of doubles stay exact."""
    if table is tables.SUBJECTS:
        return _text("subjects/table")
    columns = ", ".join(
        f'"{column.name}" {_SUM if _is_exact(column) else _TYPES[column.type]}'
        for column in table.columns
        if column.name not in {"date", "cluster", "window"} and column.over != "mean"
    )
    return f"CREATE TABLE out_{table.name} (w BIGINT, {columns})"


def _is_exact(column: tables.Column) -> bool:
    return column.type == "double" and column.over == "sum"


def _finish() -> Iterator[tuple[str, str]]:
    """Per table of gold the query that gives its rows."""
    for table in tables.HOURS:
        yield table.name, _summed(table, _HOUR)
        windows = tables.WINDOWS[table.name]
        kept = "WHERE NOT good_throughout" if table is tables.SLI else ""
        yield windows.name, _summed(table, "w", kept)
    yield tables.DISTRIBUTIONS.name, _summed(tables.DISTRIBUTIONS, _HOUR)
    yield tables.INCIDENTS.name, _of_spans(tables.INCIDENTS, "incidents_joined")
    yield tables.READINGS.name, _of_spans(tables.READINGS, "out_readings")
    yield tables.LAGS.name, _of_spans(tables.LAGS, "out_lags")
    yield tables.REJECTED.name, _rejected()
    yield tables.SUBJECTS.name, _subjects("subjects/reported")


def _subjects(each: str) -> str:
    """Subjects of the rows that a file names ``each``."""
    return f"WITH {_text(each)}, {_text('subjects/latest')}"


def _summed(table: tables.Table, place: str, kept: str = "") -> str:
    """Rows of a table summed over parts, and windows where ``place`` is their hour."""
    keys = ", ".join(f'"{key}"' for key in table.keys if key != "cluster")
    measures = ", ".join(
        f'{_over(column, place)} AS "{column.name}"'
        for column in table.measures
        if column.over != "mean"
    )
    source = "sli_finest" if table is tables.SLI else f"out_{table.name}"
    grouped = f"SELECT {place} AS w, {keys}, {measures} FROM {source} {kept} GROUP BY ALL"
    names = (c for c in table.columns if c.name not in {"date", "cluster", "window"})
    columns = ", ".join(map(_final, names))
    return (
        f"WITH grouped AS ({grouped}) SELECT {_PLACE}, {columns} FROM grouped "
        f"JOIN units ON units.u = w // stride() ORDER BY cluster, w, {keys}"
    )


_WINDOW: Final = "hour_us + w % stride()"
_PLACE: Final = (
    f"DATE '1970-01-01' + (({_WINDOW}) // 86400000000)::INTEGER AS date, cluster, "
    f'({_WINDOW})::BIGINT AS "window"'
)


def _over(column: tables.Column, place: str) -> str:
    name = f'"{column.name}"'
    if column.over != "first":
        return f"{_AGGREGATES[column.over]}({name})"
    if place != _HOUR:
        return f"max({name})"
    first = f"max({name}) FILTER (w = {_HOUR})"
    return f"CASE WHEN count({name}) > 0 THEN coalesce({first}, 0) END"


def _final(column: tables.Column) -> str:
    name = f'"{column.name}"'
    if column.over == "mean":
        return (
            "CASE WHEN observed_us > 0 THEN value_seconds::DOUBLE / (observed_us::DOUBLE / 1e6) END"
            f" AS {name}"
        )
    return f"{name}::{_TYPES[column.type]} AS {name}"


def _of_spans(table: tables.Table, source: str) -> str:
    """Rows of a table as they are in ``source``, their instants taken off the axis of time."""
    columns = [c for c in table.columns if c.name not in {"date", "cluster", "window"}]
    shown = ", ".join(
        f'(hour_us + "{column.name}" % stride())::BIGINT AS "{column.name}"'
        if column.type == "timestamp"
        else _final(column)
        for column in columns
    )
    keys = ", ".join(f'"{key}"' for key in table.keys if key != "cluster")
    return (
        f"WITH spans AS (SELECT * FROM {source}) SELECT {_PLACE}, {shown} FROM spans "
        f"JOIN units ON units.u = w // stride() ORDER BY units.cluster, w, {keys}"
    )


def _rejected() -> str:
    keys = ("reason", "table", "source", "metric", "members")
    listed = ", ".join(f'"{key}"' for key in keys)
    return (
        f'WITH grouped AS (SELECT w, {listed}, min("start") AS "start", max("end") AS "end", '
        "min(agent) AS agent, min(batch) AS batch, sum(rows)::BIGINT AS rows FROM out_rejected "
        f'GROUP BY ALL) SELECT {_PLACE}, {listed}, off_axis(u, hour_us, "start") AS "start", '
        'off_axis(u, hour_us, "end") AS "end", agent, batch, rows FROM grouped '
        f"JOIN units ON units.u = w // stride() ORDER BY cluster, w, {listed}"
    )
