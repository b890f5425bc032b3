"""The Java virtual machine of this process, and the reports of its crashes.

JPype can start a JVM once per process. Threads attach to it automatically as daemons, so it does
not keep the process alive. JPype is imported only when a source needs Java: an agent that reads
over HTTP has no JVM. A JVM that crashes writes a report next to the spool.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from collector.errors import ConfigError, SettingError
from collector.sources.java import serial_filter

_CLIENT_JARS: Final[tuple[str, ...]] = ("kafka-clients", "slf4j-api")
# Optional jars that OAUTHBEARER of a Kafka client needs.
_OAUTH_JARS: Final = ("jackson-core", "jackson-databind", "jackson-annotations", "jose4j")
_METADATA_JARS: Final = ("kafka-metadata", "kafka-server-common")
_REMOTE_JARS: Final = ("kafka-server-common", "kafka-storage", "kafka-storage-api")
# Optional jars that a consumer needs for a compressed topic.
_CODEC_JARS: Final = ("lz4-java", "snappy-java", "zstd-jni")
# JPype can crash if two threads load a class at the same time (JPype issue 756), so the classes of
# responses are loaded before threads start.
_RETURNED: Final = (
    *(f"java.lang.{name}" for name in ("Thread", "String", "Integer", "Long", "Double", "Boolean")),
    *("java.util.HashMap", "java.util.Optional", "javax.management.Query"),
    *("java.rmi.MarshalledObject", "java.util.Collections", "java.util.Map"),
    *(name for name in serial_filter.EVERY if not set(name) & {"*", "$"}),
)
# PerfData wakes up twenty times a second and writes the command line to a file in /tmp.
FRUGAL: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
FROM_OUTSIDE: Final = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS")
"""Variables that add Java agents. In the agent's JVM they would need memory and ports."""


def start(
    libs: Path | None = None,
    *,
    metadata_libs: Path | None = None,
    remote_log: bool = False,
    iam_jar: Path | None = None,
    timeout_seconds: float = 5,
    options: str = "",
    heap_bytes: int = 128 << 20,
) -> None:
    """Start the JVM if it is not running.

    Args:
        libs: Folder with the broker's jars for the Admin client. None: no Admin client.
        metadata_libs: Folder with the broker's jars for the metadata log. None: no metadata log.
        remote_log: Whether the metadata topic of remote storage is read.
        iam_jar: Jar of AWS for the login to MSK.
        timeout_seconds: Timeout of RMI responses.
        options: Additional options of Java, written as for a shell. They override the defaults.
        heap_bytes: Maximum heap size.

    Raises:
        ConfigError: Java is missing or does not start.
        SettingError: A jar is missing.
    """
    import jpype  # noqa: PLC0415 - see the module's docstring

    if jpype.isJVMStarted():
        return
    for name in FROM_OUTSIDE:
        os.environ.pop(name, None)
    home = java_home()
    if iam_jar is not None and not iam_jar.is_file():
        raise SettingError("admin.iam_jar", f"{iam_jar} does not exist")
    found = _jars(libs, metadata_libs, remote_log=remote_log)
    jars = [str(jar) for jar in (*found, iam_jar) if jar is not None]
    library = "libjvm.dylib" if sys.platform == "darwin" else "libjvm.so"
    try:
        jpype.startJVM(
            str(home / "lib/server" / library),
            *_options(timeout_seconds, heap_bytes),
            *shlex.split(options),
            classpath=jars,
            convertStrings=False,
        )
    except (OSError, RuntimeError, jpype.JVMNotSupportedException) as error:
        advice = "Correct java.options, or set" if options else "Set"
        raise ConfigError(
            f"Java at {home} does not start: {error}. {advice} JAVA_HOME to Java 17 or later."
        ) from None
    serial_filter.install(java)  # before any response is read
    for name in _RETURNED:
        java(name)
    if jars:
        _silence_slf4j()


def java_home() -> Path:
    """Return JAVA_HOME, or the home of ``java`` on PATH.

    Raises:
        ConfigError: Java is missing.
    """
    stated = os.environ.get("JAVA_HOME")
    if stated:
        return Path(stated)
    found = shutil.which("java")
    if found is None:
        raise ConfigError("Java is missing. Install Java 17 or later, or set JAVA_HOME.")
    return Path(found).resolve().parent.parent


def rmi_options(seconds: float) -> tuple[str, ...]:
    """Return the JVM options for timeouts of RMI: connection, handshake and response."""
    waits = ("tcp.responseTimeout", "tcp.handshakeTimeout", "proxy.connectTimeout")
    timeout_ms = max(1, round(seconds * 1000))  # 0 would disable the timeout
    return tuple(f"-Dsun.rmi.transport.{wait}={timeout_ms}" for wait in waits)


@cache
def java(name: str) -> Any:
    """Return a Java class by its full name."""
    import jpype  # noqa: PLC0415 - see the module's docstring

    return jpype.JClass(name)


def started_jvm() -> Callable[[str], Any] | None:
    """Return a function from names to Java classes. None if no JVM is running."""
    jpype = sys.modules.get("jpype")
    return jpype.JClass if jpype is not None and jpype.isJVMStarted() else None


def detach() -> None:
    """Detach a thread at its end. Otherwise Java keeps 9 kB for it until the process ends."""
    if started_jvm() is not None:
        java("java.lang.Thread").detach()  # a cached class: loading a class attaches the thread


def _options(timeout_seconds: float, heap_bytes: int) -> list[str]:
    return [
        # A small young generation: otherwise Java fills the whole heap before it collects, and the
        # heap stays in memory. A few megabytes outlive a scrape. The maximum is much larger for
        # the names of the MBeans of 10,000 partitions.
        *(f"-Xmx{heap_bytes >> 20}m", "-Xms6m", "-Xmn4m"),
        *("-XX:MinHeapFreeRatio=10", "-XX:MaxHeapFreeRatio=20"),
        # The JVM makes guard pages below the main thread's stack, and delta-rs needs a megabyte.
        "-Xss2m",
        *FRUGAL,
        # By default two JVM threads wake up once and four times a second without work.
        "-XX:+UnlockDiagnosticVMOptions",  # before the two options that need it
        "-XX:GuaranteedSafepointInterval=60000",
        "-XX:AsyncDeflationInterval=60000",
        "-XX:-CreateCoredumpOnCrash",  # it would contain passwords
        "-Xrs",  # the agent handles SIGTERM and SIGINT
        "-Djava.awt.headless=true",
        "-Dslf4j.internal.verbosity=ERROR",
        *rmi_options(timeout_seconds),
        "-Dsun.rmi.transport.connectionTimeout=60000",  # reuse it for an interval
        "--enable-native-access=ALL-UNNAMED",
    ]


def _jars(libs: Path | None, metadata_libs: Path | None, *, remote_log: bool = False) -> list[Path]:
    """Return the jars of the class path. Jars of two Kafka versions are incompatible."""
    folder, key, stems = libs, "admin.libs", _CLIENT_JARS
    if metadata_libs is not None:
        folder, key, stems = metadata_libs, "metadata_log.libs", stems + _METADATA_JARS
    if remote_log:
        stems = tuple(dict.fromkeys(stems + _REMOTE_JARS))
    if folder is None:
        return []
    for stem in stems:
        if not _newest(folder, stem):
            raise SettingError(
                key, f"{stem}-*.jar is missing in {folder}. Set the libs folder of the broker."
            )
    optional = _OAUTH_JARS + (_CODEC_JARS if remote_log else ())
    return [jar for stem in stems + optional for jar in _newest(folder, stem)]


def _newest(libs: Path, stem: str) -> list[Path]:
    return sorted(libs.glob(f"{stem}-[0-9]*.jar"))[-1:]


def _silence_slf4j() -> None:
    # Without a backend slf4j prints a warning to stderr once and logs nothing afterwards.
    system = java("java.lang.System")
    stderr = system.err
    system.setErr(java("java.io.PrintStream")(java("java.io.OutputStream").nullOutputStream()))
    try:
        java("org.slf4j.LoggerFactory").getILoggerFactory()
    finally:
        system.setErr(stderr)


_NEW: Final = "hs_err_"
_SEEN: Final = "crash_"
_MOST_KEPT: Final = 20
_HEAD_BYTES: Final = 4096
_CAUSES: Final = ("#  SIG", "#  Internal Error", "#  Out of Memory", "# There is insufficient")


class Crash(NamedTuple):
    """A crash report of the JVM.

    Attributes:
        path: The report.
        at_us: Time of the report (µs since the epoch).
        cause: The line with the cause of the crash.
    """

    path: Path
    at_us: int
    cause: str

    def seen(self) -> None:
        """Rename a recorded report, so that it is recorded once."""
        with suppress(OSError):
            self.path.rename(self.path.with_name(self.path.name.replace(_NEW, _SEEN, 1)))


def crash_report_option(spool: Path) -> str:
    """Return Java's option for the path of reports, quoted for a shell."""
    return shlex.quote(f"-XX:ErrorFile={spool.resolve().with_name(f'{spool.name}.{_NEW}%p.log')}")


def new_crashes(spool: Path) -> list[Crash]:
    """Return unrecorded reports, oldest first. Keep the last 20 recorded reports."""
    for old in _crashes(spool, _SEEN)[:-_MOST_KEPT]:
        with suppress(OSError):
            old.path.unlink()
    return _crashes(spool, _NEW)


def all_crashes(spool: Path) -> list[Crash]:
    """Return all reports, recorded or not."""
    return [*_crashes(spool, _SEEN), *_crashes(spool, _NEW)]


def _crashes(spool: Path, kind: str) -> list[Crash]:
    found = []
    for path in spool.resolve().parent.glob(f"{spool.name}.{kind}*.log"):
        with suppress(OSError):
            at_us = path.stat().st_mtime_ns // 1_000
            with path.open("rb") as file:
                head = file.read(_HEAD_BYTES).decode(errors="replace")
            causes = (line.strip("# ") for line in head.splitlines() if line.startswith(_CAUSES))
            found.append(Crash(path, at_us, next(causes, "unknown cause")))
    return sorted(found, key=lambda crash: crash.at_us)
