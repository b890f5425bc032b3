"""A JVM behind Prometheus's jmx_exporter or Strimzi's metrics reporter: one GET brings all of it.

An exporter gives no text: neither the cluster's id nor Kafka's version. Both are believed as the
configuration has them; without a version no value is flagged as one that it reports wrongly.
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
from collector.sources.base.identity import STARTED, Expected
from collector.sources.base.mbean_source import SnapshotReader, SnapshotSource
from collector.sources.http.endpoint import HttpEndpoint
from collector.sources.prometheus import exporter_rules, rules_trial
from collector.sources.prometheus.exporter_rules import Rules, Shown
from collector.sources.prometheus.page import Page, Sample, other_page
from collector.sources.prometheus import Prometheus
from collector.sources.prometheus.strimzi import Reporter

# Families that start together share an answer, as over RMI: for as long as it took, within these.
_SHARED_SECONDS: Final = 0.25
_MOST_SHARED_SECONDS: Final = 1.0
_MOST_SHARED: Final = 16 << 20
"""Bytes; a page is kept between scrapes, and an agent has many sources."""
APP_INFO: Final = Question("kafka.server:type=app-info,id=*", "StartTimeMs")
_FAILED: Final = "jmx_scrape_error"
_LATE: Final = "jmx_scrape_timeout_total"
_PROCESS: Final = "process_start_time_seconds"
_BUILD: Final = "jmx_exporter_build_info"
OWN: Final = frozenset({_FAILED, _LATE, _PROCESS, _BUILD})
_HTTP_HEADERS: Final = {"Accept": "text/plain;version=0.0.4"}
_OBJECT_NAME: Final = "_objectname"  # added by the exporter where two samples would be one


_NOT_PLAIN: Final = re.compile(r"[^a-z0-9]")
_KAFKAS: Final = re.compile(
    "acktype|apikey|attribute|broker(host|id|port)|cipher|client(id|instanceid|softwarename)"
    "|clientsoftwareversion|connectionid|connector|delayedoperation|directory|error|event|index"
    "|fetchertype|group|groupid|id|key|le|listener|logdirectory|name|networkprocessor|nodeid"
    "|objecttype|partition|pool|priority|processor|protocol|quantile|request|requesttype|state"
    "|tag|task|taskid|threadid|topic|type|user|version"
)
"""Keys of the beans of Kafka, of its plugins and of the JVM, without what separates their words."""

_Wanted = dict[str, list[tuple[Question, str | None, Shown]]]


def _names(section: Prometheus) -> Rules | Reporter:
    """Return the rules by which the exporter names its samples.

    Raises:
        ConfigError: The file of rules is wrong.
    """
    if section.exporter == "strimzi":
        return Reporter(tuple(map(re.compile, section.allowlist)))
    rules = exporter_rules.read(section.rules_file)
    if section.rules_file is not None:
        rules_trial.check_time(section.rules_file)
    return rules


class PrometheusSource(SnapshotSource):
    """A broker, controller or client JVM that is read by its jmx_exporter.

    Args:
        expected: Who should answer; its cluster is believed.
        section: How to reach the exporter, and by which rules it names what it shows.

    Raises:
        ConfigError: The URL is wrong, or the file of rules or of certificates.
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
        self._asked, self._shared_until = 0.0, 0.0
        self._shared: Page | None = None
        self._late: float | None = None
        self._stamped = math.inf
        self._learned: dict[str, Family] = {}

    def close(self) -> None:
        """Give up the connection; the source may be used again."""
        super().close()
        self._endpoint.close()
        self._shared = None

    def _read(self, identity: Identity, reader: SnapshotReader, family: Family) -> Answer:
        self._learn(family)
        answer = super()._read(identity, reader, family)
        age_us = round((time.monotonic() - self._asked) * 1e6)
        stamped_us = round(max(time.time() - self._stamped, 0.0) * 1e6)
        return replace(answer, listed_us=max(self._staleness_us + age_us, stamped_us))

    def _learn(self, family: Family) -> None:
        """Note what a family asks for.

        Raises:
            SourceDataError: The rules hide some of it, or treat its names in different ways.
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
                f"{self._where}: the exporter's rules hide {hidden[0]}{more}: add the rules of"
                " docs/prometheus.md, or turn the family off"
            )
        self._check_names(family.name, wanted)
        self._learned[family.name] = family

    def _check_names(self, family: str, wanted: Sequence[Metric]) -> None:
        """Make sure that the rules treat every name of a topic, partition or client alike."""
        if not isinstance(self._rules, Rules):
            return
        for metric in wanted:
            for question in map(partial(_part, item=metric.item), asked_for(metric)):
                if name := self._rules.depends_on(question, tuple(metric.labels)):
                    raise SourceDataError(
                        f"{self._where}: the exporter's rules treat {name} of {_bean_of(metric)}"
                        f" otherwise than other names, so {family} would be in part: correct their"
                        " patterns, add the rules of docs/prometheus.md, or turn the family off"
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
        """Enter a sample as the answer that it is.

        Raises:
            SourceDataError: It would be one but for a label that no exporter gives.
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
                f"{self._where}: label {min(odd)} of {sample.name} is not of the exporter, so"
                " beans get mixed up: remove the relabelling that adds or changes it, or correct"
                " source.prometheus.rules_file"
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
        if item is not None:  # as other sources give it: the composite, here of what was asked for
            found, key = cast("dict[str, object]", answers.setdefault(bean, {})), item
        if key in found:
            raise SourceDataError(
                f"{self._where}: two samples of {sample.name} are of the bean {bean:.200}: correct"
                " the exporter's rules, or source.prometheus.rules_file"
            )
        found[key] = sample.value / factor

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

    def _samples(self, names: Set[str]) -> Iterator[Sample]:
        """The samples of these names, from an answer that may be a moment old.

        Raises:
            SourceError: It is another exporter's, so that they are not absent but unknown.
        """
        page, is_known = self._page(), False
        for sample in page.samples(names):
            is_known = is_known or sample.name not in OWN
            yield sample
        if not is_known and (reason := other_page(page.names())):
            hint = "" if self._is_strimzi else " (MSK: port 11001)"
            raise SourceError(f"{self._where}: {reason}: is it {self._what}'s{hint}?")

    def _page(self) -> Page:
        asked = time.monotonic()
        if self._shared is not None and asked < self._shared_until:
            return self._shared
        self._shared = None
        reply = self._endpoint.ask("GET", headers=_HTTP_HEADERS)
        page, now = Page(reply, self._where), time.monotonic()
        shared = min(max(_SHARED_SECONDS, now - asked), _MOST_SHARED_SECONDS)
        self._asked, self._shared_until = asked, now + shared
        self._shared = page if len(reply.body) <= _MOST_SHARED else None
        return page

    def _is_shown(self, metric: Metric) -> bool:
        # The exporter leaves texts out.
        return not metric.states and any(self._how_shown(q, metric.item) for q in asked_for(metric))

    def _how_shown(self, question: Question, item: str | None) -> list[Shown] | None:
        part = _part(question, item)
        return self._shown(part, self._keys.get(part.pattern, ()))


def _part(question: Question, item: str | None) -> Question:
    """The question for one item of a composite attribute."""
    return question._replace(attribute=".".join(filter(None, (question.attribute, item))))


def _bean_of(metric: Metric) -> str:
    """The metric's name; of a bean that only shows the leaders, the name of the bean."""
    return f"{metric.object}" if metric is IN_SYNC else metric.name


def misfit(labels: Mapping[str, str], shown: Shown, known: Set[str]) -> str | None:
    """Return the label for which a sample does not fit, though its name and constants do.

    Args:
        labels: The sample's.
        shown: How the exporter shows the beans that are asked for.
        known: Labels that the exporter may give to other beans.

    Returns:
        Empty: it fits. None: it is of other beans, such as the sum over all topics.
    """
    for label, value in shown.constants.items():  # most differ here
        if labels.get(label) != value:
            return None
    variables = shown.variables
    if len(labels) == len(shown.constants) + len(variables) and all(map(labels.get, variables)):
        return ""  # nearly all
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
