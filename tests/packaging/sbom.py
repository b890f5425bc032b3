"""``make sbom`` tells of each extra what it brings, as it is locked."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.packaging.conftest import ROOT, SECONDS

if TYPE_CHECKING:
    from pathlib import Path

LOCK = (ROOT / "requirements.lock").read_text("utf-8")
LOCKED = dict(re.findall(r"^([a-z0-9._-]+)==([^ ;\\]+)", LOCK, re.MULTILINE))


@pytest.fixture(scope="module")
def boms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("sbom")
    command = ["make", "sbom", f"DIST={folder}"]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert ran.returncode == 0, ran.stderr
    return {_extra(file): json.loads(file.read_text("utf-8")) for file in folder.iterdir()}


def _extra(file: Path) -> str:
    return file.name.removeprefix("jmxlake-").removesuffix(".cdx.json")


def test_there_is_one_for_each_extra_that_somebody_installs(boms: dict[str, Any]) -> None:
    assert boms.keys() == {"agent", "maintain", "lakehouse", "connect"}
    for bom in boms.values():
        assert bom["bomFormat"] == "CycloneDX"
        assert bom["metadata"]["component"]["name"] == "jmxlake"


def test_every_part_is_of_the_lock_and_says_where_it_is_from(boms: dict[str, Any]) -> None:
    for bom in boms.values():
        parts = {one["name"].lower(): one for one in bom["components"]}
        parts.pop("jmxlake", None)
        assert len(parts) > 5
        for name, one in parts.items():
            assert LOCKED[name.replace("_", "-")] == one["version"]
            assert one["purl"].startswith("pkg:pypi/")


def test_the_agent_brings_no_spark(boms: dict[str, Any]) -> None:
    names = {one["name"].lower() for one in boms["agent"]["components"]}
    assert not names & {"pyspark", "py4j", "pandas", "pyarrow", "numpy"}
    assert "deltalake" in names
    assert "pyspark" in {one["name"].lower() for one in boms["lakehouse"]["components"]}
