"""Several clusters at once."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from lakehouse.cli.main import main
from lakehouse.cli.options import file_stem
from lakehouse.report.page.page import clusters, clusters_headline, clusters_json, clusters_page
from tests import sample_facts
from tests.page_reader import read

if TYPE_CHECKING:
    from pathlib import Path


def fleet() -> list[sample_facts.Facts]:
    return [
        sample_facts.quiet_week() | {"cluster": "calm", "time_zone": "Europe/Berlin"},
        sample_facts.demo() | {"cluster": sample_facts.EVIL[0]},
        sample_facts.silent_week() | {"cluster": "mute"},
    ]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    made = []
    for number, one in enumerate(fleet()):
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps(one))
        made.append(str(file))
    return made


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["summary", *arguments])


def test_the_worst_cluster_comes_first():
    found = clusters(fleet())
    assert [one.status for one in found] == ["missed", "no_data", "met"]
    assert clusters_headline(found).replace("\u00a0", " ") == "1 of 3 clusters missed objectives"


def test_a_fleet_without_a_miss_is_met():
    assert (
        clusters_headline(clusters(fleet()[:1])).replace("\u00a0", " ")
        == "Every objective of 1 cluster met"
    )


def test_the_page_has_clusters_by_objectives_and_the_worst_of_each():
    page = read(clusters_page(clusters(fleet()), {"calm": "pages/calm.html"}))
    table = page.one("table")
    heads = [one.text for one in table.one("thead").all("th")]
    rows = [[one.text for one in row.children if not isinstance(one, str)]
            for row in table.one("tbody").all("tr")]  # fmt: skip
    assert heads[0] == "Cluster"
    assert rows[0][0].startswith("<script>")
    isr, remote = map(heads.index, ("Topics can be written to safely", "Remote reads succeed"))
    assert [row[isr] for row in rows] == ["Missed", "No data", "Met"]
    assert [row[remote] for row in rows] == ["Met", "", ""], "it has no such objective"
    _, first, second, third = page.one("main").all("section")
    assert "2 of 5 objectives missed" in first.text
    assert "Not known: this period was not observed" in second.text
    assert "Europe/Berlin" in third.text
    links = {one.attributes["href"] for one in page.one("main").all("a")}
    assert links == {"pages/calm.html"}


def test_the_json_has_a_status_for_each_objective():
    (first, *_) = clusters_json(clusters(fleet()))["clusters"]
    assert first["status"] == "missed"
    assert first["headline"].startswith("2 of 5 objectives missed")
    assert {one["status"] for one in first["objectives"]} >= {"missed", "met"}
    json.dumps(first)


def test_a_page_of_hostile_clusters_needs_nothing_but_itself():
    page = read(clusters_page(clusters([sample_facts.hostile()]), {}))
    assert len(list(page.all("script"))) == len(list(page.all("style"))) == 1
    for node in page.all():
        assert not [key for key in node.attributes if key.startswith("on") or key == "style"]


def test_one_command_makes_the_summary_and_its_pages(files: list[str], tmp_path: Path):
    html, pages = tmp_path / "out" / "index.html", tmp_path / "out" / "clusters"
    told = tmp_path / "summary.json"
    done = run(*files, "--html", str(html), "--pages", str(pages), "--json", str(told))
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split("  ")[0].strip() for line in lines] == ["Missed", "No data", "Met"]
    links = re.findall(r'<h2 id="[^"]+"><a href="([^"]+)">', html.read_text(encoding="utf-8"))
    assert len(links) == 3
    for link in links:
        assert (html.parent / link).read_text(encoding="utf-8").startswith("<!doctype html>")
    assert len(json.loads(told.read_text())["clusters"]) == 3


def test_the_same_cluster_twice_is_a_mistake(files: list[str], tmp_path: Path):
    again = tmp_path / "again.json"
    again.write_text(json.dumps(fleet()[0]))
    done = run(*files, str(again))
    assert done.exit_code == 2
    assert "are reports of the same cluster" in done.stderr


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "a/b", "\x00", "\ud800", "x" * 500, "."])
def test_no_cluster_chooses_where_its_page_is_written(name: str):
    assert re.fullmatch(r"[A-Za-z0-9-]{8,50}", file_stem(name))


def test_clusters_of_like_names_have_files_of_their_own():
    assert file_stem("a.b") != file_stem("a-b") != file_stem("A-b")


@pytest.mark.parametrize("more", [["--html", "x.html"], ["--cluster", "c"], ["--json", "-"]])
def test_every_cluster_goes_with_no_other_output(more: list[str]):
    command = ["report", "s3://nowhere/lake", "--every-cluster", "folder", *more]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 2
    assert "--every-cluster requires a lake" in done.stderr
