"""The Spark session: the active one, the one that the environment names, else a small local one.

If the environment names a Spark, its platform also sets master, Delta, jars and credentials, and
only the time zone is set here.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lakehouse.core import machine
from lakehouse.errors import EngineError, extra, is_of_spark, line_of_spark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

JARS_SETTING: Final = "JMXLAKE_DELTA_JARS"
"""Environment variable that names a folder with the Delta jars, for hosts without a network; or
several folders, with what S3 needs in the others (``a:b``)."""

# In the source tree, never in the working directory: a user who may write there could run code
# in the driver.
_JARS_CACHE: Final = Path(__file__).parents[2] / ".cache"
_LOG_CONFIG: Final = Path(__file__).parent / "log4j2.properties"

_CONF: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # On one machine the driver has the tasks, too.
    "spark.driver.memory": "3g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark keeps the data of its web page, with the text of every plan, even without a page.
    "spark.sql.ui.retainedExecutions": "5",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    # A rollup has many small stages: on one machine their tasks cost more than their data.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    # Each sort, join and aggregation of a task takes a page at least: of 16 MB by default.
    "spark.buffer.pageSize": "1m",
    # Two bytes a run: a split of the default size would be a day of a fleet.
    "spark.sql.files.maxPartitionBytes": "8m",
    "spark.sql.files.openCostInBytes": "256k",
    "spark.sql.autoBroadcastJoinThreshold": "16m",
    # Spark's default is older than the type: twice as long, and without statistics.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.databricks.delta.snapshotPartitions": "1",
    # A lake has some twenty logs; by default Delta keeps 10,000, with their plans, for an hour. The
    # logs of hundreds of lakes filled a heap of 1 GB, and garbage collection took all the time.
    "spark.databricks.delta.delta.log.cacheSize": "64",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    # Checking the size of a batch with each row costs a third of a rollup. The number of rows is
    # the limit; packets reach 2 GB at some 40 million runs of one cluster's hour.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    # Agents and maintenance write s3://..., Hadoop s3a://...: accept the first.
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
}

# Each process starts cold, and lives for minutes: the better compiler costs more than it saves.
JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
_MIB_A_CORE: Final = 2_000
"""Memory for each task at once: a Python worker with DuckDB, and its share of the heap."""

REMOTE: Final = "SPARK_REMOTE"
"""Environment variable that names a Spark Connect server: ``sc://host:port``."""

PLATFORM: Final = "DATABRICKS_RUNTIME_VERSION"

_NAMED_BY: Final = (
    REMOTE,
    "PYSPARK_SUBMIT_ARGS",  # --master spark://host:port ... pyspark-shell
    "SPARK_CONF_DIR",  # a folder with spark-defaults.conf
    "PYSPARK_GATEWAY_PORT",  # set by spark-submit
    PLATFORM,
)
"""Spark's own environment variables; if one is set, it selects the Spark to use."""

_ZONE: Final = "spark.sql.session.timeZone"


def session() -> SparkSession:
    """The active session, else that of the Spark the environment names, else a local one.

    The jars of a local one come from the folders that JMXLAKE_DELTA_JARS names, else from
    ``.cache/delta*`` beside the package, as ``make setup`` leaves it in a source tree, else through
    the network, as delta-spark does it by itself.

    Raises:
        EngineError: pyspark or what Connect needs is not installed, a folder has no jars, Spark
            does not start, or the active session is not in UTC.
    """
    try:
        from pyspark.errors import PySparkException  # noqa: PLC0415 - Spark is slow to import
        from pyspark.sql import SparkSession  # noqa: PLC0415

        active = _if_answering(SparkSession.getActiveSession())
        builder = SparkSession.builder.appName("jmxlake")
        return _in_utc(active or _builder(builder).getOrCreate())
    except ImportError as error:
        raise EngineError(_what_is_missing(error)) from error
    except (PySparkException, OSError) as error:
        raise EngineError(f"Spark does not start: {line_of_spark(error)}; {_advice()}") from error


def _if_answering(active: SparkSession | None) -> SparkSession | None:
    """The active session; None, and it is ended, if its Connect server no longer knows it."""
    if active is None or REMOTE not in os.environ:
        return active
    try:
        _ = active.version  # asks the server
    except Exception as error:
        if not is_of_spark(error):
            raise
        active.stop()
        return None
    return active


def is_named() -> bool:
    """Whether the environment names a Spark."""
    return any(name in os.environ for name in _NAMED_BY)


def _advice() -> str:
    if REMOTE in os.environ:
        return "is the server up?"
    if is_named() or _jar_folders():
        return "is Java 17 installed?"
    return (
        "is Java 17 installed, and is Maven Central reached, where Delta's jars come from?"
        f" {JARS_SETTING} names a folder with them"
    )


def setting(spark: SparkSession, name: str) -> str | None:
    """A setting of a session; None where Spark does not return it, as on serverless."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - Spark is slow to import

    try:
        return spark.conf.get(name)
    except PySparkException:
        return None


def cores(spark: SparkSession) -> int:
    """The tasks that a Spark runs at once: into as many it cuts a range."""
    from pyspark.sql.functions import spark_partition_id  # noqa: PLC0415 - Spark is slow to import

    return spark.range(1 << 16).select(spark_partition_id()).distinct().count()


def _what_is_missing(error: ImportError) -> str:
    if error.name is None:  # pyspark's own words for what Spark Connect needs
        return f"{str(error).strip().splitlines()[0]} Install {extra('connect')}"
    return f"{error.name.split('.')[0]} is missing: install {extra('spark')}"


def _builder(builder: SparkSession.Builder) -> SparkSession.Builder:
    from pyspark.logger import PySparkLogger  # noqa: PLC0415 - Spark is slow to import

    for kind in ("SQL", "DataFrame"):  # it would print errors as JSON, which callers report
        PySparkLogger.getLogger(f"{kind}QueryContextLogger").disabled = True
    if is_named():
        return builder.config(_ZONE, "UTC")
    # The kernel runs in Spark's Python workers: of this Python, which has DuckDB.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # They begin with -m, so without this they would import what lies in the working directory,
    # which may be a lake.
    os.environ["PYTHONSAFEPATH"] = "1"
    scratch = Path(tempfile.gettempdir()) / "jmxlake-spark"
    java = f"-Dlog4j2.configurationFile={_LOG_CONFIG.as_uri()} -Dderby.system.home={scratch}"
    settings: dict[str, bool | float | int | str | None] = {
        **_CONF,
        "spark.driver.extraJavaOptions": f"{java} {JAVA_OPTIONS}",
        "spark.sql.warehouse.dir": str(scratch),
    }
    return _with_delta(builder.master(f"local[{machine.cores(_MIB_A_CORE)}]").config(map=settings))


def _in_utc(session: SparkSession) -> SparkSession:
    zone = session.conf.get(_ZONE)
    if zone not in {"UTC", "Etc/UTC", "GMT", "Z", "+00:00"}:
        raise EngineError(
            f"the Spark session is in {zone}, and hours are UTC's: set {_ZONE} to UTC"
        )
    return session


def _jar_folders() -> list[str]:
    named = os.environ.get(JARS_SETTING)
    return named.split(os.pathsep) if named else sorted(map(str, _JARS_CACHE.glob("delta*")))


def _with_delta(builder: SparkSession.Builder) -> SparkSession.Builder:
    found = {folder: sorted(Path(folder).glob("*.jar")) for folder in _jar_folders()}
    empty = [folder for folder, jars in found.items() if not jars]
    if empty and os.environ.get(JARS_SETTING):
        raise EngineError(f"{JARS_SETTING}={empty[0]} holds no jar: put the Delta jars there")
    paths = [str(jar.resolve()) for jars in found.values() for jar in jars]
    if paths:
        return builder.config("spark.jars", ",".join(paths))
    from delta import configure_spark_with_delta_pip  # noqa: PLC0415

    return configure_spark_with_delta_pip(builder)


@contextmanager
def quiet_jvm() -> Iterator[None]:
    """Capture standard output and error of a process that is started within this context.

    Spark's launcher prints warnings before it reads any logging setting, and VACUUM prints to
    standard output. If the start fails, the captured text goes to standard error.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    out, kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as captured:
        os.dup2(captured.fileno(), 1)
        os.dup2(captured.fileno(), 2)
        try:
            yield
        except BaseException:
            captured.seek(0)
            os.write(kept, captured.read())
            raise
        finally:
            for number, own in ((1, out), (2, kept)):
                os.dup2(own, number)
                os.close(own)
