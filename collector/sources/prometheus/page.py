"""Parser of a page in Prometheus's text format 0.0.4 or OpenMetrics 1.0, for selected names.

A page is untrusted input, so it is read line by line and with limits. Lines with other names are
neither parsed nor kept.
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Final, NamedTuple

from collector.errors import SourceError
from collector.sources.base.http_endpoint import Reply

_MOST_LINES: Final = 2_000_000  # 64 MiB of a broker's lines are a third of it
_LONGEST_LINE: Final = 1 << 18  # bytes; the longest names of a lake have 32 KiB, escaped 64 KiB
_LONGEST_NAME: Final = 1 << 9
_MOST_LABELS: Final = 64
_MOST_SAMPLES: Final = 300_000  # the limit of MBeans for Jolokia

_TEXT: Final = "text/plain"
_OPEN_METRICS: Final = "application/openmetrics-text"
_END: Final = (b"# EOF\n", b"# EOF")  # only OpenMetrics has it

_HEAD: Final = re.compile(r"[ \t]*([a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*(\{?)")
_LABEL: Final = re.compile(
    r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"([^"\\]*+(?:\\.[^"\\]*+)*+)"[ \t]*(?:,|(?=\}))',
    re.DOTALL,
)
_CLOSE: Final = re.compile(r"[ \t]*\}")
_VALUE: Final = re.compile(
    r"[ \t]*([^\s_]+)(?:[ \t]+(-?\d{1,15}(?:\.\d{1,9})?))?[ \t]*(?:#.*)?\r?\n?", re.DOTALL
)
_ESCAPED: Final = re.compile(r'\\([\\n"])')
_UNESCAPED: Final = {"\\": "\\", "n": "\n", '"': '"'}
_NO_NAME: Final = (b"",)


class Sample(NamedTuple):
    """A sample of a page.

    Attributes:
        name: Name.
        labels: Labels.
        value: Value.
        timestamp: Timestamp in seconds since the epoch. None: no timestamp.
    """

    name: str
    labels: Mapping[str, str]
    value: float
    timestamp: float | None = None


class Page:
    """One response of an exporter.

    Args:
        reply: Response.
        where: The source, for error texts.

    Raises:
        SourceError: The response has another type, can be truncated, or has too many lines.
    """

    def __init__(self, reply: Reply, where: str) -> None:
        self._body, self._where = reply.body, where
        self._second = 1 if reply.kind.startswith(_OPEN_METRICS) else 1000
        if not reply.kind.startswith((_TEXT, _OPEN_METRICS)):
            raise SourceError(
                f"{where}: the answer is {reply.kind or 'without content type'!a:.80}, not"
                " Prometheus's text; check the path"
            )
        if reason := _why_cut(reply):
            raise SourceError(f"{where}: {reason}")
        if self._body.count(b"\n") > _MOST_LINES:
            raise SourceError(
                f"{where}: the page has more than {_MOST_LINES:,} lines; check the URL"
            )

    def samples(self, names: Set[str]) -> Iterator[Sample]:
        """Yield the samples of these names.

        Raises:
            SourceError: A line with such a name is not a sample, or there are too many.
        """
        wanted, count = {name.encode() for name in names}, 0
        for line in io.BytesIO(self._body):  # splits at \n only, as labels can have other line ends
            if _name_of(line[:_LONGEST_NAME]) not in wanted:
                continue
            count += 1
            if count > _MOST_SAMPLES:
                raise SourceError(
                    f"{self._where}: the page has more than {_MOST_SAMPLES:,} samples of one"
                    " family; check the URL"
                )
            yield self._sample(line)

    def names(self) -> Iterator[str]:
        """Yield the first word of each line that is not a comment, in printable form."""
        last = b"#"
        for line in io.BytesIO(self._body):
            name = _name_of(line[:_LONGEST_NAME])
            if name not in (last, b"") and not name.startswith(b"#"):
                last = name
                yield name.decode("utf-8", "replace")

    def _sample(self, line: bytes) -> Sample:
        if len(line) > _LONGEST_LINE:
            raise SourceError(
                f"{self._where}: a line of the page is longer than {_LONGEST_LINE >> 10} KiB:"
                f" {_quoted(line, 60)}; check the URL"
            )
        try:
            return self._parsed(line.decode("utf-8"))
        except UnicodeDecodeError:
            raise SourceError(f"{self._where}: the answer is not UTF-8") from None
        except (ValueError, OverflowError):
            raise SourceError(
                f"{self._where}: the answer is not Prometheus's text: {_quoted(line, 150)}"
            ) from None

    def _parsed(self, line: str) -> Sample:
        head = _HEAD.match(line)
        if head is None:
            raise ValueError(line)
        labels, at = _labels(line, head.end()) if head[2] else ({}, head.end())
        value = _VALUE.fullmatch(line, at)
        if value is None:
            raise ValueError(line)
        stamp = None if value[2] is None else float(value[2]) / self._second
        return Sample(head[1], labels, float(value[1]), stamp)


def _quoted(line: bytes, most: int) -> str:
    return f"{line[:most].decode('utf-8', 'replace')!a:.200}"


def _name_of(line: bytes) -> bytes:
    return (line.partition(b"{")[0].split(None, 1) or _NO_NAME)[0]


def _labels(line: str, at: int) -> tuple[dict[str, str], int]:
    """Return the labels, and the position after their closing brace."""
    labels: dict[str, str] = {}
    while found := _LABEL.match(line, at):
        name, value = found.groups()
        if name in labels or len(labels) >= _MOST_LABELS:
            raise ValueError(line)
        labels[name] = _ESCAPED.sub(_unescaped, value) if "\\" in value else value
        at = found.end()
    if (close := _CLOSE.match(line, at)) is None:
        raise ValueError(line)
    return labels, close.end()


def _unescaped(found: re.Match[str]) -> str:
    return _UNESCAPED[found[1]]


def _why_cut(reply: Reply) -> str | None:
    """Return why a page can be truncated, if so.

    The text format has no end mark. So a page without a length or chunks is refused, because the
    MBeans that did not arrive would count as absent. OpenMetrics has an end mark, but the agent
    does not request it, because it adds samples (``_created``) and exemplars. jmx_exporter 0.16.1,
    0.20.0 and 1.0.1 send a length, and newer versions a length or chunks.
    """
    if reply.body.endswith(_END):
        return None
    if reply.kind.startswith(_OPEN_METRICS):
        return "the answer is truncated, because it ends without # EOF"
    if not reply.body.endswith(b"\n") and reply.body:
        return "the answer is truncated, because it ends within a line"
    if not reply.is_framed:
        return (
            "the answer has neither a length nor chunks, so it can be truncated; configure the"
            " proxy for HTTP/1.1, or set the URL of the exporter"
        )
    return None


_OF: Final = {
    "confluent_kafka_": "Confluent Cloud's export, which does not have MBeans",
    "kminion_": "KMinion",
    "kafka_consumergroup_": "kafka_exporter, or Strimzi's Kafka Exporter",
    "kafka_topic_partition_": "kafka_exporter, or Strimzi's Kafka Exporter",
    "kafka_exporter_build_info": "kafka_exporter, or Strimzi's Kafka Exporter",
    "kafka_lag_exporter_": "Kafka Lag Exporter",
    "burrow_": "Burrow",
    "strimzi_": "a Strimzi operator",
    "redpanda_": "Redpanda",
    "vectorized_": "Redpanda",
    "otelcol_": "an OpenTelemetry collector",
    "target_info": "an OpenTelemetry collector",
    "node_": "node_exporter",
    "windows_": "windows_exporter",
    "container_": "cAdvisor",
    "machine_": "cAdvisor",
    "kube_": "kube-state-metrics",
    "aws_": "a CloudWatch exporter",
    "prometheus_": "Prometheus itself",
    "jmxlake_": "a jmxlake agent itself",
}
"""Programs by the prefix of their names."""
_OF_ANY: Final = ("process_", "go_", "python_", "promhttp_", "scrape_", "jvm_", "up")
"""Prefixes that show a program's language or runtime, not the program."""
_OF_JMX_EXPORTER: Final = "jmx_"  # it always counts its own scrapes
_OF_BEANS: Final = ("kafka_", "java_lang_")


def other_page(names: Iterable[str]) -> str | None:
    """Return a description of a page without the requested names. None: it is a page of MBeans.

    Args:
        names: Names on the page.
    """
    first, others, is_of_beans = "", set[str](), False
    for name in names:
        if name.startswith(_OF_JMX_EXPORTER):
            return None
        if not first or (first.startswith(_OF_ANY) and not name.startswith(_OF_ANY)):
            first = name
        if not others:
            others |= {program for prefix, program in _OF.items() if name.startswith(prefix)}
        is_of_beans = is_of_beans or name.startswith(_OF_BEANS)
    if not others and is_of_beans:
        return None
    if not first:
        return "the page is empty"
    as_of = f", like the page of {min(others)}" if others else ""
    return f"the page has no MBean of Kafka and starts with {first[:60]!a:.80}{as_of}"
