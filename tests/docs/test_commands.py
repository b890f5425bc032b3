"""The commands of the README and the quickstart, run on a real broker.

They run in an empty home, with a virtual environment that the quickstart creates and a wheel that
pip builds from this checkout. Libraries come from the tests' environment: no test uses the package
index (make test-packaging does).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demo.cluster import Cluster
from tests.docs.pages import NOT_HERE, blocks, runnable

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.waits]

ROOT = Path(__file__).parents[2]
SECONDS = 900
README = (ROOT / "README.md").read_text("utf-8")
QUICKSTART = (ROOT / "docs" / "quickstart.md").read_text("utf-8")
TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": "org.apache.kafka.tools.ConfigCommand",
    "kafka-producer-perf-test.sh": "org.apache.kafka.tools.ProducerPerformance",
}
"""Main classes of Kafka's scripts; Maven has the classes and not the scripts."""
NOT_SHARED = (
    "jmxlake", "_jmxlake", "__editable__", "pip", "setuptools", "pkg_resources", "_distutils",
    "pyspark",
)  # fmt: skip


@dataclass(frozen=True)
class Reader:
    """A reader with an empty home, a checkout, and a broker on this machine."""

    checkout: Path
    home: Path
    kafka: Path
    broker: str
    environ: dict[str, str]

    def types(self, *scripts: str) -> str:
        """Return the output of a shell in the checkout; it stops at the first error."""
        script = "\n".join(["set -ex", *map(self._here, scripts)])
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=self.checkout, env=self.environ, process_group=0,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            printed, errors = shell.communicate(timeout=SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):  # an agent in the background
                os.killpg(shell.pid, signal.SIGKILL)
        assert shell.returncode == 0, f"{printed[-3000:]}\n{errors[-6000:]}"
        return printed

    def _here(self, script: str) -> str:
        """Return the script with this broker and Kafka folder, and pip without an index."""
        kept, _ = runnable(script)
        for old, new in {
            "localhost:9092": self.broker,
            "/opt/kafka": str(self.kafka),
            "pip install ": "pip install --no-index --no-build-isolation ",
        }.items():
            kept = kept.replace(old, new)
        return kept


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start one broker with an open JMX port, as JMX_PORT=9999 does."""
    open_port = ["-Dcom.sun.management.jmxremote.authenticate=false"]
    folder = tmp_path_factory.mktemp("broker") / "cluster"
    with Cluster.start(folder, 1, jvm_options=lambda _: open_port) as running:
        yield running


@pytest.fixture(scope="module")
def reader(broker: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    folder = tmp_path_factory.mktemp("reader")
    home, kafka, checkout = (folder / name for name in ("home", "kafka", "checkout"))
    home.mkdir()
    create_kafka(kafka, broker.libs)
    left = shutil.ignore_patterns(".*", "__pycache__", "dist")
    shutil.copytree(ROOT, checkout, symlinks=True, ignore=left)
    (node,) = broker.brokers
    java = shutil.which("java")
    assert java is not None
    path = f"{sys.base_prefix}/bin", str(Path(java).parent), "/usr/bin", "/bin"
    environ = {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": str(shared(folder / "shared")),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "JMXLAKE_AGENT__SOURCE__JMX__PORT": str(node.jmx_port),
        "JMXLAKE_AGENT__HEALTH__PORT": "0",  # other tests also run agents
        # On a busy machine the first response takes longer than the default timeout.
        "JMXLAKE_AGENT__SOURCE__JMX__TIMEOUT": "30s",
    }
    return Reader(checkout, home, kafka, f"127.0.0.1:{node.plan.port}", environ)


def create_kafka(folder: Path, libs: Path) -> None:
    """Create a folder like Kafka's, with replacements for its start scripts."""
    (folder / "bin").mkdir(parents=True)
    (folder / "libs").symlink_to(libs)
    log = (ROOT / "demo" / "log4j2.properties").as_uri()
    for name, main in TOOLS.items():
        script = folder / "bin" / name
        java = f'exec java -Xmx256m -Dlog4j2.configurationFile={log} -cp "{libs}/*" {main} "$@"'
        script.write_text(f"#!/bin/sh\n{java}\n")
        script.chmod(0o755)


def shared(folder: Path) -> Path:
    """Link the libraries of the tests' environment, without jmxlake itself."""
    folder.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(NOT_SHARED) and entry.suffix != ".pth":
            (folder / entry.name).symlink_to(entry)
    return folder


@pytest.fixture(scope="module")
def followed(reader: Reader) -> str:
    """Return the output of all blocks of the quickstart."""
    return reader.types(*blocks(QUICKSTART, titled=True))


def test_quickstart_report_shows_throttled_client(reader: Reader, followed: str) -> None:
    assert "ok      jmx: node 1 of cluster" in followed
    assert "ok      lake: lake (6 tables created)" in followed
    assert "MISSING" not in followed
    assert "billing" in followed
    folder = reader.home / "jmxlake-first"
    report = json.loads((folder / "report.json").read_text("utf-8"))
    throttled = {row["client_id"] for row in report["throttling"]["clients"]}
    assert throttled == {"billing"}
    assert "billing" in (folder / "report.html").read_text("utf-8")


@pytest.mark.usefixtures("followed")
def test_readme_commands_run(reader: Reader) -> None:
    sample, _, look, week = blocks(README, titled=True)  # the second needs a release
    activate = ". ~/jmxlake-venv/bin/activate"
    made = "jmxlake sample lake\n"
    assert made in sample
    assert f"{made}jmxlake weekly lake " in QUICKSTART
    copied = sample.replace(made, "cp -r ~/jmxlake-sample/lake* .\n")  # with its rollup
    assert " of 9 objectives " in reader.types(activate, copied)
    assert "orders" in (reader.checkout / "report.html").read_text("utf-8")
    shown = reader.types(activate, look)
    assert "min_isr" in shown
    assert "UNKNOWN" not in shown
    timeline = reader.types(activate, "cd ~/jmxlake-first", week)
    assert "Topic orders" in timeline


def test_only_listed_programs_are_skipped() -> None:
    skipped = set()
    for page in (README, QUICKSTART):
        for block in blocks(page, titled=True):
            skipped |= runnable(block)[1]
    assert skipped == NOT_HERE.keys()
    assert len(blocks(QUICKSTART, titled=True)) > 5
