"""The same on arm64: wheels for it, and Debian's arm64 Python that runs them under QEMU.

No arm64 machine was there. QEMU carries out arm64 instructions and gives system calls to this
kernel; everything but speed is that of such a host. Java is not tried: it is the host's own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from demo.jars import cache_folder
from deploy import tools
from deploy.bundle.libraries import elf_files

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT: Final = Path(__file__).parents[2]
GLIBC: Final = "aarch64-manylinux_2_28"  # as Debian 10, Ubuntu 20.04 and RHEL 8 have it, or newer
DEBIAN: Final = (
    "libbz2-1.0", "libc6", "libcrypt1", "libexpat1", "libffi8", "libgcc-s1", "liblzma5",
    "libpython3.11-minimal", "libpython3.11-stdlib", "libsqlite3-0", "libssl3", "libstdc++6",
    "libuuid1", "python3.11-minimal", "zlib1g",
)  # fmt: skip
"""A Python with what jmxlake imports of it; Debian 12's names."""
AARCH64: Final = 183
"""``EM_AARCH64`` in the header of an ELF file."""


def _run(*command: object, cwd: Path | None = None) -> None:
    subprocess.run([*map(str, command)], cwd=cwd, check=True, capture_output=True, text=True)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """jmxlake and what the lock pins, as an installer on arm64 would choose them."""
    folder = tmp_path_factory.mktemp("arm64")
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    chosen = ("--python-platform", GLIBC, "--python-version", "3.11", "--only-binary", ":all:")
    _run(
        tools.uv(), "pip", "install", "--quiet", "--no-config", *chosen,
        "-c", ROOT / "requirements.lock", "--target", folder / "site",
        f"{wheel}[agent,maintain,local]",
    )  # fmt: skip
    return folder / "site"


@pytest.fixture(scope="module")
def python() -> list[str]:
    """The command that begins an arm64 Python."""
    qemu = shutil.which("qemu-aarch64-static")
    if qemu is None:
        pytest.skip("qemu-aarch64-static is missing: make test-deploy installs it")
    root = cache_folder() / "deploy" / "debian-arm64"
    if not root.exists():
        made = root.with_name(f"{root.name}.new")
        shutil.rmtree(made, ignore_errors=True)
        _unpack_debian(made)
        made.rename(root)
    return [qemu, "-L", str(root), str(root / "usr/bin/python3.11"), "-B"]


def _unpack_debian(root: Path) -> None:
    """Debian's packages, by lists of their own: this machine's apt stays as it is."""
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
    _run("apt-get", *options, "download", *DEBIAN, cwd=state / "packages")
    for package in sorted((state / "packages").glob("*.deb")):
        _run("dpkg-deb", "-x", package, root)
    shutil.rmtree(state)


@pytest.fixture
def run(python: list[str], libraries: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def it(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        code = f"from {module} import main; main()"
        return subprocess.run(
            [*python, "-c", code, *arguments], capture_output=True, text=True, check=False,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONPATH": str(libraries)},
        )  # fmt: skip

    return it


def test_every_library_has_a_build_for_arm64(libraries: Path) -> None:
    machines = {}
    for file in elf_files(libraries):
        with file.open("rb") as opened:
            header = opened.read(20)
        machines[file.name] = int.from_bytes(header[18:20], "little")
    assert len(machines) > 10, "deltalake, DuckDB, jpype and others have native code"
    assert set(machines.values()) == {AARCH64}, machines


def test_the_agent_starts_and_writes_a_lake_s_tables(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    assert run("collector.cli.main", "--version").returncode == 0
    config = tmp_path / "agent.yaml"
    config.write_text(
        "source: {node: 1, jolokia: {url: 'http://127.0.0.1:9/jolokia'}}\n"
        f"lake: {{path: {tmp_path}/lake}}\nspool: {{path: {tmp_path}/spool.db}}\n"
    )
    checked = run("collector.cli.main", "check", "--config", str(config))
    assert "(6 tables created)" in checked.stdout, checked.stdout + checked.stderr
    assert "ok      spool: " in checked.stdout
    assert "FAILED  jolokia: " in checked.stdout, "nothing listens at port 9"


def test_a_sample_lake_becomes_a_report(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    lake, page = str(tmp_path / "lake"), tmp_path / "report.html"
    made = run("lakehouse.cli.main", "sample", lake)
    assert made.returncode == 0, made.stderr
    weekly = run("lakehouse.cli.main", "weekly", lake, "--html", str(page))
    assert weekly.returncode == 0, weekly.stderr
    assert "objectives" in page.read_text("utf-8")
