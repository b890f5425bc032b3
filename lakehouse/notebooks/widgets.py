"""What a notebook is asked by its widgets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from lakehouse.errors import LakeNotFoundError
from lakehouse.lake import Lake
from lakehouse.report import words

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
    """The widgets as they are filled in; an empty ``week`` or ``cluster`` is None.

    Attributes:
        more: Widgets of this notebook alone, by name.
    """

    catalog: str
    schema: str
    bronze: str
    week: str | None
    cluster: str | None
    more: Mapping[str, str]

    @property
    def lake(self) -> Lake:
        """Where the tables are.

        Raises:
            LakeNotFoundError: What is written there can be no name.
        """
        given = {"catalog": self.catalog, "schema": self.schema, "bronze": self.bronze}
        for widget, value in given.items():
            if not _NAME.fullmatch(value):
                raise LakeNotFoundError(
                    f"{words.line(value) or 'nothing'}: this can be no name; write letters, "
                    f"digits, _ and - in the widget {widget}"
                )
        bronze, gold = (f"{self.catalog}.{name}" for name in (self.bronze, self.schema))
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
    found = {name: widgets.get(name).strip() for name in every}
    return Asked(
        found["catalog"],
        found["schema"],
        found["bronze"],
        found["week"] or None,
        found["cluster"] or None,
        {name: found[name] for name in more},
    )
