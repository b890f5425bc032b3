"""Writes the bronze of a sample: one commit a table."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake

from lakehouse import tables
from lakehouse.errors import LakehouseError
from lakehouse.rollup.delta_rs import explained
from lakehouse.sample import spans, world
from lakehouse.sample.spans import WINDOW_US
from lakehouse.tables import parquet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse.sample.script import Script

Row = tuple[Any, ...]

CATALOGUE: Final = "sample"
REFUSED: Final = "connection refused"
REFUSED_US: Final = 2_000
"""How long it takes a host to refuse a connection."""

_CLIENT: Final = pa.struct([("user", pa.string()), ("client_id", pa.string())])
_TYPES: Final = {
    "string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64(),
    "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"),
    "array<int>": pa.list_(pa.int32()), "array<string>": pa.list_(pa.string()),
    "array<struct<user:string,client_id:string>>": pa.list_(_CLIENT),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}  # fmt: skip


class Written(NamedTuple):
    """How many rows of which table."""

    members: int
    runs: int
    scrapes: int
    events: int


def write(root: Path, script: Script) -> Written:
    """Write a lake into a folder that holds none; it is made where it is missing.

    Raises:
        LakehouseError: There is a lake already, or nothing can be written there.
    """
    if any((root / layer).exists() for layer in ("bronze", "gold")):
        raise LakehouseError(f"{root}: there is a lake already; give a folder that is new or empty")
    made = rows(script)
    with explained(str(root)):
        for table in sorted(tables.BRONZE, key=lambda one: Written._fields.index(one.name)):
            delta = DeltaTable.create(
                str(root / table.path), schema=_schema(table), configuration=table.properties,
                partition_by=list(table.partition_by), raise_if_key_not_exists=False,
            )  # fmt: skip
            write_deltalake(
                delta, made[table.name], mode="append",
                writer_properties=parquet.writer_properties(table),
                post_commithook_properties=PostCommitHookProperties(create_checkpoint=False),
            )  # fmt: skip
    return Written(**{name: len(made[name]) for name in Written._fields})


def rows(script: Script) -> dict[str, pa.Table]:
    """The rows of each table of bronze, in its order."""
    runs, sets = _runs(script)
    found = {
        tables.MEMBERS: sets, tables.RUNS: runs, tables.SCRAPES: list(_accounts(script)),
        tables.EVENTS: [
            _row(script, one.source, one.at, one.at, one.kind, one.topic, one.partition,
                 None, None, None, one.old, one.new)
            for one in script.events()
        ],
    }  # fmt: skip
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        return {table.name: _by_window(db, table, narrow) for table, narrow in found.items()}


def _by_window(db: duckdb.DuckDBPyConnection, table: tables.Table, narrow: list[Row]) -> pa.Table:
    """Rows cut where a window starts."""
    columns = zip(*narrow, strict=True) if narrow else ([] for _ in table.columns)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _schema(table), strict=True)]
    db.register("narrow", pa.table(arrays, schema=_schema(table)))
    cut = db.sql(_CUT, params=[WINDOW_US]) if "end" in table.column_names else db.table("narrow")
    order = (f'"{one}" NULLS FIRST' for one in (*table.partition_by, *table.sort_by))
    return cut.order(", ".join(order)).to_arrow_table()


def _schema(table: tables.Table) -> pa.Schema:
    return pa.schema([pa.field(c.name, _TYPES[c.type], c.nullable) for c in table.columns])


def _row(script: Script, source: int, at_us: int, *rest: Any) -> Row:
    """Columns that tables have in common, around others: of events and runs."""
    name = world.SOURCES[source]
    batch = (at_us - script.start_us) // WINDOW_US + 1
    return at_us // world.DAY_US, world.NAME, name, *rest, f"agent-{name}", batch


def _runs(script: Script) -> tuple[list[Row], list[Row]]:
    """Spans of all series, whole windows together; and the sets that they refer to."""
    found: list[Row] = []
    sets: dict[tuple[int, str], Row] = {}
    for source in world.SOURCES:
        attempts = {one: script.attempts(source, one) for one in script.families(source)}
        told = (
            (
                one.subject,
                spans.of_series(metric, one.history, one.increments, attempts[metric.family]),
            )
            for one in script.series(source)
            for metric in (world.METRICS[one.subject.metric],)
        )
        for subject, span, members in sorted(spans.fold(told), key=lambda one: one.span.start):
            name = None
            if members:
                content = _content(subject, members)
                text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
                name = hashlib.sha256(text.encode()).hexdigest()[:32]
                *_, agent, batch = _row(script, source, span.start)
                sets.setdefault((source, name), (name, world.NAME, *content, agent, batch))
            read = attempts[world.METRICS[subject.metric].family]
            found.append(_row(
                script, source, span.start, *subject[:-1], subject.labels or None, span.start,
                span.end, span.lead, span.tail, span.value, read.number_in(span.start, span.end),
                len(members) or 1, name, span.flags or None,
            ))  # fmt: skip
    return found, list(sets.values())


def _content(subject: world.Subject, members: tuple[world.Subject, ...]) -> Row:
    """What a set holds, as agents write it."""
    if members[0].partition is None:
        return "clients", None, None, [(one.user, one.client_id) for one in members]
    return "partitions", subject.topic, [one.partition for one in members], None


def _accounts(script: Script) -> Iterator[Row]:
    """How all attempts ended, since when they end alike."""
    for source in world.SOURCES:
        for family in script.families(source):
            read, attempts = world.FAMILIES[family], script.attempts(source, family)
            for ok, from_us, to_us in attempts.outcomes():
                took_us = attempts.took_us if ok else REFUSED_US
                for start, end in spans.cut(from_us, to_us):
                    count = attempts.number_in(start, end, answered=ok)
                    yield _row(
                        script, source, start, family, start, end, "ok" if ok else "refused", count,
                        count * read.beans if ok else 0, 0, count * took_us / 1e6,
                        took_us / 1e6 if count else 0.0, attempts.interval_us,
                        round(attempts.interval_us * tables.MAX_GAP_INTERVALS), CATALOGUE,
                        world.KAFKA_VERSION if ok and read.via_jmx else None,
                        None if ok else REFUSED,
                    )  # fmt: skip


_CUT: Final = """
WITH parts AS (
    SELECT *, $1 AS size, epoch_us(start) AS s, epoch_us("end") AS e FROM narrow
), placed AS (SELECT *, unnest(range(s, e, size)) AS at_us FROM parts)
SELECT * EXCLUDE (size, s, e, at_us) REPLACE (
    make_timestamptz(at_us)::DATE AS date, make_timestamptz(at_us) AS start,
    make_timestamptz(least(e, at_us - at_us % size + size)) AS "end",
    batch + (at_us - s) // size AS batch)
FROM placed
"""
