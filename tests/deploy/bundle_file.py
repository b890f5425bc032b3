"""Reads databricks.yml as the CLI does: includes, targets over it, tasks merged by their key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
_KEYS = {"tasks": "task_key", "job_clusters": "job_cluster_key", "environments": "environment_key"}


def read() -> dict[str, Any]:
    """The file with what it includes, before any target."""
    told: dict[str, Any] = yaml.safe_load((ROOT / "databricks.yml").read_text("utf-8"))
    for pattern in told["include"]:
        files = sorted(ROOT.glob(pattern))
        assert files, f"include {pattern}: nothing there"
        for file in files:
            told = merged(told, yaml.safe_load(file.read_text("utf-8")))
    return told


def of_target(told: dict[str, Any], name: str) -> dict[str, Any]:
    """The resources of one target."""
    over = told["targets"][name].get("resources", {})
    resources: dict[str, Any] = merged(told["resources"], over)
    return resources


def merged(below: Any, above: Any, key: str = "") -> Any:
    """``above`` over ``below``, as bundles do it."""
    if isinstance(below, dict) and isinstance(above, dict):
        return {
            name: merged(below[name], above[name], name)
            if name in below and name in above
            else (above if name in above else below)[name]
            for name in [*below, *(one for one in above if one not in below)]
        }
    if isinstance(below, list) and isinstance(above, list) and key in _KEYS:
        ids = _KEYS[key]
        found = {one[ids]: one for one in below}
        for one in above:
            found[one[ids]] = merged(found.get(one[ids], {}), one)
        return list(found.values())
    return above
