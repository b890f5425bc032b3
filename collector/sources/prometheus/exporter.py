"""A JVM behind Prometheus's jmx_exporter or Strimzi's metrics reporter, read with one GET.

An exporter does not export texts, so cluster ID and Kafka version come from the configuration and
are not checked. Without a version, no value is flagged as wrong in that version.
"""

import math
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache, partial
from typing import Final, cast

from collector.catalogue import Family, Metric
from collector.errors import IdentityError, SourceDataError, SourceError
from collector.model import Answer, Identity
from collector.sources.base.beans import IN_SYNC, Answers, Question, asked_for
from collector.sources.base.http_endpoint import HttpEndpoint
from collector.sources.base.identity import STARTED, Expected
from collector.sources.base.mbean_source import SnapshotReader, SnapshotSource
from collector.sources.prometheus import exporter_rules
from collector.sources.prometheus.page import Page, Sample, other_page
from collector.sources.prometheus.sample_names import Reporter, Shown
from collector.sources.transports import Prometheus

# Families that start together share a page, as over RMI, for as long as the request took, within
# these limits.
_SHARED_SECONDS: Final = 0.25
_MOST_SHARED_SECONDS: Final = 1.0
_MOST_SHARED: Final = 16 << 20
"""Size limit of a shared page in bytes, because an agent can have many sources."""
APP_INFO: Final = Question("kafka.server:type=app-info,id=*", "StartTimeMs")
_FAILED: Final = "jmx_scrape_error"
_LATE: Final = "jmx_scrape_timeout_total"
_PROCESS: Final = "process_start_time_seconds"
_BUILD: Final = "jmx_exporter_build_info"
OWN: Final = frozenset({_FAILED, _LATE, _PROCESS, _BUILD})
_HTTP_HEADERS: Final = {"Accept": "text/plain;version=0.0.4"}
_OBJECT_NAME: Final = "_objectname"  # the exporter adds it if two samples would be equal


_NOT_PLAIN: Final = re.compile(r"[^a-z0-9]")
_KAFKAS: Final = re.compile(
    "acktype|apikey|attribute|broker(host|id|port)|cipher|client(id|instanceid|softwarename)"
    "|clientsoftwareversion|connectionid|connector|delayedoperation|directory|error|event|index"
    "|fetchertype|group|groupid|id|key|le|listener|logdirectory|name|networkprocessor|nodeid"
    "|objecttype|partition|pool|priority|processor|protocol|quantile|request|requesttype|state"
    "|tag|task|taskid|threadid|topic|type|user|version"
)
"""Keys of MBeans of Kafka, its plugins and the JVM, in lower case without separators."""

_Wanted = dict[str, list[tuple[Question, str | None, Shown]]]


def _names(section: Prometheus) -> exporter_rules.Rules | Reporter:
    """Return the rules for the exporter's sample names.

    Raises:
        ConfigError: The rules file is invalid.
    """
    if section.exporter == "strimzi":
        return Reporter(tuple(map(re.compile, section.allowlist)))
    rules = exporter_rules.read(section.rules_file)
    if section.rules_file is not None:
        exporter_rules.check_time(section.rules_file)
    return rules


class PrometheusSource(SnapshotSource):
    """A broker, controller or client JVM that is read through its exporter.

    Args:
        expected: Expected identity. Its cluster ID is not checked.
        section: Settings.

    Raises:
        ConfigError: The URL, the rules file or the CA file is invalid.
    """

    def __init__(self, expected: Expected, section: Prometheus) -> None:
        self._is_strimzi = section.exporter == "strimzi"
        self._what = "Strimzi's metrics reporter" if self._is_strimzi else "jmx_exporter"
        self._endpoint = HttpEndpoint(self._what, section, "source.prometheus")
        where, timeout = self._endpoint.where, section.timeout.seconds
        super().__init__(where, expected, timeout, section.password_file)
        self._rules = _names(section)
        self._shown = cache(self._rules.shown)
        self._staleness_us = section.staleness.us
        self._version = section.kafka_version
        self._keys: dict[str, tuple[str, ...]] = {}
        self._items: dict[Question, set[str | None]] = defaultdict(set)
        self._requested, self._shared_until = 0.0, 0.0
        self._shared: Page | None = None
        self._late: float | None = None
        self._stamped = math.inf
        self._learned: dict[str, Family] = {}

    def close(self) -> None:
        """Close the connection. The source can be used again."""
        super().close()
        self._endpoint.close()
        self._shared = None

    def _read(self, identity: Identity, reader: SnapshotReader, family: Family) -> Answer:
        self._learn(family)
        answer = super()._read(identity, reader, family)
        age_us = round((time.monotonic() - self._requested) * 1e6)
        stamped_us = round(max(time.time() - self._stamped, 0.0) * 1e6)
        return replace(answer, listed_us=max(self._staleness_us + age_us, stamped_us))

    def _learn(self, family: Family) -> None:
        """Check that the rules show a family, and keep its questions.

        Raises:
            SourceDataError: The rules hide some MBeans, or treat their names differently.
        """
        if self._learned.get(family.name) is family:
            return
        wanted = [one for one in family.metrics if one.needs not in ("draft", "plugin")]
        if any(metric.led for metric in wanted):
            wanted.append(IN_SYNC)
        for metric in (*family.metrics, IN_SYNC):
            self._keys |= dict.fromkeys(metric.patterns, tuple(metric.labels))
            for question in asked_for(metric):
                self._items[question].add(metric.item)
        if hidden := [_bean_of(metric) for metric in wanted if not self._is_shown(metric)]:
            more = f" and {len(hidden) - 1} more of {family.name}" if hidden[1:] else ""
            raise SourceDataError(
                f"{self._where}: the exporter's rules hide {hidden[0]}{more}; add the rules of"
                " docs/prometheus.md, or disable the family"
            )
        self._check_names(family.name, wanted)
        self._learned[family.name] = family

    def _check_names(self, family: str, wanted: Sequence[Metric]) -> None:
        """Check that the rules treat all names of topics, partitions and clients alike."""
        if not isinstance(self._rules, exporter_rules.Rules):
            return
        for metric in wanted:
            for question in map(partial(_part, item=metric.item), asked_for(metric)):
                if name := self._rules.depends_on(question, tuple(metric.labels)):
                    raise SourceDataError(
                        f"{self._where}: the exporter's rules treat {name} of {_bean_of(metric)}"
                        f" differently than other names, so {family} would be incomplete; correct"
                        " the patterns, add the rules of docs/prometheus.md, or disable the family"
                    )

    def _wanted(self, questions: Sequence[Question]) -> _Wanted:
        """Return the questions that a sample can answer, by the sample's name."""
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
        self._stamped = math.inf
        for sample in self._samples(wanted.keys() | OWN):
            if sample.name in OWN:
                own[sample.name] = sample
            if sample.timestamp is not None and sample.name in wanted:
                self._stamped = min(self._stamped, float(sample.timestamp))
            self._enter(sample, wanted.get(sample.name, ()), answers)
        self._check(own)
        return {**answers, **self._identified(answers, own)}

    def _enter(
        self,
        sample: Sample,
        wanted: Sequence[tuple[Question, str | None, Shown]],
        answers: dict[Question, dict[str, object]],
    ) -> None:
        """Add a sample to the answers of its question.

        Raises:
            SourceDataError: The sample has a label that the exporter does not add.
        """
        odd, taken = set[str](), False
        for question, item, shown in wanted:
            label = misfit(sample.labels, shown, self._rules.labels)
            if label:
                odd.add(label)
            elif label is None:
                continue
            elif bean := shown.named(sample.labels):
                taken = True
                self._take(sample, bean, shown.factor, item, answers.setdefault(question, {}))
            else:
                odd |= shown.variables.keys()
        if odd and not taken:
            raise SourceDataError(
                f"{self._where}: label {min(odd)} of {sample.name} is not from the exporter, so"
                " MBeans would be confused; remove the relabelling that adds or changes it, or"
                " correct source.prometheus.rules_file"
            )

    def _take(
        self,
        sample: Sample,
        bean: str,
        factor: float,
        item: str | None,
        answers: dict[str, object],
    ) -> None:
        found, key = answers, bean
        if item is not None:  # a composite with the requested items, as from other sources
            found, key = cast("dict[str, object]", answers.setdefault(bean, {})), item
        if key in found:
            raise SourceDataError(
                f"{self._where}: two samples of {sample.name} belong to MBean {bean:.200}; correct"
                " the exporter's rules, or source.prometheus.rules_file"
            )
        found[key] = sample.value / factor

    def _check(self, own: Mapping[str, Sample]) -> None:
        """Check that the exporter has read the JVM for this page."""
        if _FAILED in own and own[_FAILED].value:
            raise SourceError(
                f"{self._where}: the exporter could not read the JVM's MBeans ({_FAILED}); check"
                " the exporter's log"
            )
        late = own[_LATE].value if _LATE in own else None
        before, self._late = self._late, late
        if None not in (before, late) and late != before:
            raise SourceError(
                f"{self._where}: the exporter returned an earlier page, because the JVM was slow"
                f" ({_LATE})"
            )

    def _identified(self, answers: Answers, own: Mapping[str, Sample]) -> Answers:
        """Return the answers to the questions of ``Expected``: node, start time and version.

        Raises:
            IdentityError: The start time of the JVM is unknown.
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
                f"{self._where}: the start time of the JVM is missing; add a rule that shows"
                f" {STARTED.attribute} of {STARTED.pattern}"
            )
        nodes = list(infos) or [APP_INFO.pattern.replace("*", self._expected.node or "")]
        start, info, *_ = self._expected.questions
        return {start: {STARTED.pattern: round(started)}, info: dict.fromkeys(nodes, self._version)}

    def _samples(self, names: Set[str]) -> Iterator[Sample]:
        """Yield the samples with these names, from a page that can be shared.

        Raises:
            SourceError: The page is of another exporter, so that its samples are unknown.
        """
        page, is_known = self._page(), False
        for sample in page.samples(names):
            is_known = is_known or sample.name not in OWN
            yield sample
        if not is_known and (reason := other_page(page.names())):
            hint = "" if self._is_strimzi else " (MSK: port 11001)"
            advice = f"check that the URL is of {self._what}{hint}"
            raise SourceError(f"{self._where}: {reason}; {advice}")

    def _page(self) -> Page:
        requested = time.monotonic()
        if self._shared is not None and requested < self._shared_until:
            return self._shared
        self._shared = None
        reply = self._endpoint.ask("GET", headers=_HTTP_HEADERS)
        page, now = Page(reply, self._where), time.monotonic()
        shared = min(max(_SHARED_SECONDS, now - requested), _MOST_SHARED_SECONDS)
        self._requested, self._shared_until = requested, now + shared
        self._shared = page if len(reply.body) <= _MOST_SHARED else None
        return page

    def _is_shown(self, metric: Metric) -> bool:
        # The exporter does not export texts.
        return not metric.states and any(self._how_shown(q, metric.item) for q in asked_for(metric))

    def _how_shown(self, question: Question, item: str | None) -> list[Shown] | None:
        part = _part(question, item)
        return self._shown(part, self._keys.get(part.pattern, ()))


def _part(question: Question, item: str | None) -> Question:
    """Return the question for one item of a composite attribute."""
    return question._replace(attribute=".".join(filter(None, (question.attribute, item))))


def _bean_of(metric: Metric) -> str:
    """Return the metric's name, or the MBean's name for IN_SYNC."""
    return f"{metric.object}" if metric is IN_SYNC else metric.name


def misfit(labels: Mapping[str, str], shown: Shown, known: Set[str]) -> str | None:
    """Return the label that the exporter does not add, in a sample with matching constants.

    Args:
        labels: Labels of the sample.
        shown: Samples of the requested MBeans.
        known: Labels that the exporter can add to samples of other MBeans.

    Returns:
        Empty: the sample matches. None: it belongs to other MBeans, such as the sum over all
        topics.
    """
    for label, value in shown.constants.items():  # most samples differ here
        if labels.get(label) != value:
            return None
    variables = shown.variables
    if len(labels) == len(shown.constants) + len(variables) and all(map(labels.get, variables)):
        return ""  # nearly all samples
    given = {label for label, value in labels.items() if value} - {_OBJECT_NAME}
    wanted = shown.constants.keys() | shown.variables.keys()
    foreign = {
        one for one in given - wanted if not _KAFKAS.fullmatch(_plain(one)) and one not in known
    }
    if foreign:
        return min(foreign)
    return "" if given == wanted else None


def _plain(label: str) -> str:
    return _NOT_PLAIN.sub("", label.lower())
