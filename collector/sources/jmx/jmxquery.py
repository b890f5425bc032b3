"""The package jmxquery 0.6.0, for those who read by it already: a JVM for every question.

Its jar is run without its Python part, which returns an empty list when the time is up, as if
there were no beans, and writes the password to its debug log. The other faults of it that are
guarded against here:

- The password is an argument of a process, for all to see in ``ps``: refused unless allowed. Where
  it is allowed it also goes to whatever host the RMI registry names; jmx would refuse that.
- Its output is not quite JSON: of a bean's name only quotes are escaped, of a text nothing. So
  lines are parsed by their fixed parts, which neither can contain: exactly, or with an error. The
  encoding is Java's default: it is set to UTF-8.
- An attribute that fails, or whose bean has just vanished, is printed without a value: an error,
  since they look the same. A bean that vanishes between its name and its attributes
  makes the whole question fail: an error as well.
- What it prints does not say what was asked: the start time of the JVM is asked after every
  question, and stands between the answers.
- It looks the connector up by JNDI and takes whatever it gets: no object factory and no class but
  those of JMX is let in.
- It knows no TLS.
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
from collector.sources.jmx import Jmxquery

try:
    from jmxquery import JAR_PATH
except ModuleNotFoundError:
    raise ConfigError(
        f"source.jmxquery: the package jmxquery is missing: install {extra('jmxquery')}"
    ) from None

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
"""Characters with a meaning in jmxquery's own syntax of questions."""

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
    """A broker, controller or client JVM that is read by the package jmxquery.

    Args:
        expected: Who should answer.
        jmxquery: How to reach it; the password is read again for every question.

    Raises:
        ConfigError: There is no Java, or there is a password that may not be seen.
    """

    def __init__(self, expected: Expected, jmxquery: Jmxquery) -> None:
        at, seconds = f"{jmxquery.host}:{jmxquery.port}", jmxquery.timeout.seconds
        super().__init__(f"jmxquery of {at}", expected, seconds, jmxquery.password_file)
        if jmxquery.user is not None and not jmxquery.allow_password_in_argv:
            raise ConfigError(
                "source.jmxquery: jmxquery shows the password to everybody who runs ps on this"
                " host: read by jmx, or allow it with allow_password_in_argv: true"
            )
        # If we should end first, its JVM does not outlive us for long.
        self._command = (
            *(str(java_home() / "bin" / "java"), *_OPTIONS, *rmi_options(seconds)),
            *("-jar", JAR_PATH, "-url", f"service:jmx:rmi:///jndi/rmi://{at}/jmxrmi", "-json"),
        )
        self._user = jmxquery.user
        self._secret = Secret(jmxquery.password_file, jmxquery.password_env)
        self._process: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """End a question that is under way; the source may be used again."""
        super().close()
        if self._process is not None:
            self._process.kill()

    def _fetch(self, questions: Sequence[Question]) -> Answers:
        attributes = [one for one in questions if one != STARTED]
        for one in attributes:
            if any(mark in text for mark in _SEPARATORS for text in one):
                raise SourceError(
                    f"{self._where}: jmxquery cannot ask for {one.pattern} {one.attribute}: read"
                    " this JVM by jmx or attach, or leave it out of the catalogue"
                )
        user, is_user = self._user or "", self._user is not None
        password = self._secret.read(self._where, user) if is_user else ""
        credentials = ("-u", user, "-p", password) if is_user else ()
        code, output = self._run((*self._command, *credentials, "-q", _query(attributes)))
        return parse_answers(code, output, attributes, self._where, password)

    def _run(self, command: Sequence[str]) -> tuple[int, bytes]:
        """Exit code and output; ``close`` kills it when the time limit has passed."""
        try:
            self._process = process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,  # which is empty where it does not fail
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
                    f"{self._where}: the answer is longer than {_MAX_BYTES >> 20} MiB; is that a"
                    " broker?"
                )
            return process.wait(), output


def _query(questions: Sequence[Question]) -> str:
    between = "/".join(STARTED)
    return "".join(f"{'/'.join(one)};{between};" for one in questions) or f"{between};"


def parse_answers(
    code: int, output: bytes, questions: Sequence[Question], where: str, password: str
) -> Answers:
    """The answers to all questions; after each answer the output has the JVM's start time.

    Args:
        code: The exit code of jmxquery.
        output: Its output.
        questions: In the order in which they were asked.
        where: Who was asked, for messages.
        password: Is kept out of messages.

    Raises:
        SourceError: jmxquery failed, or printed something else than it does.
    """
    if code != 0:
        printed = output[:100_000].decode("utf-8", "replace")
        raise printed_error(where, printed.replace(password, "***") if password else printed)
    answers: dict[Question, dict[str, object]] = {}
    left = list(questions or [STARTED])
    for name, attribute, item, value in _values(output, where):
        if not left:
            raise SourceError(f"{where}: jmxquery answered more than it was asked")
        if Question(name, attribute) == STARTED:
            answers[STARTED] = {name: value}
            del left[0]
        elif attribute != left[0].attribute:
            raise SourceError(f"{where}: jmxquery answered {name:.200} {attribute:.80} unasked")
        elif item is not None:  # of a composite there is a line for each item
            cast("dict[str, object]", answers.setdefault(left[0], {}).setdefault(name, {}))[
                item
            ] = value
        else:
            answers.setdefault(left[0], {})[name] = value
    if left:
        raise SourceError(f"{where}: jmxquery left out the answer to {left[0].pattern}")
    return answers


def _values(output: bytes, where: str) -> Iterator[tuple[str, str, str | None, object]]:
    try:
        text = output.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if not (text.startswith("[\n") and text.endswith("]\n")):
        raise SourceError(f"{where}: jmxquery printed something else than a list")
    lines = text[2:-2]
    for line in lines.split(", \n") if lines else ():
        found = _LINE.fullmatch(line)
        if found is None:
            shown = " ".join(line.split())[:200]
            raise SourceError(f"{where}: jmxquery printed a line that cannot be parsed: {shown}")
        name = found["name"].replace('\\"', '"')
        yield name, found["attribute"], found["item"], _value(found["kind"], found["value"])


def _value(kind: str, printed: str | None) -> object:
    if printed is None:
        return Failed("jmxquery does not say why")
    said = printed.strip('"')
    try:
        return _KINDS.get(kind, str)(said)
    except ValueError:
        return said
