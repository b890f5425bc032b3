"""Prometheus's text format: read as its own library reads it, refused in one line, bounded."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, strategies as st
from prometheus_client.parser import text_string_to_metric_families

from collector.errors import SourceError
from collector.sources.base.http_endpoint import Reply
from collector.sources.prometheus.page import Page, Sample
from tests.hostile_http import HostileHttp

if TYPE_CHECKING:
    from tests.hostile_http import Request

KIND: Final = "text/plain; version=0.0.4"
TEXT: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LABELS: Final = st.dictionaries(st.from_regex(r"_?[a-zA-Z][a-zA-Z0-9_]{0,9}", fullmatch=True), TEXT)


def parsed(text: str, *names: str) -> list[Sample]:
    page = Page(Reply(KIND, text.encode(), is_framed=True), "x")
    return list(page.samples(set(names)))


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@given(LABELS, st.floats(allow_nan=False), st.sampled_from([",", ""]))
def test_sample_is_as_prometheus_reads_it(labels: dict[str, str], value: float, last: str) -> None:
    pairs = ",".join(f'{name}="{escaped(text)}"' for name, text in labels.items())
    line = f"name{{{pairs}{last if labels else ''}}} {value!r} 1700000000123\n"
    (family,) = text_string_to_metric_families(line)
    assert [tuple(one[:4]) for one in family.samples] == [
        tuple(one) for one in parsed(line, "name")
    ]


@pytest.mark.parametrize(
    ("line", "sample"),
    [
        ("a 1", Sample("a", {}, 1.0)),
        ("a\t1\t", Sample("a", {}, 1.0)),
        ("  a 1\r", Sample("a", {}, 1.0)),
        ("a{} 1", Sample("a", {}, 1.0)),
        ("a {} 1", Sample("a", {}, 1.0)),
        ('a{b="c",} +Inf', Sample("a", {"b": "c"}, float("inf"))),
        ('a { b = "c" , d="}" } -1e3 5000', Sample("a", {"b": "c", "d": "}"}, -1000.0, 5.0)),
        ('a{b="c"} 1 # {x="y"} 2 3', Sample("a", {"b": "c"}, 1.0)),
        (r'a{b="\\n\n\"\t"} 1', Sample("a", {"b": '\\n\n"\\t'}, 1.0)),
    ],
)
def test_line_is_read_with_its_blanks(line: str, sample: Sample) -> None:
    assert parsed(f"# TYPE a gauge\n\nb 2\n{line}\nab 3\n", "a") == [sample]


@pytest.mark.parametrize(
    "line",
    [
        "a", "a{", 'a{b="c"', 'a{b="c} 1', "a{b=c} 1", 'a{b="c"}', 'a{b="c",b="d"} 1', "a one",
        "a 1_0", "a 0x10", "a 1 x", "a 1 2 3", 'a{b="c" d="e"} 1', 'a{,} 1', 'a{1="c"} 1',
        "a{" + ",".join(f'l{n}="v"' for n in range(65)) + "} 1", "a 1 1e999",
    ],
)  # fmt: skip
def test_line_that_is_not_a_sample_is_one_error(line: str) -> None:
    with pytest.raises(SourceError, match="not Prometheus's text") as refused:
        parsed(f"{line}\n", "a")
    assert len(str(refused.value)) < 300
    assert str(refused.value).isprintable()


_PROBE: Final = """
import re, sys
from pathlib import Path
from collector import catalogue
from collector.sources.transports import Prometheus
from collector.settings import Duration
from collector.errors import SourceError
from collector.sources.prometheus.exporter import PrometheusSource
from collector.sources.base.identity import Expected
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
section = Prometheus(sys.argv[1], timeout=Duration("120s"))
source = PrometheusSource(Expected("broker", "1", "c"), section)
before = peak()
try:
    said = source.read(catalogue.load().family("min_isr")).beans
except SourceError as error:
    said = error
print(peak() - before, said)
"""
_BASE: Final = b"""java_lang_Runtime_StartTime 1.7E12
kafka_server_app_info_StartTimeMs{id="1"} 1.7E12
"""
_PARTITION: Final = b'kafka_cluster_Partition_Value{name="UnderMinIsr",partition="0",topic="'
_HUGE: Final[dict[str, tuple[bytes, bytes, bytes, str]]] = {
    "newlines": (b"", b"\n", b"", "more than 2,000,000 lines"),
    "comments": (b"", b"#\n", b"", "more than 2,000,000 lines"),
    "unwanted": (b"", b"a 1\n", b"", "more than 2,000,000 lines"),
    "wanted": (b"", b"java_lang_Runtime_StartTime 1\n", b"", "more than 2,000,000 lines"),
    "one sample": (b"", _PARTITION + b'"} 1\n', b"", "more than 300,000 samples|two samples"),
    "one line": (b"", b"x", b"\n", ""),
    "one name": (_PARTITION, b"x", b'"} 1\n', "is longer than 256 KiB"),
    "escapes": (_PARTITION, b"\\\\", b'"} 1\n', "is longer than 256 KiB"),
    "labels": (_PARTITION + b'"', b',a="b"', b"} 1\n", "is longer than 256 KiB"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", _HUGE)
def test_huge_page_costs_bounded_memory(kind: str) -> None:
    begin, unit, end, told = _HUGE[kind]
    body = _BASE + begin + unit * ((63 << 20) // len(unit)) + end

    def answer(request: Request) -> None:
        request.answer(body, "200 OK", f"Content-Type: {KIND}")

    with HostileHttp(answer) as fake:
        probe = subprocess.run(
            [sys.executable, "-c", _PROBE, fake.url],
            capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
    mebibytes, _, said = probe.stdout.partition(" ")
    assert int(mebibytes) < 256
    assert any(one in said for one in told.split("|")), said
    assert len(said) < 300
