"""Who works on a lake: this process where gold lies on a path, Spark where it is in a catalog."""

from __future__ import annotations

import os
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse import tables
from lakehouse.errors import EngineError, TableSchemaError
from lakehouse.quiet import quiet_jvm
from lakehouse.session import PLATFORM, session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from lakehouse.lake import Lake
    from lakehouse.rollup.engine import Engine

    Say = Callable[[str], None]


def engine_of(
    lake: Lake,
    options: Mapping[str, str] | None = None,
    progress: Say = lambda _: None,
    *,
    by_spark: bool = False,
) -> Engine:
    """What reads and writes the gold of a lake.

    Where delta-rs cannot open it, that is Spark, if it is installed.

    Args:
        lake: The lake.
        options: Storage options of delta-rs, beside those in the environment.
        progress: Called with what happens, in a line.
        by_spark: Whether Spark computes what a rollup does.

    Raises:
        EngineError: Neither delta-rs nor Spark can open it.
        TableSchemaError: It needs a newer Delta than delta-rs has, and there is no Spark.
    """
    if lake.gold is not None or lake.bronze is not None:
        return _spark(lake, progress)
    if "://" not in lake.root and not Path(lake.root).is_dir():
        return _spark(lake, progress)  # a server that speaks Connect sees it
    if PLATFORM in os.environ:
        return _spark(lake, progress)  # what is mounted there cannot be committed to by delta-rs
    try:
        engine = _on_path(lake, options, progress, by_spark=by_spark)
        engine.schema(tables.PROGRESS)
    except (EngineError, TableSchemaError, ModuleNotFoundError) as error:
        if util.find_spec("pyspark") is None:
            raise
        progress(f"Spark reads this lake, for delta-rs cannot: {error}")
        return _spark(lake, progress)
    return engine


def started(progress: Say, *, large: bool = False) -> SparkSession:
    """Spark."""
    progress("starting Spark")
    with quiet_jvm():
        return session(large=large)


def _on_path(
    lake: Lake, options: Mapping[str, str] | None, progress: Say, *, by_spark: bool
) -> Engine:
    # Platforms that have Spark lack delta-rs, and the other way round.
    if not by_spark:
        from lakehouse.rollup.local_engine import LocalEngine  # noqa: PLC0415

        return LocalEngine(lake, options)
    from lakehouse.rollup.spark_on_path import SparkOnPath  # noqa: PLC0415

    running: list[SparkSession] = []

    def start(large: bool) -> SparkSession:  # noqa: FBT001 - as the engine calls it
        if not running:
            running.append(started(progress, large=large))
        return running[0]

    return SparkOnPath(lake, start, options)


def _spark(lake: Lake, progress: Say) -> Engine:
    spark = started(progress)
    from lakehouse.rollup.spark_engine import SparkEngine  # noqa: PLC0415 - it imports Spark

    return SparkEngine(spark, lake)
