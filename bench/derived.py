"""Traces of agents that recorded offsets, as today's make of them: lags, and what is not tiered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from collector import catalogue
from collector.agent.scrape_attempt import as_catalogued
from collector.model import Commit, Partition, Reading, Series
from collector.sources.admin.consumer_lag import lags
from collector.sources.admin.readings import UNTIERED, untiered
from collector.sources.base.readings import split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from collector.model import Answer, Scrape
    from collector.sources.base.readings import Values

_OFFSET: Final = "_offset"


class _Derived:
    """What was read last of one broker."""

    def __init__(self) -> None:
        self._starts: dict[Partition, int] = {}
        self._ends: dict[Partition, int] = {}

    def of(self, family: str, told: Mapping[str, Mapping[Series, float]]) -> dict[str, Values]:
        """Values by metric, from offsets by metric."""
        if family == "tiered_offsets":
            tiered = _offsets(told, "kafka.partition.latest_tiered_offset")
            local = _offsets(told, "kafka.partition.earliest_local_offset")
            return {UNTIERED: untiered(tiered, self._starts, local, self._ends)}
        before = self._ends
        self._starts = _offsets(told, "kafka.partition.log_start_offset")
        self._ends = _offsets(told, "kafka.partition.log_end_offset")
        commits = told.get("kafka.group.committed_offset", {})
        positions = {
            Commit(one.group or "", *_partition(one)): self._position(one, at)
            for one, at in commits.items()
        }
        return lags(positions, self._ends, before)

    def _position(self, series: Series, at: float) -> int | None:
        start = self._starts.get(_partition(series))
        return None if start is None else max(int(at), start)


def derived(scrapes: Iterable[Scrape]) -> Iterator[Scrape]:
    """The scrapes of one broker's agent, without offsets and with what is derived of them."""
    families = {family.name: family for family in catalogue.load().families}
    state = _Derived()
    for scrape in scrapes:
        answer = scrape.answer
        told = _told(answer) if answer is not None else {}
        if answer is None or not told or scrape.family == "log_offsets":
            yield scrape
        else:
            made = state.of(scrape.family, told)
            kept = tuple(one for one in answer.readings if not one.metric.endswith(_OFFSET))
            ours = tuple(Reading(name, "gauge", *split(values)) for name, values in made.items())
            whole = replace(answer, readings=(*ours, *kept))
            yield replace(scrape, answer=as_catalogued(whole, families[scrape.family]))


def _told(answer: Answer) -> dict[str, dict[Series, float]]:
    return {
        one.metric: {
            **dict.fromkeys(one.zeros, 0.0),
            **{series: value for series, value in one.values.items() if value is not None},
        }
        for one in answer.readings
        if one.metric.endswith(_OFFSET)
    }


def _offsets(told: Mapping[str, Mapping[Series, float]], metric: str) -> dict[Partition, int]:
    return {_partition(one): int(value) for one, value in told.get(metric, {}).items()}


def _partition(series: Series) -> Partition:
    return Partition(series.topic or "", series.partition or 0)
