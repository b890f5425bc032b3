"""Kafka's jars, and classes of our own beside them, for brokers that load plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demo.jars import kafka_libs
from demo.java import compile_jar

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def libs_with(folder: Path, plugin: Path | None = None, jars: Iterable[Path] = ()) -> Path:
    """A folder of jars for a cluster: Kafka's, others, and one compiled from a Java file.

    Args:
        folder: Where to make it.
        plugin: The Java file.
        jars: The others.
    """
    libs = folder / "libs"
    libs.mkdir(parents=True)
    for jar in kafka_libs().glob("*.jar"):
        (libs / jar.name).symlink_to(jar)
    for jar in jars:
        (libs / jar.name).symlink_to(jar)
    if plugin is not None:
        compile_jar([plugin], [libs], libs / "plugin.jar")
    return libs
