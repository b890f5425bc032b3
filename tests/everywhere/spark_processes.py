"""Spark as others run it: a Connect server, a standalone cluster; real processes on loopback."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import psutil
import pyspark

from demo.jars import delta_jars
from demo.launcher import Launcher, end, last_lines
from demo.ports import free_ports, is_listening
from lakehouse.core import spark_session
from tests.waiting import wait_for

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence

HOME = Path(pyspark.__file__).parent
LOOPBACK = "127.0.0.1"
WORKER_BYTES: Final = 1_000_000_000
"""What Databricks serverless lets a Python worker have, by its documentation."""

_START_SECONDS = 300
_GRACE_SECONDS = 30
_NO_SPARK = {name: "" for name in spark_session._NAMED_BY if name in os.environ}


def bare_environment(**more: str) -> dict[str, str]:
    """Our environment without a word on which Spark is meant, and what more a process is told."""
    kept = {
        name: value for name, value in os.environ.items() if name not in spark_session._NAMED_BY
    }
    return {**kept, **more}


def settings(folder: Path, jars: Sequence[Path] = (), **more: str) -> dict[str, str]:
    """spark-defaults.conf of a Spark as the product's own; its tables by name lie in the folder."""
    found = ",".join(map(str, (*delta_jars(), *jars)))
    java = f"{spark_session.JAVA_OPTIONS} -Dderby.system.home={folder}"
    return {
        **spark_session._CONF,
        "spark.master": "local[2]",
        "spark.jars": found,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": java,
        **more,
    }


def conf_folder(folder: Path, chosen: dict[str, str]) -> Path:
    """A folder for SPARK_CONF_DIR."""
    made = folder / "conf"
    made.mkdir(parents=True)
    lines = [f"{key} {value}\n" for key, value in chosen.items()]
    (made / "spark-defaults.conf").write_text("".join(lines))
    return made


class SparkProcesses:
    """Processes of pyspark's own classes that listen on loopback; ended by their ids."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._stack = ExitStack()
        self._launcher = Launcher()
        self._stack.callback(self._launcher.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(
        self, name: str, port: int, command: Sequence[str], **environment: str
    ) -> subprocess.Popen[bytes]:
        """Start a process and wait until it listens."""
        log = self.folder / f"{name}.log"
        # The launcher adds to our environment; an empty variable is none to Spark's scripts.
        ours = {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": LOOPBACK}
        ours["PYSPARK_PYTHON"] = sys.executable  # its workers need DuckDB
        command = [str(part) for part in command]
        process = self._launcher.start(command, log, {**_NO_SPARK, **ours, **environment})
        self._stack.callback(end, process, _GRACE_SECONDS)
        wait_for(lambda: self._listens(process, port, log), _START_SECONDS)
        return process

    @staticmethod
    def _listens(process: subprocess.Popen[bytes], port: int, log: Path) -> bool:
        assert process.poll() is None, last_lines(log)
        return is_listening(port)


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
            with suppress(psutil.NoSuchProcess):  # one that has just ended
                for worker, size in self._workers():
                    self.peak = max(self.peak, size)
                    if size > WORKER_BYTES:
                        worker.kill()

    def _workers(self) -> Iterator[tuple[psutil.Process, int]]:
        for one in self._spark.children(recursive=True):
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
        self.workers = WorkerLimit(process.pid)
        self._stack.callback(self.workers.close)


class StandaloneCluster(SparkProcesses):
    """A master and two workers with a core each.

    Attributes:
        conf: What SPARK_CONF_DIR is to say.
    """

    def __init__(self, folder: Path, executor_memory: str = "512m") -> None:
        super().__init__(folder)
        master, *ports = free_ports(6)
        url = f"spark://{LOOPBACK}:{master}"
        chosen = settings(
            folder,
            **{
                "spark.master": url,
                "spark.executor.memory": executor_memory,
                "spark.executor.cores": "1",
                "spark.executor.extraJavaOptions": spark_session.JAVA_OPTIONS,
            },
        )
        self.conf = conf_folder(folder, chosen)
        self._class("master", master, ports[0], "master.Master")
        for number in (1, 2):
            self._class(
                f"worker-{number}", ports[2 * number - 1], ports[2 * number], "worker.Worker",
                "--cores", "1", "--memory", "4g", "--work-dir", str(self.work(number)), url,
            )  # fmt: skip

    def work(self, number: int) -> Path:
        """Where a worker keeps what its executors say."""
        return self.folder / f"work-{number}"

    def worked(self) -> list[int]:
        """How many executors each worker has had."""
        return [len([*self.work(number).glob("app-*/*/stderr")]) for number in (1, 2)]

    def _class(self, name: str, port: int, web_port: int, kind: str, *more: str) -> None:
        self.start(
            name,
            port,
            (
                *(HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}"),
                *("--host", LOOPBACK, "--port", str(port), "--webui-port", str(web_port), *more),
            ),
            SPARK_DAEMON_MEMORY="256m",
        )
