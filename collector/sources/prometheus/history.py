"""A broker as Prometheus kept what its jmx_exporter showed: one page for each scrape there was.

Prometheus notes of each scrape when it began (the sample ``up`` has that instant), whether it went
well and how long it took. So the past is read scrape by scrape, with the bounds that an agent of
that interval would have had. What a query shows for longer, for want of something newer (its
lookback), is of no scrape and is not used.
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
from collector.sources.prometheus import Prometheus

_EXPORTED: Final = "exported_"  # what Prometheus puts before a label that the target has, too
_DOWNSAMPLED: Final = "are its blocks downsampled?"
_NONE: Final[tuple[float, Labels]] = (0.0, {})
_TOLERANCE_US: Final = 3_000
"""Prometheus dates a scrape back by up to 2 ms, so that its instants are even, and to the ms."""
_LONGEST_INTERVAL_US: Final = 119_000_000  # else no window of five minutes has room for a gap


_Samples = Mapping[str, list[Sample]]
Span = tuple[int, int]
"""First instant and end, in microseconds since the epoch."""


class Mark(NamedTuple):
    """A scrape by Prometheus, or an instant of which it has none.

    Attributes:
        at_us: The first instant at which a query shows it.
        asked_us: When it began.
        answered_us: When it ended.
        why: Why it brought nothing; empty: it did.
        target: The labels that Prometheus gave to all samples of it.
    """

    at_us: int
    asked_us: int
    answered_us: int
    why: str
    target: Mapping[str, str]


_HOLE: Final = "Prometheus has no scrape of it"
_FAILED: Final = "Prometheus could not scrape it (up is 0)"
NO_PAGE: Final = (_HOLE, _FAILED)
"""How the errors of attempts end for which Prometheus has no page."""


class Scrapes(NamedTuple):
    """The scrapes of a span, and the interval between them in microseconds."""

    marks: list[Mark]
    interval_us: int


def scrapes(api: PrometheusApi, selector: str, span: Span, step_us: int, between: Span) -> Scrapes:
    """The scrapes of one target.

    Args:
        api: Where to ask.
        selector: Matchers that select one target.
        span: First instant and end of the steps at which to look.
        step_us: The least time between two scrapes that are read.
        between: They begin after the one instant, and end before the other.

    Raises:
        SourceError: It cannot be asked, or there are two targets, or what is there is no scrape.
    """
    (start_us, end_us), (after_us, until_us) = span, between
    of = f"{{{selector}}}"
    ups, asked, took = (
        _merged(api, api.values(query, start_us, end_us, step_us))
        for query in (f"up{of}", f"timestamp(up{of})", f"scrape_duration_seconds{of}")
    )
    if odd := {up for up, _ in ups.values()} - {0.0, 1.0}:
        raise SourceDataError(f"{api.where}: up is {odd.pop():g} there: {_DOWNSAMPLED}")
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
    # Most are an interval apart; the longer ones are holes.
    interval_us = round(max(step_us, apart[len(apart) // 4] if apart else 0), -6)
    if interval_us > _LONGEST_INTERVAL_US:
        raise SourceDataError(
            f"{where}: its scrapes are {interval_us / 1e6:g} s apart, and windows of 5 minutes need"
            f" them every 2 minutes: {_DOWNSAMPLED}"
        )
    return interval_us


def _merged(
    api: PrometheusApi, parts: Iterable[tuple[int, list[Kept]]]
) -> dict[int, tuple[float, Labels]]:
    """Value and labels by instant; a target may have other labels from some instant on."""
    merged: dict[int, tuple[float, Labels]] = {}
    for one in (one for _, found in parts for one in found):
        target = {key: value for key, value in one.labels.items() if key != "__name__"}
        if merged.keys() & one.values.keys():
            raise SourceDataError(
                f"{api.where}: two targets at once are that broker, as if two Prometheus or two"
                " jobs scraped it: choose one by --match"
            )
        merged |= {at_ms: (value, target) for at_ms, value in one.values.items()}
    return merged


class PastSource(PrometheusSource):
    """One family of a broker; ``show`` puts the next page before whom reads it.

    As a clock it shows when the page was asked for, then when it came.

    Args:
        expected: Whose pages they are; its cluster is believed.
        section: By which rules the exporter names what it shows.
        api: Where the pages are kept.
        selector: Matchers that select the broker's target.
        family: What is read.

    Raises:
        SourceDataError: The rules hide some of the family.
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
        """Show the page of each scrape in turn, then yield the scrape.

        Raises:
            SourceError: Prometheus cannot be asked, or the answer is of no use.
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
        """When the oldest of the samples was read that a query shows, by instant.

        All samples of a scrape have its instant. Some are older where the answers of several
        Prometheus were made one, or where one got lost.
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
        """When the page was asked for; then when it came."""
        return self._instants.pop(0) if len(self._instants) > 1 else self._instants[0]

    steady_us = wall_us

    def identify(self) -> Identity:
        """The broker whose page is shown.

        Raises:
            SourceError: There was no page, or it is another broker's.
        """
        if why := self._kept.mark.why:
            raise SourceError(f"{self._where}: {why}")
        opened = self._open()
        if self._session is None or self._session.identity != opened.identity:
            self._session = opened
        return self._session.identity

    def read(self, family: Family) -> Answer:
        """Read the page that is shown, after ``identify``."""
        samples, answer = self._last
        if answer is None or samples != self._kept.samples:  # most pages are as the one before
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
    """The labels that the exporter gave to a sample, without those of its target."""
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
    """Node ids by the value of the label in which brokers differ.

    Args:
        api: Where to ask.
        rules: The exporter's.
        match: Matchers of the brokers' targets.
        label: The label in which they differ.
        given: Node ids that are known.
        span: First instant and end of what is looked at.

    Raises:
        ConfigError: There are no such targets, or a node id is not known.
        SourceError: It cannot be asked.
    """
    targets = {one.get(label, ""): one for one in api.series(f"up{{{match}}}", *span)}
    if not targets or "" in targets:
        raise ConfigError(
            f"{api.where}: no target with a label {label} fits up{{{match}}} in that time: correct"
            " --match, --label, --from or --to"
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
            f"{api.where}: label {min(odd)} of {APP_INFO.pattern} is not of the exporter, and up"
            " does not have it: metric_relabel_configs added it, so series get mixed up"
        )
    if unknown:
        raise ConfigError(
            f"{api.where}: no {APP_INFO.pattern} says which broker {unknown[0]!a:.100} is"
            f" ({len(unknown)} of {len(targets)} targets): give --node {unknown[0]!a:.100}=ID, or"
            " choose the brokers by --match"
        )
    return {one: nodes[one] for one in sorted(targets)}


def matcher(label: str, value: str) -> str:
    """A matcher of PromQL."""
    return f"{label}={json.dumps(value, ensure_ascii=False)}"  # a text as JSON has it
