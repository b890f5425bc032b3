from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from demo.errors import DemoError

if TYPE_CHECKING:
    from collections.abc import Sequence

QUIET: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""A JVM that cannot use an archive of classes, or a class in it, does not say so."""


def java_command(*arguments: str) -> list[str]:
    """A command line that runs Java: that of JAVA_HOME, else the one on PATH.

    Raises:
        DemoError: There is no Java.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise DemoError(
            f"Java was not found ({java or 'no java on PATH'}): install Java 17 or set JAVA_HOME."
        )
    return [java, *arguments]


def jdk_program(name: str) -> str:
    """A program of the JDK of that Java, such as ``javac``; else the one on PATH.

    Raises:
        DemoError: There is none.
    """
    beside = Path(java_command()[0]).resolve().with_name(name)
    program = str(beside) if beside.exists() else shutil.which(name)
    if program is None:
        raise DemoError(f"There is no {name} beside {beside.with_name('java')}: install a JDK 17.")
    return program


def from_archive(archive: Path) -> list[str]:
    """The option by which a JVM takes its classes from an archive, where there is one."""
    return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


def compile_jar(sources: Sequence[Path], classpath: Sequence[Path], jar: Path) -> None:
    """A jar of the classes of Java files; ``classpath`` has folders of jars.

    Raises:
        DemoError: There is no Java compiler, or it refused them.
    """
    javac = jdk_program("javac")
    jars = os.pathsep.join(f"{folder}/*" for folder in classpath)
    with tempfile.TemporaryDirectory(dir=jar.parent) as folder:
        classes = Path(folder) / "classes"
        command = [javac, "-Xlint:all", "-cp", jars, "-d", str(classes), *map(str, sources)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise DemoError(f"javac refused {sources[0].name} and the others:\n{ran.stderr}")
        Path(shutil.make_archive(f"{folder}/made", "zip", classes)).rename(jar)
