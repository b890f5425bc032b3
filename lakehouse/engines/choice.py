"""Choice of the engine: this process or Spark's workers for gold on a path, otherwise Spark."""

from __future__ import annotations

import os
import re
from importlib import util
from typing import TYPE_CHECKING, Final

from lakehouse import tables
from lakehouse.core.spark_session import PLATFORM, REMOTE, quiet_jvm, session
from lakehouse.errors import EngineError, TableLogError, TableSchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from lakehouse.core.lake import Lake
    from lakehouse.engines.engine import Engine

    Say = Callable[[str], None]


_KNOWN: Final = re.compile(r"/|(file|memory|s3a?|gs|az|adl|abfss?)://")
"""Places that delta-rs can open."""

_PROBED: Final = (tables.RUNS, tables.PROGRESS, tables.SLI)
"""Tables that show whether delta-rs can read a lake."""


def engine_of(lake: Lake, options: Mapping[str, str], progress: Say, *, by_spark: bool) -> Engine:
    """Return the engine that reads and writes the gold of a lake.

    It is Spark if delta-rs cannot open the lake, or if SPARK_REMOTE is set. Storage options of
    delta-rs rule Spark out.

    Args:
        lake: The lake.
        options: Storage options of delta-rs, in addition to the environment.
        progress: Receives each step, as a line.
        by_spark: Run the kernel in Spark.

    Raises:
        TableLogError: The log of a table refers to files outside the table.
        EngineError: Neither delta-rs nor Spark can open the lake, or delta-rs cannot with these
            options.
        TableSchemaError: A table requires a newer Delta than delta-rs has, and Spark is missing.
    """
    in_catalog = lake.gold is not None or lake.bronze is not None
    # delta-rs cannot commit to a path that is mounted on Databricks.
    if not in_catalog and REMOTE not in os.environ and PLATFORM not in os.environ:
        try:
            engine = _on_path(lake, options, progress, by_spark=by_spark)
            for table in _PROBED:
                engine.detail(table)
        except TableLogError:
            raise
        except (EngineError, TableSchemaError, ModuleNotFoundError) as error:
            if options or util.find_spec("pyspark") is None:
                raise
            progress(f"Spark reads this lake, because delta-rs cannot: {error}")
        else:
            return engine
    elif options:
        raise EngineError(
            f"{lake.root}: Spark reads this lake and ignores storage options of delta-rs. Remove "
            "them, and configure Spark (docs/engines.md)"
        )
    spark = start_spark(progress)
    from lakehouse.engines.spark_engine import SparkEngine  # noqa: PLC0415 - it imports Spark

    return SparkEngine(spark, lake)


def start_spark(progress: Say) -> SparkSession:
    """Start Spark, or return the active session."""
    progress("starting Spark")
    with quiet_jvm():
        return session()


def _on_path(lake: Lake, options: Mapping[str, str], progress: Say, *, by_spark: bool) -> Engine:
    if not _KNOWN.match(lake.root):
        raise EngineError(f"{lake.root}: delta-rs does not support this storage scheme")
    # Imported late: a platform can have only Spark, or only delta-rs.
    if not by_spark:
        from lakehouse.engines.local_engine import LocalEngine  # noqa: PLC0415

        return LocalEngine(lake, options)
    from lakehouse.engines.spark_with_delta_rs import SparkWithDeltaRs  # noqa: PLC0415

    return SparkWithDeltaRs(lake, lambda: start_spark(progress), options)
