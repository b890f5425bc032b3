"""What an agent reads: one task a family, and what a reload may change of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from collector.catalogue import Family
from collector.scraper import Scraper


class Task(NamedTuple):
    """A family that is read from one source at one cadence; each source has its own thread."""

    family: Family
    interval_us: int
    scraper: Scraper
    source: str


class Plan(NamedTuple):
    """Everything that is read.

    Attributes:
        tasks: In the order of the catalogue.
        memory_us: Per metric, how long its bean shows a value after its cause has ended.
        catalogue: Hash of the catalogue in force.
    """

    tasks: Sequence[Task]
    memory_us: Mapping[str, int]
    catalogue: str


def changes(before: Mapping[str, Task], after: Mapping[str, Task]) -> dict[str, list[str]]:
    """What a reload changed: families by what became of them, and sources that are met anew."""
    both = before.keys() & after.keys()
    known = {(task.source, id(task.scraper)) for task in before.values()}
    found = {
        "added": after.keys() - before.keys(),
        "removed": before.keys() - after.keys(),
        "changed": {name for name in both if _settings(before[name]) != _settings(after[name])},
        "sources": {
            task.source for task in after.values() if (task.source, id(task.scraper)) not in known
        },
    }
    return {what: sorted(names) for what, names in found.items() if names}


def _settings(task: Task) -> tuple[Family, int, str]:
    return task.family, task.interval_us, task.source
