"""What CONTRIBUTING.md says of additions, done in a copy of the tree.

A metric family is one file, a table of gold two, a question of the report three.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FAMILY = """\
family: acme_cache
via: jmx
cadence_seconds: 30
roles: [broker]
metrics:
  acme.cache.misses:
    object: acme:type=Cache,name=Misses,topic=*
    labels: {topic: topic}
    needs: topic
    unit: "1"
    description: Entries that the cache of a topic had to load.
"""

SQL = """\
-- For how long each source reported each metric.
INSERT INTO out_reported BY NAME
SELECT w, metric, source, sum((e - s) * series)::BIGINT AS reported_us FROM usable GROUP BY ALL;
"""

TABLE = """\
REPORTED: Final = _gold(
    "reported",
    "For how long each source reported each metric",
    _METRIC,
    SOURCE,
    required("reported_us", "bigint", "microseconds, summed over series", "sum"),
)

HOURS: Final = (REPORTED, """

FACTS = '''\
"""The section on who reported what."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lakehouse.tables.gold import REPORTED

if TYPE_CHECKING:
    from lakehouse.report.facts.gold import Gold


class Metric(NamedTuple):
    """A metric of a source."""

    source: str
    metric: str
    reported_us: int


class Reported(NamedTuple):
    """The section."""

    metrics: list[Metric]


def reported(gold: Gold) -> Reported:
    """For how long each source reported each metric."""
    rows = gold.sums(REPORTED)
    return Reported([Metric(row["source"], row["metric"], row["reported_us"]) for row in rows])
'''

QUESTION = """\
questions:
  reported:
    short: Reports
    title: Which metrics were reported?
    kip: ""
    meaning: Sums over all series of a metric.
    read: kafka.partition.under_min_isr
    tables: {reported: reported.metrics}
    of: metric
    names: [source, metric]
    quiet: were reported
    says:
    - bad: [reported_us]
      is: [was reported, were reported]
      most: Most
      figure: microseconds reported_us
      worst: "{name metric} of {name source}, {microseconds reported_us}"
    charts: {}
"""

TABLE_OF_PAGE = """\
tables:
  reported:
    caption: Metrics
    each: metric
    most: [reported_us]
    columns:
    - Source: name source
    - Metric: name metric
    - Reported: microseconds reported_us
"""


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert text.count(old) == 1, f"{old!r} in {file}"
    file.write_text(text.replace(old, new), "utf-8")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of both packages; what is run in it imports them, not those of this repository."""
    root = tmp_path_factory.mktemp("tree")
    for package in ("collector", "lakehouse"):
        shutil.copytree(
            ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    return root


def run(tree: Path, package: str, *arguments: str) -> str:
    code = f"from {package}.cli.main import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=tree, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_metric_family_is_one_file(tree: Path) -> None:
    (tree / "collector/catalogue/acme_cache.yaml").write_text(FAMILY)
    metric = json.loads(run(tree, "collector", "beans", "--family", "acme_cache", "--json"))
    assert (metric["metric"], metric["unit"]) == ("acme.cache.misses", "1")


def test_a_table_of_gold_is_two_files_and_a_question_of_the_report_three(tree: Path) -> None:
    lakehouse = tree / "lakehouse"
    (lakehouse / "kernel/sql/tables/reported.sql").write_text(SQL)
    replace(lakehouse / "tables/gold.py", "\nHOURS: Final = (", f"\n{TABLE}")

    (lakehouse / "report/facts/reported.py").write_text(FACTS)
    build = lakehouse / "report/facts/build.py"
    replace(
        build,
        "from lakehouse.report.facts.kafka.throttling import throttling\n",
        "from lakehouse.report.facts.reported import reported\n"
        "from lakehouse.report.facts.kafka.throttling import throttling\n",
    )
    entry = '    "remote_reads": lambda it: remote_reads(it.gold),\n'
    replace(build, entry, f'{entry}    "reported": lambda it: reported(it.gold),\n')
    replace(lakehouse / "report/page.yaml", "\nquestions:\n", f"\n{QUESTION}")
    replace(lakehouse / "report/page.yaml", "\ntables:\n", f"\n{TABLE_OF_PAGE}")

    run(tree, "lakehouse", "sample", "lake", "--weeks", "1", "--until", "2026-11-23")
    run(tree, "lakehouse", "weekly", "lake", "--engine", "local",
        "--html", "page.html", "--json", "facts.json")  # fmt: skip
    rows = json.loads((tree / "facts.json").read_text("utf-8"))["reported"]["metrics"]
    assert {row["metric"] for row in rows} >= {"kafka.partition.under_min_isr"}
    assert all(row["reported_us"] > 0 for row in rows)
    page = (tree / "page.html").read_text("utf-8")
    assert "Which metrics were reported?" in page
    assert re.search(r"were reported\. Most: ", page)
