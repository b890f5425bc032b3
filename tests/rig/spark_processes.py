"""Spark as others run it: processes of pyspark's own classes on loopback, ended by their ids."""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import psutil
import pyspark

from demo.errors import DemoError
from demo.jars import delta_jars
from demo.launcher import Launcher, end, last_lines
from demo.ports import free_ports, is_listening
from lakehouse.core import spark_session

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

HOME: Final = Path(pyspark.__file__).parent
LOOPBACK: Final = "127.0.0.1"

_EXECUTOR: Final = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_START_SECONDS: Final = 1_200  # a busy machine is slower, not wrong
_LOOK_SECONDS: Final = 0.2
_GRACE_SECONDS: Final = 30
_PRODUCT: Final = spark_session._CONF
_CORES: Final = spark_session.cores(spark_session._MIB_A_CORE)
_NAMED_BY: Final = (*spark_session._NAMED_BY, "PYSPARK_PYTHON", "PYTHONSAFEPATH")
_NO_SPARK: Final = {name: "" for name in _NAMED_BY if name in os.environ}


def bare_environment(**more: str) -> dict[str, str]:
    """Return our environment without the variables of a Spark, and with some more."""
    kept = {name: value for name, value in os.environ.items() if name not in _NAMED_BY}
    return {**kept, **more}


def settings(folder: Path, jars: Sequence[Path] = (), /, **more: str) -> dict[str, str]:
    """Return settings as the product's own session has them; tables by name are in the folder."""
    found = ",".join(map(str, (*delta_jars(), *jars)))
    java = f"{spark_session.JAVA_OPTIONS} -Dderby.system.home={folder}"
    return {
        **_PRODUCT,
        "spark.master": f"local[{_CORES}]",
        "spark.jars": found,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": java,
        **more,
    }


def conf_folder(folder: Path, chosen: Mapping[str, str]) -> Path:
    """Write a folder for SPARK_CONF_DIR."""
    made = folder / "conf"
    made.mkdir(parents=True)
    lines = [f"{key} {value}\n" for key, value in chosen.items()]
    (made / "spark-defaults.conf").write_text("".join(lines))
    return made


def runs(process: psutil.Process, word: str) -> bool:
    """Return True if a word is in the command line of a process that has not ended."""
    with suppress(psutil.Error):
        return word in process.cmdline()
    return False


def has_python_worker(process: int) -> bool:
    """Return True if a Spark that is below a process has started Python for its tasks."""
    with suppress(psutil.Error):
        below = psutil.Process(process).children(recursive=True)
        return any(runs(one, "pyspark.daemon") for one in below)
    return False


class SparkProcesses:
    """Processes that listen on loopback.

    Attributes:
        folder: The folder of their logs.
    """

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
        self, name: str, port: int, command: Sequence[str | Path], **environment: str
    ) -> subprocess.Popen[bytes]:
        """Start a process and wait until it listens.

        Raises:
            DemoError: It ended, or does not listen.
        """
        log = self.folder / f"{name}.log"
        # The launcher adds to our environment; an empty variable is none to Spark's scripts.
        ours = {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": LOOPBACK}
        ours["PYSPARK_PYTHON"] = sys.executable  # its workers need DuckDB
        words = [str(part) for part in command]
        process = self._launcher.start(words, log, {**_NO_SPARK, **ours, **environment})
        self._stack.callback(end, process, _GRACE_SECONDS)
        deadline = time.monotonic() + _START_SECONDS
        while not is_listening(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise DemoError(f"{name} does not listen at port {port}: {last_lines(log)}")
            time.sleep(_LOOK_SECONDS)
        return process


class StandaloneCluster(SparkProcesses):
    """A master and workers with a core each.

    Args:
        folder: Its folder.
        executor_memory: The heap of an executor.
        workers: The number of workers, 1 or more.
        pinned: Whether each worker may use one core of the machine only, a core of its own.
        python: Python of the executors; by default this one.
        more: Further settings of the driver.

    Attributes:
        conf: The folder of the driver's settings.
        environment: Variables of a driver: they name the cluster, and Python of its executors.
        pids: The processes of the master and of the workers.
    """

    def __init__(
        self,
        folder: Path,
        executor_memory: str = "512m",
        *,
        workers: int = 2,
        pinned: bool = False,
        python: str = sys.executable,
        **more: str,
    ) -> None:
        super().__init__(folder)
        master, *ports = free_ports(2 + 2 * workers)
        url = f"spark://{LOOPBACK}:{master}"
        executor = {"memory": executor_memory, "cores": "1"}
        executor["extraJavaOptions"] = spark_session.JAVA_OPTIONS
        chosen = {f"spark.executor.{name}": value for name, value in executor.items()}
        chosen |= {"spark.master": url, **more}
        self.conf = conf_folder(folder, settings(folder, **chosen))
        self.environment = {"SPARK_CONF_DIR": str(self.conf), "PYSPARK_PYTHON": python}
        self.pids = [self._class("master", (master, ports[0]), "master.Master")]
        cores = sorted(os.sched_getaffinity(0))
        for number in range(1, workers + 1):
            places = (ports[2 * number - 1], ports[2 * number])
            size = ("--cores", "1", "--memory", "4g", "--work-dir", str(self.work(number)))
            own = ("taskset", "--cpu-list", str(cores[number - 1])) if pinned else ()
            self.pids.append(
                self._class(f"worker-{number}", places, "worker.Worker", *size, url, before=own)
            )

    def work(self, number: int) -> Path:
        """Return the folder of a worker, which counts from 1: of what its executors say."""
        return self.folder / f"work-{number}"

    def worked(self) -> list[int]:
        """Return the number of executors that each worker has had."""
        workers = range(1, len(self.pids))
        return [len([*self.work(number).glob("app-*/*/stderr")]) for number in workers]

    def executors(self) -> list[psutil.Process]:
        """Return the executors that are running."""
        found = (psutil.Process(worker).children() for worker in self.pids[1:])
        return [one for one in chain.from_iterable(found) if runs(one, _EXECUTOR)]

    def _class(
        self,
        name: str,
        ports: tuple[int, int],
        kind: str,
        *more: str,
        before: tuple[str, ...] = (),
    ) -> int:
        port, web_port = ports
        places = ("--host", LOOPBACK, "--port", str(port), "--webui-port", str(web_port))
        command = (HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}")
        process = self.start(
            name, port, (*before, *command, *places, *more), SPARK_DAEMON_MEMORY="256m"
        )
        return process.pid
