"""What CONTRIBUTING.md says of additions, done in a copy of the tree.

A metric family is one file, a table of gold two, a section of the report three, a column of the
page one, an objective one.
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

from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from lakehouse.report.evidence import Question, Rows
from lakehouse.report.facts.fields import SOURCE, Means
from lakehouse.tables.gold import REPORTED

if TYPE_CHECKING:
    from lakehouse.report.facts.gold import Gold


class Metric(NamedTuple):
    """A metric of a source."""

    source: Annotated[str, SOURCE]
    metric: Annotated[str, Means("metric")]
    reported_us: Annotated[int, Means("microseconds in which the source reported it")]


class Reported(NamedTuple):
    """The section."""

    metrics: Annotated[list[Metric], Means("metrics of each source")]


def reported(gold: Gold) -> Reported:
    """Return the time in which each source reported each metric."""
    rows = gold.sums(REPORTED)
    return Reported([Metric(row["source"], row["metric"], row["reported_us"]) for row in rows])


QUESTION: Final = Question(
    name="reported",
    read="kafka.partition.under_min_isr",
    noun="metric",
    names=("source", "metric"),
    fact="reported.metrics",
    bad=(Rows(Metric, "reported.metrics", ("reported_us",)),),
)
'''

SECTION = '''\
"""Reported metrics: the time in which sources reported them."""

from lakehouse.report.facts.reported import QUESTION, Metric
from lakehouse.report.tables.contents import length, most, name, number
from lakehouse.report.tables.section import Claim, counted, section
from lakehouse.report.tables.table_spec import Column, TableSpec

METRICS = TableSpec(
    record=Metric,
    path="reported.metrics",
    caption="Metrics",
    noun="metric",
    columns=(
        Column("Metric", name("metric")),
        Column("Source", name("source")),
        Column("Reported", number("reported_us", length)),
    ),
    bad=("reported_us",),
    names=("source", "metric"),
    worst=most("reported_us"),
)

SECTION = section(
    "reported",
    "Reported metrics",
    counted(QUESTION, Claim(METRICS, lambda row: length(row["reported_us"]), "reported", "most")),
)
'''

COLUMN = '        Column("Rate, mean", quantity("rate_mean")),\n'

OWN_TESTS = (
    "tests/unit/test_details.py", "tests/unit/test_facts_contract.py", "tests/unit/test_shown.py",
)  # fmt: skip
"""The project's tests of records, tables and sections, which run in the copy, too."""


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert text.count(old) == 1, f"{old!r} in {file}"
    file.write_text(text.replace(old, new), "utf-8")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of both packages; what is run in it imports them, not those of this repository."""
    root = tmp_path_factory.mktemp("tree")
    shutil.copy(ROOT / "pyproject.toml", root)
    for package in ("collector", "lakehouse", "tests", "docs", "demo", "bench"):
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
    (tree / "collector/catalogue/acme_cache.yaml").unlink()


def test_a_table_of_gold_is_two_files_and_a_section_of_the_report_three(tree: Path) -> None:
    lakehouse = tree / "lakehouse"
    (lakehouse / "kernel/sql/tables/reported.sql").write_text(SQL)
    replace(lakehouse / "tables/gold.py", "\nHOURS: Final = (", f"\n{TABLE}")

    (lakehouse / "report/facts/reported.py").write_text(FACTS)
    (lakehouse / "report/tables/reported.py").write_text(SECTION)
    report = lakehouse / "report/facts/report_record.py"
    replace(
        report,
        "from lakehouse.report.facts.storage import ",
        "from lakehouse.report.facts import reported as reported_\n"
        "from lakehouse.report.facts.reported import Reported, reported\n"
        "from lakehouse.report.facts.storage import ",
    )
    field = '    tiering: Annotated[Tiering, Means("use of remote storage")]\n'
    replace(report, field, f'{field}    reported: Annotated[Reported, Means("reports")]\n')
    replace(report, "replication_.QUESTION,\n", "replication_.QUESTION, reported_.QUESTION,\n")
    entry = '    "remote_reads": lambda it: remote_reads(it.gold),\n'
    replace(report, entry, f'{entry}    "reported": lambda it: reported(it.gold),\n')

    run(tree, "lakehouse", "sample", "lake", "--weeks", "1", "--until", "2026-11-23")
    run(tree, "lakehouse", "weekly", "lake", "--engine", "local",
        "--html", "page.html", "--json", "facts.json")  # fmt: skip
    facts = json.loads((tree / "facts.json").read_text("utf-8"))
    rows = facts["reported"]["metrics"]
    assert {row["metric"] for row in rows} >= {"kafka.partition.under_min_isr"}
    assert all(row["reported_us"] > 0 for row in rows)
    assert "reported" in {row["question"] for row in facts["answers"]}
    page = (tree / "page.html").read_text("utf-8")
    assert "<b>Reported metrics</b>" in page
    assert re.search(r"metrics reported; most ", page)
    own_tests(tree)


def test_a_column_of_the_page_is_one_file(tree: Path) -> None:
    before = '        Column("Rate, max", quantity("rate_max", is_peak=True)),\n'
    replace(tree / "lakehouse/report/tables/throttling.py", before, COLUMN + before)
    own_tests(tree)


def test_a_wrong_column_fails_at_import(tree: Path) -> None:
    table = tree / "lakehouse/report/tables/throttling.py"
    right = table.read_text("utf-8")
    replace(table, 'quantity("quota")', 'quantity("quotas")')
    code = "from lakehouse.report.tables import throttling"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, capture_output=True, text=True, check=False
    )
    table.write_text(right, "utf-8")
    assert "TypeError: Client does not have the key 'quotas'" in ran.stderr


def test_an_objective_is_one_file(tree: Path) -> None:
    folder = tree / "lakehouse/slo/objectives"
    text = (folder / "copy-lag.yaml").read_text("utf-8")
    (folder / "acme.yaml").write_text(text.replace("copy-lag", "acme"), "utf-8")
    listed = run(tree, "lakehouse", "objectives", "check", str(folder))
    assert "acme" in listed


def own_tests(tree: Path) -> None:
    """Run the project's own tests on the copy."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k",
         "not golden", *OWN_TESTS],  # the golden facts are written anew
        cwd=tree, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-4000:]
