"""The cluster and week of a notebook, as its widgets say."""

import re
from collections.abc import Mapping
from typing import Any, Final

from lakehouse.core import formats
from lakehouse.core.lake import Lake
from lakehouse.core.time import periods
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import window_of
from lakehouse.errors import LakeNotFoundError
from lakehouse.report.facts.build import last_week, subjects_of
from lakehouse.report.facts.gold import Gold
from lakehouse.slo import attainment

_NAME: Final = re.compile(r"[\w-]+")
LABELS: Final = {
    "catalog": ("main", "Catalog of the lake"),
    "schema": ("kafka_gold", "Schema that the rollup writes"),
    "bronze": ("kafka_bronze", "Schema of the agents' tables"),
    "week": ("", "ISO week, such as 2026-W47; empty: the last that has ended"),
    "cluster": ("", "Cluster id; empty, where there is one"),
    "objectives": ("", "Folder of OpenSLO files; empty: those that jmxlake ships"),
}
"""The widgets of every notebook: default value and label, by name."""


def read_widgets(widgets: Any, own: Mapping[str, str]) -> dict[str, str]:
    """Create the widgets that do not exist, and read all.

    Args:
        widgets: ``dbutils.widgets``, of which ``text`` and ``get`` are used.
        own: Labels of this notebook's own widgets, by name.

    Returns:
        The text of each widget, by its name.
    """
    every = {**LABELS, **{name: ("", label) for name, label in own.items()}}
    for name, (default, label) in every.items():
        widgets.text(name, default, label)
    return {name: widgets.get(name).strip() for name in every}


def lake_of(texts: Mapping[str, str]) -> Lake:
    """The lake that the widgets name.

    Raises:
        LakeNotFoundError: A widget does not hold a valid name.
    """
    for widget in ("catalog", "schema", "bronze"):
        value = texts[widget]
        if not _NAME.fullmatch(value):
            raise LakeNotFoundError(
                f"{formats.line(value) or 'nothing'}: not a valid name; write letters, digits, _ "
                f"and - in the widget {widget}"
            )
    bronze, gold = (f"{texts['catalog']}.{texts[name]}" for name in ("bronze", "schema"))
    return Lake(bronze, gold, bronze)


def open_week(engine: Engine, texts: Mapping[str, str]) -> Gold:
    """Gold of the week and cluster that the widgets name.

    Raises:
        LakehouseError: Nothing is rolled up, there is no such week or cluster, or there are several
            clusters and none is named.
    """
    window_seconds, now_us = window_of(engine), attainment.now_us()
    how = "write one in the widget cluster"
    cluster, known = subjects_of(engine, texts["cluster"] or None, how)
    period = periods.week(texts["week"]) if texts["week"] else last_week(engine, now_us)
    return Gold(engine, cluster, period, window_seconds, known, now_us)
