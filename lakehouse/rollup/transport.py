"""Between Spark and the kernel, in Spark's Python workers: from rows of one frame to rows of gold.

It is sent to the workers by value, so it needs nothing there but pyarrow and DuckDB.

The rows come in order of ``key``: the number of the call (from bit 32 on), that of the part (from
bit 2 on; 0: rows of the whole hour) and the kind. Each kind has the columns of runs; what scrapes
and sets have besides lies in ``more``, as JSON.
"""

from __future__ import annotations

import json
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Final

from lakehouse.kernel.worker import KernelError, roll_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from lakehouse.kernel.worker import Program

    Piece = tuple[int, pa.RecordBatch]

DESCRIBED, SCRAPES, RUNS, SETS = range(4)
"""Kinds of rows."""

PART_SHIFT: Final = 2
CALL_SHIFT: Final = 32

RUN_COLUMNS: Final = (
    "u", "source", "metric", "topic", "partition", "user", "client_id", "group", "labels",
    "start_us", "end_us", "lead_us", "tail_us", "value", "series", "members", "flags", "agent",
    "batch",
)  # fmt: skip
SCRAPE_COLUMNS: Final = (
    "u", "source", "family", "start_us", "end_us", "outcome", "scrapes", "seconds_total",
    "seconds_max", "interval_us", "error", "agent", "batch",
)  # fmt: skip
SET_COLUMNS: Final = ("u", "members", "topic", "partitions", "clients")

TARGET: Final = "target"
"""The column of staging that names the table of gold."""

BEFORE_ERROR: Final = "<jmxlake-kernel>"
AFTER_ERROR: Final = "</jmxlake-kernel>"
"""Around the one line of an error: Spark puts a stack of calls around it."""

_MOST_ROWS: Final = 10_000
_KIND_MASK: Final = (1 << PART_SHIFT) - 1
_IN_CALL: Final = (1 << CALL_SHIFT) - 1


def mapper(
    program: Program, units: Sequence[Sequence[tuple[str, int]]], schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What makes rows of staging of the rows of some calls, which come in order of ``key``.

    Args:
        program: The kernel's.
        units: Of each call its clusters and hours (microseconds since 1970), in their order.
        schema: Staging's columns.
    """

    def rolled_up(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for call, pieces in groupby(_pieces(batches), key=lambda piece: piece[0] >> CALL_SHIFT):
                for name, rows in _called(program, units[call], pieces).items():
                    yield from _shaped(name, rows, schema)
        except KernelError as error:
            raise RuntimeError(f"{BEFORE_ERROR}{error}{AFTER_ERROR}") from error

    return rolled_up


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    """Rows of one key, in order."""
    import pyarrow.compute as pc

    for batch in batches:
        keys = batch.column("key")
        if not batch.num_rows:
            continue
        if keys[0].as_py() == keys[-1].as_py():
            yield keys[0].as_py(), batch
            continue
        runs = pc.run_end_encode(keys)
        start = 0
        for key, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield key, batch.slice(start, end - start)
            start = end


def _called(
    program: Program, units: Sequence[tuple[str, int]], pieces: Iterator[Piece]
) -> dict[str, pa.Table]:
    """One call of the kernel."""
    import pyarrow as pa

    parts: Iterator[tuple[int, Iterator[Piece]]] = groupby(
        pieces, key=lambda piece: (piece[0] & _IN_CALL) >> PART_SHIFT
    )
    number, first = next(parts)
    of_hour: dict[int, list[pa.RecordBatch]] = {}
    if number == 0:
        of_hour = _by_kind(first)
    else:
        parts = chain(((number, first),), parts)
    described = of_hour.get(DESCRIBED)
    clusters, hours = zip(*units, strict=True)
    numbered = {
        "u": pa.array(range(len(units)), pa.int32()),
        "cluster": pa.array(clusters, pa.string()),
        "hour_us": pa.array(hours, pa.int64()),
    }
    return roll_up(
        program,
        pa.table(numbered),
        _table(of_hour.get(SCRAPES), SCRAPE_COLUMNS),
        _table(described, RUN_COLUMNS) if described else None,
        _parts(parts),
    )


def _parts(
    parts: Iterable[tuple[int, Iterator[Piece]]],
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Runs and sets of each part; at least one."""
    found = False
    for _, pieces in parts:
        kinds = _by_kind(pieces)
        yield _table(kinds.get(RUNS), RUN_COLUMNS), _table(kinds.get(SETS), SET_COLUMNS)
        found = True
    if not found:
        yield _table(None, RUN_COLUMNS), _table(None, SET_COLUMNS)


def _by_kind(pieces: Iterable[Piece]) -> dict[int, list[pa.RecordBatch]]:
    found: dict[int, list[pa.RecordBatch]] = {}
    for key, batch in pieces:
        found.setdefault(key & _KIND_MASK, []).append(batch)
    return found


def _table(batches: list[pa.RecordBatch] | None, names: Sequence[str]) -> pa.Table:
    """Some columns of rows of one kind; those that are no columns of runs lie in ``more``."""
    import pyarrow as pa

    types = _types()
    if not batches:
        return pa.schema([(name, types[name]) for name in names]).empty_table()
    rows = pa.Table.from_batches(batches)
    more = [json.loads(text) for text in rows["more"].drop_null().to_pylist()]
    columns = []
    for name in names:
        if name == "labels":
            columns.append(_maps(rows[name], types[name]))
        elif name in rows.column_names:
            columns.append(rows[name])
        else:
            values = [row.get(name) for row in more]
            if types[name] == pa.float64():  # Spark writes what is no number as a text
                values = [None if value is None else float(value) for value in values]
            columns.append(pa.array(values, types[name]))
    return pa.table(columns, names=list(names))


def _maps(texts: pa.ChunkedArray, kind: pa.MapType) -> pa.ChunkedArray:
    """Maps that travel as JSON, of which there are few different ones."""
    import pyarrow as pa

    different = texts.combine_chunks().dictionary_encode()
    maps = [list(json.loads(text).items()) for text in different.dictionary.to_pylist()]
    return pa.array(maps, kind).take(different.indices)


def _types() -> dict[str, Any]:
    """Types of the kernel's inputs, for those without rows."""
    import pyarrow as pa

    client = pa.struct([("user", pa.string()), ("client_id", pa.string())])
    kinds = {
        pa.int32(): "u partition series flags scrapes",
        pa.int64(): "start_us end_us lead_us tail_us batch interval_us",
        pa.float64(): "value seconds_total seconds_max",
        pa.string(): "source metric topic user client_id group members agent family outcome error",
        pa.map_(pa.string(), pa.string()): "labels",
        pa.list_(pa.int32()): "partitions",
        pa.list_(client): "clients",
    }
    return {name: kind for kind, names in kinds.items() for name in names.split()}


def _shaped(target: str, rows: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows of one table of gold with all columns of staging."""
    import pyarrow as pa

    there = set(rows.column_names)
    for batch in rows.combine_chunks().to_batches(max_chunksize=_MOST_ROWS):
        arrays = [
            batch.column(field.name).cast(field.type)
            if field.name in there
            else pa.nulls(batch.num_rows, field.type)
            for field in schema
            if field.name != TARGET
        ]
        name = pa.repeat(pa.scalar(target), batch.num_rows)
        yield pa.record_batch([name, *arrays], schema=schema)
