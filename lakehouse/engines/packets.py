"""Packets between an engine and the kernel: rows of bronze in, rows of gold out, in any worker.

A packet is many rows of one kind as one compressed value. Packets of bronze go to the parts of
calls that need them. Each part makes rows of gold; rows to which several parts of a call add go to
a ``place``, which merges them. Spark sends packets between its tasks (``part_mapper``,
``merge_mapper``); the local engine keeps them in memory.

The module is sent to Spark's workers by value. They need only pyarrow and DuckDB.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import zlib
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.kernel import run_in_duckdb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from lakehouse.kernel.run_in_duckdb import Program

    Packet = tuple[int, Any, pa.Buffer]  # part and kind, or as in GOLD

DESCRIBED, SCRAPES, RUNS, SETS = range(4)
"""Kinds of rows of bronze."""

KIND_BITS: Final = 2
PARTS_BITS: Final = 20
"""A key holds the first part that needs a row, the number of such parts, and the row's kind."""

COST: Final = "_cost"
"""Target of packets with the cost of a part; their columns are the fields of ``Cost``."""

BRONZE: Final = {"key": "bigint", "rows": "binary"}
GOLD: Final = {"place": "bigint", "target": "string", "rows": "binary"}

BEFORE_ERROR: Final = "<jmxlake-kernel>"
AFTER_ERROR: Final = "</jmxlake-kernel>"
"""Marks around the line of an error, which Spark reports within a stack trace."""

_MOST_PACKED: Final = 100_000
_MOST_MADE: Final = 200_000


class Part(NamedTuple):
    """A part of a call of the kernel.

    Attributes:
        units: Clusters and hours (microseconds since 1970) of the call, in order.
        place: First place of the rows to which other parts also add.
        places: Number of such places. 0 means that the part is the whole call.
        first: True for the one part that accounts for the scrapes.
    """

    units: tuple[tuple[str, int], ...]
    place: int
    places: int
    first: bool


class Cost(NamedTuple):
    """The cost of a part, measured in its worker.

    Attributes:
        rows: Number of runs.
        seconds: Time from its packets to rows of gold.
        peak_bytes: Peak memory of its DuckDB, without the input rows.
    """

    rows: int
    seconds: float
    peak_bytes: int


class Computed(NamedTuple):
    """Rows made by a part.

    Attributes:
        final: Rows of gold, by table.
        placed: Rows to merge: place, table and rows.
        cost: Cost of the part.
    """

    final: dict[str, pa.Table]
    placed: list[tuple[int, str, pa.Table]]
    cost: Cost


def parts_and_kind(key: int) -> tuple[range, int]:
    """Return the parts that need a packet with this key, and the kind of its rows."""
    numbers, kind = divmod(key, 1 << KIND_BITS)
    first, number = divmod(numbers, 1 << PARTS_BITS)
    return range(first, first + number), kind


def units_of_places(parts: Sequence[Part]) -> dict[int, tuple[tuple[str, int], ...]]:
    """Return the clusters and hours (microseconds since 1970) of each place."""
    return {
        one.place + number: one.units for one in parts if one.first for number in range(one.places)
    }


def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows that have the column ``key`` as few, large packets."""
    gathered: list[pa.RecordBatch] = []
    for batch in batches:
        gathered.append(batch)
        if sum(one.num_rows for one in gathered) >= _MOST_PACKED:
            yield _by_key(pa.Table.from_batches(gathered))
            gathered = []
    if gathered:
        yield _by_key(pa.Table.from_batches(gathered))


def part_mapper(
    program: Program, parts: Sequence[Part]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that turns packets of bronze, ordered by part, into packets of gold.

    Args:
        program: The kernel.
        parts: Parts, in the order of their numbers.
    """

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, packets in groupby(_rows(batches), key=itemgetter(0)):
            one = parts[number]
            try:
                made = computed(program, one, packets)
            except run_in_duckdb.KernelError as error:
                raise _in_marks(error) from error
            cost = pa.Table.from_pylist([made.cost._asdict()])
            for name, rows in (*made.final.items(), (COST, cost)):
                yield from _made(-1 - number, name, rows)
            for place, name, rows in made.placed:
                yield from _made(place, name, rows)

    return mapped


def merge_mapper(
    program: Program, units: Mapping[int, tuple[tuple[str, int], ...]]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that merges the packets of each place; they arrive together.

    Args:
        program: The kernel.
        units: Clusters and hours of each place.
    """

    def merged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for place, packets in groupby(_rows(batches), key=itemgetter(0)):
            if place < 0:
                yield from (_packet(place, name, rows.to_pybytes()) for _, name, rows in packets)
                continue
            parts = ({name: rows_of(rows)} for _, name, rows in packets)
            try:
                made = run_in_duckdb.merge(program, run_in_duckdb.units_table(units[place]), parts)
            except run_in_duckdb.KernelError as error:
                raise _in_marks(error) from error
            for name, rows in made.items():
                yield from _made(-1 - place, name, rows)

    return merged


def computed(program: Program, one: Part, packets: Iterable[Packet]) -> Computed:
    """Return the rows of gold that a part makes from its packets of bronze.

    Raises:
        KernelError: A statement failed.
    """
    began = time.monotonic()
    labels = program.inputs["runs"].field("labels").type
    found = _by_kind(packets, labels)
    empty = {name: shape.empty_table() for name, shape in program.inputs.items()}
    runs = found.get(RUNS, empty["runs"])
    sets, scrapes = found.get(SETS, empty["sets"]), found.get(SCRAPES, empty["scrapes"])
    hours = run_in_duckdb.Hours(run_in_duckdb.units_table(one.units), scrapes, sets)
    described = found.get(DESCRIBED, empty["runs"]) if one.places else None
    pieces = -(-runs.num_rows // run_in_duckdb.MOST_OF_A_PIECE) or 1
    # Spark names the folder of an executor, but not in local mode.
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
    with tempfile.TemporaryDirectory(prefix="jmxlake-", dir=folder) as spill:
        made = run_in_duckdb.part(program, hours, runs, described, pieces, spill, first=one.first)
    placed = [
        (place, name, some)
        for name, rows in made.adding.items()
        for place, some in _placed(rows, one)
    ]
    cost = Cost(runs.num_rows, time.monotonic() - began, made.peak_bytes)
    return Computed(made.final, placed, cost)


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of packets, which are the only column."""
    for batch in batches:
        for packet in batch.column(0):
            yield from pa.ipc.open_stream(packet.as_buffer())


def rows_of(packet: pa.Buffer) -> pa.Table:
    """Return the rows of a packet."""
    return pa.ipc.open_stream(packet).read_all()


def _in_marks(error: run_in_duckdb.KernelError) -> RuntimeError:
    return RuntimeError(f"{BEFORE_ERROR}{error}{AFTER_ERROR}")


def _by_key(rows: pa.Table) -> pa.RecordBatch:
    """Return one packet per key."""
    rows = rows.take(pc.sort_indices(rows["key"])).combine_chunks()
    keys = pc.run_end_encode(rows["key"].combine_chunks())
    rows, start, packets = rows.drop_columns(["key"]), 0, []
    for end in keys.run_ends.to_pylist():
        packets.append(_stream(rows.slice(start, end - start), "lz4"))
        start = end
    return pa.record_batch([keys.values, pa.array(packets, pa.binary())], list(BRONZE))


def _stream(rows: pa.Table, compression: str) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows)
    packet: bytes = sink.getvalue().to_pybytes()
    return packet


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Packet]:
    for batch in batches:
        numbers, names, packets = batch.columns
        buffers = (one.as_buffer() for one in packets)
        yield from zip(numbers.to_pylist(), names.to_pylist(), buffers, strict=True)


def _by_kind(packets: Iterable[Packet], labels: pa.DataType) -> dict[int, pa.Table]:
    """Return the rows of packets by kind."""
    found: dict[int, list[pa.Table]] = {}
    for _, kind, rows in packets:
        found.setdefault(kind, []).append(rows_of(rows))
    return {kind: _with_maps(pa.concat_tables(tables), labels) for kind, tables in found.items()}


def _with_maps(rows: pa.Table, labels: pa.DataType) -> pa.Table:
    """Return rows with labels as maps; Spark sends them as JSON, with few distinct values."""
    if "labels" not in rows.column_names or rows.schema.field("labels").type == labels:
        return rows
    different = rows["labels"].combine_chunks().dictionary_encode()
    maps = [list(json.loads(text).items()) for text in different.dictionary.to_pylist()]
    made = pa.array(maps, labels).take(different.indices)
    return rows.set_column(rows.column_names.index("labels"), "labels", made)


def _placed(rows: pa.Table, one: Part) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows to merge, by place: a hash of their source."""
    sources = rows["source"].combine_chunks().dictionary_encode()
    hashes = [
        zlib.crc32(str(name).encode()) % one.places for name in sources.dictionary.to_pylist()
    ]
    places = pa.array(hashes, pa.int64()).take(sources.indices)
    for number in pc.unique(places).to_pylist():
        yield one.place + number, rows.filter(pc.equal(places, number))


def _made(place: int, target: str, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield rows of a table of gold as packets."""
    for start in range(0, rows.num_rows, _MOST_MADE):
        some = rows.slice(start, _MOST_MADE).combine_chunks()
        yield _packet(place, target, _stream(some, "zstd"))


def _packet(place: int, target: str, rows: bytes) -> pa.RecordBatch:
    columns = [pa.array([place], pa.int64()), pa.array([target]), pa.array([rows], pa.binary())]
    return pa.record_batch(columns, list(GOLD))
