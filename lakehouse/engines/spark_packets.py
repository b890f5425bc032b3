"""Between Spark and the kernel, in Spark's Python workers: from rows of bronze to rows of gold.

It is sent to the workers by value, so it needs nothing there but pyarrow and DuckDB.

Spark moves packets: a few thousand rows of one kind and part as one value, compressed. Each has a
``key``: the number of the call (from bit 32 on), that of the part (from bit 2 on; 0: rows of the
whole hour) and the kind. A worker gets those of a call in order of their keys.
"""

from __future__ import annotations

import json
from itertools import chain, groupby
from typing import TYPE_CHECKING, Final

from lakehouse.kernel.run_in_duckdb import KernelError, roll_up, units_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from lakehouse.kernel.run_in_duckdb import Program

    Packet = tuple[int, pa.Buffer]

DESCRIBED, SCRAPES, RUNS, SETS = range(4)

PART_SHIFT: Final = 2
CALL_SHIFT: Final = 32

PACKET: Final = {"key": "bigint", "rows": "binary"}

TARGET: Final = "target"
"""The column of staging that names the table of gold."""

BEFORE_ERROR: Final = "<jmxlake-kernel>"
AFTER_ERROR: Final = "</jmxlake-kernel>"
"""Around the one line of an error: Spark puts a stack of calls around it."""

_MOST_ROWS: Final = 10_000
_KIND_MASK: Final = (1 << PART_SHIFT) - 1
_IN_CALL: Final = (1 << CALL_SHIFT) - 1


def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows, with the column ``key``, as packets."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in batches:
        keys = batch.column("key")
        rows = batch.drop_columns(["key"])
        different = pc.unique(keys)
        packets = [
            _packet(rows if len(different) == 1 else rows.filter(pc.equal(keys, key)))
            for key in different
        ]
        yield pa.record_batch([different, pa.array(packets, pa.binary())], list(PACKET))


def mapper(
    program: Program, units: Sequence[Sequence[tuple[str, int]]], schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that turns packets, in order of their keys, into rows of staging.

    Args:
        program: The kernel's.
        units: Clusters and hours (microseconds since 1970) of each call, in order.
        schema: Staging's columns.
    """

    def rolled_up(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for call, packets in groupby(_packets(batches), key=lambda one: one[0] >> CALL_SHIFT):
                for name, rows in _call_kernel(program, units[call], packets).items():
                    yield from _shaped(name, rows, schema)
        except KernelError as error:
            raise RuntimeError(f"{BEFORE_ERROR}{error}{AFTER_ERROR}") from error

    return rolled_up


def _packet(rows: pa.RecordBatch) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_batch(rows)
    packet: bytes = sink.getvalue().to_pybytes()
    return packet


def _packets(batches: Iterable[pa.RecordBatch]) -> Iterator[Packet]:
    for batch in batches:
        keys, packets = (batch.column(name) for name in PACKET)
        yield from zip(keys.to_pylist(), (one.as_buffer() for one in packets), strict=True)


def _call_kernel(
    program: Program, units: Sequence[tuple[str, int]], packets: Iterator[Packet]
) -> dict[str, pa.Table]:
    """One call of the kernel."""
    parts: Iterator[tuple[int, Iterator[Packet]]] = groupby(
        packets, key=lambda one: (one[0] & _IN_CALL) >> PART_SHIFT
    )
    number, first = next(parts)
    labels = program.inputs["runs"].field("labels").type
    of_hour: dict[int, pa.Table] = {}
    if number == 0:
        of_hour = _by_kind(first, labels)
    else:
        parts = chain(((number, first),), parts)
    empty = {name: shape.empty_table() for name, shape in program.inputs.items()}
    kinds = (_by_kind(packets, labels) for _, packets in parts)
    return roll_up(
        program,
        units_table(units),
        of_hour.get(SCRAPES, empty["scrapes"]),
        of_hour.get(DESCRIBED),
        ((one.get(RUNS, empty["runs"]), one.get(SETS, empty["sets"])) for one in kinds),
    )


def _by_kind(packets: Iterator[Packet], labels: pa.DataType) -> dict[int, pa.Table]:
    """The rows of each kind."""
    import pyarrow as pa

    found: dict[int, list[pa.Table]] = {}
    for key, packet in packets:
        found.setdefault(key & _KIND_MASK, []).append(pa.ipc.open_stream(packet).read_all())
    return {kind: _with_maps(pa.concat_tables(tables), labels) for kind, tables in found.items()}


def _with_maps(rows: pa.Table, labels: pa.DataType) -> pa.Table:
    """Labels travel as JSON, of which there are few different ones."""
    import pyarrow as pa

    if "labels" not in rows.column_names:
        return rows
    different = rows["labels"].combine_chunks().dictionary_encode()
    maps = [list(json.loads(text).items()) for text in different.dictionary.to_pylist()]
    made = pa.array(maps, labels).take(different.indices)
    return rows.set_column(rows.column_names.index("labels"), "labels", made)


def _shaped(target: str, rows: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows of one table of gold with all columns of staging."""
    import pyarrow as pa

    named = rows.append_column(TARGET, pa.repeat(pa.scalar(target), rows.num_rows))
    cast = named.cast(pa.schema([schema.field(name) for name in named.column_names]))
    whole = pa.concat_tables([schema.empty_table(), cast], promote_options="default")
    yield from whole.combine_chunks().to_batches(max_chunksize=_MOST_ROWS)
