"""What is in the wheel and the source distribution."""

from __future__ import annotations

import re
import subprocess
import tarfile
import tomllib
import zipfile
from email import message_from_string
from typing import TYPE_CHECKING

import pytest

from tests.packaging.conftest import ROOT, built

if TYPE_CHECKING:
    from email.message import Message
    from pathlib import Path

    from tests.packaging.conftest import Published

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


@pytest.fixture(scope="module")
def names(published: Published) -> set[str]:
    with zipfile.ZipFile(published.wheel) as wheel:
        return set(wheel.namelist())


@pytest.fixture(scope="module")
def metadata(published: Published) -> Message:
    with zipfile.ZipFile(published.wheel) as wheel:
        (name,) = (one for one in wheel.namelist() if one.endswith(".dist-info/METADATA"))
        return message_from_string(wheel.read(name).decode())


def test_the_wheel_holds_every_file_of_both_packages_and_nothing_else(names: set[str]) -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(
        [*command, "collector", "lakehouse"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    ours = {one for one in listed.stdout.split() if (ROOT / one).is_file()}
    beside = {one for one in names if one not in ours}
    assert ours <= names
    assert {one.split("/")[0] for one in beside} == {
        f"jmxlake-{VERSION}.dist-info", f"jmxlake-{VERSION}.data"
    }  # fmt: skip
    assert {one for one in beside if ".data/" in one} == {
        f"jmxlake-{VERSION}.data/data/share/jmxlake/{name}" for name in _shared()
    }


def _shared() -> set[str]:
    """What agents, their hosts and Prometheus are configured with, as it is called there."""
    deploy = ROOT / "deploy"
    folders = ("grafana", "prometheus", "schemas", "systemd")
    files = [deploy / "agent.yaml", *(one for name in folders for one in (deploy / name).iterdir())]
    # Whoever reads sysusers.d wants that suffix.
    return {str(one.relative_to(deploy)).replace(".sysusers", ".conf") for one in files}


def test_the_licence_is_in_both(names: set[str], published: Published) -> None:
    licence = (ROOT / "LICENSE").read_bytes()
    (inside,) = (one for one in names if one.endswith(".dist-info/licenses/LICENSE"))
    with zipfile.ZipFile(published.wheel) as wheel:
        assert wheel.read(inside) == licence
    with tarfile.open(published.sdist) as archive:
        packed = archive.extractfile(f"jmxlake-{VERSION}/LICENSE")
        assert packed is not None
        assert packed.read() == licence


@pytest.mark.parametrize("package", ["collector", "lakehouse"])
def test_type_checkers_are_told_that_it_is_typed(names: set[str], package: str) -> None:
    assert f"{package}/py.typed" in names


def test_what_is_no_code_is_there_too(names: set[str]) -> None:
    for kind in (".yaml", ".j2", ".css", ".js", ".properties"):
        assert [one for one in names if one.endswith(kind)], kind
    assert not [one for one in names if one.endswith((".pyc", ".jar", ".so"))]


def test_it_says_what_it_is(metadata: Message) -> None:
    assert metadata["Name"] == "jmxlake"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert set(metadata.get_all("Provides-Extra") or ()) >= {
        "agent", "connect", "jmxquery", "maintain", "spark",
    }  # fmt: skip
    bare = [one for one in metadata.get_all("Requires-Dist") or () if "extra ==" not in one]
    assert bare == ["click>=8.1"]


def test_links_of_the_readme_work_outside_the_repository(metadata: Message) -> None:
    shown = str(metadata.get_payload())
    links = re.findall(r'\]\(([^)\s]+)|\b(?:src|srcset|href)="([^"]+)', shown)
    targets = ["".join(one) for one in links]
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert [one for one in targets if not one.startswith(("https://", "#"))] == []
    for kind in (f"jmxlake/blob/v{VERSION}/", f"jmxlake/v{VERSION}/"):
        ours = [one.partition(kind)[2].partition("#")[0] for one in targets if kind in one]
        assert ours
        assert [one for one in ours if not (ROOT / one).is_file()] == []


def test_the_source_distribution_makes_the_same_wheel(published: Published, tmp_path: Path) -> None:
    with tarfile.open(published.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    again = built(source, tmp_path / "dist")
    assert again.wheel.read_bytes() == published.wheel.read_bytes()


def test_the_source_distribution_holds_what_git_holds_and_nothing_else(
    published: Published,
) -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    ours = {one for one in listed.stdout.splitlines() if (ROOT / one).is_file()}
    with tarfile.open(published.sdist) as archive:
        found = {one.name.partition("/")[2] for one in archive if one.isfile()}
        assert not [one.name for one in archive if not one.isfile() and not one.isdir()]
    assert found - ours == {"PKG-INFO"}
    assert ours - found == set()
    for needed in ("dashboards/sla.lvdash.json", "databricks.yml", "deploy/databricks/jobs.yml"):
        assert needed in found
    assert published.sdist.stat().st_size < 5_000_000


def test_what_is_built_twice_is_the_same_to_the_byte(published: Published, tmp_path: Path) -> None:
    again = built(ROOT, tmp_path)
    assert again.wheel.read_bytes() == published.wheel.read_bytes()
    assert again.sdist.read_bytes() == published.sdist.read_bytes()
