"""The faults of jmxquery 0.6.0, as it prints them: each is read exactly, or an error."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

from collector.errors import (
    ConfigError,
    CredentialsError,
    SourceError,
    SourceRefusedError,
    SourceTimeoutError,
)
from collector.settings import Duration
from collector.sources.base.beans import Failed, Question
from collector.sources.base.identity import STARTED, Expected
from collector.sources.jmx.jmxquery import JmxquerySource, parse_answers
from collector.sources.transports import Jmxquery

if TYPE_CHECKING:
    from pathlib import Path

PRODUCE: Final = Question("kafka.server:type=Produce,*", "throttle-time")
ODD: Final = r'kafka.server:type=Produce,client-id="q\"uo\\te\*\?"'
"""Of a client called ``q"uo\\te*?``."""
RUNTIME: Final = (
    '{"mBeanName" : "java.lang:type=Runtime", "attribute" : "StartTime", '
    '"attributeType" : "Long", "value" : 1795251783846}'
)


def line(name: str, kind: str, value: str | None, attribute: str = "throttle-time") -> str:
    told = "" if value is None else f', "value" : {value}'
    escaped = name.replace('"', '\\"')  # and nothing else of it
    return (
        f'{{"mBeanName" : "{escaped}", "attribute" : "{attribute}",'
        f' "attributeType" : "{kind}"{told}}}'
    )


def printed(*lines: str) -> str:
    return "[\n" + ", \n".join(lines) + "]\n"


def told(*lines: str, asked: tuple[Question, ...] = (PRODUCE,)) -> Any:
    return parse_answers(0, printed(*lines).encode(), asked, "here", "")


def test_names_and_numbers_are_read_exactly() -> None:
    found = told(
        line('kafka.server:type=Produce,client-id="app:one,x"', "Double", "NaN"),
        line(ODD, "Double", "1.5E-300"),
        line("kafka.server:type=Produce,user=é\u2028\r", "Float", '"0.5"'),
        line("kafka.server:type=Produce,user=tail\\", "Long", "9223372036854775807"),
        line("kafka.server:type=Produce,user=s", "Short", '"-7"'),
        line("kafka.server:type=Produce,user=b", "Boolean", "true"),
        line("kafka.server:type=Produce,user=t", "String", '"7"'),
        line("kafka.server:type=Produce,user=null", "Null", None),
        RUNTIME,
    )
    assert found[STARTED] == {"java.lang:type=Runtime": 1795251783846}
    values = list(found[PRODUCE].items())
    assert values[0][0] == 'kafka.server:type=Produce,client-id="app:one,x"'
    assert values[0][1] != values[0][1]  # NaN
    assert dict(values[1:]) == {
        ODD: 1.5e-300,
        "kafka.server:type=Produce,user=é\u2028\r": 0.5,
        "kafka.server:type=Produce,user=tail\\": 2**63 - 1,
        "kafka.server:type=Produce,user=s": -7,
        "kafka.server:type=Produce,user=b": True,
        "kafka.server:type=Produce,user=t": "7",
        "kafka.server:type=Produce,user=null": Failed("jmxquery does not report the reason"),
    }


def test_answers_are_told_apart_by_what_stands_between_them() -> None:
    everything = Question("kafka.server:*", "throttle-time")
    bean = line("kafka.server:type=Produce", "Double", "1.0")
    found = told(RUNTIME, bean, RUNTIME, asked=(everything, PRODUCE))
    assert everything not in found
    assert found[PRODUCE] == {"kafka.server:type=Produce": 1.0}


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("", "is not a list"),
        ("[\n", "is not a list"),
        ("[]", "is not a list"),
        (printed(), "omitted the answer to kafka.server:type=Produce"),
        (printed(RUNTIME, RUNTIME), "more answers than questions"),
        (printed(line("a:b=c", "Long", "1", "other"), RUNTIME), "unexpected answer: a:b=c other"),
        (printed(line("a:b=c", "String", '"a"b"'), RUNTIME), "has an invalid line"),
        (printed(line("a:b=c", "String", '"a, \nb"'), RUNTIME), "has an invalid line"),
        (printed(line("a:b=c", "Long", "1")[:-9], RUNTIME), "has an invalid line"),
        ("[\n\udcff]\n", "is not a list"),
    ],
)
def test_what_cannot_be_told_apart_is_an_error_and_never_less(output: str, reason: str) -> None:
    with pytest.raises(SourceError, match=reason) as refused:
        parse_answers(0, output.encode("utf-8", "surrogateescape"), [PRODUCE], "here", "")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("output", "kind", "reason"),
    [
        ('{ "error": "connection-error", "message":"... java.net.ConnectException: Connection',
         SourceRefusedError, "nothing listens there"),
        ('"javax.naming.NameNotFoundException: jmxrmi"}',
         SourceRefusedError, "the RMI registry has no JMX server"),
        ("Exception in thread \"main\" java.lang.SecurityException: Authentication failed!",
         CredentialsError, "the user or the password was refused"),
        ('"java.net.SocketTimeoutException: Read timed out"}', SourceTimeoutError, "in time"),
        ('{ "error": "general-exception", "message":"x\n  y"}', SourceError,
         'jmxquery failed: { "error": "general-exception", "message":"x$'),
        ("login monitor/hunter2 failed", SourceError, r"login monitor/\*\*\* failed"),
        ("", SourceError, "failed: no output"),
    ],
)  # fmt: skip
def test_failures_are_told_in_one_line_without_the_password(
    output: str, kind: type[SourceError], reason: str
) -> None:
    with pytest.raises(kind, match=reason) as refused:
        parse_answers(3, output.encode(), [PRODUCE], "here", "hunter2")
    assert "\n" not in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_password_in_argv_is_refused_unless_it_is_allowed() -> None:
    with pytest.raises(ConfigError, match="allow it with allow_password_in_argv"):
        JmxquerySource(Expected("broker"), Jmxquery(1, user="monitor"))
    JmxquerySource(Expected("broker"), Jmxquery(1))
    JmxquerySource(Expected("broker"), Jmxquery(1, user="me", allow_password_in_argv=True))


@pytest.mark.parametrize("pattern", ["a:b=c/d", "a:b=c;d", "a==b:c=d", 'a:b="c"'])
def test_what_its_own_syntax_cannot_ask_is_refused(pattern: str) -> None:
    source = JmxquerySource(Expected("broker"), Jmxquery(1))
    with pytest.raises(SourceError, match="jmxquery cannot query"):
        source._fetch([Question(pattern, "Value")])


def test_no_java_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    source = JmxquerySource(Expected("broker"), Jmxquery(1))
    with pytest.raises(SourceError, match="/nowhere/bin/java does not start: No such file"):
        source.identify()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match="Java is missing"):
        JmxquerySource(Expected("broker"), Jmxquery(1))


FAKE_JAVA: Final = """#!{python} -S
import os, sys, time
{code}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        ("time.sleep(30)", SourceTimeoutError, r"no answer within 1 s"),
        ("os.close(1); os.close(2); time.sleep(30)", SourceTimeoutError, "no answer within 1 s"),
        ("while 1: print('x' * 999_999)", SourceError, "longer than 64 MiB|no answer within"),
        ("while 1: os.write(2, b'x' * 99_999)", SourceError, "longer|no answer within"),
    ],
    ids=["sleeps", "says no more", "endless", "endless errors"],
)
def test_a_java_that_does_not_end_is_killed(
    code: str,
    kind: type[SourceError],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(FAKE_JAVA.format(python=sys.executable, code=code))
    java.chmod(0o700)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    source = JmxquerySource(Expected("broker"), Jmxquery(1, timeout=Duration("1s")))
    with pytest.raises(kind, match=reason):
        source.identify()
    assert source._process is not None
    assert source._process.wait(60) == -signal.SIGKILL
