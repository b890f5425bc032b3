"""Runs the kernel on a batch in Spark's workers: one DataFrame carries bronze through the kernel.

Runs, sets, scrapes and describing runs are packed where they are read. Only packets are moved, to
the parts that need them; each part is a task. A second, small stage merges the rows to which
several parts of a large hour add (see ``packets``).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from lakehouse.engines import packets, spark_jobs
from lakehouse.engines.engine import PartDone
from lakehouse.engines.packets import KIND_BITS, PARTS_BITS, Cost
from lakehouse.engines.rollup_batches import Batch, Bronze, inputs, parts_of
from lakehouse.engines.spark_relations import frame_of
from lakehouse.kernel import run_in_duckdb
from lakehouse.kernel.run_in_duckdb import Program
from lakehouse.tables.table import spark_identifier

_MOST_TASKS: Final = 4_096

# Spark computes the size of a batch with each row. A column of maps, most of them null, would make
# that as slow as the batch has rows.
_LABELS: Final = "to_json(r.labels)"


def frame(spark: SparkSession, bronze: Bronze, batch: Batch, program: Program) -> DataFrame:
    """Return the packets of gold for a batch: columns ``target`` and ``rows``.

    Args:
        spark: The session.
        bronze: Rows of bronze.
        batch: Batch to compute.
        program: The kernel.
    """
    _send_by_value()
    parts = parts_of(batch)
    found, *others = (
        frame_of(spark, kind).mapInArrow(packets.packed, _ddl(packets.BRONZE))
        for kind in inputs(bronze, batch, program, _LABELS)
    )
    for kind in others:
        found = found.union(kind)
    first = f"shiftright(key, {KIND_BITS + PARTS_BITS})"
    last = f"{first} + (shiftright(key, {KIND_BITS}) & {(1 << PARTS_BITS) - 1}L) - 1L"
    sent = found.selectExpr(
        f"explode(sequence({first}, {last})) AS part",
        f"CAST(key & {(1 << KIND_BITS) - 1}L AS INT) AS kind",
        "rows",
    )
    made = _together(sent, "part", _tasks(batch)).mapInArrow(
        packets.part_mapper(program, parts), _ddl(packets.GOLD)
    )
    if units := packets.units_of_places(parts):
        made = _together(made, "place", min(len(units) + batch.parts, _MOST_TASKS)).mapInArrow(
            packets.merge_mapper(program, units), _ddl(packets.GOLD)
        )
    return made.select("target", "rows")


def _tasks(batch: Batch) -> int:
    """Return the number of tasks that compute a batch."""
    return min(batch.parts, _MOST_TASKS)


def purpose(batch: Batch, label: str) -> str:
    """Return the name of Spark's jobs for a batch."""
    return f"{spark_jobs.ROLLUP} {label} with {batch.parts} parts"


@contextmanager
def running(
    spark: SparkSession, batch: Batch, label: str, step: Callable[[PartDone], None]
) -> Iterator[None]:
    """Name the jobs that compute a batch, and report computed parts.

    Args:
        spark: The session.
        batch: The batch.
        label: Name of the batch.
        step: Receives the progress at most once a second, and at the end.
    """

    def report(complete: int) -> None:
        part = complete * batch.parts // _tasks(batch)
        step(PartDone(label, part, batch.parts, batch.rows * part // batch.parts))

    watched = spark_jobs.watched(spark, _tasks(batch), report)
    with spark_jobs.job(spark, purpose(batch, label)), watched:
        yield
    report(_tasks(batch))


def costs(packed: Iterable[pa.Buffer]) -> list[Cost]:
    """Return the costs of parts from packets with the target ``packets.COST``."""
    return [Cost(**row) for packet in packed for row in packets.rows_of(packet).to_pylist()]


def unpacked(staged: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """Return the rows of packets of one table of gold, with its columns."""
    _send_by_value()
    return staged.select("rows").mapInArrow(packets.unpacked, _ddl(columns))


def _together(sent: DataFrame, number: str, tasks: int) -> DataFrame:
    """Return packets with one task per number, or several consecutive numbers in a task."""
    by_number = getattr(sent, "repartitionById", sent.repartition)  # since Spark 4.1
    task = expr(f"CAST(pmod({number}, {tasks}) AS INT)")
    return by_number(tasks, task).sortWithinPartitions(number)


def _ddl(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{spark_identifier(name)} {kind}" for name, kind in columns.items())


def _send_by_value() -> None:
    """Send the modules themselves, because jmxlake is not installed on workers."""
    for module in (run_in_duckdb, packets):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
