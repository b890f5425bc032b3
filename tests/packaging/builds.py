"""What is in the wheel and the source distribution."""

from __future__ import annotations

import subprocess
import tarfile
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.packaging.conftest import ROOT, built

if TYPE_CHECKING:
    from email.message import Message

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
        f"jmxlake-{VERSION}.data/data/share/jmxlake/{path.relative_to(ROOT / 'deploy')}"
        for path in _shared()
    }


def _shared() -> list[Path]:
    deploy = ROOT / "deploy"
    folders = [*(deploy / "grafana").iterdir(), *(deploy / "prometheus").iterdir()]
    return [deploy / "agent.yaml", *(deploy / "systemd").glob("*.service"), *folders]


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
        "agent", "connect", "jmxquery", "lakehouse", "maintain",
    }  # fmt: skip
    bare = [one for one in metadata.get_all("Requires-Dist") or () if "extra ==" not in one]
    assert bare == ["click>=8.1"]


def test_the_source_distribution_makes_the_same_wheel(published: Published, tmp_path: Path) -> None:
    with tarfile.open(published.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    again = built(source, tmp_path / "dist")
    assert again.wheel.read_bytes() == published.wheel.read_bytes()


def test_the_source_distribution_holds_no_cache_and_no_virtual_environment(
    published: Published,
) -> None:
    with tarfile.open(published.sdist) as archive:
        found = archive.getnames()
    assert not [one for one in found if {".venv", ".cache", ".git"} & set(Path(one).parts)]
    assert published.sdist.stat().st_size < 5_000_000


def test_what_is_built_twice_is_the_same_to_the_byte(published: Published, tmp_path: Path) -> None:
    again = built(ROOT, tmp_path)
    assert again.wheel.read_bytes() == published.wheel.read_bytes()
    assert again.sdist.read_bytes() == published.sdist.read_bytes()
