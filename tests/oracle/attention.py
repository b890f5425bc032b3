"""Time in which an expected source was not scraped, from the agents' own record of attempts."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from collector import catalogue
from tests.oracle.intervals import Span, cuts
from tests.oracle.meaning import BOUNDS, OF_CONTROLLERS
from tests.oracle.rows import HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.oracle.plain import Key
    from tests.oracle.rows import Bronze, Run

FENCED = "kafka.cluster.node.fenced"
_BY_LEADERS = ("kafka.partition.under_min_isr", "kafka.partition.leaderless")
"""Whoever reads a leader has read these of its partitions."""


class Attention:
    """Time in which a source with a possible report was not scraped."""

    def __init__(self, bronze: Bronze) -> None:
        self._window_us = bronze.window_us
        self._families = {
            name: family.name
            for family in catalogue.load().families
            for metric in family.metrics
            for name in (metric.name, BOUNDS.get(metric.name, (metric.name, ""))[0])
            if name not in _BY_LEADERS
        }
        self._answered: defaultdict[Key, list[Span]] = defaultdict(list)
        self._down: defaultdict[Key, list[Span]] = defaultdict(list)
        self._accounted: defaultdict[Key, set[str]] = defaultdict(set)
        self._live: defaultdict[Key, set[str]] = defaultdict(set)
        self._fenced: defaultdict[Key, list[tuple[int, int, int]]] = defaultdict(list)
        self._read: defaultdict[Key, set[str]] = defaultdict(set)
        for row in bronze.accounts():
            self._accounted[row.cluster, _hour(row.window)].add(row.source)
            if row.outcome in ("ok", "down"):
                key = (row.cluster, row.window, row.source, row.family)
                self._answered[key].append((row.start, row.end))
            if row.outcome == "ok":
                self._read[row.cluster, _hour(row.window), row.family].add(row.source)
            if row.outcome == "down":
                self._down[row.cluster, row.window, row.family].append((row.start, row.end))
        for run in bronze.usable():
            node = dict(run.labels).get("node")
            if run.metric == FENCED and run.value == 0 and node is not None:
                self._live[run.cluster, _hour(run.window)].add(node)
            if run.metric == FENCED and run.positive and node is not None:
                may_us = max(run.window, run.start - run.lead_edge)
                self._fenced[run.cluster, run.window, node].append((may_us, run.start, run.end))

    def missed_on(self, claims: Iterable[Run], metric: str) -> list[Span]:
        """Return when a claimant of a partition was not scraped for a metric, or fenced."""
        claims = list(claims)
        fenced = [span for run in claims for span in self.fenced(run)]
        return fenced + [
            span
            for run in claims
            if run.source in self._accounted[run.cluster, _hour(run.window)]
            for span in self._missed(run.cluster, run.window, run.source, metric)
            for span in [(max(span[0], run.start), min(span[1], run.end))]
            if span[0] < span[1]
        ]

    def fenced(self, run: Run) -> list[Span]:
        """Return when the source of a run was fenced, within the run."""
        return [
            (max(run.start, may_us), min(run.end, end))
            for may_us, start, end in self._fenced[run.cluster, run.window, run.source]
            if max(run.start, start) < min(run.end, end)
        ]

    def down(self, cluster: str, window: int, metric: str) -> list[Span]:
        """Return when a source had no process to scrape for a metric, per source."""
        family = self._families.get(metric)
        return [] if family is None else self._down[cluster, window, family]

    def missed_by_brokers(self, cluster: str, window: int, metric: str) -> list[Span]:
        """Return when a broker was not scraped for a metric of clients or groups.

        Controllers report some metrics of clients too.
        """
        hour, family = _hour(window), self._families.get(metric)
        expected = self._live[cluster, hour] | self._read[cluster, hour, family]
        roles = ["broker", "cluster"]
        if metric in OF_CONTROLLERS:
            roles.append("controller")
        return [
            span
            for source in expected
            if source.partition("-")[0] in roles
            for span in self._missed(cluster, window, source, metric)
        ]

    def _missed(self, cluster: str, window: int, source: str, metric: str) -> list[Span]:
        family = self._families.get(metric)
        if family is None:
            return []
        answered = self._answered[cluster, window, source, family]
        whole = (window, window + self._window_us)
        return [
            (start, end)
            for start, end in cuts([whole, *answered])
            if not any(a <= start and end <= b for a, b in answered)
        ]


def _hour(window: int) -> int:
    return window - window % HOUR
