"""A Spark Connect server on loopback, whose workers have as much memory as on serverless."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import psutil

from demo.ports import free_ports
from tests.rig.spark_processes import HOME, LOOPBACK, SparkProcesses, conf_folder, settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

WORKER_BYTES: Final = 1_000_000_000
"""What Databricks serverless lets a Python worker have, by its documentation."""


class WorkerLimit:
    """Ends a Python worker of Spark whose resident memory passes 1 GB, as serverless does.

    ``spark.executor.pyspark.memory`` would limit its address space, which is many times as large.

    Attributes:
        peak: The most that a worker had, bytes.
    """

    def __init__(self, spark: int) -> None:
        self.peak = 0
        self._spark, self._stop = psutil.Process(spark), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Watch no more."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            for worker, size in self._workers():
                self.peak = max(self.peak, size)
                if size > WORKER_BYTES:
                    worker.kill()

    def _workers(self) -> Iterator[tuple[psutil.Process, int]]:
        for one in self._spark.children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # one that has ended hides no other
                if "pyspark.daemon" in one.cmdline():
                    yield one, one.memory_info().rss


class ConnectServer(SparkProcesses):
    """A Spark Connect server with Delta.

    Args:
        folder: Where it works.
        jars: Further jars.
        port: Where it listens; None: at a free port.
        more: Further settings.

    Attributes:
        port: Where it listens.
        remote: What SPARK_REMOTE is to say.
        warehouse: Where tables lie that are made by name.
        pid: Its process.
        workers: The limit of its Python workers.
    """

    def __init__(
        self, folder: Path, jars: Sequence[Path] = (), *, port: int | None = None, **more: str
    ) -> None:
        super().__init__(folder)
        self.port = port = port or free_ports(1)[0]
        self.remote, self.warehouse = f"sc://{LOOPBACK}:{port}", folder / "warehouse"
        ours = {
            "spark.connect.grpc.binding.address": LOOPBACK,
            "spark.connect.grpc.binding.port": str(port),
        }
        chosen = settings(folder, jars, **ours, **more)
        server = "org.apache.spark.sql.connect.service.SparkConnectServer"
        process = self.start(
            "connect-server",
            port,
            (HOME / "bin" / "spark-submit", "--class", server),
            SPARK_CONF_DIR=str(conf_folder(folder, chosen)),
        )
        self.pid = process.pid
        self.workers = WorkerLimit(process.pid)
        self._stack.callback(self.workers.close)
