"""Kafka's and Delta's jars by Maven coordinates, through the Ivy that pyspark ships.

The exact versions are in ``demo/ivy/*.xml``, that of Kafka is ``KAFKA``. The SHA-256 of each jar is
in ``demo/ivy/jars.sha256`` (``python -m demo.jars --digests`` prints those of the cache). The cache
is ``.cache`` in the repository's root, or the folder that JMXLAKE_CACHE names. Where a mirror must
be used instead of Ivy's default resolver, JMXLAKE_IVY_SETTINGS names an Ivy settings file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from demo.errors import DemoError
from demo.java import java_command
from demo.locked import locked

_IVY_FILES = Path(__file__).parent / "ivy"
_DIGESTS = _IVY_FILES / "jars.sha256"
_FETCH_SECONDS = 900

KAFKA: Final = "4.4.0"
"""The release of demo and tests."""


def kafka_libs(version: str = KAFKA) -> Path:
    """Return the folder with the jars of a release of Kafka from 3.6 on, fetched when needed.

    Raises:
        DemoError: They could not be fetched.
    """
    text = (_IVY_FILES / "kafka.xml").read_text("utf-8").replace("VERSION", version)
    if tuple(map(int, version.split("."))) < (4, 1):
        lines = text.splitlines(keepends=True)
        text = "".join(line for line in lines if "log4j-slf4j-impl" not in line)
    return _made_of(text, f"kafka-{version}", f"Kafka {version}")


def delta_jars() -> list[Path]:
    """The jars that Spark needs for Delta, fetched if they are not there yet.

    Raises:
        DemoError: They could not be fetched.
    """
    return sorted(_folder("delta", "Delta Lake 4.4.0").glob("*.jar"))


def s3_jars() -> list[Path]:
    """The jars that Spark needs beside those for a lake on S3, fetched when needed.

    Raises:
        DemoError: They could not be fetched.
    """
    return sorted(_folder("hadoop-aws", "Hadoop's S3A 3.5.0").glob("*.jar"))


def jolokia_jar() -> Path:
    """The Jolokia javaagent, for a node's JVM, fetched when needed.

    Raises:
        DemoError: It could not be fetched.
    """
    return next(_folder("jolokia", "Jolokia 2.5.1").glob("jolokia-agent-jvm-*.jar"))


def exporter_jars() -> Path:
    """The folder with Prometheus's jmx_exporter, a peer of the benchmarks, fetched when needed.

    Raises:
        DemoError: It could not be fetched.
    """
    return _folder("jmx-exporter", "jmx_exporter 1.0.1")


def strimzi_reporter_jars() -> list[Path]:
    """Strimzi's metrics reporter for brokers, and what it needs, fetched when needed.

    Raises:
        DemoError: They could not be fetched.
    """
    return sorted(_folder("strimzi-reporter", "Strimzi's metrics reporter 0.2.0").glob("*.jar"))


def msk_iam_jar() -> Path:
    """AWS's login of MSK, which tests give to the agent, fetched when needed.

    Raises:
        DemoError: It could not be fetched.
    """
    return next(_folder("msk-iam", "aws-msk-iam-auth 2.3.2").glob("*-all.jar"))


def unity_jars(part: str) -> Path:
    """The folder with the jars of Unity Catalog's ``server``, or of its connector for ``spark``.

    Where Maven's repository lacks them, JMXLAKE_UNITY_JARS names a folder with both.

    Raises:
        DemoError: They could not be fetched.
    """
    configured = os.environ.get("JMXLAKE_UNITY_JARS")
    if configured:
        return Path(configured) / part
    return _folder(f"unity-{part}", "Unity Catalog 0.6.0")


def cache_folder() -> Path:
    """Where fetched jars are kept."""
    configured = os.environ.get("JMXLAKE_CACHE")
    return Path(configured) if configured else Path(__file__).parents[1] / ".cache"


def _folder(name: str, title: str) -> Path:
    return _made_of((_IVY_FILES / f"{name}.xml").read_text("utf-8"), name, title)


def _made_of(ivy: str, name: str, title: str) -> Path:
    # The name carries the content, so that other versions never meet in one folder.
    content = hashlib.sha256(ivy.encode()).hexdigest()[:12]
    folder = cache_folder() / f"{name}-{content}"
    if not folder.is_dir():
        # One fetch at a time: Ivy's own cache is not made for two at once.
        with locked(folder.parent / "lock", "Jars"):
            if not folder.is_dir():
                _fetch(ivy, folder, title)
    return folder


def _fetch(ivy: str, folder: Path, title: str) -> None:
    fetched = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        print(f"Fetching {title} into {folder.parent}, about a minute, once ...", flush=True)
        ivy_file = fetched / "ivy.xml"
        ivy_file.write_text(ivy, "utf-8")
        _run_ivy(ivy_file, fetched, folder.parent / "ivy", title)
        ivy_file.unlink()
        check_digests(fetched, title)
        fetched.chmod(0o755)
        fetched.rename(folder)
        print(f"Fetched {title}: {len(list(folder.rglob('*.jar')))} jars.", flush=True)
    finally:
        shutil.rmtree(fetched, ignore_errors=True)


def check_digests(fetched: Path, title: str) -> None:
    """Compare fetched jars with the pinned digests, before anything runs them.

    Raises:
        DemoError: A jar is not pinned, or is another one.
    """
    pinned: dict[str, set[str]] = {}
    for line in _DIGESTS.read_text("utf-8").splitlines():
        digest, _, name = line.partition("  ")
        pinned.setdefault(name, set()).add(digest)
    for jar in sorted(fetched.glob("*.jar")):
        if jar.name not in pinned:
            raise DemoError(f"{title}: {jar.name} is not in {_DIGESTS.name}; inspect and add it")
        if _digest(jar) not in pinned[jar.name]:
            raise DemoError(f"{title}: {jar.name} is not the pinned file; its repository changed")


def digests() -> list[str]:
    """Return the lines of ``jars.sha256`` for every jar in the cache."""
    folders = [one for one in cache_folder().iterdir() if one.is_dir() and one.name != "ivy"]
    jars = (jar for folder in folders for jar in folder.rglob("*.jar"))
    return sorted({f"{_digest(jar)}  {jar.name}" for jar in jars}, key=lambda one: one[66:])


def _digest(jar: Path) -> str:
    with jar.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _run_ivy(ivy_file: Path, target: Path, ivy_cache: Path, title: str) -> None:
    pattern = f"{target}/[artifact]-[revision](-[classifier]).[ext]"
    settings = os.environ.get("JMXLAKE_IVY_SETTINGS")
    command = [
        *java_command("-Xmx256m", "-jar", str(_ivy_jar())),
        *(("-settings", settings) if settings else ()),
        *("-ivy", str(ivy_file), "-confs", "default", "-cache", str(ivy_cache)),
        *("-types", "jar", "bundle", "-retrieve", pattern),
    ]
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_FETCH_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise DemoError(
            f"{title} could not be fetched within {_FETCH_SECONDS} s: is the network slow or shut?"
        ) from error
    if ran.returncode != 0:
        raise DemoError(
            f"{title} could not be fetched: {_reason(ran.stdout + ran.stderr)}. Is the network up? "
            "Behind a mirror, name an Ivy settings file by JMXLAKE_IVY_SETTINGS."
        )


def _reason(output: str) -> str:
    lines = [line.strip(" :\t") for line in output.splitlines()]
    telling = [line for line in lines if "not found" in line or "rror" in line]
    return next(iter(telling or reversed(lines)), "Ivy said nothing")


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    roots = spec.submodule_search_locations if spec else None
    found = sorted(Path(root) / "jars" for root in roots or ())
    jars = [jar for folder in found for jar in folder.glob("ivy-*.jar")]
    if not jars:
        raise DemoError("pyspark, which brings Ivy, is not installed: install jmxlake[spark].")
    return jars[0]


def main() -> int:
    """Fetch everything; for a Makefile, so that the first run says what it waits for."""
    if sys.argv[1:] == ["--digests"]:
        print("\n".join(digests()))
        return 0
    try:
        print(kafka_libs())
        print(delta_jars()[0].parent)
    except DemoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
