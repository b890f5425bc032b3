"""Bundles of this checkout for both architectures, built again after a change of their content."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

from demo.jars import cache_folder
from deploy.bundle import interpreter

ROOT: Final = Path(__file__).parents[2]
_MADE_OF: Final = (
    "collector", "lakehouse", "deploy/bundle", "deploy/packages", "deploy/nfpm.yaml",
    "deploy/systemd", "deploy/agent.yaml", "pyproject.toml", "requirements.lock", "LICENSE",
)  # fmt: skip
_DEBIAN: Final = (
    "libbz2-1.0", "libc6", "libcrypt1", "libexpat1", "libffi8", "libgcc-s1", "liblzma5",
    "libpython3.11-minimal", "libpython3.11-stdlib", "libsqlite3-0", "libssl3", "libstdc++6",
    "libuuid1", "python3.11-minimal", "zlib1g",
)  # fmt: skip
"""A Python with the modules that jmxlake imports; names of Debian 12."""


class Bundle(NamedTuple):
    """Installation files of one architecture."""

    tarball: Path
    deb: Path
    rpm: Path


def built(home: Path = Path(sys.base_prefix)) -> Bundle:
    """Return the files with the Python of a folder."""
    machine = interpreter.find(home).machine
    folder = cache_folder() / "deploy" / f"bundle-{machine}-{_content()}"
    if not list(folder.glob("*.rpm")):
        for old in folder.parent.glob(f"bundle-{machine}-*"):
            shutil.rmtree(old)  # hundreds of megabytes each, and what a stopped build left
        subprocess.run(
            [sys.executable, "-m", "deploy.bundle", "--python", str(home), "--out", str(folder)],
            cwd=ROOT, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    (tarball,), (deb,), (rpm,) = (folder.glob(f"*.{one}") for one in ("tar.gz", "deb", "rpm"))
    return Bundle(tarball, deb, rpm)


def _content() -> str:
    content = hashlib.sha256(sys.version.encode())
    for name in _MADE_OF:
        place = ROOT / name
        files = [place] if place.is_file() else sorted(place.rglob("*"))
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                content.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return content.hexdigest()[:12]


def arm64_root() -> Path:
    """Return a root folder with Debian's packages of a Python for arm64."""
    root = cache_folder() / "deploy" / "debian-arm64"
    if not root.exists():
        made = root.with_name(f"{root.name}.new")
        shutil.rmtree(made, ignore_errors=True)
        _unpack_debian(made)
        made.rename(root)
    return root


def arm64_home(folder: Path) -> Path:
    """Return that Python in a folder of its own, as pyenv and uv install it.

    The index of Debian is the only registry here that has a Python for arm64.
    """
    root, home = arm64_root(), folder / "python-arm64"
    (home / "bin").mkdir(parents=True)
    shutil.copy2(root / "usr/bin/python3.11", home / "bin")
    shutil.copytree(root / "usr/lib/python3.11", home / "lib/python3.11", symlinks=False)
    for file in root.glob("**/aarch64-linux-gnu/*.so*"):
        shutil.copy2(file, home / "lib")
    for name in ("_curses", "_dbm", "nis", "readline"):  # jmxlake does not need their libraries
        for module in home.glob(f"lib/python3.11/lib-dynload/{name}*"):
            module.unlink()
    # Debian's Python has another name for that folder, in a module that its program contains.
    (home / "lib/python3.11/sitecustomize.py").write_text(
        'import site, sys; site.addsitedir(f"{sys.prefix}/lib/python3.11/site-packages")\n'
    )
    return home


def _unpack_debian(root: Path) -> None:
    """Unpack Debian's packages with separate lists; apt of this machine stays as it is."""
    state = root / "apt"
    for folder in ("lists/partial", "archives/partial", "packages"):
        (state / folder).mkdir(parents=True)
    (state / "status").touch()
    options = (
        "-o", "APT::Architecture=arm64", "-o", "APT::Architectures::=arm64",
        "-o", "APT::Sandbox::User=root", "-o", f"Dir::State::lists={state}/lists",
        "-o", f"Dir::State::status={state}/status", "-o", f"Dir::Cache={state}",
    )  # fmt: skip
    _run("apt-get", *options, "update")
    _run("apt-get", *options, "download", *_DEBIAN, cwd=state / "packages")
    for package in sorted((state / "packages").glob("*.deb")):
        _run("dpkg-deb", "-x", package, root)
    shutil.rmtree(state)


def _run(*command: object, cwd: Path | None = None) -> None:
    subprocess.run([*map(str, command)], cwd=cwd, check=True, capture_output=True, text=True)
