"""Runs the kernel on a batch in Spark's workers: one frame carries bronze through it.

Runs, sets, scrapes and describing runs are packed where they are read: many rows as one value. Only
these are moved, to the parts that need them, each of which is a task. What the parts of a large
hour have to add up is merged by a second, small stage (see ``packets``).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, expr

from lakehouse.core.periods import HOUR_US
from lakehouse.engines import packets, spark_jobs
from lakehouse.engines.costs import PartDone
from lakehouse.engines.packets import KIND_BITS, PARTS_BITS, Cost
from lakehouse.engines.rollup_batches import Batch
from lakehouse.kernel import run_in_duckdb
from lakehouse.kernel.run_in_duckdb import Program
from lakehouse.tables.table import spark_identifier, spark_text

_MOST_TASKS: Final = 4_096
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
    parts = list(packets.parts_of(batch))
    found, *others = (
        kind.mapInArrow(packets.packed, _ddl(packets.BRONZE))
        for kind in _kinds(bronze, batch, program)
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
    made = _together(sent, "part", tasks(batch)).mapInArrow(
        packets.part_mapper(program, parts), _ddl(packets.GOLD)
    )
    if units := packets.units_of_places(parts):
        made = _together(made, "place", min(len(units) + batch.parts, _MOST_TASKS)).mapInArrow(
            packets.merge_mapper(program, units), _ddl(packets.GOLD)
        )
    return made.select("target", "rows")


def tasks(batch: Batch) -> int:
    """The number of tasks that compute a batch."""
    return min(batch.parts, _MOST_TASKS)


def purpose(batch: Batch, label: str) -> str:
    """The name of Spark's jobs for a batch."""
    return f"{spark_jobs.ROLLUP} {label} with {batch.parts} parts"


@contextmanager
def running(
    spark: SparkSession, batch: Batch, label: str, step: Callable[[PartDone], None]
) -> Iterator[None]:
    """Name Spark's jobs that compute a batch, and report parts that are computed.

    Args:
        spark: The session.
        batch: The batch.
        label: What the batch is.
        step: Called at most once a second, and at the end.
    """

    def report(complete: int) -> None:
        part = complete * batch.parts // tasks(batch)
        step(PartDone(label, part, batch.parts, batch.rows * part // batch.parts))

    watched = spark_jobs.watched(spark, tasks(batch), report)
    with spark_jobs.job(spark, purpose(batch, label)), watched:
        yield
    report(tasks(batch))


def costs(packed: Iterable[pa.Buffer]) -> list[Cost]:
    """The costs of parts, of packets with the target ``packets.COST``."""
    return [Cost(**row) for one in packed for row in packets.rows_of(one).to_pylist()]


def unpacked(staged: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """The rows of packets of one table of gold, with its columns."""
    _send_by_value()
    return staged.select("rows").mapInArrow(packets.unpacked, _ddl(columns))


def _together(sent: DataFrame, number: str, tasks: int) -> DataFrame:
    """Packets of the same number in one task, one after the other; each number has its own."""
    by_number = getattr(sent, "repartitionById", sent.repartition)  # since Spark 4.1
    task = expr(f"CAST(pmod({number}, {tasks}) AS INT)")
    return by_number(tasks, task).sortWithinPartitions(number)


def _kinds(bronze: Bronze, batch: Batch, program: Program) -> Iterator[DataFrame]:
    """The rows that the kernel needs for a batch, by kind."""
    session = bronze.runs.sparkSession
    touched = [(one[0], one[1] // HOUR_US, *one[2:]) for one in packets.touched(batch)]
    hours = broadcast(session.createDataFrame(touched, _TOUCHED))
    runs = bronze.runs.join(hours, ["cluster", "epoch_hour"])
    yield runs.selectExpr(_key(_PART, "1", packets.RUNS), *_made(program, "runs"))
    yield bronze.scrapes.join(hours, ["cluster", "epoch_hour"]).selectExpr(
        _key("first", "parts", packets.SCRAPES), *_made(program, "scrapes")
    )
    if any(call.parts > 1 for call in batch.calls):
        described = runs.where("parts > 1").where(runs["metric"].isin(*program.describing))
        yield described.selectExpr(
            _key("first", "parts", packets.DESCRIBED), *_made(program, "runs")
        )
    of_calls = sorted({(one.cluster, one.first, one.parts) for one in packets.touched(batch)})
    calls = broadcast(session.createDataFrame(of_calls, "cluster string, first long, parts long"))
    yield bronze.sets.join(calls, ["cluster"]).selectExpr(
        _key("first", "parts", packets.SETS), *_made(program, "sets")
    )


def _key(first: str, parts: str, kind: int) -> str:
    """The parts to which a row goes, and its kind, as one number."""
    bits = f"shiftleft({first}, {PARTS_BITS}) | CAST({parts} AS BIGINT)"
    return f"shiftleft({bits}, {KIND_BITS}) | {kind}L AS key"


def _made(program: Program, kind: str) -> list[str]:
    return [_MADE.get(name, spark_identifier(name)) for name in program.inputs[kind].names]


def _ddl(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{spark_identifier(name)} {kind}" for name, kind in columns.items())


def _send_by_value() -> None:
    """Workers need nothing of jmxlake."""
    for module in (run_in_duckdb, packets):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
