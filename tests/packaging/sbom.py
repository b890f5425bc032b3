"""``make sbom`` tells of each extra what it brings, as it is locked."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from deploy import tools
from tests.packaging.conftest import ROOT, SECONDS

LOCK = (ROOT / "requirements.lock").read_text("utf-8")
LOCKED = {
    one.name: str(one.specifier).removeprefix("==")
    for line in re.findall(r"^([a-z0-9._-]+==[^\\\n]+)", LOCK, re.MULTILINE)
    if (one := Requirement(line)).marker is None or one.marker.evaluate()
}
"""Versions by name, of several the one that is for this Python."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files by the extra that they tell of."""
    return made(tmp_path_factory.mktemp("sbom"))


@pytest.fixture(scope="module")
def boms(files: dict[str, Path]) -> dict[str, dict[str, Any]]:
    return {extra: json.loads(file.read_text("utf-8")) for extra, file in files.items()}


def made(folder: Path, *more: str) -> dict[str, Path]:
    command = ["make", "sbom", f"DIST={folder}", *more]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=2 * SECONDS
    )
    assert ran.returncode == 0, ran.stderr
    return {_extra(file): file for file in folder.iterdir()}


def _extra(file: Path) -> str:
    return file.name.removeprefix("jmxlake-").removesuffix(".cdx.json")


def test_there_is_one_for_each_extra_that_somebody_installs(boms: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert boms.keys() == project["optional-dependencies"].keys() - {"docs", "dev"}
    for bom in boms.values():
        assert bom["bomFormat"] == "CycloneDX"
        told = bom["metadata"]["component"]
        assert (told["name"], told["version"]) == ("jmxlake", project["version"])
        (direct,) = (one for one in bom["dependencies"] if one["ref"] == told["bom-ref"])
        assert any(one.startswith("click==") for one in direct["dependsOn"])


def test_each_is_what_the_schema_of_cyclonedx_wants(files: dict[str, Path]) -> None:
    texts = [file.read_text("utf-8") for file in files.values()]
    assert [is_valid(text) for text in texts] == [True] * len(texts)
    assert not is_valid(texts[0].replace('"CycloneDX"', '"x"'))


_VALIDATES = """
import json, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
text = sys.stdin.read()
version = SchemaVersion.from_version(json.loads(text)["specVersion"])
sys.exit(3 if JsonStrictValidator(version).validate_str(text) else 0)
"""


def is_valid(text: str) -> bool:
    """What the library of CycloneDX says, which is no part of the project's environment."""
    command = [str(tools.program("python", tools.AUDIT)), "-c", _VALIDATES]
    ran = subprocess.run(command, input=text, text=True, check=False, timeout=SECONDS)
    assert ran.returncode in {0, 3}
    return ran.returncode == 0


def test_nothing_of_where_it_was_made_is_in_it(
    files: dict[str, Path], boms: dict[str, dict[str, Any]]
) -> None:
    places = {str(ROOT), str(ROOT.resolve()), tempfile.gettempdir(), f"{Path.home()}/"}
    for extra, bom in boms.items():
        text = files[extra].read_text("utf-8")
        assert [one for one in (*places, "file:") if one in text] == []
        # An index that was asked, a folder that was installed from: all but what authors say.
        assert [
            one
            for part in bom["components"]
            for one in part.get("externalReferences", ())
            if not one.get("comment", "").startswith("from packaging metadata")
        ] == []


def test_what_is_made_twice_is_the_same_to_the_byte(files: dict[str, Path], tmp_path: Path) -> None:
    again = made(tmp_path, "EXTRAS=maintain")
    assert again["maintain"].read_bytes() == files["maintain"].read_bytes()


def test_every_part_is_of_the_lock_and_says_where_it_is_from(boms: dict[str, Any]) -> None:
    for bom in boms.values():
        parts = {one["name"].lower(): one for one in bom["components"]}
        parts.pop("jmxlake", None)
        assert len(parts) >= 2
        for name, one in parts.items():
            assert LOCKED[name.replace("_", "-")] == one["version"]
            assert one["purl"].startswith("pkg:pypi/")


def test_the_agent_brings_no_spark(boms: dict[str, Any]) -> None:
    names = {one["name"].lower() for one in boms["agent"]["components"]}
    assert not names & {"pyspark", "py4j", "pandas", "pyarrow", "numpy"}
    assert "deltalake" in names
    assert "pyspark" in {one["name"].lower() for one in boms["spark"]["components"]}
