"""Runs the kernel on a batch in Spark's workers: one frame carries bronze through it.

Runs, sets, scrapes and describing runs are packed where they are read: many rows as one value,
numbered by what they are part of. Only these are moved and sorted, so that a worker reads one part
after the other (see ``spark_packets``).
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql.functions import broadcast, expr

from lakehouse.core.periods import HOUR_US, micros
from lakehouse.engines import spark_packets
from lakehouse.engines.rollup_batches import Batch
from lakehouse.kernel import arrow_types, run_in_duckdb
from lakehouse.kernel.run_in_duckdb import Program
from lakehouse.tables.table import spark_identifier, spark_text

_MOST_TASKS: Final = 512

_TOUCHED: Final = "cluster string, hour long, call long, u int, part_us long, slices int, parts int"
"""Columns of the hours that are recomputed: their call and number, and how they are cut."""

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
_PART: Final = (
    f"CASE WHEN parts = 1 THEN 1L ELSE 1 + start % {HOUR_US} div part_us * slices + "
    "IF(slices = 1, 0, pmod(hash(coalesce(`group`, topic, '')), slices)) END AS part"
)


class Bronze(NamedTuple):
    """Bronze of the hours that are recomputed: relations, those by time without misdated rows."""

    runs: DataFrame
    scrapes: DataFrame
    members: DataFrame


def _touched(batch: Batch) -> Iterator[tuple[str, int, int, int, int, int, int]]:
    """The hours of a batch, with what numbers and cuts their rows; columns as in ``_TOUCHED``."""
    window_us = batch.window_seconds * 1_000_000
    for number, call in enumerate(batch.calls):
        part_us = call.windows_per_part * window_us or HOUR_US
        parts = -(-HOUR_US // part_us) * call.slices
        for u, (cluster, hour) in enumerate(call.units):
            yield cluster, micros(hour) // HOUR_US, number, u, part_us, call.slices, parts


def frame(bronze: Bronze, batch: Batch, program: Program, columns: dict[str, str]) -> DataFrame:
    """The rows of staging that the kernel makes of a batch.

    Args:
        bronze: Rows of bronze.
        batch: The batch to compute.
        program: The kernel.
        columns: Staging's, with their types.
    """
    for module in (run_in_duckdb, spark_packets):
        # Workers need nothing of jmxlake.
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    packets = ", ".join(f"{name} {kind}" for name, kind in spark_packets.PACKET.items())
    hours = bronze.runs.sparkSession.createDataFrame(list(_touched(batch)), _TOUCHED)
    kinds = _kinds(bronze, hours, batch, program)
    found, *others = (kind.mapInArrow(spark_packets.packed, packets) for kind in kinds)
    for kind in others:
        found = found.union(kind)
    tasks = min(2 * len(batch.calls), _MOST_TASKS) if len(batch.calls) > 1 else 1
    placed = found.repartition(tasks, expr(f"shiftright(key, {spark_packets.CALL_SHIFT})"))
    units = [[(one.cluster, micros(one.hour)) for one in call.units] for call in batch.calls]
    return placed.sortWithinPartitions("key").mapInArrow(
        spark_packets.mapper(program, units, arrow_types.schema(columns.items())),
        ", ".join(f"{spark_identifier(name)} {kind}" for name, kind in columns.items()),
    )


def _kinds(bronze: Bronze, hours: DataFrame, batch: Batch, program: Program) -> Iterator[DataFrame]:
    """The rows that the kernel needs for a batch, by kind."""
    joined = bronze.runs.join(broadcast(hours), ["cluster", "hour"])
    placed = joined.selectExpr("call", "parts", _PART, "cluster", *_made(program, "runs"))
    yield placed.selectExpr(_key("part", spark_packets.RUNS), *_quoted(program, "runs"))
    yield bronze.scrapes.join(broadcast(hours), ["cluster", "hour"]).selectExpr(
        _key("0", spark_packets.SCRAPES), *_made(program, "scrapes")
    )
    named = placed.selectExpr("call", "part", "u", "cluster", "members")
    if any(call.windows_per_part for call in batch.calls):
        described = placed.where("parts > 1").where(placed["metric"].isin(*program.describing))
        yield described.selectExpr(_key("0", spark_packets.DESCRIBED), *_quoted(program, "runs"))
        every = "explode(sequence(1L, CAST(parts AS BIGINT))) AS part"
        named = named.union(described.selectExpr("call", every, "u", "cluster", "members"))
    # All rows of the sets that are named, each content once for every part that names it.
    once = named.where("members IS NOT NULL").distinct()
    sets = bronze.members.selectExpr(
        "cluster", "`set` AS members", "topic", "partitions", "clients"
    )
    yield (
        once.join(sets, ["cluster", "members"])
        .selectExpr(_key("part", spark_packets.SETS), *_quoted(program, "sets"))
        .distinct()
    )


def _key(part: str, kind: int) -> str:
    bits = f"shiftleft(CAST({part} AS BIGINT), {spark_packets.PART_SHIFT}) | {kind}L"
    return f"shiftleft(call, {spark_packets.CALL_SHIFT}) | {bits} AS key"


def _quoted(program: Program, kind: str) -> list[str]:
    return [spark_identifier(name) for name in program.inputs[kind].names]


def _made(program: Program, kind: str) -> list[str]:
    return [_MADE.get(name, spark_identifier(name)) for name in program.inputs[kind].names]


def staging_columns(program: Program) -> dict[str, str]:
    """The columns of all tables that the kernel fills, and the name of the table."""
    found = {spark_packets.TARGET: "string"}
    for columns in program.schemas.values():
        found |= columns
    return found
