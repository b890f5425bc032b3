"""Spark's jobs of a rollup: the kernel on a batch in its workers, with names and progress of jobs.

One DataFrame carries bronze through the kernel. Runs, sets, scrapes and describing runs are packed
where they are read. Only packets are moved, to the parts that need them; each part is a task. A
second, small stage merges the rows to which several parts of a large hour add (see ``packets``).

Classic Spark needs the context of its driver for names and progress. Connect has none: jobs only
get tags, and the server reports progress.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr, spark_partition_id

from lakehouse.engines import packets
from lakehouse.engines.engine import PartDone
from lakehouse.engines.packets import KIND_BITS, PARTS_BITS, Cost
from lakehouse.engines.rollup_batches import Batch, Bronze, inputs, parts_of
from lakehouse.engines.spark_relations import frame_of
from lakehouse.kernel import run_in_duckdb
from lakehouse.tables.table import spark_identifier

_MOST_TASKS: Final = 4_096

# Spark computes the size of a batch with each row. A column of maps, most of them null, would make
# that as slow as the batch has rows.
_LABELS: Final = "to_json(r.labels)"


def frame(
    spark: SparkSession, bronze: Bronze, batch: Batch, program: run_in_duckdb.Program
) -> DataFrame:
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
    return f"{ROLLUP} {label} with {batch.parts} parts"


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

    with job(spark, purpose(batch, label)), watched(spark, _tasks(batch), report):
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


ROLLUP: Final = "jmxlake rollup"
"""Prefix of the names of a rollup's jobs."""

_NAMES: Final = ("spark.job.description", "callSite.short")
"""Local properties that the UI shows for a job and for its stages."""

_SECONDS: Final = 1.0


@contextmanager
def job(spark: SparkSession, text: str) -> Iterator[None]:
    """Name Spark's jobs of this thread.

    Args:
        spark: The session.
        text: Purpose of the jobs. It is also their tag, so it must not contain a comma.
    """
    context = _context(spark)
    before = [context and context.getLocalProperty(name) for name in _NAMES]
    is_named = text in spark.getTags()  # within a job of the same name
    _name(context, [text] * len(_NAMES))
    spark.addTag(text)
    try:
        yield
    finally:
        if not is_named:
            spark.removeTag(text)
        _name(context, before)


def cores(spark: SparkSession) -> int:
    """Return the number of tasks that a Spark runs at the same time: its partitions of a range."""
    with job(spark, f"{ROLLUP} cores"):
        return spark.range(1 << 16).select(spark_partition_id()).distinct().count()


@contextmanager
def watched(spark: SparkSession, tasks: int, report: Callable[[int], None]) -> Iterator[None]:
    """Report the number of completed tasks of a running job's stage, at most once a second.

    Args:
        spark: The session.
        tasks: Number of tasks of the stage. The newest stage with this number is used.
        report: Receives the number of completed tasks, on classic Spark in another thread.
    """
    reported = 0

    def count(stages: Sequence[tuple[int, int]]) -> None:
        nonlocal reported
        complete = next((done for number, done in reversed(stages) if number == tasks), 0)
        if complete > reported:
            reported = complete
            report(complete)

    follow = _on_connect if _context(spark) is None else _on_classic
    with follow(spark, count):
        yield


@contextmanager
def _on_classic(
    spark: SparkSession, count: Callable[[Sequence[tuple[int, int]]], None]
) -> Iterator[None]:
    tracker, ended = _context(spark).statusTracker(), threading.Event()

    def poll() -> None:
        # The job itself reports errors of Spark.
        with suppress(Exception):
            while not ended.wait(_SECONDS):
                found = map(tracker.getStageInfo, tracker.getActiveStageIds())
                count([(stage.numTasks, stage.numCompletedTasks) for stage in found if stage])

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _on_connect(
    spark: SparkSession, count: Callable[[Sequence[tuple[int, int]]], None]
) -> Iterator[None]:
    def progress(stages: Iterable[Any] | None, **_: object) -> None:
        in_order = sorted(stages or (), key=lambda stage: stage.stage_id)
        count([(stage.num_tasks, stage.num_completed_tasks) for stage in in_order])

    handler: Any = progress  # classic Spark may lack Connect's classes
    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)


def _context(spark: SparkSession) -> Any:
    """Return the context of the driver. None on Connect."""
    return spark.sparkContext if hasattr(spark, "sparkContext") else None


def _name(context: Any, values: Sequence[str | None]) -> None:
    if context is not None:
        for name, value in zip(_NAMES, values, strict=True):
            context.setLocalProperty(name, value)
