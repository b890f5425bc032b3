"""A lake as a notebook reads it: what its widgets ask for, one cluster and one week."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from lakehouse import periods, sla, slo
from lakehouse.errors import LakeNotFoundError, PeriodError
from lakehouse.existence import Subject
from lakehouse.gold_rows import window_of
from lakehouse.lake import Lake
from lakehouse.report import words
from lakehouse.report.facts import last_week
from lakehouse.report.gather import Gold

if TYPE_CHECKING:
    from lakehouse.rollup.engine import Engine
    from lakehouse.sla import Statement
    from lakehouse.slo import Objective

_NAME: Final = re.compile(r"[\w-]+")
LABELS: Final = {
    "catalog": ("main", "Catalog of the lake"),
    "schema": ("kafka_gold", "Schema that the rollup writes"),
    "bronze": ("kafka_bronze", "Schema of the agents' tables"),
    "week": ("", "ISO week, such as 2026-W47; empty: the last that has ended"),
    "cluster": ("", "Cluster id; empty, where there is one"),
}
"""The widgets of every notebook: what stands in them at first, and what they are called."""


class Widgets(Protocol):
    """What of ``dbutils.widgets`` is used."""

    def text(self, name: str, default: str, label: str) -> Any:
        """Make a field for text, if it is not there."""

    def get(self, name: str) -> str:
        """What is written in it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is written in each widget, by its name; empty where nothing is."""

    written: Mapping[str, str]

    @property
    def more(self) -> dict[str, str]:
        """The widgets of this notebook alone."""
        return {name: text for name, text in self.written.items() if name not in LABELS}

    @property
    def lake(self) -> Lake:
        """Where the tables are.

        Raises:
            LakeNotFoundError: What is written there can be no name.
        """
        for widget in ("catalog", "schema", "bronze"):
            value = self.written[widget]
            if not _NAME.fullmatch(value):
                raise LakeNotFoundError(
                    f"{words.line(value) or 'nothing'}: this can be no name; write letters, "
                    f"digits, _ and - in the widget {widget}"
                )
        bronze, gold = (
            f"{self.written['catalog']}.{self.written[n]}" for n in ("bronze", "schema")
        )
        return Lake(bronze, gold, bronze)


def asked(widgets: Widgets, more: Mapping[str, str]) -> Asked:
    """Make the widgets that are not there, and read all.

    Args:
        widgets: ``dbutils.widgets``.
        more: Labels of this notebook's own widgets, by name.
    """
    every = {**LABELS, **{name: ("", label) for name, label in more.items()}}
    for name, (default, label) in every.items():
        widgets.text(name, default, label)
    return Asked({name: widgets.get(name).strip() for name in every})


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
    place, week = str(engine.lake.gold), asked.written["week"]
    cluster = _cluster(place, asked.written["cluster"], {one.cluster for one in known})
    period = periods.week(week) if week else last_week(engine, now_us)
    gold = Gold(engine, cluster, period, window_seconds)
    gold.check_stretches()
    return Opened(gold, tuple(one for one in known if one.cluster == cluster), now_us)


def objectives() -> tuple[Objective, ...]:
    """What is asked for: the objectives that jmxlake ships."""
    return slo.load(slo.SHIPPED)


def _cluster(place: str, wanted: str, known: set[str]) -> str:
    if wanted in known:
        return wanted
    if not wanted and len(known) == 1:
        return next(iter(known))
    if not known:
        raise PeriodError(f"{place}: nothing was seen there yet; are the agents delivering?")
    names = ", ".join(words.line(one, words.NAME_LIMIT) for one in sorted(known))
    raise PeriodError(f"{place}: it has these clusters: {names}; write one in the widget cluster")
