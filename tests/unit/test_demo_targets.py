"""The demo's objectives are the shipped ones, with targets that fit minutes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from demo import targets
from demo.errors import DemoError
from lakehouse.slo.openslo import objective_files

if TYPE_CHECKING:
    from pathlib import Path


def test_nothing_but_the_targets_differs_from_what_is_shipped(tmp_path: Path) -> None:
    targets.write(tmp_path / "objectives")
    found = {one.name: one for one in objective_files.load(tmp_path / "objectives")}
    assert {name: one.target for name, one in found.items()} == targets.TARGETS
    for one in objective_files.load():
        assert replace(found[one.name], target=one.target, composites=()) == replace(
            one, composites=()
        )
        weights = [(part.composite, part.weight) for part in one.composites]
        assert [(part.composite, part.weight) for part in found[one.name].composites] == weights


def test_an_objective_without_a_target_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(targets.TARGETS, "min-isr")
    with pytest.raises(DemoError, match="no target of min-isr"):
        targets.write(tmp_path / "objectives")
