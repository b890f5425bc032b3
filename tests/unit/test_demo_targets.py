"""The demo's objectives are the shipped ones, with targets that fit minutes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from demo import targets
from lakehouse.slo.openslo import objective_files

if TYPE_CHECKING:
    from pathlib import Path


def test_nothing_but_the_targets_differs_from_what_is_shipped(tmp_path: Path) -> None:
    targets.write(tmp_path / "objectives")
    found = {one.name: one for one in objective_files.load(tmp_path / "objectives")}
    assert {name: found[name].target for name in targets.TARGETS} == targets.TARGETS
    for one in objective_files.load():
        assert replace(found[one.name], target=one.target, composites=()) == replace(
            one, composites=()
        )
        weights = [(part.composite, part.weight) for part in one.composites]
        assert [(part.composite, part.weight) for part in found[one.name].composites] == weights
