"""The one Java virtual machine in this process, and how long a call into it may take.

JPype starts it; it can be started once and never again. Threads attach to it by themselves, as
daemons, so it never keeps the process alive.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import jpype

from collector.errors import ConfigError, SourceTimeoutError
from collector.sources.serial_filter import SERIAL_FILTER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Result = TypeVar("_Result")

_LIBRARIES: Final = (
    "lib/server/libjvm.so",
    "jre/lib/amd64/server/libjvm.so",
    "lib/server/libjvm.dylib",
    "bin/server/jvm.dll",
)


def start(
    libs: Path | None = None, *, timeout_seconds: float = 5, options: Sequence[str] = ()
) -> None:
    """Start the JVM, if it does not run yet.

    Args:
        libs: Folder with the broker's jars, for the Admin client; None if that is not wanted.
        timeout_seconds: How long RMI waits for an answer.
        options: Further JVM options, such as a trust store.

    Raises:
        ConfigError: There is no Java, or no Kafka client in the folder.
    """
    if jpype.isJVMStarted():
        return
    home = java_home()
    jars = [str(jar) for jar in _client_jars(libs)] if libs else []
    try:
        jpype.startJVM(
            str(_library(home)),
            *_options(home, timeout_seconds),
            *options,
            classpath=jars,
            convertStrings=False,
        )
    except (OSError, RuntimeError, jpype.JVMNotSupportedException) as error:
        raise ConfigError(
            f"Java at {home} does not start: {error}; set JAVA_HOME to a JDK 17 or later"
        ) from None
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
        raise ConfigError("no Java found: install a JDK 17 or later, or set JAVA_HOME")
    return Path(found).resolve().parent.parent


def within(seconds: float, where: str, call: Callable[[], _Result]) -> _Result:
    """Run a call and wait for it no longer than this.

    RMI's own timeouts hold for one read of a socket, and its clients try again by themselves; only
    a thread that can be left behind bounds the whole. It ends when RMI gives up.

    Raises:
        SourceTimeoutError: The call has not ended in time.
    """
    answer: queue.SimpleQueue[tuple[_Result | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answer.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread
            answer.put((None, error))
        finally:
            if jpype.isJVMStarted():
                jpype.JClass("java.lang.Thread").detach()

    threading.Thread(target=run, name=f"read {where}", daemon=True).start()
    try:
        result, error = answer.get(timeout=seconds)
    except queue.Empty:
        raise SourceTimeoutError(
            f"{where}: no answer within {seconds:g} s; is it overloaded, stopped or cut off?"
        ) from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def java(name: str) -> Any:
    """A Java class by its full name."""
    return jpype.JClass(name)


def _library(home: Path) -> Path:
    for name in _LIBRARIES:
        if (home / name).is_file():
            return home / name
    raise ConfigError(f"no JVM below {home}: set JAVA_HOME to a JDK 17 or later")


def _options(home: Path, timeout_seconds: float) -> list[str]:
    timeout_ms = max(1, round(timeout_seconds * 1000))
    options = [
        "-Xmx48m",
        "-Xss256k",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xrs",  # SIGTERM and SIGINT are the agent's
        "-Djava.awt.headless=true",
        "-Dslf4j.internal.verbosity=ERROR",
        f"-Djdk.serialFilter={SERIAL_FILTER}",
        f"-Dsun.rmi.transport.tcp.responseTimeout={timeout_ms}",
        f"-Dsun.rmi.transport.tcp.handshakeTimeout={timeout_ms}",
        f"-Dsun.rmi.transport.proxy.connectTimeout={timeout_ms}",
        "-Dsun.rmi.transport.connectionTimeout=60000",  # longer than a cadence: keep the socket
    ]
    if _feature_version(home) >= 22:
        options.append("--enable-native-access=ALL-UNNAMED")
    return options


def _feature_version(home: Path) -> int:
    try:
        release = (home / "release").read_text("utf-8")
    except OSError:
        return 0
    found = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    return int(found[1]) if found else 0


def _client_jars(libs: Path) -> list[Path]:
    jars = []
    for stem in ("kafka-clients", "slf4j-api"):
        found = sorted(libs.glob(f"{stem}-[0-9]*.jar"))
        if not found:
            raise ConfigError(f"no {stem}-*.jar in {libs}: name the libs folder of the broker")
        jars.append(found[-1])
    return jars


def _silence_slf4j() -> None:
    # Without a backend slf4j says so on stderr, once, and then stays silent as we want it.
    system = java("java.lang.System")
    stderr = system.err
    system.setErr(java("java.io.PrintStream")(java("java.io.OutputStream").nullOutputStream()))
    try:
        java("org.slf4j.LoggerFactory").getILoggerFactory()
    finally:
        system.setErr(stderr)
