"""Spark session: the active session, the Spark of the environment, or a small local session.

If the environment names a Spark, its platform also sets master, Delta, jars and credentials. Then
only the time zone is set here.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lakehouse.errors import EngineError, extra, is_of_spark, line_of_spark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

JARS_SETTING: Final = "JMXLAKE_DELTA_JARS"
"""Environment variable with the folder of the Delta jars, for hosts without a network. Additional
folders can have the jars for S3 (``a:b``)."""

# In the source tree, not in the working directory: its writers could run code in the driver.
_JARS_CACHE: Final = Path(__file__).parents[2] / ".cache"
_LOG_CONFIG: Final = Path(__file__).parent / "log4j2.properties"

_CONF: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # On one machine the driver also runs the tasks.
    "spark.driver.memory": "3g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark keeps the data of its UI, with the text of each plan, even if the UI is disabled.
    "spark.sql.ui.retainedExecutions": "5",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    # A rollup has many small stages. On one machine tasks cost more than their data.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    # Each sort, join and aggregation of a task uses at least one page: 16 MB by default.
    "spark.buffer.pageSize": "1m",
    # A run has two bytes, so a split of the default size would be a day of a fleet.
    "spark.sql.files.maxPartitionBytes": "8m",
    "spark.sql.files.openCostInBytes": "256k",
    "spark.sql.autoBroadcastJoinThreshold": "16m",
    # Spark's default type is twice as long, and has no statistics.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.databricks.delta.snapshotPartitions": "1",
    # A lake has about twenty logs. By default Delta keeps 10,000 with their plans, for an hour:
    # logs of hundreds of lakes filled a heap of 1 GB, and only garbage collection ran.
    "spark.databricks.delta.delta.log.cacheSize": "64",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    # A check of the batch size with each row costs a third of a rollup. The number of rows is the
    # limit; packets reach 2 GB at about 40 million runs of one cluster's hour.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    # Agents and maintenance use s3://..., and Hadoop uses s3a://.... Both must work.
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
}

# A process runs only for minutes, so the optimizing compiler costs more than it saves.
JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
_MIB_A_CORE: Final = 2_000
"""Memory per running task: a Python worker with DuckDB, and its share of the heap."""

REMOTE: Final = "SPARK_REMOTE"
"""Environment variable with the URL of a Spark Connect server: ``sc://host:port``."""

PLATFORM: Final = "DATABRICKS_RUNTIME_VERSION"

_NAMED_BY: Final = (
    REMOTE,
    "PYSPARK_SUBMIT_ARGS",  # --master spark://host:port ... pyspark-shell
    "SPARK_CONF_DIR",  # a folder with spark-defaults.conf
    "PYSPARK_GATEWAY_PORT",  # set by spark-submit
    PLATFORM,
)
"""Spark's own environment variables. If one is set, it selects the Spark to use."""

_ZONE: Final = "spark.sql.session.timeZone"

_PAUSE_MS: Final = 1_000
_RETRIES: Final = 600
"""Retries of a request to a Connect server, a second apart: ten minutes, as by default."""

_policies: Final[list[Any]] = []
"""Retry policies of the Connect session of this process."""


def session() -> SparkSession:
    """Return the active session, a session of the environment's Spark, or a local session.

    A local session loads its jars from the folders in JMXLAKE_DELTA_JARS, otherwise from
    ``.cache/delta*`` next to the package, where ``make setup`` puts them in a source tree. Without
    these folders delta-spark downloads the jars.

    Raises:
        EngineError: pyspark or a package for Connect is not installed, a folder has no jars, Spark
            does not start, or the active session is not in UTC.
    """
    try:
        from pyspark.errors import PySparkException  # noqa: PLC0415 - Spark is slow to import
        from pyspark.sql import SparkSession  # noqa: PLC0415

        active = _if_answering(SparkSession.getActiveSession())
        builder = SparkSession.builder.appName("jmxlake")
        return _in_utc(active or _with_short_pauses(_builder(builder).getOrCreate()))
    except ImportError as error:
        raise EngineError(_what_is_missing(error)) from error
    except (PySparkException, OSError) as error:
        raise EngineError(f"Spark does not start: {line_of_spark(error)}; {_advice()}") from error


def _with_short_pauses(spark: SparkSession) -> SparkSession:
    """Limit the pauses before retries, because the process cannot end during a pause."""
    if REMOTE in os.environ:
        policies: list[Any] = spark.client.get_retry_policies()
        for policy in policies:
            policy.max_backoff, policy.max_retries = _PAUSE_MS, _RETRIES
        _policies[:] = policies
        # The client would print a warning after the last attempt.
        warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")
    return spark


def stop_retries() -> None:
    """Let requests to a lost Connect server fail at once, including waiting requests."""
    for policy in _policies:
        policy.max_retries = 0


def _if_answering(active: SparkSession | None) -> SparkSession | None:
    """Return the active session. Stop it and return None if its Connect server has lost it."""
    if active is None or REMOTE not in os.environ:
        return active
    try:
        _ = active.version  # a request to the server
    except Exception as error:
        if not is_of_spark(error):
            raise
        active.stop()
        return None
    return active


def is_named() -> bool:
    """Return True if the environment names a Spark."""
    return any(name in os.environ for name in _NAMED_BY)


def _advice() -> str:
    if REMOTE in os.environ:
        return "check that the server is running"
    if is_named() or _jar_folders():
        return "check that Java 17 is installed"
    return (
        "check that Java 17 is installed and that Maven Central is reachable, or put Delta's jars "
        f"into a folder and set {JARS_SETTING}"
    )


def setting(spark: SparkSession, name: str) -> str | None:
    """Return a setting of a session. None if Spark does not return it (serverless)."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - Spark is slow to import

    try:
        return spark.conf.get(name)
    except PySparkException:
        return None


def _what_is_missing(error: ImportError) -> str:
    if error.name is None:  # pyspark's text about a package for Spark Connect
        return f"{str(error).strip().splitlines()[0]} Install {extra('connect')}"
    return f"{error.name.split('.')[0]} is missing: install {extra('spark')}"


def _builder(builder: SparkSession.Builder) -> SparkSession.Builder:
    from pyspark.logger import PySparkLogger  # noqa: PLC0415 - Spark is slow to import

    for kind in ("SQL", "DataFrame"):  # it would print errors as JSON
        PySparkLogger.getLogger(f"{kind}QueryContextLogger").disabled = True
    if is_named():
        return builder.config(_ZONE, "UTC")
    # The kernel runs in Spark's Python workers. This Python has DuckDB.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Workers start with -m, and would otherwise import modules from the working directory, which
    # can be a lake.
    os.environ["PYTHONSAFEPATH"] = "1"
    scratch = Path(tempfile.gettempdir()) / "jmxlake-spark"
    java = f"-Dlog4j2.configurationFile={_LOG_CONFIG.as_uri()} -Dderby.system.home={scratch}"
    settings: dict[str, bool | float | int | str | None] = {
        **_CONF,
        "spark.driver.extraJavaOptions": f"{java} {JAVA_OPTIONS}",
        "spark.sql.warehouse.dir": str(scratch),
    }
    return _with_delta(builder.master(f"local[{cores(_MIB_A_CORE)}]").config(map=settings))


def _in_utc(session: SparkSession) -> SparkSession:
    zone = session.conf.get(_ZONE)
    if zone not in {"UTC", "Etc/UTC", "GMT", "Z", "+00:00"}:
        raise EngineError(f"the time zone of the Spark session is {zone}. Set {_ZONE} to UTC")
    return session


def _jar_folders() -> list[str]:
    named = os.environ.get(JARS_SETTING)
    return named.split(os.pathsep) if named else sorted(map(str, _JARS_CACHE.glob("delta*")))


def _with_delta(builder: SparkSession.Builder) -> SparkSession.Builder:
    found = {folder: sorted(Path(folder).glob("*.jar")) for folder in _jar_folders()}
    empty = [folder for folder, jars in found.items() if not jars]
    if empty and os.environ.get(JARS_SETTING):
        raise EngineError(
            f"{JARS_SETTING}={empty[0]}: this folder contains no jar. Copy Delta's jars into it"
        )
    paths = [str(jar.resolve()) for jars in found.values() for jar in jars]
    if paths:
        return builder.config("spark.jars", ",".join(paths))
    from delta import configure_spark_with_delta_pip  # noqa: PLC0415

    return configure_spark_with_delta_pip(builder)


@contextmanager
def quiet_jvm() -> Iterator[None]:
    """Capture standard output and error of a process that starts within this context.

    Spark's launcher prints warnings before it reads logging settings, and VACUUM prints to standard
    output. If the start fails, the captured text is written to standard error.
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


_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
"""Memory limit of a container."""


def cores(mib_each: int) -> int:
    """Return the number of cores that this process can use, limited by memory; at least one.

    Args:
        mib_each: Memory per core (MiB).
    """
    allowed = getattr(os, "sched_getaffinity", None)  # only on Linux
    number = len(allowed(0)) if allowed else os.cpu_count() or 1
    return max(1, min(number, _memory() // (mib_each << 20)))


def _memory() -> int:
    """Return the memory limit of this process (bytes)."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # "max": no limit
        memory = min(memory, int(_LIMIT.read_text("utf-8")))
    return memory
