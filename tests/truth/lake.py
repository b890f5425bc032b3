"""Faults of a lake: a batch that is there twice, a lost table, a lost data file.

A command that ends with an error states nothing, so it cannot reassure.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lakehouse.core import lake as lakes
from lakehouse.core.periods import Period
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts.build import facts
from lakehouse.rollup.run import rollup
from tests.truth.claims import Claim, claims
from tests.truth.judge import judge
from tests.truth.parts import of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakehouse.core.objective import Objective

Action = dict[str, Any]
_TABLES: Final = (
    "clients", "coverage", "groups", "incidents", "labelled", "lags", "lost_offsets", "partitions",
    "readings", "sli", "sources", "stretches", "subjects", "topics",
)  # fmt: skip
_WITH_FILES: Final = ("clients", "incidents", "lost_offsets", "sli", "topics")
FAULTS: Final = (
    *(f"table gold/{name}" for name in _TABLES),
    *(f"file gold/{name}" for name in _WITH_FILES),
    "file bronze/runs",
    "file bronze/scrapes",
)
"""What is lost: a whole table of gold, or one data file of a table; of hours and of windows."""


@dataclass
class Broken:
    """What came of the reports of lakes that lost something.

    Attributes:
        claims: Their good statements.
        refused: Reports that a command refused to make, and why.
    """

    claims: list[Claim] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def deliver_twice(lake: Path, cluster: str, source: str) -> None:
    """Append the largest commit of a source's agent once more, as another writer would."""
    for name in ("scrapes", "runs"):
        table = lake / "bronze" / name
        add = max(
            (one for one in _adds(table) if _is_of(one, cluster, source)),
            key=lambda one: int(one["size"]),
        )
        again = add["path"].replace("part-", "again-")
        shutil.copy(table / add["path"], table / again)
        version = 1 + max(int(log.stem) for log in (table / "_delta_log").glob("*.json"))
        commit = table / "_delta_log" / f"{version:020}.json"
        commit.write_text(json.dumps({"add": {**add, "path": again}}) + "\n")


def _adds(table: Path) -> Iterator[Action]:
    for log in sorted((table / "_delta_log").glob("*.json")):
        for line in log.read_text().splitlines():
            if add := json.loads(line).get("add"):
                yield add


def _is_of(add: Action, cluster: str, source: str) -> bool:
    stats = json.loads(add["stats"])
    ends = [stats[end] for end in ("minValues", "maxValues")]
    return all((one["cluster"], one["source"]) == (cluster, source) for one in ends)


def lose(lake: Path, copy: Path, fault: str) -> None:
    """Copy a lake without something."""
    kind, name = fault.split(" ")
    shutil.copytree(lake, copy)
    tables = [one for one in (copy / name, copy / f"{name}_windows") if one.exists()]
    if kind == "table":
        for table in tables:
            shutil.rmtree(table)
        return
    if name.startswith("bronze/"):
        shutil.rmtree(copy / "gold")  # so that the file is read
    for table in tables:
        files = [table / add["path"] for add in _adds(table)]
        max(filter(Path.exists, files), key=lambda file: file.stat().st_size).unlink()


def broken(
    lake: Path, copy: Path, fault: str, seeds: Sequence[int], objectives: tuple[Objective, ...]
) -> Broken:
    """Lose something of a lake, roll up as every command does, and judge the reports."""
    found = Broken()
    lose(lake, copy, fault)
    try:
        engine = LocalEngine(lakes.at(str(copy)))
        rollup(engine, objectives)
    except Exception as error:  # noqa: BLE001 - whatever it is, nothing was stated
        found.refused.append(f"{fault}: {_line(error, copy)}")
        return found
    for seed in seeds:
        schedule = of(seed)
        period = Period.of(schedule.world.shape.period)
        try:
            told = facts(engine, objectives, period, cluster=schedule.cluster)
        except Exception as error:  # noqa: BLE001 - the same
            found.refused.append(f"{fault}, {schedule.cluster}: {_line(error, copy)}")
            continue
        found.claims += [
            one._replace(says=f"without {fault}: {one.says}")
            for one in claims(schedule, told, judge(schedule, told).checks)
        ]
    return found


def _line(error: Exception, copy: Path) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text.replace(str(copy), "LAKE")[:200]
