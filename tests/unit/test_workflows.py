"""GitHub workflows and the Makefile fit together."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = {one.stem: one.read_text("utf-8") for one in (ROOT / ".github/workflows").glob("*.yml")}
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def test_workflows_run_targets_of_the_makefile() -> None:
    commands = re.sub(r"# .*", "", "".join(WORKFLOWS.values()))
    targets = set(re.findall(r"\bmake ([a-z][a-z-]+)", commands))
    jobs = yaml.safe_load(WORKFLOWS["nightly"])["jobs"]
    targets |= set(jobs["suite"]["strategy"]["matrix"]["target"])
    assert {"test", "test-nightly", "release"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target


def test_every_action_is_pinned_by_its_commit() -> None:
    used = re.findall(r"uses: ([^./\n].*)", "".join(WORKFLOWS.values()))
    assert len(used) > 10
    assert [one for one in used if not PINNED.fullmatch(one)] == []


def test_each_job_has_its_own_permissions() -> None:
    for text in WORKFLOWS.values():
        told = yaml.safe_load(text)
        assert told["permissions"] == {}
        assert all("permissions" in job for job in told["jobs"].values())


def test_nothing_is_published_before_the_tests_pass() -> None:
    jobs = yaml.safe_load(WORKFLOWS["release"])["jobs"]
    needed = {name: job.get("needs", []) for name, job in jobs.items()}
    assert needed["pypi"] == needed["image"] == ["test", "build"]
    assert needed["chart"] == "image"
    assert needed["page"] == ["pypi", "image", "chart"]
