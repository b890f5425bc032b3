"""Packages with exactly one supported version: pyproject.toml, and the error at run time."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse.tables.error_text import PINNED

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DEVELOPMENT = {"dev", "docs"}
"""Extras that no user installs."""


def exact_pins() -> Iterator[tuple[str, str]]:
    for extra, wanted in PROJECT["optional-dependencies"].items():
        for one in wanted if extra not in DEVELOPMENT else ():
            name, exact, version = one.partition("==")
            if exact:
                yield name, version


def test_exact_pins_of_users_are_checked_at_run_time() -> None:
    assert dict(exact_pins()) == PINNED


@pytest.mark.parametrize(
    ("package", "module", "error"),
    [
        ("deltalake", "collector.delivery.commit_safety", "LakeError: lake: deltalake 9.9 is"),
        ("deltalake", "lakehouse.ops.maintain.actions", "MaintenanceError: maintain: deltalake 9"),
        ("jmxquery", "collector.sources.jmx.jmxquery", "ConfigError: source.jmxquery: jmxquery 9"),
    ],
)
def test_other_version_is_refused_in_one_line(package: str, module: str, error: str) -> None:
    code = (
        "import importlib.metadata as m, importlib as i; real = m.version; "
        f"m.version = lambda name: '9.9' if name == {package!r} else real(name); "
        f"i.import_module({module!r})"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    last = ran.stderr.strip().splitlines()[-1]
    assert error in last
    assert f"use {package}=={PINNED[package]}" in last
