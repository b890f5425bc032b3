"""What Spark's jobs are for, as its UI shows it, and how far a job is.

On classic Spark through the context of its driver, which Connect does not have: there jobs get tags
alone, and the server reports its progress.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from pyspark.sql import SparkSession

ROLLUP: Final = "jmxlake rollup"
"""How the names of a rollup's jobs begin."""

_NAMES: Final = ("spark.job.description", "callSite.short")
"""Local properties: what the UI shows of a job, and of its stages."""

_SECONDS: Final = 1.0


@contextmanager
def job(spark: SparkSession, text: str) -> Iterator[None]:
    """Name Spark's jobs of this thread.

    Args:
        spark: The session.
        text: What they are for. It is their tag, too, so it has no comma.
    """
    context = _context(spark)
    before = [context and context.getLocalProperty(name) for name in _NAMES]
    is_named = text in spark.getTags()  # by a job around it
    _name(context, [text] * len(_NAMES))
    spark.addTag(text)
    try:
        yield
    finally:
        if not is_named:
            spark.removeTag(text)
        _name(context, before)


@contextmanager
def watched(spark: SparkSession, tasks: int, report: Callable[[int], None]) -> Iterator[None]:
    """Report how many tasks of a running job's stage are complete, at most once a second.

    Args:
        spark: The session.
        tasks: The number of tasks of the stage: the newest stage with so many is taken for it.
        report: Called with the number of complete ones, from another thread on classic Spark.
    """
    seen = 0

    def count(stages: Sequence[tuple[int, int]]) -> None:
        nonlocal seen
        complete = next((done for number, done in reversed(stages) if number == tasks), 0)
        if complete > seen:
            seen = complete
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
        # Progress is a courtesy: an error of Spark's is the job's to report.
        with suppress(Exception):
            while not ended.wait(_SECONDS):
                found = map(tracker.getStageInfo, tracker.getActiveStageIds())
                count([(one.numTasks, one.numCompletedTasks) for one in found if one])

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
        in_order = sorted(stages or (), key=lambda one: one.stage_id)
        count([(one.num_tasks, one.num_completed_tasks) for one in in_order])

    handler: Any = progress  # of no class of Connect's, which classic Spark may lack
    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)


def _context(spark: SparkSession) -> Any:
    """The context of the driver; None on Connect."""
    return spark.sparkContext if hasattr(spark, "sparkContext") else None


def _name(context: Any, values: Sequence[str | None]) -> None:
    if context is not None:
        for name, value in zip(_NAMES, values, strict=True):
            context.setLocalProperty(name, value)
