"""The Debian package: the tree in /opt/jmxlake, the units, the user."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deploy.errors import DeployError

if TYPE_CHECKING:
    from deploy.bundle.tree import Tree

_DEPLOY: Final = Path(__file__).parents[1]
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_PRE_RELEASE: Final = re.compile(r"(?<=\d)\.?(a|b|rc|dev)(?=\d)")


def debian_version(version: str) -> str:
    """A Python version as dpkg compares it: ``0.2.0rc1`` comes before ``0.2.0``."""
    return _PRE_RELEASE.sub(r"~\1", version)


def build(tree: Tree, folder: Path, stage: Path, when: int) -> Path:
    """Write the package into ``folder``.

    Args:
        tree: What it installs.
        folder: Where the file goes.
        stage: A new folder beside the tree, which is moved into it.
        when: Time of all that is in it, seconds since 1970.

    Raises:
        DeployError: dpkg-deb is missing, or did not want it.
    """
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    version = debian_version(tree.version)
    (stage / "opt").mkdir(parents=True)
    shutil.copytree(tree.path, stage / "opt" / "jmxlake", symlinks=True)
    _lay_out(stage)
    size = sum(file.lstat().st_size for file in stage.rglob("*")) >> 10
    control = stage / "DEBIAN"
    shutil.copytree(_DEPLOY / "debian", control)
    described = (control / "control.in").read_text("utf-8")
    (control / "control.in").unlink()
    named = {"version": version, "architecture": architecture, "size": size, "glibc": tree.glibc}
    (control / "control").write_text(described.format(**named), "utf-8")
    for file in (stage, *stage.rglob("*")):
        if not file.is_symlink():
            inside = control in file.parents and file.name != "control"
            file.chmod(0o755 if inside or file.is_dir() or file.stat().st_mode & 0o100 else 0o644)
        os.utime(file, (when, when), follow_symlinks=False)  # dpkg-deb keeps what is older
    package = folder / f"jmxlake_{version}_{architecture}.deb"
    _dpkg_deb(stage, package, when)
    return package


def _lay_out(stage: Path) -> None:
    """What is not below /opt: links on PATH, the units, and the user."""
    for name in ("jmxlake-agent", "jmxlake"):
        link = stage / "usr" / "bin" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"/opt/jmxlake/bin/{name}")
    for folder, pattern, goal in (
        ("systemd", "*.service", "lib/systemd/system"),
        ("systemd", "*.timer", "lib/systemd/system"),
        ("systemd", "*.sysusers", "usr/lib/sysusers.d"),
    ):
        for file in sorted((_DEPLOY / folder).glob(pattern)):
            (stage / goal).mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, stage / goal / file.name.replace(".sysusers", ".conf"))
    licence = stage / "usr" / "share" / "doc" / "jmxlake"
    licence.mkdir(parents=True)
    shutil.copy2(_DEPLOY.parent / "LICENSE", licence / "copyright")


def _dpkg_deb(stage: Path, package: Path, when: int) -> None:
    command = ["dpkg-deb", "--root-owner-group", "-Zxz", "-z2", "--build", str(stage), str(package)]
    try:
        subprocess.run(
            command, env={"PATH": "/usr/bin:/bin", "SOURCE_DATE_EPOCH": str(when)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise DeployError("dpkg-deb is missing: install the package dpkg") from error
    except subprocess.CalledProcessError as error:
        raise DeployError(f"dpkg-deb: {error.stderr.strip()}") from error
