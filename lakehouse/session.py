"""The Spark session: the active one on a platform, else a small local one with Delta."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lakehouse.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS_SETTING: Final = "JMXLAKE_DELTA_JARS"
"""Environment variable that names a folder with the Delta jars, for hosts without a network."""

_JARS_CACHE: Final = Path(".cache")
_LOG_CONFIG: Final = Path(__file__).parent / "log4j2.properties"

_CONF: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A rollup has many small stages: on one machine their number costs more than their data.
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "16m",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}

_QUICK: Final = {
    # A plan of a rollup is compiled for a handful of rows: compiling costs more than running. On
    # two cores a first rollup took 49 s of CPU with these, 110 s without.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"

SIZE_SETTING: Final = "JMXLAKE_SPARK"
"""Environment variable: ``quick`` (the default) for new data of up to some million rows at a time,
``large`` where compiling pays."""


def session(app: str = "jmxlake") -> SparkSession:
    """The active session, or a local one with the Delta jars.

    The jars come from the folder that JMXLAKE_DELTA_JARS names, else from ``.cache/delta*`` if
    there is one, else through the network by delta-spark's own helper.

    Raises:
        EngineError: pyspark is not installed, the folder has no jars, or Spark does not start.
    """
    try:
        from pyspark.errors import PySparkException  # noqa: PLC0415 - Spark is slow to import
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError as error:
        raise EngineError(f"{error.name} is missing: install jmxlake[lakehouse]") from error
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    try:
        return _with_delta(_local(SparkSession.builder, app)).getOrCreate()
    except (PySparkException, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise EngineError(f"Spark does not start: {reason}; is Java 17 installed?") from error


def _local(builder: SparkSession.Builder, app: str) -> SparkSession.Builder:
    quick = os.environ.get(SIZE_SETTING, "quick") != "large"
    java = f"-Dlog4j2.configurationFile={_LOG_CONFIG.as_uri()} -Dderby.system.home={_scratch()}"
    builder = builder.master("local[2]").appName(app)
    for key, value in {**_CONF, **(_QUICK if quick else {})}.items():
        builder = builder.config(key, value)
    return builder.config(
        "spark.driver.extraJavaOptions", f"{java} {_QUICK_JVM}" if quick else java
    ).config("spark.sql.warehouse.dir", _scratch())


def _scratch() -> str:
    return str(Path(tempfile.gettempdir()) / "jmxlake-spark")


def _with_delta(builder: SparkSession.Builder) -> SparkSession.Builder:
    named = os.environ.get(JARS_SETTING)
    jars = sorted(Path(named).glob("*.jar") if named else _JARS_CACHE.glob("delta*/*.jar"))
    if jars:
        return builder.config("spark.jars", ",".join(str(jar.resolve()) for jar in jars))
    if named:
        raise EngineError(f"{JARS_SETTING}={named} holds no jar: put the Delta jars there")
    from delta import configure_spark_with_delta_pip  # noqa: PLC0415

    return configure_spark_with_delta_pip(builder)
