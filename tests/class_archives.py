"""Archives of the classes that the JVMs of Kafka, Spark and agents load: with them, each of the
tests' many starts computes less (Kafka 40 %, an agent with Admin a quarter), as classes are neither
read from jars nor verified again.

A JVM writes the archive of what it has loaded as it ends (JEP 350), or when it is told to; another
Java, or one with other jars, ignores it. Those of nodes and agents are where the demo's settings of
them look, Spark's is for the processes that SPARK_SUBMIT_OPTS names it to.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from demo.agents import agent_archive, agent_config
from demo.cluster import Cluster
from demo.errors import DemoError
from demo.jars import delta_jars, kafka_libs
from demo.java import QUIET, jdk_program
from demo.node import class_archive
from demo.ports import free_ports
from lakehouse.core import lake as lakes
from lakehouse.core.spark_session import quiet_jvm, session
from lakehouse.engines.spark_with_delta_rs import SparkWithDeltaRs
from tests.lanes import SUBMIT_OPTIONS, spark_archive
from tests.rollups import rolled
from tests.running import RunningAgent
from tests.story_lake import Story
from tests.waiting import wait_for

_SECONDS: Final = 120


def by_a_broker(archive: Path) -> None:
    written = f"-XX:ArchiveClassesAtExit={archive}"
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster.start(
            Path(folder) / "cluster",
            brokers=1,
            jvm_options=lambda plan: [written] if plan.role == "broker" else [],
        ) as cluster,
    ):
        cluster.brokers[0].stop(_SECONDS)


def by_an_agent(archive: Path) -> None:
    """Not at its end, which leaves Java no time."""
    with (
        tempfile.TemporaryDirectory() as name,
        Cluster.start((folder := Path(name)) / "cluster", brokers=1) as cluster,
    ):
        settings = agent_config(cluster, cluster.brokers[0], folder / "lake", folder)
        settings["java"] = {"options": "-XX:+RecordDynamicDumpInfo"}
        settings["health"] = {"port": free_ports(1)[0]}
        with RunningAgent(settings, folder / "agent") as agent:
            agent.wait_ready()
            families = ("min_isr", "log_offsets", "offsets", "topology")
            wait_for(lambda: all(agent.scrapes(family) for family in families), _SECONDS)
            dump = [jdk_program("jcmd"), str(agent.process.pid), "VM.cds", "dynamic_dump"]
            subprocess.run([*dump, str(archive)], check=True, capture_output=True, timeout=_SECONDS)


def by_a_driver(archive: Path) -> None:
    os.environ[SUBMIT_OPTIONS] = f"-XX:ArchiveClassesAtExit={archive} {QUIET}"
    with tempfile.TemporaryDirectory() as lake:
        Story(1).tell().batch.commit(Path(lake))
        with quiet_jvm():
            spark = session()
        rolled(SparkWithDeltaRs(lakes.at(lake), lambda: spark, {}))
        driver = spark.sparkContext._gateway.proc
        spark.stop()
        driver.stdin.close()  # its sign that Python has gone
        driver.wait(_SECONDS)


def main() -> int:
    try:
        archives = {
            class_archive(kafka_libs()): by_a_broker,
            agent_archive(kafka_libs()): by_an_agent,
            spark_archive(delta_jars()[0].parent): by_a_driver,
        }
        for archive, write in archives.items():
            if not archive.exists():
                sys.stdout.write(f"Writing {archive.name} into {archive.parent}, once ...\n")
                sys.stdout.flush()
                unfinished = archive.with_suffix(f".{os.getpid()}")
                write(unfinished)
                unfinished.rename(archive)
    except DemoError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
