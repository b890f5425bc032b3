"""Make each addition of CONTRIBUTING.md in a copy of the tree, and run the project's tests there.

``make test-extending`` ends with a JSON line: how many files a contributor writes for each. What
commands of the project write (``COMMANDS``) is their output: it is listed, not counted.
No test is edited: one that wants a further file fails here.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.extending_texts import ADDITIONS, COMMANDS, DUMP, Addition

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).parents[1]

CLAIM: Final = "An addition is a few files, and no test of the project wants another"

UNIT: Final = ("tests/unit", "-m", "not slow", "--dist", "loadfile", "--no-loadscope-reorder",
               "--numprocesses", "logical", "--maxprocesses", "4")  # fmt: skip
"""Unit tests as ``make test-fast`` runs them."""

_UNCHANGED: Final = {".cache", ".hypothesis", ".pytest_cache", "__pycache__"}
"""Folders that are no part of the tree."""


class Made(NamedTuple):
    """An addition that was made.

    Attributes:
        addition: It.
        written: The files that are new or changed.
    """

    addition: Addition
    written: frozenset[str]

    @property
    def is_small(self) -> bool:
        """Whether it kept to its bar."""
        return 0 < len(self.written) <= self.addition.most


class Tree:
    """A copy of the tree; what is run in it imports its packages, not those of this repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = ("git", "ls-files", "-coz", "--exclude-standard")
        for name in subprocess.check_output(listed, cwd=ROOT, text=True).split("\0"):
            if name and (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        (folder / ".cache").symlink_to(ROOT / ".cache")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the copy, whatever comes of it."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder, env=_environment(),
            capture_output=True, text=True, check=False, timeout=1800,
        )  # fmt: skip

    def call(self, *arguments: str) -> str:
        """Run Python in the copy and return what it printed.

        Raises:
            AssertionError: It failed.
        """
        ran = self.run(*arguments)
        assert ran.returncode == 0, (arguments, ran.stdout[-4000:], ran.stderr[-4000:])
        return ran.stdout

    def command(self, package: str, *arguments: str) -> str:
        """Run ``jmxlake`` or ``jmxlake-agent`` of the copy."""
        return self.call("-c", f"from {package}.cli.main import main; main()", *arguments)

    def tests(self, *arguments: str) -> list[str]:
        """Run tests of the copy.

        Returns:
            Those that failed; or what pytest said, if it failed without one.
        """
        ran = self.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)
        failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", ran.stdout, re.MULTILINE)
        return sorted(set(failed)) or ([ran.stdout[-4000:] + ran.stderr] if ran.returncode else [])

    def make(self, addition: Addition) -> Made:
        """Make an addition."""
        before = self._contents()
        for name, text in addition.files:
            (self.folder / name).write_text(text, "utf-8")
        for line in addition.lines:
            file = self.folder / line.file
            text = file.read_text("utf-8")
            assert text.count(line.after) == 1, f"{line.after!r} in {line.file}"
            file.write_text(text.replace(line.after, line.after + line.text), "utf-8")
        return Made(addition, _changed(before, self._contents()))

    def write_anew(self) -> frozenset[str]:
        """Run the commands that follow an addition, and return the files that they changed."""
        before = self._contents()
        for one in COMMANDS:
            self.call(*one)
        return _changed(before, self._contents())

    def _contents(self) -> dict[str, bytes]:
        return {
            str(name): file.read_bytes()
            for file in self.folder.rglob("*")
            if not _UNCHANGED & {*(name := file.relative_to(self.folder)).parts} and file.is_file()
        }


def _environment() -> dict[str, str]:
    """Return this process's environment; Spark, started in it, turns the folder's imports off."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}


def _changed(before: dict[str, bytes], after: dict[str, bytes]) -> frozenset[str]:
    both = before.keys() | after.keys()
    return frozenset(name for name in both if before.get(name) != after.get(name))


def not_reached(tree: Tree) -> list[str]:
    """Return the additions of which an agent, the page, JSON or CSV of the copy says nothing."""
    beans = tree.command("collector", "metrics", "--family", "bundled_cache", "--json")
    tree.command("lakehouse", "sample", "lake", "--weeks", "1", "--until", "2026-11-23")
    tree.command("lakehouse", "weekly", "lake", "--engine", "local",
                 "--html", "page.html", "--json", "facts.json", "--csv", "csv")  # fmt: skip
    facts = json.loads((tree.folder / "facts.json").read_text("utf-8"))
    page = (tree.folder / "page.html").read_text("utf-8")
    reported, copying = facts["reported"]["metrics"], facts["remote_reads"]["copying"]
    reached = {
        "family": json.loads(beans)["metric"] == "bundled.cache.misses",
        "metric": "jvm.classes" in tree.command("collector", "metrics", "--family", "jvm"),
        "dimension": any((tree.folder / "lake" / "gold" / "families").rglob("*.parquet")),
        "table": all(row["tasks_idle_min"] is not None for row in copying)
        and len(_rows(tree, "remote_reads_copying")) == len(copying) > 0
        and "Upload tasks idle, min" in page,
        "gold_table": reported and all(row["reported_us"] > 0 for row in reported),
        "section": 'id="d-reported"' in page
        and "reported" in {row["question"] for row in facts["answers"]}
        and len(_rows(tree, "reported_metrics")) == len(reported),
        "column": re.search("<th[^>]*>Rate, mean<", page),
        "figure": all(
            row["slowest_read_ms"] is not None for row in facts["remote_reads"]["brokers"]
        )
        and all(row["slowest_read_ms"] for row in _rows(tree, "remote_reads_brokers")),
        "objective": 'id="slo-acme"' in page and _rows(tree, "attainment", objective="acme"),
        "source": _dumped(tree),
    }
    return [name for name, is_there in reached.items() if not is_there]


def _dumped(tree: Tree) -> bool:
    """Return whether an agent of the copy reads a value from a dump."""
    (tree.folder / "beans.json").write_text(json.dumps(DUMP), "utf-8")
    (tree.folder / "agent.yaml").write_text(
        "source: {node: 1, dump: {file: beans.json}}\n"
        "lake: {path: lake}\n"
        "spool: {path: spool.db}\n",
        "utf-8",
    )
    printed = tree.command("collector", "scrape", "--config", "agent.yaml", "--json")
    lines = [json.loads(line) for line in printed.splitlines()]
    return ("kafka.broker.produce.answers_good", 7) in [
        (one.get("metric"), one.get("value")) for one in lines
    ]


def _rows(tree: Tree, file: str, **wanted: str) -> list[dict[str, str]]:
    with (tree.folder / "csv" / f"{file}.csv").open(encoding="utf-8", newline="") as lines:
        rows = [*csv.DictReader(lines)]
    return [row for row in rows if wanted.items() <= row.items()]


def main(options: Sequence[str]) -> int:
    """Make all additions, and print the figures.

    Args:
        options: Further options of pytest.
    """
    with tempfile.TemporaryDirectory(prefix="extending-") as folder:
        tree = Tree(Path(folder))
        made = [tree.make(addition) for addition in ADDITIONS]
        anew, missing = tree.write_anew(), not_reached(tree)
        failed = tree.tests(*UNIT, *options)
    figures = {
        **{f"files_{one.addition.name}": len(one.written) for one in made},
        "written_by_commands": sorted(anew),
        "not_reached": missing,
        "tests_failed": failed,
    }
    sys.stdout.write(json.dumps({"claim": CLAIM, "figures": figures, "ratios": {}}) + "\n")
    return int(bool(failed or missing) or not all(one.is_small for one in made))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
