"""Who works on a lake: this process where gold lies on a path, Spark where it is in a catalog."""

from __future__ import annotations

import os
import re
from importlib import util
from typing import TYPE_CHECKING, Final

from lakehouse import tables
from lakehouse.errors import EngineError, TableSchemaError
from lakehouse.session import PLATFORM, REMOTE, quiet_jvm, session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from lakehouse.lake import Lake
    from lakehouse.rollup.engine import Engine

    Say = Callable[[str], None]


_KNOWN: Final = re.compile(r"/|(file|memory|s3a?|gs|az|adl|abfss?)://")
"""Places that delta-rs knows; of others it says that there is no table."""

_LOOKED_AT: Final = (tables.RUNS, tables.PROGRESS, tables.SLI)
"""Whether delta-rs reads these says whether it reads the lake."""


def engine_of(
    lake: Lake,
    options: Mapping[str, str] | None = None,
    progress: Say = lambda _: None,
    *,
    by_spark: bool = False,
) -> Engine:
    """What reads and writes the gold of a lake.

    Where delta-rs cannot open it, or a Spark Connect server is named, that is Spark. Who gives
    storage options of delta-rs means delta-rs: what then fails is said.

    Args:
        lake: The lake.
        options: Storage options of delta-rs, beside those in the environment.
        progress: Called with what happens, in a line.
        by_spark: Whether Spark computes what a rollup does.

    Raises:
        EngineError: Neither delta-rs nor Spark can open it, or delta-rs cannot with these options.
        TableSchemaError: It needs a newer Delta than delta-rs has, and there is no Spark.
    """
    in_catalog = lake.gold is not None or lake.bronze is not None
    # What is mounted on Databricks cannot be committed to by delta-rs.
    if not in_catalog and REMOTE not in os.environ and PLATFORM not in os.environ:
        try:
            engine = _on_path(lake, options, progress, by_spark=by_spark)
            for table in _LOOKED_AT:
                engine.schema(table)
        except (EngineError, TableSchemaError, ModuleNotFoundError) as error:
            if options or util.find_spec("pyspark") is None:
                raise
            progress(f"Spark reads this lake, for delta-rs cannot: {error}")
        else:
            return engine
    elif options:
        raise EngineError(
            f"{lake.root}: Spark reads this lake, and has storage options of its own: leave out "
            "delta-rs's (docs/engines.md)"
        )
    return _spark(lake, progress)


def started(progress: Say, *, large: bool = False) -> SparkSession:
    """Spark."""
    progress("starting Spark")
    with quiet_jvm():
        return session(large=large)


def _on_path(
    lake: Lake, options: Mapping[str, str] | None, progress: Say, *, by_spark: bool
) -> Engine:
    if not _KNOWN.match(lake.root):
        raise EngineError(f"{lake.root}: delta-rs knows no such storage")
    # Platforms that have Spark lack delta-rs, and the other way round.
    if not by_spark:
        from lakehouse.rollup.local_engine import LocalEngine  # noqa: PLC0415

        return LocalEngine(lake, options)
    from lakehouse.rollup.spark_on_path import SparkOnPath  # noqa: PLC0415

    return SparkOnPath(lake, lambda large: started(progress, large=large), options)


def _spark(lake: Lake, progress: Say) -> Engine:
    spark = started(progress)
    from lakehouse.rollup.spark_engine import SparkEngine  # noqa: PLC0415 - it imports Spark

    return SparkEngine(spark, lake)
