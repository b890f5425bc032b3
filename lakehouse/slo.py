"""Objectives, read from OpenSLO v1 files.

A file's ``metricSource`` is of type ``jmxlake`` and says whose metric is meant: a ``level``, a
``metric``, under ``where`` attributes that a subject must have, under ``match`` patterns of its
names. See docs/objectives.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from lakehouse.errors import ObjectiveError
from lakehouse.openslo.files import read
from lakehouse.slo_objective import Level, Method, Objective

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["COVERAGE", "SHIPPED", "Level", "Method", "Objective", "ObjectiveError", "load"]

SHIPPED: Final = Path(__file__).parent / "objectives"
"""The folder of the objectives that jmxlake ships."""

COVERAGE: Final = "jmxlake.coverage"
"""The metric of the agents' own account: not a bean's."""


def load(folder: Path = SHIPPED) -> tuple[Objective, ...]:
    """All objectives of a folder, by name.

    Raises:
        ObjectiveError: A file is no OpenSLO v1, or asks for what jmxlake cannot do, or two have
            the same name.
    """
    found = read([folder])
    for one in found.findings:
        if one.kind != "note":
            more = sum(finding.kind != "note" for finding in found.findings) - 1
            tail = f" (and {more} more: see jmxlake objectives check)" if more else ""
            raise ObjectiveError(f"{' '.join(str(one).split())}{tail}")
    if not found.objectives:
        raise ObjectiveError(f"{folder}: no objective there (*.yaml); use the shipped ones")
    return tuple(sorted(found.objectives, key=lambda objective: objective.name))


def chosen(objectives: Sequence[Objective], labels: Mapping[str, str]) -> tuple[Objective, ...]:
    """Those that bear all these labels; an empty value stands for any."""
    return tuple(one for one in objectives if one.has(labels))
