"""A JVM behind Prometheus's jmx_exporter or Strimzi's metrics reporter: one GET brings all of it.

An exporter gives no text: neither the cluster's id nor Kafka's version. Both are believed as the
configuration has them; without a version no value is flagged as one that it reports wrongly.
"""

import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, cast

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from collector.catalogue import Family, Metric
from collector.config.schema import Prometheus
from collector.errors import ConfigError, IdentityError, SourceDataError, SourceError
from collector.model import Answer, Identity
from collector.sources.bulk import exporter_rules
from collector.sources.bulk.exporter_rules import Rules, Shown
from collector.sources.bulk.http_endpoint import HttpEndpoint
from collector.sources.bulk.source import BulkReader, BulkSource
from collector.sources.bulk.strimzi_metrics_reporter import Reporter
from collector.sources.connection.identity import STARTED, Expected
from collector.sources.jmx.bean_questions import Answers, Question, asked_for

# Families that start together share an answer, as over RMI: for as long as it took, within these.
_SHARED_SECONDS: Final = 0.25
_MOST_SHARED_SECONDS: Final = 1.0
APP_INFO: Final = Question("kafka.server:type=app-info,id=*", "StartTimeMs")
_FAILED: Final = "jmx_scrape_error"
_LATE: Final = "jmx_scrape_timeout_total"
_PROCESS: Final = "process_start_time_seconds"
_BUILD: Final = "jmx_exporter_build_info"
OWN: Final = frozenset({_FAILED, _LATE, _PROCESS, _BUILD})
_HTTP_HEADERS: Final = {"Accept": "text/plain;version=0.0.4"}
_TYPES: Final = ("text/plain", "application/openmetrics-text")
_OBJECT_NAME: Final = "_objectname"  # added by the exporter where two samples would be one


_Wanted = dict[str, list[tuple[Question, str | None, Shown]]]


def _names(section: Prometheus) -> Rules | Reporter:
    """How the exporter names what it shows.

    Raises:
        ConfigError: The file of rules is wrong, an expression is, or it is of another exporter.
    """
    if section.exporter == "jmx_exporter":
        if section.allowlist:
            raise ConfigError("source.prometheus.allowlist: it is of exporter: strimzi; remove it")
        return exporter_rules.read(section.rules_file)
    if section.rules_file is not None:
        raise ConfigError(
            "source.prometheus.rules_file: it is of exporter: jmx_exporter; remove it"
        )
    try:
        expressions = tuple(re.compile(one) for one in section.allowlist)
    except re.error as error:
        raise ConfigError(f"source.prometheus.allowlist: {error}; correct it") from None
    return Reporter(expressions)


class PrometheusSource(BulkSource):
    """A broker, controller or client JVM that is read by its jmx_exporter.

    Args:
        expected: Who should answer; its cluster is believed.
        section: How to reach the exporter, and by which rules it names what it shows.

    Raises:
        ConfigError: The URL is wrong, or the file of rules or of certificates.
    """

    def __init__(self, expected: Expected, section: Prometheus) -> None:
        self._is_strimzi = section.exporter == "strimzi"
        what = "Strimzi's metrics reporter" if self._is_strimzi else "jmx_exporter"
        self._endpoint = HttpEndpoint(what, section, "source.prometheus")
        where, timeout = self._endpoint.where, section.timeout.seconds
        super().__init__(where, expected, timeout, section.password_file)
        self._shown = cache(_names(section).shown)
        self._staleness_us = section.staleness.us
        self._version = section.kafka_version
        self._keys: dict[str, tuple[str, ...]] = {}
        self._items: dict[Question, set[str | None]] = defaultdict(set)
        self._asked, self._shared_until, self._lines = 0.0, 0.0, [""]
        self._late: float | None = None

    def close(self) -> None:
        """Give up the connection; the source may be used again."""
        super().close()
        self._endpoint.close()
        self._shared_until = 0.0

    def _read(self, identity: Identity, reader: BulkReader, family: Family) -> Answer:
        self._learn(family)
        answer = super()._read(identity, reader, family)
        age_us = round((time.monotonic() - self._asked) * 1e6)
        return replace(answer, listed_us=self._staleness_us + age_us)

    def _learn(self, family: Family) -> None:
        """Note what a family asks for.

        Raises:
            SourceDataError: The rules hide some of it.
        """
        for metric in family.metrics:
            self._keys |= dict.fromkeys(metric.patterns, tuple(metric.labels))
            for question in asked_for(metric):
                self._items[question].add(metric.item)
        if hidden := [
            metric.name
            for metric in family.metrics
            if metric.needs not in ("draft", "plugin") and not self._is_shown(metric)
        ]:
            more = f" and {len(hidden) - 1} more of {family.name}" if hidden[1:] else ""
            raise SourceDataError(
                f"{self._where}: the exporter's rules hide {hidden[0]}{more}: add the rules of"
                " docs/prometheus.md, or turn the family off"
            )

    def _wanted(self, questions: Sequence[Question]) -> _Wanted:
        """By name of a sample, what it may be an answer to."""
        asked = [one for one in questions if one not in self._expected.questions]
        wanted: _Wanted = defaultdict(list)
        for question in (*asked, STARTED, APP_INFO):
            for item in self._items.get(question, (None,)):
                for shown in self._how_shown(question, item) or ():
                    for name in shown.names:
                        wanted[name].append((question, item, shown))
        return wanted

    def _fetch(self, questions: Sequence[Question]) -> Answers:
        wanted = self._wanted(questions)
        answers: dict[Question, dict[str, object]] = defaultdict(dict)
        own: dict[str, Sample] = {}
        for sample in self._samples(wanted.keys() | OWN):
            if sample.name in OWN:
                own[sample.name] = sample
            for question, item, shown in wanted.get(sample.name, ()):
                self._take(sample, shown, item, answers[question])
        self._check(own)
        return {**answers, **self._identified(answers, own)}

    def _take(
        self, sample: Sample, shown: Shown, item: str | None, answers: dict[str, object]
    ) -> None:
        for label, value in shown.constants.items():  # most differ here
            if sample.labels.get(label) != value:
                return
        labels = {label: value for label, value in sample.labels.items() if value}
        if labels.keys() - {_OBJECT_NAME} != shown.constants.keys() | shown.variables.keys():
            return
        bean = shown.named(labels)
        if bean is None:
            return
        found, key = answers, bean
        if item is not None:  # as other sources give it: the composite, here of what was asked for
            found, key = cast("dict[str, object]", answers.setdefault(bean, {})), item
        if key in found:
            raise SourceDataError(
                f"{self._where}: two samples of {sample.name} are of the bean {bean:.200}: correct"
                " the exporter's rules, or source.prometheus.rules_file"
            )
        found[key] = sample.value / shown.factor

    def _check(self, own: Mapping[str, Sample]) -> None:
        """Make sure that the exporter itself has read the JVM just now."""
        if _FAILED in own and own[_FAILED].value:
            raise SourceError(
                f"{self._where}: it could not read the JVM's beans itself ({_FAILED}); see its log"
            )
        late = own[_LATE].value if _LATE in own else None
        before, self._late = self._late, late
        if None not in (before, late) and late != before:
            raise SourceError(
                f"{self._where}: it gave an earlier answer, as the JVM took too long ({_LATE})"
            )

    def _identified(self, answers: Answers, own: Mapping[str, Sample]) -> Answers:
        """What ``Expected`` asks: the node, when its JVM started, and that its version is unknown.

        Raises:
            IdentityError: It is not known when the JVM started.
        """
        started = next(iter(answers.get(STARTED, {}).values()), None)
        is_agent = _BUILD in own and "agent" in own[_BUILD].labels.get("name", "")
        if started is None and (is_agent or self._is_strimzi) and _PROCESS in own:
            started = own[_PROCESS].value * 1000
        infos = answers.get(APP_INFO, {})
        if started is None:
            started = next(iter(infos.values()), None)
        if not isinstance(started, float):
            raise IdentityError(
                f"{self._where}: it does not report when its JVM started: let its rules show"
                f" {STARTED.attribute} of {STARTED.pattern}"
            )
        nodes = list(infos) or [APP_INFO.pattern.replace("*", self._expected.node or "")]
        began, info, *_ = self._expected.questions
        return {began: {STARTED.pattern: round(started)}, info: dict.fromkeys(nodes, self._version)}

    def _samples(self, names: set[str]) -> Iterator[Sample]:
        """The samples of these names, from an answer that may be a moment old."""
        lines = [line for line in self._page() if line.partition("{")[0].split(" ")[0] in names]
        try:
            for family in text_string_to_metric_families("\n".join(lines)):
                yield from family.samples
        except (ValueError, IndexError, KeyError) as error:
            said = " ".join(str(error).split())[:200]
            raise SourceError(f"{self._where}: that is not Prometheus's text: {said}") from None

    def _page(self) -> list[str]:
        asked = time.monotonic()
        if asked < self._shared_until:
            return self._lines
        kind, body = self._endpoint.ask("GET", headers=_HTTP_HEADERS)
        if not kind.startswith(_TYPES):
            raise SourceError(
                f"{self._where}: it answers with {kind or 'no content type'!a:.80}, not with"
                " Prometheus's text; is the path right?"
            )
        try:
            lines = body.decode("utf-8").split("\n")  # a label may have other ends of lines
        except UnicodeDecodeError:
            raise SourceError(f"{self._where}: its answer is not UTF-8") from None
        if lines.pop():
            raise SourceError(f"{self._where}: its answer ends within a line; was it cut short?")
        now = time.monotonic()
        shared = min(max(_SHARED_SECONDS, now - asked), _MOST_SHARED_SECONDS)
        self._asked, self._shared_until, self._lines = asked, now + shared, lines
        return lines

    def _is_shown(self, metric: Metric) -> bool:
        # The exporter leaves texts out.
        return not metric.states and any(self._how_shown(q, metric.item) for q in asked_for(metric))

    def _how_shown(self, question: Question, item: str | None) -> list[Shown] | None:
        part = question._replace(attribute=".".join(filter(None, (question.attribute, item))))
        return self._shown(part, self._keys.get(part.pattern, ()))
