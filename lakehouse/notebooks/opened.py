"""A lake as a notebook reads it: one cluster and one week of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse import periods, sla, slo
from lakehouse.errors import PeriodError
from lakehouse.existence import Subject
from lakehouse.gold_rows import window_of
from lakehouse.report import words
from lakehouse.report.facts import last_week
from lakehouse.report.gather import Gold

if TYPE_CHECKING:
    from lakehouse.notebooks.widgets import Asked
    from lakehouse.rollup.engine import Engine
    from lakehouse.sla import Statement
    from lakehouse.slo import Objective


@dataclass(frozen=True, slots=True)
class Opened:
    """One cluster's week.

    Attributes:
        gold: Its rows.
        known: What exists and existed in the cluster.
        now_us: Nothing is expected later than this.
    """

    gold: Gold
    known: tuple[Subject, ...]
    now_us: int

    def statements(self, objectives: tuple[Objective, ...]) -> list[Statement]:
        """What is stated of some objectives over the week."""
        gold = self.gold
        asked = (gold.period, self.now_us, self.known)
        manner = sla.Manner(window_seconds=gold.window_seconds)
        return sla.read(gold.engine, objectives, *asked, manner)


def opened(engine: Engine, asked: Asked) -> Opened:
    """The week and cluster that are asked for.

    Raises:
        LakehouseError: Nothing is rolled up, there is no such week or cluster, or there are several
            clusters and none is named.
    """
    window_seconds = window_of(engine)
    known, now_us = sla.subjects(engine), sla.now_us()
    cluster = _cluster(str(engine.lake.gold), asked.cluster, {one.cluster for one in known})
    period = periods.week(asked.week) if asked.week else last_week(engine, now_us)
    gold = Gold(engine, cluster, period, window_seconds)
    gold.check_stretches()
    return Opened(gold, tuple(one for one in known if one.cluster == cluster), now_us)


def objectives() -> tuple[Objective, ...]:
    """What is asked for: the objectives that jmxlake ships."""
    return slo.load(slo.SHIPPED)


def _cluster(place: str, wanted: str | None, known: set[str]) -> str:
    if wanted in known:
        return str(wanted)
    if wanted is None and len(known) == 1:
        return next(iter(known))
    if not known:
        raise PeriodError(f"{place}: nothing was seen there yet; are the agents delivering?")
    names = ", ".join(words.line(one, words.NAME_LIMIT) for one in sorted(known))
    raise PeriodError(f"{place}: it has these clusters: {names}; write one in the widget cluster")
