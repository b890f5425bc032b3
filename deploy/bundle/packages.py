"""The .deb and the .rpm of a tree, which nfpm makes from ``deploy/nfpm.yaml``."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deploy import tools
from deploy.errors import DeployError

if TYPE_CHECKING:
    from deploy.bundle.tree import Tree

_ROOT: Final = Path(__file__).parents[2]
_FORMATS: Final = ("deb", "rpm")
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_PRE_RELEASE: Final = re.compile(r"(?<=\d)\.?(a|b|rc|dev)(?=\d)")


def package_version(version: str) -> str:
    """Return a Python version as dpkg and rpm sort it: ``0.2.0~rc1`` comes before ``0.2.0``."""
    return _PRE_RELEASE.sub(r"~\1", version)


def build(tree: Tree, folder: Path, when: int) -> list[Path]:
    """Write both packages into a folder.

    Args:
        tree: Content of ``/opt/jmxlake``.
        folder: Output folder.
        when: Time of every file in the packages, seconds since 1970.

    Raises:
        DeployError: nfpm is not available or fails.
    """
    settings = {
        "TREE": str(tree.path.resolve()),
        "VERSION": package_version(tree.version),
        "ARCH": _ARCHITECTURES[tree.machine],
        "GLIBC": tree.glibc,
        "SOURCE_DATE_EPOCH": str(when),
    }
    return [_build(one, folder.resolve(), settings) for one in _FORMATS]


def _build(packager: str, folder: Path, settings: dict[str, str]) -> Path:
    command = [str(tools.nfpm()), "package", "--config", "deploy/nfpm.yaml"]
    ran = subprocess.run(
        [*command, "--packager", packager, "--target", str(folder)],
        cwd=_ROOT, env=os.environ | settings, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ran.returncode != 0:
        raise DeployError(f"nfpm: {(ran.stderr or ran.stdout).strip()}")
    return Path(ran.stdout.strip().rpartition("created package: ")[2])
