"""Runs the kernel on a batch in Spark's workers: one frame carries bronze through it.

Runs, sets, scrapes and describing runs are packed where they are read: many rows as one value. Only
these are moved, to the parts that need them, each of which is a task. What the parts of a large
hour have to add up is merged by a second, small stage (see ``spark_packets``).
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql.functions import broadcast, expr

from lakehouse.core.periods import HOUR_US, micros
from lakehouse.engines import spark_packets
from lakehouse.engines.rollup_batches import Batch
from lakehouse.engines.spark_packets import Part
from lakehouse.kernel import run_in_duckdb
from lakehouse.kernel.run_in_duckdb import Program
from lakehouse.tables.table import spark_identifier, spark_text

_MOST_TASKS: Final = 4_096
_PARTS_OF_A_PLACE: Final = 8
"""Parts whose rows are added up by one task: what they add is small beside what they take."""

_TOUCHED: Final = "cluster string, epoch_hour long, u int, first long, parts long"
"""Columns of the hours that are recomputed: their number, and the parts of their call."""

_FLAGS: Final = " | ".join(
    f"IF(array_contains(flags, {spark_text(name)}), {bit}, 0)"
    for name, bit in run_in_duckdb.FLAGS.items()
)
_MADE: Final = {
    "start_us": "start AS start_us",
    "end_us": "`end` AS end_us",
    "flags": f"IF(size(flags) > 0, {_FLAGS}, 0) AS flags",
    # As text: Spark looks at the size of a batch with every row, and where most rows have no map
    # that takes as long as the batch has rows.
    "labels": "to_json(labels) AS labels",
}
"""Columns of the kernel's inputs that relations do not have as they are."""
_SUBJECT: Final = (
    "coalesce(`group`, topic, "
    "IF(members IS NULL AND `user` IS NULL AND client_id IS NULL, source, ''))"
)
"""Whose runs are in one part: a group's, a topic's, a source's own, and those of all clients, for a
folded run is of many of them."""
_PART: Final = f"first + IF(parts = 1, 0, pmod(hash({_SUBJECT}), parts))"
_KIND_BITS, _PARTS_BITS = 2, 20


class Bronze(NamedTuple):
    """Bronze of the hours that are recomputed: relations, those by time without misdated rows."""

    runs: DataFrame
    scrapes: DataFrame
    sets: DataFrame


def frame(bronze: Bronze, batch: Batch, program: Program) -> DataFrame:
    """The packets of gold that the kernel makes of a batch: columns ``target`` and ``rows``.

    Args:
        bronze: Rows of bronze.
        batch: The batch to compute.
        program: The kernel.
    """
    _send_by_value()
    parts = list(_parts(batch))
    found, *others = (
        kind.mapInArrow(spark_packets.packed, _ddl(spark_packets.BRONZE))
        for kind in _kinds(bronze, batch, program)
    )
    for kind in others:
        found = found.union(kind)
    first = f"shiftright(key, {_KIND_BITS + _PARTS_BITS})"
    last = f"{first} + (shiftright(key, {_KIND_BITS}) & {(1 << _PARTS_BITS) - 1}L) - 1L"
    sent = found.selectExpr(
        f"explode(sequence({first}, {last})) AS part",
        f"CAST(key & {(1 << _KIND_BITS) - 1}L AS INT) AS kind",
        "rows",
    )
    made = _together(sent, "part", len(parts)).mapInArrow(
        spark_packets.part_mapper(program, parts), _ddl(spark_packets.GOLD)
    )
    units = {
        one.place + number: one.units for one in parts if one.first for number in range(one.places)
    }
    if units:
        made = _together(made, "place", len(units) + batch.parts).mapInArrow(
            spark_packets.merge_mapper(program, units), _ddl(spark_packets.GOLD)
        )
    return made.select("target", "rows")


def unpacked(packets: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """The rows of packets of one table of gold, with its columns."""
    _send_by_value()
    return packets.select("rows").mapInArrow(spark_packets.unpacked, _ddl(columns))


def _parts(batch: Batch) -> Iterator[Part]:
    """The parts of a batch, in the order of their numbers."""
    place = 0
    for call in batch.calls:
        units = tuple((one.cluster, micros(one.hour)) for one in call.units)
        places = -(-call.parts // _PARTS_OF_A_PLACE) if call.parts > 1 else 0
        for number in range(call.parts):
            yield Part(units, place, places, number == 0)
        place += places


def _together(packets: DataFrame, number: str, tasks: int) -> DataFrame:
    """Packets of the same number in one task, one after the other; each number has its own."""
    by_number = getattr(packets, "repartitionById", packets.repartition)  # since Spark 4.1
    task = expr(f"CAST(pmod({number}, {tasks}) AS INT)")
    return by_number(min(tasks, _MOST_TASKS), task).sortWithinPartitions(number)


def _kinds(bronze: Bronze, batch: Batch, program: Program) -> Iterator[DataFrame]:
    """The rows that the kernel needs for a batch, by kind."""
    session = bronze.runs.sparkSession
    hours = broadcast(session.createDataFrame(list(_touched(batch)), _TOUCHED))
    runs = bronze.runs.join(hours, ["cluster", "epoch_hour"])
    yield runs.selectExpr(_key(_PART, "1", spark_packets.RUNS), *_made(program, "runs"))
    yield bronze.scrapes.join(hours, ["cluster", "epoch_hour"]).selectExpr(
        _key("first", "parts", spark_packets.SCRAPES), *_made(program, "scrapes")
    )
    if any(call.parts > 1 for call in batch.calls):
        described = runs.where("parts > 1").where(runs["metric"].isin(*program.describing))
        yield described.selectExpr(
            _key("first", "parts", spark_packets.DESCRIBED), *_made(program, "runs")
        )
    calls = hours.select("cluster", "first", "parts").distinct()
    yield bronze.sets.join(broadcast(calls), ["cluster"]).selectExpr(
        _key("first", "parts", spark_packets.SETS), *_made(program, "sets")
    )


def _touched(batch: Batch) -> Iterator[tuple[str, int, int, int, int]]:
    """The hours of a batch, with the parts that need their rows; columns as in ``_TOUCHED``."""
    first = 0
    for call in batch.calls:
        for u, (cluster, hour) in enumerate(call.units):
            yield cluster, micros(hour) // HOUR_US, u, first, call.parts
        first += call.parts


def _key(first: str, parts: str, kind: int) -> str:
    """The parts to which a row goes, and its kind, as one number."""
    bits = f"shiftleft({first}, {_PARTS_BITS}) | CAST({parts} AS BIGINT)"
    return f"shiftleft({bits}, {_KIND_BITS}) | {kind}L AS key"


def _made(program: Program, kind: str) -> list[str]:
    return [_MADE.get(name, spark_identifier(name)) for name in program.inputs[kind].names]


def _ddl(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{spark_identifier(name)} {kind}" for name, kind in columns.items())


def _send_by_value() -> None:
    """Workers need nothing of jmxlake."""
    for module in (run_in_duckdb, spark_packets):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
