"""History of a broker from the pages of its jmx_exporter that Prometheus stored.

Prometheus records the start of each scrape (as the time of the sample ``up``), its result and its
duration. So the history is read scrape by scrape, with the bounds of an agent with that interval. A
query also returns older samples for a while after the last scrape (lookback). They do not belong to
a scrape and are not used.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from collector.catalogue import Family
from collector.errors import ConfigError, SourceDataError, SourceError
from collector.model import Answer, Identity
from collector.sources.base.beans import all_asked, keys_of
from collector.sources.base.identity import Expected
from collector.sources.prometheus.api import Kept, Labels, PrometheusApi
from collector.sources.prometheus.exporter import APP_INFO, OWN, PrometheusSource, misfit
from collector.sources.prometheus.exporter_rules import Rules
from collector.sources.prometheus.page import Sample
from collector.sources.transports import Prometheus

_EXPORTED: Final = "exported_"  # Prometheus adds it to a label that the target also has
_DOWNSAMPLED: Final = "check whether its blocks are downsampled"
_NONE: Final[tuple[float, Labels]] = (0.0, {})
_TOLERANCE_US: Final = 3_000
"""Prometheus aligns the time of a scrape by up to 2 ms, and rounds it to milliseconds."""
_LONGEST_INTERVAL_US: Final = 119_000_000  # a window of 5 minutes must be longer than 2.5 intervals


_Samples = Mapping[str, list[Sample]]
Span = tuple[int, int]
"""Start and end in microseconds since the epoch."""


class Mark(NamedTuple):
    """A scrape by Prometheus, or an instant without a scrape.

    Attributes:
        at_us: First instant at which a query returns the scrape.
        asked_us: Start.
        answered_us: End.
        why: Reason of a failure. Empty: it succeeded.
        target: Labels that Prometheus added to all samples of the scrape.
    """

    at_us: int
    asked_us: int
    answered_us: int
    why: str
    target: Mapping[str, str]


_HOLE: Final = "Prometheus has no scrape of it"
_FAILED: Final = "Prometheus could not scrape it (up is 0)"
NO_PAGE: Final = (_HOLE, _FAILED)
"""Ends of the error texts of scrapes without a page in Prometheus."""


class Scrapes(NamedTuple):
    """The scrapes of an interval, and the scrape interval in microseconds."""

    marks: list[Mark]
    interval_us: int


def scrapes(api: PrometheusApi, selector: str, span: Span, step_us: int, between: Span) -> Scrapes:
    """Return the scrapes of one target.

    Args:
        api: API of Prometheus.
        selector: Matchers that select one target.
        span: Start and end of the query steps.
        step_us: Shortest time between two scrapes that are read.
        between: Scrapes start after its first instant and end before its second one.

    Raises:
        SourceError: The request failed, or two targets match, or the samples are not scrapes.
    """
    (start_us, end_us), (after_us, until_us) = span, between
    of = f"{{{selector}}}"
    ups, asked, took = (
        _merged(api, api.values(query, start_us, end_us, step_us))
        for query in (f"up{of}", f"timestamp(up{of})", f"scrape_duration_seconds{of}")
    )
    if odd := {up for up, _ in ups.values()} - {0.0, 1.0}:
        raise SourceDataError(f"{api.where}: up is {odd.pop():g}; {_DOWNSAMPLED}")
    interval_us = _interval_us(
        api.where, {round(at_s * 1e6) for at_s, _ in asked.values()}, step_us
    )
    marks = list[Mark]()
    for at_us in range(start_us, end_us, step_us):
        up, target = ups.get(at_us // 1000, _NONE)
        asked_us, seconds = (round(one.get(at_us // 1000, _NONE)[0] * 1e6) for one in (asked, took))
        answered_us = asked_us + seconds + _TOLERANCE_US
        if at_us - asked_us > 2 * interval_us:
            marks += [Mark(at_us, at_us, at_us, _HOLE, {})] if at_us < until_us else []
        elif asked_us > after_us and answered_us < until_us:
            after_us = asked_us
            marks.append(Mark(at_us, asked_us, answered_us, "" if up else _FAILED, target))
    return Scrapes(marks, interval_us)


def _interval_us(where: str, instants: set[int], step_us: int) -> int:
    apart = sorted(later - one for one, later in pairwise(sorted(instants)))
    # Most scrapes are an interval apart. Longer distances are gaps.
    interval_us = round(max(step_us, apart[len(apart) // 4] if apart else 0), -6)
    if interval_us > _LONGEST_INTERVAL_US:
        raise SourceDataError(
            f"{where}: the scrape interval is {interval_us / 1e6:g} s, but windows of 5 minutes"
            f" need 2 minutes or less; {_DOWNSAMPLED}"
        )
    return interval_us


def _merged(
    api: PrometheusApi, parts: Iterable[tuple[int, list[Kept]]]
) -> dict[int, tuple[float, Labels]]:
    """Return value and labels by instant. The labels of a target can change."""
    merged: dict[int, tuple[float, Labels]] = {}
    for one in (one for _, found in parts for one in found):
        target = {key: value for key, value in one.labels.items() if key != "__name__"}
        if merged.keys() & one.values.keys():
            raise SourceDataError(
                f"{api.where}: two targets match this broker, such as two jobs that scrape it;"
                " choose one with --match"
            )
        merged |= {at_ms: (value, target) for at_ms, value in one.values.items()}
    return merged


class PastSource(PrometheusSource):
    """One family of a broker. ``pages`` makes each stored page the current one.

    It is also a clock: it returns the start of the page's scrape, then its end.

    Args:
        expected: Identity of the broker. Its cluster ID is not checked.
        section: Settings of the exporter, with its rules.
        api: API of Prometheus.
        selector: Matchers that select the broker's target.
        family: Family.

    Raises:
        SourceDataError: The rules hide a part of the family.
    """

    def __init__(
        self,
        expected: Expected,
        section: Prometheus,
        api: PrometheusApi,
        selector: str,
        family: Family,
    ) -> None:
        super().__init__(expected, section)
        self._where, self._api, self._selector = api.where, api, selector
        self._learn(family)
        self._names = sorted(self._wanted(all_asked(family)).keys() | OWN)
        self.family, self._instants = family, [0]
        self._last: tuple[_Samples, Answer | None] = {}, None
        self._kept = _Page(Mark(0, 0, 0, _HOLE, {}), {}, 0)

    def pages(self, marks: list[Mark], step_us: int) -> Iterator[Mark]:
        """Make the page of each scrape the current page, then yield the scrape.

        Raises:
            SourceError: The request failed, or the response is invalid.
        """
        if not marks:
            return
        of = f"{{__name__=~{json.dumps('|'.join(self._names))},{self._selector}}}"
        start_us, end_us = marks[0].at_us, marks[-1].at_us + step_us
        for until_us, found in self._api.values(of, start_us, end_us, step_us):
            oldest = self._oldest(found, (start_us, until_us), step_us)
            target, own = None, list[dict[str, str]]()
            for mark in marks:
                if start_us <= mark.at_us < until_us:
                    if mark.target is not target:
                        target = mark.target
                        own = [own_labels(one.labels, target) for one in found]
                    self._kept = _page(mark, found, own, oldest)
                    self._instants = [mark.asked_us, mark.answered_us]
                    yield mark
            start_us = until_us

    def _oldest(self, found: list[Kept], span: Span, step_us: int) -> dict[int, int]:
        """Return the time of the oldest sample in a query's result, by instant.

        All samples of a scrape have the same time. Some are older if the responses of several
        Prometheus servers were merged, or if a sample was lost.
        """
        parts = (
            f"label_replace(min(timestamp({name}{{{self._selector}}})),'name','{name}','','')"
            for name in sorted({one.labels["__name__"] for one in found})
        )
        oldest: dict[int, int] = {}
        if query := " or ".join(parts):
            for _, ages in self._api.values(query, *span, step_us):
                for at_ms, seconds in (item for one in ages for item in one.values.items()):
                    at_us = round(seconds * 1e6)
                    oldest[at_ms] = min(at_us, oldest.get(at_ms, at_us))
        return oldest

    def wall_us(self) -> int:
        """Return the start of the page's scrape at the first call, then its end."""
        return self._instants.pop(0) if len(self._instants) > 1 else self._instants[0]

    steady_us = wall_us

    def identify(self) -> Identity:
        """Return the identity of the current page's broker.

        Raises:
            SourceError: The scrape has no page, or the page is of another broker.
        """
        if why := self._kept.mark.why:
            raise SourceError(f"{self._where}: {why}")
        opened = self._open()
        if self._session is None or self._session.identity != opened.identity:
            self._session = opened
        return self._session.identity

    def read(self, family: Family) -> Answer:
        """Read the current page, after ``identify``."""
        samples, answer = self._last
        if answer is None or samples != self._kept.samples:  # most pages equal the page before
            answer = (self._session or self._open()).read(family)
            self._last = self._kept.samples, answer
        return replace(answer, listed_us=self._staleness_us + self._kept.age_us)

    def _samples(self, names: Set[str]) -> Iterator[Sample]:
        return (one for name in names for one in self._kept.samples.get(name, ()))


class _Page(NamedTuple):
    mark: Mark
    samples: _Samples
    age_us: int


def _page(mark: Mark, found: list[Kept], own: list[Labels], oldest: Mapping[int, int]) -> _Page:
    at_ms = mark.at_us // 1000
    samples: defaultdict[str, list[Sample]] = defaultdict(list)
    for one, labels in zip(found, own, strict=True):
        if at_ms in one.values:
            name = one.labels["__name__"]
            samples[name].append(Sample(name, labels, one.values[at_ms]))
    return _Page(mark, samples, max(mark.asked_us - oldest.get(at_ms, mark.asked_us), 0))


def own_labels(labels: Mapping[str, str], target: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that the exporter added to a sample, without its target's labels."""
    own = {}
    for key, value in labels.items():
        before = key.removeprefix(_EXPORTED)
        if key != before and before in target:
            own[before] = value
        elif key != "__name__" and target.get(key) != value:
            own[key] = value
    return own


def brokers(
    api: PrometheusApi, rules: Rules, match: str, label: str, given: Mapping[str, str],
    span: Span,
) -> dict[str, str]:  # fmt: skip
    """Return node IDs by the value of the label that identifies brokers.

    Args:
        api: API of Prometheus.
        rules: Rules of the exporter.
        match: Matchers of the brokers' targets.
        label: Label that identifies brokers.
        given: Known node IDs.
        span: Interval of the query.

    Raises:
        ConfigError: No target matches, or a node ID is unknown.
        SourceError: The request failed.
    """
    targets = {one.get(label, ""): one for one in api.series(f"up{{{match}}}", *span)}
    if not targets or "" in targets:
        raise ConfigError(
            f"{api.where}: no target with a label {label} matches up{{{match}}} in that time;"
            " correct --match, --label, --from or --to"
        )
    nodes, odd = dict[str, str](), set[str]()
    for shown in rules.shown(APP_INFO) or ():
        named = (one for name in shown.names for one in api.series(f"{name}{{{match}}}", *span))
        for labels in named:
            target = targets.get(value := labels.get(label, ""), {})
            own = own_labels(labels, target)
            foreign = misfit(own, shown, rules.labels)
            if foreign:
                odd.add(foreign)
            elif foreign is not None:
                nodes[value] = keys_of(shown.named(own) or "").get("id", "")
    nodes = {**nodes, **given}
    unknown = sorted(one for one in targets if not nodes.get(one, "").isdecimal())
    if unknown and odd:
        raise ConfigError(
            f"{api.where}: label {min(odd)} of {APP_INFO.pattern} is not from the exporter, and up"
            " does not have it, so metric_relabel_configs added it and series would be confused;"
            " remove that rule and import later data"
        )
    if unknown:
        raise ConfigError(
            f"{api.where}: {unknown[0]!a:.100} does not have {APP_INFO.pattern} with its node id"
            f" ({len(unknown)} of {len(targets)} targets); set --node {unknown[0]!a:.100}=ID, or"
            " choose the brokers with --match"
        )
    return {one: nodes[one] for one in sorted(targets)}


def matcher(label: str, value: str) -> str:
    """Return a matcher of PromQL."""
    return f"{label}={json.dumps(value, ensure_ascii=False)}"  # PromQL escapes like JSON
