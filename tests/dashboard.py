"""The AI/BI dashboard's file, read as far as it can be without a workspace."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE: Final = Path(__file__).parents[1] / "dashboards" / "sla.lvdash.json"
COLUMNS_WIDE: Final = 6
"""Pages without a layoutVersion have six columns, as those that Databricks exports."""

Node = dict[str, Any]
_PAREN: Final = re.compile(r"\([^()]*\)")
_QUOTED: Final = re.compile(r"'[^']*'")


@dataclass(frozen=True)
class Dataset:
    """A dataset: its SQL, and the parameters that it declares with what they say at first."""

    name: str
    sql: str
    parameters: dict[str, str]

    @property
    def columns(self) -> list[str]:
        """Names of the columns, as the SQL's last SELECT gives them."""
        flat = _QUOTED.sub("''", self.sql)
        while (shorter := _PAREN.sub(" ", flat)) != flat:
            flat = shorter
        chosen = flat[flat.rindex("SELECT") + len("SELECT") :].partition("FROM")[0]
        return [one.split()[-1].rpartition(".")[2].strip("`") for one in chosen.split(",")]

    @property
    def markers(self) -> set[str]:
        """Parameters that the SQL uses."""
        return set(re.findall(r"(?<![:\w]):(\w+)", _QUOTED.sub("''", self.sql)))


@dataclass(frozen=True)
class Widget:
    """A widget on a page."""

    page: str
    position: dict[str, int]
    told: Node

    @property
    def name(self) -> str:
        return str(self.told["name"])

    @property
    def spec(self) -> Node:
        """None of its own, where it is but text."""
        spec: Node = self.told.get("spec", {})
        return spec

    @property
    def queries(self) -> dict[str, Node]:
        return {one["name"]: one["query"] for one in self.told.get("queries", ())}

    def encoded(self) -> Iterator[Node]:
        """What is drawn: every encoding that names a field or a parameter."""
        yield from _named(self.spec.get("encodings", {}))


def _named(told: Any) -> Iterator[Node]:
    if isinstance(told, dict):
        if "fieldName" in told or "parameterName" in told:
            yield told
        told = list(told.values())
    if isinstance(told, list):
        for one in told:
            yield from _named(one)


def read() -> Node:
    """The whole file."""
    told: Node = json.loads(FILE.read_text("utf-8"))
    return told


def datasets(told: Node) -> dict[str, Dataset]:
    """Its datasets, by name."""
    found = {}
    for one in told["datasets"]:
        asked = {
            each["keyword"]: each["defaultSelection"]["values"]["values"][0]["value"]
            for each in one.get("parameters", ())
        }
        found[one["name"]] = Dataset(one["name"], "".join(one["queryLines"]), asked)
    return found


def widgets(told: Node) -> list[Widget]:
    """Its widgets, page by page."""
    return [
        Widget(page["name"], one["position"], one["widget"])
        for page in told["pages"]
        for one in page["layout"]
    ]
