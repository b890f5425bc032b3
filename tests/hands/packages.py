"""Count packages, and packages whose agent runs under a real systemd after their installation."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from demo.jars import kafka_libs
from tests.deploy.bundles import ROOT, Bundle, arm64_home, built
from tests.deploy.host import (
    INSTALL,
    REMOVE,
    by_port,
    configure,
    start_agent,
    start_jvm,
    wait_delivered,
)
from tests.deploy.machine import Machine, impossible

_ARCHITECTURES: Final = {
    ("x86_64", ".deb"): "amd64",
    ("aarch64", ".deb"): "arm64",
    ("x86_64", ".rpm"): "x86_64",
    ("aarch64", ".rpm"): "aarch64",
}


def counts() -> dict[str, int]:
    """Build the packages of both architectures on this machine, and start its own.

    rpm installs into the same Debian user space as dpkg, without its dependencies: no root of
    a distribution with rpm is available from the registries.
    """
    with tempfile.TemporaryDirectory(prefix="hands.") as name:
        folder = Path(name)
        here, there = built(), built(arm64_home(folder))
        sound = _sound(here, "x86_64") + _sound(there, "aarch64")
        return {"packages": sound, "packages_started": _started(here, folder)}


def _sound(bundle: Bundle, machine: str) -> int:
    """Return the number of packages whose own tool reads the right name and architecture."""
    queries = {
        ".deb": ["dpkg-deb", "--showformat", "${Package} ${Architecture}", "--show"],
        ".rpm": ["rpm", "--query", "--queryformat", "%{NAME} %{ARCH}", "--package"],
    }
    found = 0
    for package in (bundle.deb, bundle.rpm):
        query = [*queries[package.suffix], str(package)]
        told = subprocess.run(query, capture_output=True, text=True, check=False).stdout
        found += told == f"jmxlake {_ARCHITECTURES[machine, package.suffix]}"
    return found


def _started(bundle: Bundle, folder: Path) -> int:
    """Return the number of packages whose agent reads a JVM and delivers, on one machine."""
    if reason := impossible():
        raise RuntimeError(reason)
    seen = {
        "bundle": bundle.tarball.parent,
        "java": ROOT / "tests/deploy/java",
        "libs": kafka_libs(),
    }
    with Machine(folder, seen) as machine:
        start_jvm(machine)
        started = 0
        for package in (bundle.deb, bundle.rpm):
            kind = package.suffix[1:]
            machine.run(*INSTALL[kind], f"/srv/bundle/{package.name}")
            configure(machine, by_port())
            start_agent(machine)
            wait_delivered(machine)
            started += 1
            machine.run(*REMOVE[kind], "jmxlake")
            machine.run("sh", "-c", "rm -rf /var/lib/jmxlake/*")
        return started
