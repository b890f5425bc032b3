"""The faults of jmxquery 0.6.0, as it prints them: each is read exactly, or an error."""

from __future__ import annotations

import sys
import time
from typing import Any, Final

import pytest

from collector.errors import (
    ConfigError,
    SourceError,
    SourceRefusedError,
    SourceTimeoutError,
)
from collector.sources.bounded_process import Ended, run
from collector.sources.bulk import Asked, Failed
from collector.sources.bulk_source import STARTED
from collector.sources.expected import Expected
from collector.sources.jmxquery import JmxquerySource
from collector.sources.jmxquery_output import told_by

PRODUCE: Final = Asked("kafka.server:type=Produce,*", "throttle-time")
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


def told(*lines: str, asked: tuple[Asked, ...] = (PRODUCE,)) -> Any:
    return told_by(Ended(0, printed(*lines).encode(), b""), asked, "here", "")


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
        "kafka.server:type=Produce,user=null": Failed("jmxquery does not say why"),
    }


def test_answers_are_told_apart_by_what_stands_between_them() -> None:
    everything = Asked("kafka.server:*", "throttle-time")
    bean = line("kafka.server:type=Produce", "Double", "1.0")
    found = told(RUNTIME, bean, RUNTIME, asked=(everything, PRODUCE))
    assert everything not in found
    assert found[PRODUCE] == {"kafka.server:type=Produce": 1.0}


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("", "something else than a list"),
        ("[\n", "something else than a list"),
        ("[]", "something else than a list"),
        (printed(), "left out the answer to kafka.server:type=Produce"),
        (printed(RUNTIME, RUNTIME), "more than it was asked"),
        (printed(line("a:b=c", "Long", "1", "other"), RUNTIME), "a:b=c other unasked"),
        (printed(line("a:b=c", "String", '"a"b"'), RUNTIME), "cannot be told apart"),
        (printed(line("a:b=c", "String", '"a, \nb"'), RUNTIME), "cannot be told apart"),
        (printed(line("a:b=c", "Long", "1")[:-9], RUNTIME), "cannot be told apart"),
        ("[\n\udcff]\n", "something else than a list"),
    ],
)
def test_what_cannot_be_told_apart_is_an_error_and_never_less(output: str, reason: str) -> None:
    ended = Ended(0, output.encode("utf-8", "surrogateescape"), b"")
    with pytest.raises(SourceError, match=reason) as refused:
        told_by(ended, [PRODUCE], "here", "")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("output", "errors", "kind", "reason"),
    [
        ('{ "error": "connection-error", "message":"... Connection refused', "",
         SourceRefusedError, "nobody listens there"),
        ("", "Exception in thread \"main\" java.lang.SecurityException: Authentication failed!",
         SourceRefusedError, "refused the user or the password"),
        ('"java.net.SocketTimeoutException: Read timed out"}', "", SourceTimeoutError, "in time"),
        ('{ "error": "general-exception", "message":"x\n  y"}', "", SourceError,
         'jmxquery failed: { "error": "general-exception", "message":"x$'),
        ("", "login monitor/hunter2 failed", SourceError, r"login monitor/\*\*\* failed"),
        ("", "", SourceError, "ended with 3 and said nothing"),
    ],
)  # fmt: skip
def test_failures_are_told_in_one_line_without_the_password(
    output: str, errors: str, kind: type[SourceError], reason: str
) -> None:
    with pytest.raises(kind, match=reason) as refused:
        told_by(Ended(3, output.encode(), errors.encode()), [PRODUCE], "here", "hunter2")
    assert "\n" not in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_password_in_argv_is_refused_unless_it_is_allowed() -> None:
    with pytest.raises(ConfigError, match="allow it with allow_password_in_argv"):
        JmxquerySource(Expected("broker"), "127.0.0.1", 1, user="monitor")
    JmxquerySource(Expected("broker"), "127.0.0.1", 1)
    JmxquerySource(Expected("broker"), "127.0.0.1", 1, user="me", allow_password_in_argv=True)


@pytest.mark.parametrize("pattern", ["a:b=c/d", "a:b=c;d", "a==b:c=d", 'a:b="c"'])
def test_what_its_own_syntax_cannot_ask_is_refused(pattern: str) -> None:
    source = JmxquerySource(Expected("broker"), "127.0.0.1", 1)
    with pytest.raises(SourceError, match="jmxquery cannot ask for"):
        source._fetch([Asked(pattern, "Value")])


def test_no_java_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    source = JmxquerySource(Expected("broker"), "127.0.0.1", 1)
    with pytest.raises(SourceError, match="/nowhere/bin/java does not start: No such file"):
        source.identify()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match="no Java found"):
        JmxquerySource(Expected("broker"), "127.0.0.1", 1)


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        ("import time; time.sleep(30)", SourceTimeoutError, r"no answer within 0\.5 s"),
        ("import os, time; os.close(1); os.close(2); time.sleep(30)", SourceTimeoutError, "0.5 s"),
        ("while 1: print('x' * 999_999)", SourceError, "longer than 64 MiB|no answer within"),
        ("import os\nwhile 1: os.write(2, b'x' * 99_999)", SourceError, "longer|no answer within"),
    ],
    ids=["sleeps", "says no more", "endless", "endless errors"],
)
def test_a_command_that_does_not_end_is_killed(
    code: str, kind: type[SourceError], reason: str
) -> None:
    started = time.monotonic()
    with pytest.raises(kind, match=reason):
        run([sys.executable, "-Sc", code], "here", 0.5)
    assert time.monotonic() - started < 10


def test_what_a_command_says_is_kept_apart() -> None:
    code = "import sys; print('a' * 200_000); print('b' * 200_000, file=sys.stderr); sys.exit(3)"
    assert run([sys.executable, "-Sc", code], "here", 10) == (
        3, b"a" * 200_000 + b"\n", b"b" * 200_000 + b"\n",
    )  # fmt: skip
