"""Runs the kernel on a batch in this process: bronze is read once, into packets for each part."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import chain
from typing import Final, NamedTuple

import pyarrow as pa

from lakehouse.core.periods import HOUR_US
from lakehouse.engines import packets
from lakehouse.engines.costs import PartDone
from lakehouse.engines.gold_reader import is_one_of
from lakehouse.engines.packets import Computed, Cost, Part
from lakehouse.engines.relation import Relation, Rows, select
from lakehouse.engines.rollup_batches import Batch
from lakehouse.kernel import run_in_duckdb
from lakehouse.kernel.run_in_duckdb import Program
from lakehouse.tables.table import identifier, standard_text

_MASK: Final = " + ".join(
    f"CASE WHEN list_contains(r.flags, {standard_text(flag)}) THEN {bit} ELSE 0 END"
    for flag, bit in run_in_duckdb.FLAGS.items()
)
_MADE: Final = {
    "u": "CAST(k.u AS INTEGER) AS u",
    "start_us": "r.start AS start_us",
    "end_us": 'r."end" AS end_us',
    "flags": f"CAST({_MASK} AS INTEGER) AS flags",
}
"""Columns of the kernel's inputs that bronze does not have as they are."""
_OF_HOURS: Final = (
    f"JOIN {{hours}} k ON k.cluster = r.cluster AND k.hour_us = r.epoch_hour * {HOUR_US} "
    "WHERE NOT r.misdated"
)
_OF_CALLS: Final = (
    "JOIN (SELECT DISTINCT h.cluster, h.first, h.parts FROM {hours} h) k ON k.cluster = r.cluster"
)
_SUBJECT: Final = (
    'coalesce(r."group", r.topic, '
    'CASE WHEN r.members IS NULL AND r."user" IS NULL AND r.client_id IS NULL THEN r.source '
    "ELSE '' END)"
)
"""Whose runs are in one part; as in ``spark_kernel``."""
_PART: Final = (
    f"k.first + CASE WHEN k.parts = 1 THEN 0 ELSE CAST(hash({_SUBJECT}) % k.parts AS INTEGER) END"
)


class Bronze(NamedTuple):
    """Bronze of the hours that are recomputed."""

    runs: Relation
    scrapes: Relation
    sets: Rows


def kinds(bronze: Bronze, batch: Batch, program: Program) -> Iterator[Relation]:
    """The rows that the kernel needs for a batch, by kind, with the column ``key``.

    Args:
        bronze: Rows of bronze.
        batch: The batch to compute.
        program: The kernel.
    """
    rows = [one._asdict() for one in packets.touched(batch)]
    hours = pa.Table.from_pylist(rows)

    def keyed(kind: int, name: str, rows: Rows, part: str, parts: str, which: str) -> Relation:
        bits = packets.PARTS_BITS, packets.KIND_BITS
        key = f"((({part})::BIGINT << {bits[0]}) | {parts}) << {bits[1]} | {kind}"
        names = program.inputs[name].names
        columns = ", ".join(_MADE.get(one, f"r.{identifier(one)}") for one in names)
        sql = f"SELECT {key} AS key, {columns} FROM {{rows}} r {which}"
        return select(sql, rows=rows, hours=hours)

    whole = "k.first", "k.parts"
    yield keyed(packets.RUNS, "runs", bronze.runs, _PART, "1", _OF_HOURS)
    yield keyed(packets.SCRAPES, "scrapes", bronze.scrapes, *whole, _OF_HOURS)
    if any(call.parts > 1 for call in batch.calls):
        which = f"{_OF_HOURS} AND k.parts > 1 AND {is_one_of('r.metric', program.describing)}"
        yield keyed(packets.DESCRIBED, "runs", bronze.runs, *whole, which)
    yield keyed(packets.SETS, "sets", bronze.sets, *whole, _OF_CALLS)


Sent = dict[int, list[tuple[int, int, pa.Buffer]]]
"""Packets of bronze by the number of their part: that number, the kind, and the rows."""


def sent(readers: Iterable[pa.RecordBatchReader]) -> Sent:
    """Rows of bronze as packets: they take an eighth of the memory.

    Args:
        readers: Rows of the relations of ``kinds``.
    """
    found: Sent = {}
    for keys, rows in (batch.columns for one in readers for batch in packets.packed(one)):
        for key, packet in zip(keys.to_pylist(), rows, strict=True):
            parts, kind = packets.parts_and_kind(key)
            for part in parts:
                found.setdefault(part, []).append((part, kind, packet.as_buffer()))
    return found


def compute(
    program: Program,
    batch: Batch,
    given: Sent,
    cores: int,
    label: str,
    step: Callable[[PartDone], None],
) -> tuple[dict[str, pa.Table], list[Cost]]:
    """The rows of gold of a batch, whose parts are computed side by side, and the parts' costs.

    Args:
        program: The kernel.
        batch: The batch.
        given: Packets of bronze, which it takes out.
        cores: The number of parts that are computed at once.
        label: What the batch is.
        step: Called with each part that is done.

    Raises:
        KernelError: The kernel failed; no further part starts.
    """
    parts = list(packets.parts_of(batch))
    made: dict[int, Computed] = {}
    rows = 0
    for number, one in _side_by_side(program, parts, given, cores):
        made[number] = one
        rows += one.cost.rows
        step(PartDone(label, len(made), len(parts), rows))
    in_order = [made[number] for number in range(len(parts))]
    found: defaultdict[str, list[pa.Table]] = defaultdict(list)
    for tables in (*(one.final for one in in_order), *_merged(program, parts, in_order)):
        for name, some in tables.items():
            if some.num_rows:
                found[name].append(some)
    joined = {name: pa.concat_tables(some) for name, some in found.items()}
    return joined, [one.cost for one in in_order]


def _side_by_side(
    program: Program, parts: Sequence[Part], given: Sent, cores: int
) -> Iterator[tuple[int, Computed]]:
    """The number of each part and what it made, in the order in which they end."""
    pool = ThreadPoolExecutor(cores)  # DuckDB leaves Python's lock alone while it works
    try:
        work = {
            pool.submit(packets.computed, program, one, given.pop(number, [])): number
            for number, one in enumerate(parts)
        }
        for done in as_completed(work):
            yield work[done], done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _merged(
    program: Program, parts: Sequence[Part], made: Iterable[Computed]
) -> Iterator[Mapping[str, pa.Table]]:
    """The rows that parts make together."""
    placed: defaultdict[int, list[dict[str, pa.Table]]] = defaultdict(list)
    for place, name, rows in chain.from_iterable(one.placed for one in made):
        placed[place].append({name: rows})
    for place, units in packets.units_of_places(parts).items():
        yield run_in_duckdb.merge(program, run_in_duckdb.units_table(units), placed[place])
