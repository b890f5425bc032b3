"""Objectives, read from OpenSLO v1 files.

A file's ``metricSource`` is of type ``jmxlake`` and says whose metric is meant: a ``level`` (topic,
client, group or source), a ``metric``, and under ``where`` attributes that a subject must have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

import yaml

from lakehouse.errors import ObjectiveError

Level = Literal["topic", "client", "group", "source"]

SHIPPED: Final = Path(__file__).parent / "objectives"
"""The folder of the objectives that jmxlake ships."""

COVERAGE: Final = "jmxlake.coverage"
"""The metric of the agents' own account: not a bean's."""


@dataclass(frozen=True, slots=True)
class Objective:
    """What shall hold for which share of the time.

    Attributes:
        metric: A catalogue metric, of groups without ``.low`` or ``.high``.
        above: The metric is bad above this value, in the metric's unit.
        target: Share of good time, 0 to 1.
        where: Attributes of gold/subjects that a subject must have.
    """

    name: str
    title: str
    description: str
    level: Level
    metric: str
    above: float
    target: float
    where: dict[str, float] = field(default_factory=dict)


def load(folder: Path = SHIPPED) -> tuple[Objective, ...]:
    """All objectives of a folder, by name.

    Raises:
        ObjectiveError: A file is no objective, or two have the same name.
    """
    found = [_read(path) for path in sorted(folder.glob("*.yaml"))]
    if not found:
        raise ObjectiveError(f"{folder}: no objective there (*.yaml); use the shipped ones")
    names = [objective.name for objective in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ObjectiveError(f"{folder}: more than one objective is called {twice[0]}")
    return tuple(sorted(found, key=lambda objective: objective.name))


def _read(path: Path) -> Objective:
    try:
        return _objective(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, KeyError, IndexError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ObjectiveError(f"{path}: no OpenSLO v1 objective of jmxlake: {reason}") from error


def _objective(document: dict[str, Any]) -> Objective:
    _want("apiVersion", document["apiVersion"], "openslo/v1")
    _want("kind", document["kind"], "SLO")
    spec = document["spec"]
    _want("budgetingMethod", spec["budgetingMethod"], "GoodSeconds")
    source = spec["indicator"]["spec"]["thresholdMetric"]["metricSource"]
    _want("metricSource.type", source["type"], "jmxlake")
    what, (goal,) = source["spec"], spec["objectives"]
    _want("metricSource.spec.level", what["level"], *get_args(Level))
    _want("objectives.op", goal["op"], "lte")
    target, above = float(goal["target"]), float(goal["value"])
    if not 0 < target < 1:
        raise ValueError(f"target is {target}, not between 0 and 1")
    if not 0 <= above < math.inf:
        raise ValueError(f"value is {above}, not 0 or more")
    if above and (what["level"] != "topic" or what["metric"].startswith("kafka.partition.")):
        raise ValueError("value is not 0: only a topic's own metrics have a threshold")
    return Objective(
        name=document["metadata"]["name"],
        title=document["metadata"].get("displayName", document["metadata"]["name"]),
        description=spec.get("description", ""),
        level=what["level"],
        metric=what["metric"],
        above=above,
        target=target,
        where={key: float(value) for key, value in what.get("where", {}).items()},
    )


def _want(key: str, found: object, *allowed: str) -> None:
    if found not in allowed:
        raise ValueError(f"{key} is {found!r}, not {' or '.join(allowed)}")
