"""Kafka's jars, and classes of our own beside them, for brokers that load plugins."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from demo.jars import TEST_JARS, kafka_libs
from demo.java import java_command


def libs_with(folder: Path, plugin: Path) -> Path:
    """A folder of jars for a cluster: Kafka's, and one of what is compiled from a Java file.

    Args:
        folder: Where to make it.
        plugin: The Java file.
    """
    libs, classes = folder / "libs", folder / "classes"
    (libs / TEST_JARS).mkdir(parents=True)
    for jar in kafka_libs().rglob("*.jar"):
        (libs / jar.relative_to(kafka_libs())).symlink_to(jar)
    javac = Path(java_command()[0]).resolve().with_name("javac")
    classpath = f"{libs}/*:{libs / TEST_JARS}/*"
    subprocess.run([javac, "-cp", classpath, "-d", classes, plugin], check=True)
    shutil.make_archive(str(folder / "plugin"), "zip", classes)
    shutil.move(folder / "plugin.zip", libs / "plugin.jar")
    return libs
