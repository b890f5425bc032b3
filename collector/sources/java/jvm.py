"""The one Java virtual machine in this process.

JPype starts it; it can be started once and never again. Threads attach to it by themselves, as
daemons, so it never keeps the process alive. JPype itself is imported by those alone who need a
JVM: who reads over HTTP has none.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from collector.errors import ConfigError, SettingError
from collector.sources.java import serial_filter

_CLIENT_JARS: Final[tuple[str, ...]] = ("kafka-clients", "slf4j-api")
# What OAUTHBEARER of a Kafka client needs besides, where the folder has it.
_OAUTH_JARS: Final = ("jackson-core", "jackson-databind", "jackson-annotations", "jose4j")
_METADATA_JARS: Final = ("kafka-metadata", "kafka-server-common")
# Two threads that meet a class for the first time at one instant may crash JPype (its issue 756):
# those that answers are made of are met before there are threads.
_RETURNED: Final = (
    *(f"java.lang.{name}" for name in ("Thread", "String", "Integer", "Long", "Double", "Boolean")),
    *("java.util.HashMap", "java.util.Optional", "javax.management.Query"),
    *("java.rmi.MarshalledObject", "java.util.Collections", "java.util.Map"),
    *(name for name in serial_filter.EVERY if not set(name) & {"*", "$"}),
)
# The last, as it wakes up twenty times a second and keeps the command line in a file of /tmp.
FRUGAL: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
FROM_OUTSIDE: Final = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS")
"""Variables by which operators add a javaagent: in our JVMs it would take memory and ports."""


def start(
    libs: Path | None = None,
    *,
    metadata_libs: Path | None = None,
    iam_jar: Path | None = None,
    timeout_seconds: float = 5,
    options: str = "",
    heap_bytes: int = 128 << 20,
) -> None:
    """Start the JVM, if it does not run yet.

    Args:
        libs: Folder with the broker's jars, for the Admin client; None if that is not wanted.
        metadata_libs: The same, to read its metadata log.
        iam_jar: AWS's jar for the login of MSK.
        timeout_seconds: How long RMI waits for an answer.
        options: Further options of Java, written as for a shell; they override ours.
        heap_bytes: How large its heap may grow.

    Raises:
        ConfigError: There is no Java.
        SettingError: There is no Kafka client in the folder, or no such jar.
    """
    import jpype  # noqa: PLC0415 - see above

    if jpype.isJVMStarted():
        return
    for name in FROM_OUTSIDE:
        os.environ.pop(name, None)
    home = java_home()
    if iam_jar is not None and not iam_jar.is_file():
        raise SettingError("admin.iam_jar", f"there is no file {iam_jar}")
    jars = [str(jar) for jar in (*_jars(libs, metadata_libs), iam_jar) if jar is not None]
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
        raise ConfigError(
            f"Java at {home} does not start: {error}; set JAVA_HOME to Java 17 or later"
        ) from None
    serial_filter.install(java)  # before anything is read
    for name in _RETURNED:
        java(name)
    if jars:
        _silence_slf4j()


def java_home() -> Path:
    """Where Java is: JAVA_HOME, or what ``java`` on PATH belongs to.

    Raises:
        ConfigError: There is none.
    """
    stated = os.environ.get("JAVA_HOME")
    if stated:
        return Path(stated)
    found = shutil.which("java")
    if found is None:
        raise ConfigError("no Java found: install Java 17 or later, or set JAVA_HOME")
    return Path(found).resolve().parent.parent


def rmi_options(seconds: float) -> tuple[str, ...]:
    """Options of a JVM that bound each wait of RMI: to connect, for a handshake, for an answer."""
    waits = ("tcp.responseTimeout", "tcp.handshakeTimeout", "proxy.connectTimeout")
    timeout_ms = max(1, round(seconds * 1000))  # 0 would mean for ever
    return tuple(f"-Dsun.rmi.transport.{wait}={timeout_ms}" for wait in waits)


@cache
def java(name: str) -> Any:
    """A Java class by its full name."""
    import jpype  # noqa: PLC0415 - see above

    return jpype.JClass(name)


def started_jvm() -> Callable[[str], Any] | None:
    """Gives Java's classes by name, where the JVM runs."""
    jpype = sys.modules.get("jpype")
    return jpype.JClass if jpype is not None and jpype.isJVMStarted() else None


def detach() -> None:
    """At the end of a thread that may have called Java: else one of Java's stays for ever, 9 kB."""
    if started_jvm() is not None:
        java("java.lang.Thread").detach()  # which is known: to look a class up attaches the thread


def _options(timeout_seconds: float, heap_bytes: int) -> list[str]:
    return [
        # A small young generation: else the whole heap would be filled before anything is
        # collected, and stay resident. What outlives a scrape is a few megabytes; the names of the
        # beans of 10,000 partitions take more, so the most is far above that.
        *(f"-Xmx{heap_bytes >> 20}m", "-Xms6m", "-Xmn4m"),
        *("-XX:MinHeapFreeRatio=10", "-XX:MaxHeapFreeRatio=20"),
        # Of the main thread the JVM takes what is below for guard pages: delta-rs needs a megabyte.
        "-Xss2m",
        *FRUGAL,
        # By default two JVM threads wake up once and four times a second without work.
        "-XX:+UnlockDiagnosticVMOptions",  # before the two options that need it
        "-XX:GuaranteedSafepointInterval=60000",
        "-XX:AsyncDeflationInterval=60000",
        "-XX:-CreateCoredumpOnCrash",  # it would hold passwords
        "-Xrs",  # SIGTERM and SIGINT are the agent's
        "-Djava.awt.headless=true",
        "-Dslf4j.internal.verbosity=ERROR",
        *rmi_options(timeout_seconds),
        "-Dsun.rmi.transport.connectionTimeout=60000",  # longer than a cadence: keep the socket
        "--enable-native-access=ALL-UNNAMED",
    ]


def _jars(libs: Path | None, metadata_libs: Path | None) -> list[Path]:
    """The jars of the class path, of one Kafka version, since classes of two do not fit."""
    folder, key, stems = libs, "admin.libs", _CLIENT_JARS
    if metadata_libs is not None:
        folder, key, stems = metadata_libs, "metadata_log.libs", _CLIENT_JARS + _METADATA_JARS
    if folder is None:
        return []
    for stem in stems:
        if not _newest(folder, stem):
            raise SettingError(
                key, f"no {stem}-*.jar in {folder}: name the libs folder of the broker"
            )
    return [jar for stem in stems + _OAUTH_JARS for jar in _newest(folder, stem)]


def _newest(libs: Path, stem: str) -> list[Path]:
    return sorted(libs.glob(f"{stem}-[0-9]*.jar"))[-1:]


def _silence_slf4j() -> None:
    # Without a backend slf4j says so on stderr, once, and then stays silent as we want it.
    system = java("java.lang.System")
    stderr = system.err
    system.setErr(java("java.io.PrintStream")(java("java.io.OutputStream").nullOutputStream()))
    try:
        java("org.slf4j.LoggerFactory").getILoggerFactory()
    finally:
        system.setErr(stderr)
