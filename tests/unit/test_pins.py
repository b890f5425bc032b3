"""What demo and tests fetch is pinned by version and by digest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demo import jars
from demo.errors import DemoError
from deploy import go
from deploy.tools import _HELM, _KUSTOMIZE
from tests import axe
from tests.rig.s3.install import _VERSITYGW

if TYPE_CHECKING:
    from deploy.go import Program

MODULES = Path(go.__file__).parent / "modules"
PROGRAMS = [_VERSITYGW, _KUSTOMIZE, _HELM]


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one fetched jar, which the digests know."""
    jar = tmp_path / "one-1.0.jar"
    jar.write_bytes(b"jar")
    pinned = tmp_path / "jars.sha256"
    pinned.write_text(f"{'0' * 64}  one-1.0.jar\n{jars._digest(jar)}  one-1.0.jar\n")
    monkeypatch.setattr(jars, "_DIGESTS", pinned)
    return tmp_path


def test_pinned_jar_is_taken(fetched: Path) -> None:
    jars.check_digests(fetched, "One")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("one-1.0.jar", b"another", "one-1.0.jar is not the pinned file"),
        ("two-1.0.jar", b"jar", "two-1.0.jar is not in jars.sha256"),
    ],
)
def test_other_jar_is_refused(fetched: Path, name: str, content: bytes, why: str) -> None:
    (fetched / name).write_bytes(content)
    with pytest.raises(DemoError, match=why):
        jars.check_digests(fetched, "One")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.name)
def test_go_program_has_its_version_and_hashes(program: Program) -> None:
    module = (MODULES / program.name / "go.mod").read_text("utf-8")
    (path,) = re.findall(r"(?m)^tool (\S+)$", module)
    assert path == program.package
    versions = dict(re.findall(r"(?m)^(?:require |\t)(\S+) (v\S+)(?: // indirect)?$", module))
    own = next(one for one in versions if program.package.startswith(one))
    assert versions[own] == program.version
    sums = (MODULES / program.name / "go.sum").read_text("utf-8")
    missing = [f"{name} {one}" for name, one in versions.items() if f"{name} {one} h1:" not in sums]
    assert missing == []


def test_changed_script_of_axe_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMXLAKE_CACHE", str(tmp_path))
    (tmp_path / f"axe-{axe._VERSION}.min.js").write_text("alert(1)")
    with pytest.raises(ValueError, match="is not axe-core"):
        axe.script()
