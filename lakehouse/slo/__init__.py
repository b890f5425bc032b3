"""Objectives, read from OpenSLO v1 files.

A file's ``metricSource`` has type ``jmxlake``, with a ``level``, a ``metric``, the attributes that
a subject must have (``where``) and the patterns that its names, or labels of its series, must match
(``match``). See docs/objectives.md.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from lakehouse.core.objective import Objective
from lakehouse.errors import ObjectiveError
from lakehouse.slo.openslo.objects import read

__all__ = ["OPTIONAL", "SHIPPED", "Objective", "ObjectiveError", "load"]

SHIPPED: Final = Path(__file__).parent / "objectives"
"""The folder of the objectives that jmxlake ships."""

OPTIONAL: Final = SHIPPED / "optional"
"""The folder of objectives on families that agents read only where they are switched on."""


def load(folder: Path = SHIPPED) -> tuple[Objective, ...]:
    """All objectives of a folder, by name.

    Raises:
        ObjectiveError: A file is no OpenSLO v1 or has what jmxlake does not support, or two objects
            have one name.
    """
    objects = read([folder])
    faults = [fault for item in objects for fault in item.findings if fault.kind != "note"]
    if faults:
        others = len(faults) - 1
        more = f" (and {others} more: see jmxlake objectives check)" if others else ""
        raise ObjectiveError(f"{' '.join(str(faults[0]).split())}{more}")
    objectives = [objective for item in objects for objective in item.objectives]
    if not objectives:
        raise ObjectiveError(f"{folder}: no objective there (*.yaml); use the shipped ones")
    return tuple(sorted(objectives, key=lambda objective: objective.name))


def chosen(objectives: Sequence[Objective], labels: Mapping[str, str]) -> tuple[Objective, ...]:
    """The objectives with all these labels; an empty value matches any."""
    return tuple(objective for objective in objectives if objective.has(labels))
