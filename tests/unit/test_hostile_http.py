"""What a Jolokia endpoint that means no good can cost: bounded time and memory, and one line."""

from __future__ import annotations

import gzip
import itertools
import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pytest

from collector import catalogue
from collector.errors import SourceError, SourceRefusedError, SourceTimeoutError
from collector.settings import Duration
from collector.sources.base.calls import _MOST_ABANDONED
from collector.sources.base.identity import Expected
from collector.sources.jolokia import JolokiaSource
from collector.sources.transports import Jolokia
from lakehouse.tables import OTHER
from tests.hostile_http import PIECE, HostileHttp, Request, like_a_broker
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from collector.model import Answer
    from tests.hostile_http import Misbehaviour

pytestmark = pytest.mark.slow

TIMEOUT: Final = 0.5
_PATIENT: Final = 20.0  # where another answer is wanted: a busy machine may take half a second
MEBIBYTE: Final = 1 << 20
BROKER: Final = Expected("broker", "1", "c")
THROTTLE: Final = "kafka.server:type=Produce,*"
QUOTAS: Final = catalogue.load().family("quotas")


def _sleep(request: Request) -> None:
    request.drip(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1000)


def _json(body: str) -> Misbehaviour:
    return lambda request: request.answer(body.encode("utf-8", "surrogatepass"))


def _infinite(request: Request) -> None:
    answers = like_a_broker(request, {"java.lang:type=Runtime": {"StartTime": "number"}})
    request.answer(json.dumps(answers).replace('"number"', "1e999").encode())


SLOW: Final[dict[str, Misbehaviour]] = {
    "says nothing": lambda _: time.sleep(5),
    "drips its head": _sleep,
    "drips its body": lambda request: (
        request.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"), request.drip(b"[" * 1000)
    )[0],
    "drips chunks": lambda request: (
        request.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        request.drip(b"1\r\nx\r\n" * 300),
    )[0],
}  # fmt: skip

ODD: Final[dict[str, tuple[Misbehaviour, str]]] = {
    "is not HTTP": (lambda request: request.send(b"SSH-2.0-x\r\n\r\n"), "does not use HTTP"),
    "sends an endless head": (
        lambda request: request.send(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 99_999),
        "does not use HTTP",
    ),
    "ends too early": (
        lambda request: request.send(
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n["
        ),
        "no answer within|the connection broke",
    ),
    "sends no JSON": (_json("<html>"), "is not from Jolokia: JSON is malformed"),
    "sends half of it": (_json('[{"status":200,"value":{"a'), "is not from Jolokia: "),
    "sends no UTF-8": (lambda request: request.answer(b'[{"error":"\xff"}]'), "not from Jolokia"),
    "sends something packed": (
        lambda request: request.answer(
            gzip.compress(b"[]" * 99_999), "200 OK", "Content-Encoding: gzip"
        ),
        "is compressed",
    ),
    "nests without end": (_json('[{"more":' + "[" * 1_000_000), "not from Jolokia"),
    "nests in a value": (_json('[{"status":200,"value":' + '{"a":' * 100_000), "not from Jolokia"),
    "sends one answer": (_json('{"status":200}'), "is not from Jolokia: Expected `array`"),
    "leaves out answers": (_json("[]"), "0 responses to 5 requests"),
    "has odd values": (_json(json.dumps([{"status": 200, "value": 5}] * 5)), "not from Jolokia"),
    "has odd statuses": (_json(json.dumps([{"status": "ok"}] * 5)), "not from Jolokia"),
    "has infinite numbers": (
        _infinite,
        "is not from Jolokia: Number out of range",
    ),
    "has half a surrogate": (_json('[{"status":500,"error":"\\ud800"}]'), "not from Jolokia"),
    "fails": (_json(json.dumps([{"status": 500, "error": "a\nb" * 999}] * 5)), "status 500: a b"),
    "is out of order": (lambda request: request.answer(b"", "500 No"), "status 500"),
}


def _source(url: str, seconds: float = _PATIENT) -> JolokiaSource:
    login = {"user": "me", "password_env": "HOSTILE_TEST_PASSWORD"}
    return JolokiaSource(BROKER, Jolokia(url, timeout=Duration(f"{seconds * 1000:g}ms"), **login))


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTILE_TEST_PASSWORD", "not-for-you")


def _is_one_line(text: str) -> bool:
    return "\n" not in text and len(text) < 400 and "not-for-you" not in text


@pytest.mark.parametrize("how", SLOW)
def test_who_is_slow_costs_no_more_than_the_timeout(how: str) -> None:
    with HostileHttp(SLOW[how]) as fake, closing(_source(fake.url, TIMEOUT)) as source:
        started = time.monotonic()
        with pytest.raises(SourceTimeoutError, match=r"no answer within 0\.5 s"):
            source.identify()
        assert time.monotonic() - started < TIMEOUT + 5


def test_who_drips_without_end_leaves_no_thread_behind() -> None:
    with HostileHttp(SLOW["drips its body"]) as fake:
        source = JolokiaSource(BROKER, Jolokia(fake.url, timeout=Duration("50ms")))
        for _ in range(3 * _MOST_ABANDONED):
            # Each ends with the next byte, for which a busy machine may take longer.
            wait_for(lambda: sum(map(threading.Thread.is_alive, _readers())) < 3, 60)
            with (
                closing(source),
                pytest.raises(SourceTimeoutError, match="no answer"),
            ):
                source._guarded(lambda: source._fetch([]))
        named = _readers()
        for thread in named:
            thread.join(60)
        assert not any(thread.is_alive() for thread in named)


def _readers() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("read Jolokia")]


@pytest.mark.parametrize("how", ODD)
def test_what_no_agent_says_is_refused_in_one_line(how: str) -> None:
    misbehaviour, told = ODD[how]
    seconds = TIMEOUT if "no answer" in told else _PATIENT
    with HostileHttp(misbehaviour) as fake, closing(_source(fake.url, seconds)) as source:
        started = time.monotonic()
        with pytest.raises(SourceError, match=told) as refused:
            source.identify()
        assert time.monotonic() - started < seconds + 5
        assert _is_one_line(str(refused.value))


def test_nobody_is_led_elsewhere_with_the_password() -> None:
    with HostileHttp(lambda request: request.answer(b"[]")) as elsewhere:
        moved = f"Location: {elsewhere.url}"
        with (
            HostileHttp(lambda request: request.answer(b"", "307 Moved", moved)) as fake,
            closing(_source(fake.url)) as source,
            pytest.raises(SourceError, match="status 307"),
        ):
            source.identify()
        assert elsewhere.requests == []
        assert "Authorization" in fake.requests[0]


def test_no_proxy_of_the_environment_gets_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with HostileHttp(lambda request: request.answer(b"[]")) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        with (
            HostileHttp(lambda request: request.answer(b"[]")) as fake,
            closing(_source(fake.url)) as source,
            pytest.raises(SourceError, match="0 responses to 5"),
        ):
            source.identify()
        assert proxy.requests == []


def _read(beans: dict[str, dict[str, Any]]) -> Answer:
    def answer(request: Request) -> None:
        request.answer(json.dumps(like_a_broker(request, beans), ensure_ascii=False).encode())

    with HostileHttp(answer) as fake, closing(_source(fake.url)) as source:
        return source.read(QUOTAS)


def _client(name: str) -> str:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"').replace("*", "\\*").replace("?", "\\?")
    return f'kafka.server:type=Produce,client-id="{quoted}"'


def test_names_that_a_lake_cannot_hold_are_folded_and_counted() -> None:
    odd = ["n" * 32_768, OTHER, 'q"\\*?', "control\x00\x1b", "😀"]
    beans: dict[str, Any] = {_client(name): {"throttle-time": 7} for name in odd}
    # Of a name with half a surrogate pair, Jolokia sends a question mark that nothing escapes.
    beans['kafka.server:type=Produce,client-id="lost?"'] = {"throttle-time": 7}
    answer = _read({THROTTLE: beans})
    told = {one.client_id: value for one, value in answer.readings[0].values.items()}
    assert told == {OTHER: 21.0, 'q"\\*?': 7.0, "control\x00\x1b": 7.0, "😀": 7.0}
    assert answer.dropped_series == 3


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("text", "is text, not a number"),
        (10**400, "not a number"),
        ({"error_type": "a.B", "error": "x\ny", ".error": True}, "failed in the broker: x y"),
        ({}, "not a number"),
    ],
)
def test_a_value_that_is_no_number_is_refused_by_name(value: object, told: str) -> None:
    with pytest.raises(SourceError, match=told) as refused:
        _read({THROTTLE: {_client("x"): {"throttle-time": value}}})
    assert 'client-id="x" throttle-time' in str(refused.value)
    assert _is_one_line(str(refused.value))


_PROBE: Final = """
import re, sys
from pathlib import Path
from collector.errors import SourceError
from collector.settings import Duration
from collector.sources.transports import Jolokia
from collector.sources.base.identity import Expected
from collector.sources.jolokia import JolokiaSource
from collector.sources.base.calls import _MOST_ABANDONED
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
source = JolokiaSource(Expected("broker"), Jolokia(sys.argv[1], timeout=Duration("120s")))
before = peak()
try:
    source.identify()
except SourceError as error:
    print(peak() - before, str(error))
"""


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        (itertools.repeat(PIECE), "longer than 64 MiB"),
        (iter([b"[", *[b"{}," * 20_000] * 1000, b"{}]"]), "more than 300,000 MBeans"),
        (
            iter([b'[{"status":200,"value":{', *[b'"a":1,' * 10_000] * 990, b'"a":1}}]']),
            "more than 300,000 MBeans",
        ),
        (
            iter([b'[{"status":200,"value":[', *[b"1," * 30_000] * 1000, b"1]}]"]),
            "0 responses to 5|1 responses to 5",
        ),
    ],
    ids=["endless", "objects", "names", "numbers"],
)
def test_a_huge_answer_costs_bounded_memory(pieces: Any, told: str) -> None:
    body = pieces if isinstance(pieces, itertools.repeat) else list(pieces)
    length = 1 << 50 if isinstance(pieces, itertools.repeat) else sum(map(len, body))
    with HostileHttp(lambda request: request.stream(iter(body), length)) as fake:
        probe = subprocess.run(
            [sys.executable, "-c", _PROBE, fake.url],
            capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
    mebibytes, _, text = probe.stdout.partition(" ")
    assert int(mebibytes) < 128
    assert _is_one_line(text.strip())
    assert any(one in text for one in told.split("|")), text


def test_https_to_a_port_of_plain_http_is_told_as_such() -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def answer() -> None:
            connection, _ = plain.accept()
            with connection:
                connection.recv(9999)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        url = f"https://127.0.0.1:{plain.getsockname()[1]}/jolokia/"
        with closing(_source(url)) as source, pytest.raises(SourceRefusedError) as refused:
            source.identify()
    assert "does not use TLS; check whether the URL must start with http://" in str(refused.value)
    assert _is_one_line(str(refused.value))


def test_who_refuses_a_password_makes_us_name_where_it_came_from(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("not-for-you\n")
    ways: list[tuple[dict[str, Any], str]] = [
        (
            {"user": "me", "password_env": "HOSTILE_TEST_PASSWORD"},
            r"password_env \(HOSTILE_TEST_PASSWORD\)",
        ),
        ({"user": "me", "password_file": file}, rf"password_file \({file}\)"),
        ({}, "a login is required"),
    ]
    with HostileHttp(lambda request: request.answer(b"", "401 No")) as fake:
        for login, told in ways:
            with (
                closing(JolokiaSource(BROKER, Jolokia(fake.url, **login))) as source,
                pytest.raises(SourceRefusedError, match=told) as refused,
            ):
                source.identify()
            assert _is_one_line(str(refused.value))
