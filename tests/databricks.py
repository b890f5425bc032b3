"""Everything about Databricks that runs without a workspace: ``make test-databricks``.

The tests whose names have the findings of databricks_findings.yaml in them, ``f01`` to ``f25``; a
lake in a catalog over Spark Connect, by the client of Spark 4.0, as serverless has it, which
refuses what serverless refuses; and a lake in a real Unity Catalog server. One line of JSON at the
end counts them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import yaml

from demo.errors import DemoError
from demo.jars import cache_folder, unity_jars
from deploy.tools import uv
from tests.everywhere.commands import PYTHON

ROOT = Path(__file__).parents[1]
FINDINGS = Path(__file__).with_name("databricks_findings.yaml")
CLIENT = "pyspark-client==4.0.1"
FINDING = re.compile(r"_f(\d\d)(?=_)")
EVERY = {f"{number:02}" for number in range(1, 26)}
BY_NAME = ("-k", " or ".join(f"_f{one}_" for one in sorted(EVERY)))
PARTS = {
    "units": ("tests/unit", *BY_NAME),
    "notebooks": ("tests/everywhere/test_notebooks.py", *BY_NAME),
    "spark_4_0": ("tests/everywhere/connect.py",),
}
UNITY = "unity_catalog"
UNITY_TESTS = ("tests/everywhere/unity_catalog.py", "tests/everywhere/vended_by_unity.py")


def client_of_4_0() -> Path:
    """A Python with that client and what the bundle installs, and no other Spark."""
    name = CLIENT.replace("==", "-")
    folder = cache_folder() / f"databricks-{name}-{sys.version_info.minor}"
    python = folder / "bin" / "python"
    pinned = [f"--requirements={ROOT}/deploy/databricks/{one}.txt" for one in ("rollup", "report")]
    lock = f"--constraint={ROOT}/requirements.lock"
    for command in (
        ["venv", "--quiet", "--allow-existing", "--python", sys.executable, str(folder)],
        ["pip", "install", "--quiet", "--python", str(python), CLIENT, *pinned, lock],
    ):
        subprocess.run([str(uv()), *command], check=True)
    return python


class Ran(NamedTuple):
    """Tests that ran: names of those that passed, how many did not, and what they measured."""

    passed: list[str]
    failed: int
    measured: dict[str, float]


def ran_tests(*arguments: str) -> Ran:
    """Run tests; a run without any has failed."""
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report.name}", *arguments]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        told = ET.parse(report.name)  # noqa: S314 - pytest has written it
    cases = list(told.iter("testcase"))
    passed = [str(one.get("name")) for one in cases if len(one) == 0]
    measured = {f"{one.get('name')}": float(f"{one.get('value')}") for one in told.iter("property")}
    return Ran(passed, max(len(cases) - len(passed), int(code != 0)), measured)


def in_unity_catalog() -> Ran:
    """The tests on a Unity Catalog server; none where its jars cannot be had, and it says so."""
    try:
        for part in ("server", "spark"):
            unity_jars(part)
    except DemoError as error:
        sys.stderr.write(f"without {UNITY}: {error}\n")
        return Ran([], 0, {})
    return ran_tests(*UNITY_TESTS)


def left_to_a_workspace() -> int:
    """Return the number of findings that have something open."""
    return sum("open" in finding for finding in findings())


def findings() -> list[dict[str, Any]]:
    """Return the findings of the review."""
    found: list[dict[str, Any]] = yaml.safe_load(FINDINGS.read_text("utf-8"))
    assert {f"{one['number']:02}" for one in found} == EVERY, "each finding has an entry"
    return found


def main() -> None:
    ran = {UNITY: in_unity_catalog()}  # by this Python, whose Spark has the connector
    os.environ[PYTHON] = str(client_of_4_0())
    ran |= {name: ran_tests(*arguments) for name, arguments in PARTS.items()}
    covered = {number for one in ran.values() for number in FINDING.findall(" ".join(one.passed))}
    figures = {
        "checks": sum(len(one.passed) for one in ran.values()),
        "failed": sum(one.failed for one in ran.values()),
        "f_covered": len(covered),
        "f_workspace_only": left_to_a_workspace(),
        **{name: len(one.passed) for name, one in ran.items()},
        "serverless_shim": len(ran["spark_4_0"].passed),
    }
    ratios = {name: value for name, value in ran[UNITY].measured.items() if "_vs_" in name}
    figures |= {name: ran[UNITY].measured[name] for name in ran[UNITY].measured.keys() - ratios}
    claim = "the bundle, jobs and notebooks hold what Databricks asks of them, without a workspace"
    sys.stdout.write(json.dumps({"claim": claim, "figures": figures, "ratios": ratios}) + "\n")
    sys.exit(figures["failed"] > 0 or covered != EVERY)


if __name__ == "__main__":
    main()
