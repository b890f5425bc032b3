"""The tarball, unpacked somewhere: it runs there with nothing of this host but glibc and Java."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from demo.jars import kafka_libs
from demo.java import java_command
from deploy.bundle import __main__ as building, archive, interpreter, libraries, packages, tree
from deploy.errors import DeployError
from lakehouse import tables
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.deploy.bundles import Bundle

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"^\s*(\S+) => (.+?)(?: \(0x[0-9a-f]+\))?$", re.MULTILINE)
BARE = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}


@pytest.fixture(scope="module")
def unpacked(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The tree, at a place that nobody knew when it was built, and belonging to nobody."""
    folder = tmp_path_factory.mktemp("scratch root")  # with a space in its name
    with tarfile.open(bundle.tarball) as archive:
        archive.extractall(folder, filter="tar")
    (found,) = folder.iterdir()
    yield found
    shutil.rmtree(folder)


def run(program: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *arguments], env={**BARE, **environ}, capture_output=True, text=True,
        check=False, cwd="/",
    )  # fmt: skip


def test_it_tells_its_version_whatever_python_the_caller_has(unpacked: Path) -> None:
    poison = {"PYTHONPATH": str(ROOT / "tests"), "PYTHONHOME": "/nonexistent"}
    for name in tree.PROGRAMS:
        ran = run(unpacked / "bin" / name, "--version", **poison)
        assert ran.stdout == f"{name}, version {unpacked.name.partition('-')[2]}\n", ran.stderr


def test_it_is_found_through_links(unpacked: Path, tmp_path: Path) -> None:
    (tmp_path / "opt").symlink_to(unpacked)
    (tmp_path / "agent").symlink_to("opt/bin/jmxlake-agent")
    assert run(tmp_path / "agent", "--version").returncode == 0


def test_what_one_begins_with_is_in_it(unpacked: Path) -> None:
    for command, name in (
        ("config", "agent.yaml"),
        ("systemd-unit", "systemd/jmxlake-agent.service"),
    ):
        ran = run(unpacked / "bin/jmxlake-agent", command)
        assert ran.stdout == (ROOT / "deploy" / name).read_text("utf-8")
    assert (unpacked / "share/jmxlake/systemd/attach.conf").is_file()


def test_it_reads_a_real_jvm_and_makes_a_lake(unpacked: Path, tmp_path: Path) -> None:
    client = subprocess.Popen(
        [*java_command(), "-Xmx64m", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_libs()}/*",
         str(ROOT / "tests/deploy/java/Producer.java")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    config = tmp_path / "agent.yaml"
    config.write_text(yaml.safe_dump({
        "source": {"node": "billing", "role": "client", "cluster": "test",
                   "attach": {"pid": client.pid}},
        "lake": {"path": str(tmp_path / "lake")},
        "spool": {"path": str(tmp_path / "spool.db")},
    }))  # fmt: skip
    told = ""

    def checked() -> bool:
        nonlocal told
        ran = run(unpacked / "bin/jmxlake-agent", "check", "--config", str(config))
        told = ran.stdout + ran.stderr
        return ran.returncode == 0

    try:
        wait_for(checked, 60, lambda: told)
    finally:
        client.kill()
        client.wait()
    assert re.search(r"^ok +lake: ", told, re.MULTILINE)
    made = {one.name for one in (tmp_path / "lake/bronze").iterdir()}
    assert made == {one.name for one in (*tables.BRONZE, *tables.CATALOGUES)}


def test_it_needs_no_library_but_its_own_and_a_few_of_the_host_s(unpacked: Path) -> None:
    for file in libraries.elf_files(unpacked):
        ran = subprocess.run(
            ["ldd", str(file)], env=BARE, capture_output=True, text=True, check=False
        )
        for name, path in LOADED.findall(ran.stdout):
            if name.startswith("libjvm"):
                continue  # Java's own, which JPype loads from where Java is
            assert path != "not found", f"{file.name} needs {name}"
            assert libraries.HOST_S.fullmatch(name) or Path(path).is_relative_to(unpacked), (
                f"{file.name} takes {name} from {path}"
            )


def test_it_has_neither_spark_nor_pandas_nor_a_trace_of_this_machine(unpacked: Path) -> None:
    names = {one.name.partition("-")[0] for one in unpacked.glob("lib/python*/site-packages/*")}
    assert {"collector", "lakehouse", "deltalake", "jpype", "duckdb"} <= names
    assert not names & {"pyspark", "pandas", "numpy", "pip", "hatchling"}
    here = str(ROOT).encode()
    for file in unpacked.rglob("*"):
        if file.suffix in {".py", ".pyc", ".json", ".pth", ""} and file.is_file():
            assert here not in file.read_bytes(), file


def test_every_module_has_its_bytecode(unpacked: Path) -> None:
    """The service may write nothing there, and to compile at each start takes a second."""
    packages = next(unpacked.glob("lib/python*/site-packages"))
    for name in ("collector", "lakehouse"):
        for source in (packages / name).rglob("*.py"):
            assert list((source.parent / "__pycache__").glob(f"{source.stem}.*.pyc")), source


def test_all_of_it_belongs_to_root_and_nobody_else_may_write(bundle: Bundle) -> None:
    with tarfile.open(bundle.tarball) as archive:
        for entry in archive:
            assert (entry.uid, entry.gid, entry.mode & 0o022) == (0, 0, 0), entry.name


def test_what_is_built_twice_is_the_same_to_the_byte(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At another place; as of the same commit, since the first may be of an earlier one."""
    with tarfile.open(bundle.tarball) as archive:
        of_commit = int(next(iter(archive)).mtime)
    monkeypatch.setattr("deploy.bundle.archive.commit_time", lambda: of_commit)
    again = building.make(tmp_path / "another place", Path(sys.base_prefix))
    for first, second in zip(bundle, again, strict=True):
        assert first.name == second.name
        assert _digest(first) == _digest(second), first.name


def test_packages_do_not_depend_on_how_old_files_were_where_they_were_built(tmp_path: Path) -> None:
    digests = set()
    for age in (1_600_000_000, 1_650_000_000, 1_790_000_000):
        grown = tmp_path / str(age) / "jmxlake"
        for name in ("bin/python3.11", "LICENSE", "share/jmxlake/weekly.yaml"):
            file = grown / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("x")
            file.chmod(0o600)
            os.utime(file, (age, age))
        archive.settle(grown, 1_700_000_000)
        made = tree.Tree(grown, "0.1.0", "x86_64", "2.36")
        built = packages.build(made, grown.parent, 1_700_000_000)
        digests |= {(one.name, _digest(one)) for one in built}
    assert [name for name, _ in sorted(digests)] == [
        "jmxlake-0.1.0-1.x86_64.rpm", "jmxlake_0.1.0_amd64.deb"
    ]  # fmt: skip


def _digest(file: Path) -> str:
    with file.open("rb") as raw:
        return hashlib.file_digest(raw, "sha256").hexdigest()


@pytest.mark.parametrize(
    ("version", "wanted"),
    [("0.1.0", "0.1.0"), ("0.2.0rc1", "0.2.0~rc1"), ("1.0a2", "1.0~a2"), ("1.0.dev3", "1.0~dev3")],
)
def test_what_is_not_released_yet_comes_before_it(version: str, wanted: str) -> None:
    assert packages.package_version(version) == wanted


def test_a_python_that_cannot_be_bundled_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="belongs to the system: use --python with the folder"):
        interpreter.find(Path("/usr"))
    with pytest.raises(DeployError, match=r"^/nowhere does not contain bin/python.+ use --python"):
        interpreter.find(Path("/nowhere"))
    name = f"python3.{sys.version_info.minor}"
    (tmp_path / "lib" / name).mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / name).write_text("#!/bin/sh\n")
    with pytest.raises(DeployError, match="is not a program for x86_64 or aarch64"):
        interpreter.find(tmp_path)
