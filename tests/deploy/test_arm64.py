"""The bundle for arm64, built on this machine; QEMU runs it.

No arm64 machine was available. QEMU executes arm64 instructions and passes system calls to this
kernel; everything except speed is as on such a host. Java is not part of the tests: it belongs to
the host.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from typing import TYPE_CHECKING

import pytest

from deploy.bundle.libraries import elf_files, machine
from deploy.bundle.tree import PROGRAMS
from tests.deploy.bundles import Bundle, arm64_home, arm64_root, built

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def arm64(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return built(arm64_home(tmp_path_factory.mktemp("home")))


@pytest.fixture(scope="module")
def unpacked(arm64: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arm64")
    with tarfile.open(arm64.tarball) as archive:
        archive.extractall(folder, filter="tar")
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def run(unpacked: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a program of the bundle in the way of its start script, which has no interpreter here."""
    qemu = shutil.which("qemu-aarch64-static")
    if qemu is None:
        pytest.skip("qemu-aarch64-static is missing: make test-deploy installs it")
    (python,) = unpacked.glob("bin/python3*")

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        code = f"from {PROGRAMS[program]} import main; main()"
        return subprocess.run(
            [qemu, "-L", str(arm64_root()), str(python), "-I", "-B", "-c", code, *arguments],
            capture_output=True, text=True, check=False,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        )  # fmt: skip

    return run


def test_every_program_and_library_is_for_arm64(unpacked: Path) -> None:
    machines = {file.name: machine(file) for file in elf_files(unpacked)}
    assert len(machines) > 10, "deltalake, DuckDB, jpype and others have native code"
    assert set(machines.values()) == {"aarch64"}, machines


def test_files_and_packages_name_the_architecture(arm64: Bundle) -> None:
    assert arm64.tarball.name.endswith("-linux-aarch64.tar.gz")
    deb = ["dpkg-deb", "--field", arm64.deb, "Architecture"]
    rpm = ["rpm", "--query", "--package", "--queryformat", "%{ARCH}", arm64.rpm]
    told = [subprocess.run(one, capture_output=True, check=True).stdout for one in (deb, rpm)]
    assert told == [b"arm64\n", b"aarch64"]


def test_the_agent_starts_and_writes_a_lake_s_tables(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    assert run("jmxlake-agent", "--version").returncode == 0
    config = tmp_path / "agent.yaml"
    config.write_text(
        "source: {node: 1, jolokia: {url: 'http://127.0.0.1:9/jolokia'}}\n"
        f"lake: {{path: {tmp_path}/lake}}\nspool: {{path: {tmp_path}/spool.db}}\n"
    )
    checked = run("jmxlake-agent", "check", "--config", str(config))
    assert "(6 tables created)" in checked.stdout, checked.stdout + checked.stderr
    assert "ok      spool: " in checked.stdout
    assert "FAILED  jolokia: " in checked.stdout, "nothing listens at port 9"


def test_a_sample_lake_becomes_a_report(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    lake, page = str(tmp_path / "lake"), tmp_path / "report.html"
    made = run("jmxlake", "sample", lake)
    assert made.returncode == 0, made.stderr
    weekly = run("jmxlake", "weekly", lake, "--html", str(page))
    assert weekly.returncode == 0, weekly.stderr
    assert "objectives" in page.read_text("utf-8")
