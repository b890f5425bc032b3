"""Between Spark and the kernel, in Spark's Python workers: from rows of bronze to rows of gold.

It is sent to the workers by value, so it needs nothing there but pyarrow and DuckDB.

Spark moves packets: many rows of one kind as one value, compressed. Those of bronze go to the parts
of calls that need them (``part_mapper``). Each part makes packets of gold, whose ``place`` says
where they go next: below 0 they are final, else they are added to those of the other parts of the
call with the same ``place`` (``merge_mapper``).
"""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse.kernel.run_in_duckdb import (
    MOST_OF_A_PIECE,
    Hours,
    KernelError,
    Made,
    by_windows,
    merge,
    part,
    roll_up,
    units_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from lakehouse.kernel.run_in_duckdb import Program

    Packet = tuple[int, Any, pa.Buffer]  # columns as in SENT or GOLD

DESCRIBED, SCRAPES, RUNS, SETS = range(4)
"""Kinds of rows."""

BRONZE: Final = {"key": "bigint", "rows": "binary"}
SENT: Final = {"part": "bigint", "kind": "int", "rows": "binary"}
GOLD: Final = {"place": "bigint", "target": "string", "rows": "binary"}

BEFORE_ERROR: Final = "<jmxlake-kernel>"
AFTER_ERROR: Final = "</jmxlake-kernel>"
"""Around the one line of an error: Spark puts a stack of calls around it."""

_MOST_PACKED: Final = 100_000
_MOST_MADE: Final = 200_000


class Part(NamedTuple):
    """A part of a call of the kernel.

    Attributes:
        units: Clusters and hours (microseconds since 1970) of the call, in order.
        place: The first place of what is added to the other parts' rows.
        places: The number of such places; 0: the part is the whole call.
        first: Whether it accounts for the attempts to read.
    """

    units: tuple[tuple[str, int], ...]
    place: int
    places: int
    first: bool


def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows, with the column ``key``, as packets: few and large ones."""
    import pyarrow as pa

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
    """The function that turns packets of bronze, in order of their parts, into those of gold.

    Args:
        program: The kernel's.
        parts: The parts, in the order of their numbers.
    """

    def computed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, packets in groupby(_rows(batches), key=itemgetter(0)):
            one = parts[number]
            try:
                made = _compute(program, one, packets)
            except KernelError as error:
                raise _in_marks(error) from error
            for name, rows in made.final.items():
                yield from _made(-1 - number, name, rows)
            for name, rows in made.adding.items():
                for place, some in _placed(rows, one):
                    yield from _made(place, name, some)

    return computed


def merge_mapper(
    program: Program, units: Mapping[int, tuple[tuple[str, int], ...]]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that adds up packets of the same place, which come together.

    Args:
        program: The kernel's.
        units: Clusters and hours of each place.
    """

    def merged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for place, packets in groupby(_rows(batches), key=itemgetter(0)):
            if place < 0:
                yield from (_packet(place, name, rows.to_pybytes()) for _, name, rows in packets)
                continue
            parts = ({name: pa.ipc.open_stream(rows).read_all()} for _, name, rows in packets)
            try:
                made = merge(program, units_table(units[place]), parts)
            except KernelError as error:
                raise _in_marks(error) from error
            for name, rows in made.items():
                yield from _made(-1 - place, name, rows)

    return merged


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of packets, which are the only column."""
    import pyarrow as pa

    for batch in batches:
        for packet in batch.column(0):
            yield from pa.ipc.open_stream(packet.as_buffer())


def _in_marks(error: KernelError) -> RuntimeError:
    return RuntimeError(f"{BEFORE_ERROR}{error}{AFTER_ERROR}")


def _by_key(rows: pa.Table) -> pa.RecordBatch:
    """A packet for each key."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = rows.take(pc.sort_indices(rows["key"])).combine_chunks()
    keys = pc.run_end_encode(rows["key"].combine_chunks())
    rows, start, packets = rows.drop_columns(["key"]), 0, []
    for end in keys.run_ends.to_pylist():
        packets.append(_stream(rows.slice(start, end - start), "lz4"))
        start = end
    return pa.record_batch([keys.values, pa.array(packets, pa.binary())], list(BRONZE))


def _stream(rows: pa.Table, compression: str) -> bytes:
    import pyarrow as pa

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


def _compute(program: Program, one: Part, packets: Iterable[Packet]) -> Made:
    """The rows that a part makes."""
    labels = program.inputs["runs"].field("labels").type
    found = _by_kind(packets, labels)
    empty = {name: shape.empty_table() for name, shape in program.inputs.items()}
    runs = found.get(RUNS, empty["runs"])
    sets, scrapes = found.get(SETS, empty["sets"]), found.get(SCRAPES, empty["scrapes"])
    hours = Hours(units_table(one.units), scrapes, sets)
    described = found.get(DESCRIBED, empty["runs"]) if one.places else None
    cut, pieces = by_windows(program, runs, described), -(-runs.num_rows // MOST_OF_A_PIECE) or 1
    # Spark names the executor's own folder; in local mode it names none.
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
    with tempfile.TemporaryDirectory(prefix="jmxlake-", dir=folder) as spill:
        if one.places:
            return part(program, hours, cut, pieces, spill, first=one.first)
        return Made(roll_up(program, hours, cut, pieces, spill), {})


def _by_kind(packets: Iterable[Packet], labels: pa.DataType) -> dict[int, pa.Table]:
    """The rows of each kind."""
    import pyarrow as pa

    found: dict[int, list[pa.Table]] = {}
    for _, kind, rows in packets:
        found.setdefault(kind, []).append(pa.ipc.open_stream(rows).read_all())
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


def _placed(rows: pa.Table, one: Part) -> Iterator[tuple[int, pa.Table]]:
    """Rows of several parts that are added up, by a hash of their source."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sources = rows["source"].combine_chunks().dictionary_encode()
    hashes = [
        zlib.crc32(str(name).encode()) % one.places for name in sources.dictionary.to_pylist()
    ]
    places = pa.array(hashes, pa.int64()).take(sources.indices)
    for number in pc.unique(places).to_pylist():
        yield one.place + number, rows.filter(pc.equal(places, number))


def _made(place: int, target: str, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Rows of a table of gold as packets."""
    for start in range(0, rows.num_rows, _MOST_MADE):
        some = rows.slice(start, _MOST_MADE).combine_chunks()
        yield _packet(place, target, _stream(some, "zstd"))


def _packet(place: int, target: str, rows: bytes) -> pa.RecordBatch:
    import pyarrow as pa

    columns = [pa.array([place], pa.int64()), pa.array([target]), pa.array([rows], pa.binary())]
    return pa.record_batch(columns, list(GOLD))
