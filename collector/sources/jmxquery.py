"""The package jmxquery 0.6.0, for those who read by it already: a JVM for every question.

Its jar is run without its Python part, which returns an empty list when the time is up, as if
there were no beans, and writes the password to its debug log. The other faults of it that are
guarded against here:

- The password is an argument of a process, for all to see in ``ps``: refused unless allowed.
- Names and texts are printed without escaping them: see jmxquery_output, which reads them exactly
  or not at all. Its output has Java's default encoding: it is set to UTF-8.
- An attribute that fails, or whose bean has just vanished, is printed without a value: an error,
  since one cannot be told from the other. A bean that vanishes between its name and its attributes
  makes the whole question fail: an error as well.
- What it prints does not say what was asked: the start time of the JVM is asked after every
  question, and stands between the answers.
- It looks the connector up by JNDI and takes whatever it gets: no object factory and no class but
  those of JMX is let in.
- It knows no TLS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.errors import ConfigError, SourceError, extra
from collector.secret import Secret
from collector.sources.bounded_process import run
from collector.sources.bulk_source import STARTED, BulkSource
from collector.sources.jmxquery_output import told_by
from collector.sources.jvm import java_home
from collector.sources.serial_filter import SERIAL_FILTER
from collector.sources.timeouts import rmi_options

try:
    from jmxquery import JAR_PATH
except ModuleNotFoundError:
    raise ConfigError(
        f"source.jmxquery: the package jmxquery is missing: install {extra('jmxquery')}"
    ) from None

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.sources.bulk import Asked, Told
    from collector.sources.expected import Expected

_DESCRIPTIONS: Final = (
    "javax.management.ObjectInstance;javax.management.MBean*;javax.management.ImmutableDescriptor;"
    "javax.management.openmbean.*;java.util.TreeMap;java.util.HashMap;java.util.LinkedHashMap;"
    "java.lang.String$CaseInsensitiveComparator"
)
_OPTIONS: Final = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",  # keeps the command line in a file of /tmp
    "-Dfile.encoding=UTF-8",
    "-Dstdout.encoding=UTF-8",
    "-Djdk.jndi.object.factoriesFilter=!*",
    f"-Djdk.serialFilter={_DESCRIPTIONS};{SERIAL_FILTER}",
)
_SEPARATORS: Final = ("/", ";", "==", '"')
"""What jmxquery's own syntax for questions gives a meaning to."""


class JmxquerySource(BulkSource):
    """A broker, controller or client JVM that is read by the package jmxquery.

    Args:
        expected: Who should answer.
        host: Host of the JMX port.
        port: The port.
        user: User of JMX, if it asks for one.
        secret: Its password, read anew for every question.
        allow_password_in_argv: Whether everybody on this host may see the password.
        timeout_seconds: How long one question may take, with the start of its JVM.

    Raises:
        ConfigError: There is no Java, or there is a password that may not be seen.
    """

    def __init__(
        self,
        expected: Expected,
        host: str,
        port: int,
        *,
        user: str | None = None,
        secret: Secret = Secret(),  # noqa: B008 - frozen
        allow_password_in_argv: bool = False,
        timeout_seconds: float = 30,
    ) -> None:
        super().__init__(f"jmxquery of {host}:{port}", expected, secret.file)
        if user is not None and not allow_password_in_argv:
            raise ConfigError(
                "source.jmxquery: jmxquery shows the password to everybody who runs ps on this"
                " host: read by jmx, or allow it with allow_password_in_argv: true"
            )
        self._url = f"service:jmx:rmi:///jndi/rmi://{host}:{port}/jmxrmi"
        self._user = user
        self._secret = secret
        self._timeout_seconds = timeout_seconds
        self._java = str(java_home() / "bin" / "java")

    def _fetch(self, asked: Sequence[Asked]) -> Told:
        questions = [one for one in asked if one != STARTED]
        for one in questions:
            if any(mark in text for mark in _SEPARATORS for text in one):
                raise SourceError(
                    f"{self._where}: jmxquery cannot ask for {one.pattern} {one.attribute}: read"
                    " this JVM by jmx or attach, or leave it out of the catalogue"
                )
        password = ""
        credentials: tuple[str, ...] = ()
        if self._user is not None:
            password = self._secret.read(self._where, self._user)
            credentials = ("-u", self._user, "-p", password)
        # If we should end first, its JVM does not outlive us for long.
        waits = rmi_options(self._timeout_seconds)
        command = (
            *(self._java, *_OPTIONS, *waits, "-jar", JAR_PATH),
            *("-url", self._url, "-json", *credentials, "-q", _query(questions)),
        )
        ended = run(command, self._where, self._timeout_seconds)
        return told_by(ended, questions, self._where, password)


def _query(questions: Sequence[Asked]) -> str:
    between = "/".join(STARTED)
    return "".join(f"{'/'.join(one)};{between};" for one in questions) or f"{between};"
