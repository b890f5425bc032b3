"""Names of Spark's jobs in its UI, the progress of a job, and the number of cores.

Classic Spark needs the context of its driver for names and progress. Connect has none: jobs only
get tags, and the server reports progress.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id

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
