"""The package jmxquery 0.6.0, for hosts that already use it. It starts a JVM per scrape.

The agent runs its jar without its Python part, which returns an empty list after a timeout, like
a JVM without MBeans, and writes the password to its debug log. jmxquery has more faults, and this
module handles them:

- The password is an argument of a process, so every user can read it with ``ps``. The agent refuses
  this unless it is allowed. If it is, the password also goes to any host that the RMI registry
  names. The transport jmx would refuse that.
- The output is not valid JSON. Only quotes in an MBean's name are escaped, and nothing in a text.
  So lines are parsed exactly, by fixed parts that names and texts cannot contain. The encoding is
  Java's default, which the agent sets to UTF-8.
- An attribute without a value has failed, or its MBean no longer exists. Both are an error, because
  they look the same. If an MBean is removed between its name and its attributes, the whole query
  fails.
- The output does not contain the queries. So the agent requests the JVM's start time after every
  query, which separates the answers.
- It looks up the connector with JNDI and accepts any object. The agent allows no object factories
  and only classes of JMX.
- It does not support TLS.
"""

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Final, cast

from collector.errors import ConfigError, SourceError, extra
from collector.settings import Secret
from collector.sources.base.beans import Answers, Failed, Question
from collector.sources.base.error_mapping import printed_error
from collector.sources.base.identity import STARTED, Expected
from collector.sources.base.mbean_source import SnapshotSource
from collector.sources.java import serial_filter
from collector.sources.java.jvm import FROM_OUTSIDE, FRUGAL, java_home, rmi_options
from collector.sources.transports import Jmxquery
from lakehouse.tables.error_text import wrong_version

try:
    from jmxquery import JAR_PATH
except ModuleNotFoundError:
    raise ConfigError(
        f"source.jmxquery: the package jmxquery is missing; install {extra('jmxquery')}"
    ) from None
if (problem := wrong_version("jmxquery")) is not None:
    raise ConfigError(f"source.jmxquery: {problem}; install {extra('jmxquery')}")

_DESCRIPTIONS: Final = (
    *("javax.management.ObjectInstance", "javax.management.MBean*"),
    *("javax.management.ImmutableDescriptor", "javax.management.openmbean.*"),
    *("java.util.HashMap", "java.util.LinkedHashMap"),
)
_OPTIONS: Final = (
    "-Xmx256m",
    *FRUGAL,
    "-Dfile.encoding=UTF-8",
    "-Dstdout.encoding=UTF-8",
    "-Djdk.jndi.object.factoriesFilter=!*",
    f"-Djdk.serialFilter={serial_filter.pattern((*_DESCRIPTIONS, *serial_filter.EVERY))}",
)
_MAX_BYTES: Final = 64 * 1024 * 1024
_SEPARATORS: Final = ("/", ";", "==", '"')
"""Characters with a meaning in jmxquery's query syntax."""

_LINE: Final = re.compile(
    r'\{"mBeanName" : "(?P<name>.*)", "attribute" : "(?P<attribute>[^"]*)", '
    r'(?:"attributeKey" : "(?P<item>[^"]*)", )?'
    r'"attributeType" : "(?P<kind>[^"]*)"'
    r'(?:, "value" : (?P<value>"[^"\\]*"|[-\w.]+))?\}'
)
_KINDS: Final[dict[str, Callable[[str], object]]] = {
    **dict.fromkeys(("Integer", "Long", "Short", "Byte"), int),
    **dict.fromkeys(("Double", "Float"), float),
    "Boolean": "true".__eq__,
}


class JmxquerySource(SnapshotSource):
    """A broker, controller or client JVM that is read through the package jmxquery.

    Args:
        expected: Expected identity.
        jmxquery: Settings. The password is read again for every scrape.

    Raises:
        ConfigError: Java is missing, or a password is set and ``allow_password_in_argv`` is not.
    """

    def __init__(self, expected: Expected, jmxquery: Jmxquery) -> None:
        at, seconds = f"{jmxquery.host}:{jmxquery.port}", jmxquery.timeout.seconds
        super().__init__(f"jmxquery of {at}", expected, seconds, jmxquery.password_file)
        if jmxquery.user is not None and not jmxquery.allow_password_in_argv:
            raise ConfigError(
                "source.jmxquery: jmxquery shows the password to every user who runs ps on this"
                " host; use jmx, or allow it with allow_password_in_argv: true"
            )
        # rmi_options limit each wait, so that the JVM ends soon if the agent ends first.
        self._command = (
            *(str(java_home() / "bin" / "java"), *_OPTIONS, *rmi_options(seconds)),
            *("-jar", JAR_PATH, "-url", f"service:jmx:rmi:///jndi/rmi://{at}/jmxrmi", "-json"),
        )
        self._user = jmxquery.user
        self._secret = Secret(jmxquery.password_file, jmxquery.password_env)
        self._process: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """End a running query. The source can be used again."""
        super().close()
        if self._process is not None:
            self._process.kill()

    def _fetch(self, questions: Sequence[Question]) -> Answers:
        attributes = [one for one in questions if one != STARTED]
        for one in attributes:
            if any(mark in text for mark in _SEPARATORS for text in one):
                raise SourceError(
                    f"{self._where}: jmxquery cannot query {one.pattern} {one.attribute}; use jmx"
                    " or attach for this JVM, or remove the metric from the catalogue"
                )
        user, is_user = self._user or "", self._user is not None
        password = self._secret.read(self._where, user) if is_user else ""
        credentials = ("-u", user, "-p", password) if is_user else ()
        code, output = self._run((*self._command, *credentials, "-q", _query(attributes)))
        return parse_answers(code, output, attributes, self._where, password)

    def _run(self, command: Sequence[str]) -> tuple[int, bytes]:
        """Return exit code and output; ``close`` kills the process after the time limit."""
        try:
            self._process = process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,  # empty unless the process fails
                env={name: value for name, value in os.environ.items() if name not in FROM_OUTSIDE},
            )
        except OSError as error:
            raise SourceError(
                f"{self._where}: {command[0]} does not start: {error.strerror}; set JAVA_HOME to"
                " Java 17 or later"
            ) from None
        with process:
            output = process.stdout.read(_MAX_BYTES + 1) if process.stdout else b""
            if len(output) > _MAX_BYTES:
                process.kill()
                raise SourceError(
                    f"{self._where}: the answer is longer than {_MAX_BYTES >> 20} MiB; check the"
                    " address"
                )
            return process.wait(), output


def _query(questions: Sequence[Question]) -> str:
    between = "/".join(STARTED)
    return "".join(f"{'/'.join(one)};{between};" for one in questions) or f"{between};"


def parse_answers(
    code: int, output: bytes, questions: Sequence[Question], where: str, password: str
) -> Answers:
    """Return the answers to all questions; the output has the JVM's start time after each answer.

    Args:
        code: Exit code of jmxquery.
        output: Output of jmxquery.
        questions: Questions in the order of the query.
        where: The source, for error texts.
        password: Password, which error texts must not contain.

    Raises:
        SourceError: jmxquery failed, or its output is invalid.
    """
    if code != 0:
        printed = output[:100_000].decode("utf-8", "replace")
        raise printed_error(where, printed.replace(password, "***") if password else printed)
    answers: dict[Question, dict[str, object]] = {}
    left = list(questions or [STARTED])
    for name, attribute, item, value in _values(output, where):
        if not left:
            raise SourceError(f"{where}: jmxquery returned more answers than questions")
        if Question(name, attribute) == STARTED:
            answers[STARTED] = {name: value}
            del left[0]
        elif attribute != left[0].attribute:
            found = f"{name:.200} {attribute:.80}"
            raise SourceError(f"{where}: jmxquery returned an unexpected answer: {found}")
        elif item is not None:  # a composite has a line per item
            cast("dict[str, object]", answers.setdefault(left[0], {}).setdefault(name, {}))[
                item
            ] = value
        else:
            answers.setdefault(left[0], {})[name] = value
    if left:
        raise SourceError(f"{where}: jmxquery omitted the answer to {left[0].pattern}")
    return answers


def _values(output: bytes, where: str) -> Iterator[tuple[str, str, str | None, object]]:
    try:
        text = output.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if not (text.startswith("[\n") and text.endswith("]\n")):
        raise SourceError(f"{where}: the output of jmxquery is not a list")
    lines = text[2:-2]
    for line in lines.split(", \n") if lines else ():
        found = _LINE.fullmatch(line)
        if found is None:
            shown = " ".join(line.split())[:200]
            raise SourceError(f"{where}: the output of jmxquery has an invalid line: {shown}")
        name = found["name"].replace('\\"', '"')
        yield name, found["attribute"], found["item"], _value(found["kind"], found["value"])


def _value(kind: str, printed: str | None) -> object:
    if printed is None:
        return Failed("jmxquery does not report the reason")
    text = printed.strip('"')
    try:
        return _KINDS.get(kind, str)(text)
    except ValueError:
        return text
