"""Every metric that is collected by default is shown, and so is what an own catalogue reads."""

from __future__ import annotations

import copy
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from deltalake import write_deltalake

from collector import catalogue
from collector.delivery import arrow
from collector.errors import ConfigError
from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.core.metrics import COVERAGE, UNAVAILABLE, known
from lakehouse.core.periods import Period, instant
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import TableNotFoundError
from lakehouse.report import owners
from lakehouse.report.facts import build, report_record
from lakehouse.report.facts.by_owner import add_owners, of_team
from lakehouse.report.facts.sections import monitoring
from lakehouse.report.page.page import render
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from lakehouse.slo.openslo import objective_files
from tests.kernel_inputs import of_clusters
from tests.lake_builder import Batch, made, micros
from tests.page_reader import read
from tests.rollups import prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from lakehouse.core.objective import Objective

    FactsOf = Callable[..., dict[str, Any]]

FACTS = Path(monitoring.__file__).parents[1]
NAME = re.compile(r'"(kafka\.[a-z0-9_]+(?:\.[a-z0-9_]+)+)"')
SUBJECTS: dict[str, dict[str, Any]] = {
    "partition": {"topic": "t", "partition": 0},
    "topic": {"topic": "t"},
    "client": {"client_id": "c"},
    "group": {"group": "g", "topic": "t"},
    "source": {},
}


CASES: dict[str, Callable[[], Batch]] = {}


def case(make: Callable[[], Batch]) -> Callable[[], Batch]:
    """Add the rows of a cluster to the lake of these tests."""
    CASES[make.__name__] = make
    return make


@pytest.fixture(scope="module")
def objectives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Objective]:
    folder = tmp_path_factory.mktemp("slo")
    metrics = ("acme.cache.idle", "acme.threads.idle")
    return {one: objective(folder / one, one, "gte", 0.3) for one in metrics}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, objectives: dict[str, Objective]) -> Path:
    """A lake with a cluster for each case, and metrics that catalogues define differently."""
    root = tmp_path_factory.mktemp("own") / "lake"
    batches = {name: make() for name, make in CASES.items()}
    for batch in batches.values():
        batch.scrape("topology", 0, 300)
    of_clusters(batches).commit(root)
    rows = [
        (hash_, "acme.cache.lag", "acme", ["broker"], "gauge", unit, "idle", 0, 0, "How late.", "a")
        for hash_, unit in (("old", "s"), ("new", "ms"))
    ]
    definitions = tables.METRIC_DEFINITIONS
    write_deltalake(made(root, definitions), arrow.to_arrow(definitions, rows), mode="append")
    prepare(root)
    wanted = [*objective_files.load(), *objectives.values()]
    rollup(LocalEngine(lakes.at(str(root))), wanted, Wanted(tidy="never"))
    return root


@pytest.fixture(scope="module")
def facts_of(lake: Path) -> FactsOf:
    """Give what a report says of a cluster; the same report for all tests of it."""
    found: dict[str, dict[str, Any]] = {}

    def facts(make: Callable[[], Batch], wanted: Collection[Objective] = ()) -> dict[str, Any]:
        if (name := make.__name__) not in found:
            found[name] = reported(lake, name, [*wanted] or objective_files.load())
        return copy.deepcopy(found[name])

    return facts


def reported(root: Path, cluster: str, wanted: Sequence[Objective]) -> dict[str, Any]:
    period, now = Period.of((micros(0), micros(3600))), instant(micros(3660))
    return build.facts(LocalEngine(lakes.at(str(root))), wanted, period, cluster=cluster, now=now)


def of(facts: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in facts["own_metrics"]["metrics"] if one["metric"] == name)


def objective(folder: Path, metric: str, op: str, value: float) -> Objective:
    """An objective of sources on a gauge."""
    shipped = yaml.safe_load(
        (objective_files.OPTIONAL / "request-handlers.yaml").read_text("utf-8")
    )
    source = shipped["spec"]["indicator"]["spec"]["thresholdMetric"]["metricSource"]
    source["spec"]["metric"] = metric
    shipped["metadata"]["name"] = metric.replace(".", "-")
    shipped["spec"]["objectives"] = [{"op": op, "value": value, "target": 0.99}]
    folder.mkdir(exist_ok=True)
    (folder / "own.yaml").write_text(yaml.safe_dump(shipped), "utf-8")
    (found,) = objective_files.load(folder)
    return found


def collected_by_default() -> set[str]:
    return {
        metric.name
        for read in (catalogue.load(), catalogue.load().preferring("metadata_log"))
        for family in read.families
        if family.enabled
        for metric in family.metrics
    }


@case
def defaults() -> Batch:
    every = {**catalogue.load().metrics, **catalogue.load().preferring("metadata_log").metrics}
    batch = Batch()
    batch.scrape("min_isr", 0, 300)
    for name in collected_by_default():
        write = batch.counter if every[name].kind == "counter" else batch.run
        write(name, 0, 300, 1.0, **SUBJECTS[known()[name].level])
    return batch


def test_each_metric_that_is_collected_by_default_is_shown(facts_of: FactsOf) -> None:
    """In a section of the page that names it, or in the one that has all others."""
    shown = {one["metric"] for one in facts_of(defaults)["own_metrics"]["metrics"]}
    assert shown == {
        name
        for name in collected_by_default()
        if not monitoring.is_shown(name, report_record.shown())
        and not known()[name].traits.describes
    }
    assert shown


def test_what_another_section_shows_is_not_shown_twice() -> None:
    """A module of the facts that names a metric has figures of it in its own section."""
    modules = [path.read_text("utf-8") for path in FACTS.rglob("*.py")]
    named = {name for text in modules for name in NAME.findall(text) if name in known()}
    assert len(named) > 20
    assert [
        name
        for name in sorted(named)
        if not known()[name].traits.describes
        and not monitoring.is_shown(name, report_record.shown())
    ] == []


def test_each_pattern_of_what_a_section_shows_fits_a_metric() -> None:
    patterns = report_record.shown()
    assert len(patterns) > 10
    names = [*known()]
    for pattern in patterns:
        assert any(monitoring.fnmatchcase(name, pattern) for name in names), pattern


@case
def shards() -> Batch:
    batch = Batch()
    batch.scrape("acme", 0, 300)
    for number in range(100_000):
        batch.run("acme.cache.size", 0, 300, float(number), labels=[("shard", f"s{number}")])
    return batch


def test_of_a_hundred_thousand_series_the_greatest_are_shown_and_the_others_counted(
    facts_of: FactsOf,
) -> None:
    metric = of(facts_of(shards), "acme.cache.size")
    assert (metric["level"], metric["subjects"]) == ("series", 100_000)
    assert [row["max"] for row in metric["worst"]] == [99_999.0 - n for n in range(20)]
    assert metric["worst"][0]["labels"] == "shard=s99999"


EVIL = {"a": "x,b=y", "<b>": "</td><script>\u202e\x1b[31m"}


@case
def hostile_labels() -> Batch:
    batch = Batch()
    batch.run("acme.cache.size", 0, 300, 3.0, labels=[*EVIL.items()])
    batch.run("acme.cache.size", 0, 300, 2.0, labels=[("a", "x"), ("b", "y")])
    return batch


def test_hostile_labels_keep_their_place_in_the_page(facts_of: FactsOf) -> None:
    facts = facts_of(hostile_labels)
    rows = of(facts, "acme.cache.size")["worst"]
    assert [row["max"] for row in rows] == [3.0, 2.0]
    assert {row["labels"] for row in rows} == {
        "<b>=</td><script>\u202e\x1b[31m,a=x\\,b\\=y", "a=x,b=y"
    }  # fmt: skip
    page = read(render(facts))
    section = page.one("div", id="d-own-metrics")
    assert len(list(section.one("tbody").all("tr"))) == 1
    assert not any(mark in page.raw for mark in "\u202e\x1b")


@case
def becomes_a_counter() -> Batch:
    batch = Batch()
    batch.run("acme.cache.loads", 0, 300, 7.0)
    batch.counter("acme.cache.loads", 300, 600, 5.0)
    return batch


def test_a_metric_that_becomes_a_counter_has_no_mean_and_no_rate(facts_of: FactsOf) -> None:
    facts = facts_of(becomes_a_counter)
    metric = of(facts, "acme.cache.loads")
    assert metric["kind"] == "gauge and counter"
    (row,) = metric["worst"]
    assert (row["mean"], row["per_second"]) == (None, None)
    assert (row["max"], row["increase"]) == (7.0, 5.0)
    cells = read(render(facts)).one("div", id="d-own-metrics").one("tbody").all("td")
    assert [one.text for one in cells][-2:] == ["7", "5"]


@case
def defined_differently() -> Batch:
    batch = Batch()
    for start in range(0, 3600, 300):
        batch.scrape("acme", start, start + 300, "ok" if start < 1800 else "refused")
    for name in ("lag", "size"):
        batch.run(f"acme.cache.{name}", 0, 300, 1.0)
    return batch


def test_what_catalogues_say_differently_is_said_and_what_nobody_defines_is_shown(
    facts_of: FactsOf,
) -> None:
    facts = facts_of(defined_differently)
    lag, size = of(facts, "acme.cache.lag"), of(facts, "acme.cache.size")
    assert (lag["unit"], lag["description"], lag["families"]) == ("ms or s", "How late.", ["acme"])
    assert (size["unit"], size["families"], size["percent"]) == ("", [], None)
    assert lag["percent"] == pytest.approx(50, abs=2)
    assert lag["worst"][0]["unknown_us"] == pytest.approx(1800e6, rel=0.04)


@case
def of_objectives() -> Batch:
    batch = Batch()
    batch.scrape("min_isr", 0, 300)
    batch.run("acme.cache.size", 0, 300, 1.0)
    for number, value in enumerate((0.9, 0.1, 0.5)):
        batch.scrape("acme", 0, 300, source=f"broker-{number}")
        batch.run("acme.threads.idle", 0, 300, value, source=f"broker-{number}")
    return batch


def test_an_objective_whose_metric_vanished_is_one_clear_line(
    facts_of: FactsOf, objectives: dict[str, Objective]
) -> None:
    facts = facts_of(of_objectives, objectives.values())
    assert facts["own_metrics"]["absent"] == ["acme.cache.idle"]
    verdicts = {one["objective"]: one["verdict"] for one in facts["verdicts"]}
    assert verdicts["acme-cache-idle"] == "no_data"
    said = "not collected: acme.cache.idle"
    assert said in read(render(facts)).one("section", id="details").text


def test_where_low_is_bad_the_least_comes_first(
    facts_of: FactsOf, objectives: dict[str, Objective]
) -> None:
    rows = of(facts_of(of_objectives, objectives.values()), "acme.threads.idle")["worst"]
    assert [row["source"] for row in rows] == ["broker-1", "broker-2", "broker-0"]


@case
def of_topics() -> Batch:
    batch = Batch()
    batch.run("acme.topic.late", 3300, 3600, 0.0, topic="t")
    for topic in ("t", "new"):
        batch.run("acme.topic.late", 3610, 3900, 1.0, topic=topic, lead=40)
    for topic in ("mine", "theirs"):
        batch.run("acme.topic.stale", 0, 300, 1.0, topic=topic)
    batch.run("acme.threads.idle", 0, 300, 1.0)
    return batch


def test_the_upper_bound_has_what_was_first_seen_just_after_the_period(facts_of: FactsOf) -> None:
    (row,) = of(facts_of(of_topics), "acme.topic.late")["worst"]
    assert (row["topic"], row["above_us"], row["above_high_us"]) == ("t", 0, 30_000_000)


@case
def of_all_subjects() -> Batch:
    batch = Batch()
    batch.scrape("acme", 0, 300)
    batch.counter("acme.topic.loads", 0, 300, 6.0, topic="t")
    batch.run("acme.client.busy", 300, 600, 2.0, client_id="c")
    batch.run("acme.group.members", 0, 300, 3.0, group="g")
    return batch


def test_a_metric_is_of_the_finest_subject_and_drawn_where_it_was_read(facts_of: FactsOf) -> None:
    facts = facts_of(of_all_subjects)
    names = ("acme.topic.loads", "acme.client.busy", "acme.group.members")
    assert [of(facts, name)["level"] for name in names] == ["topic", "client", "group"]
    lines = {one["name"]: one for one in facts["timelines"]}
    loads = lines["acme.topic.loads"]
    assert (loads["subject"], loads["points"][0][1:]) == ("t", [6.0, 6.0, 6.0])
    assert loads["points"][2][1:] == [None, None, None]
    assert {COVERAGE, UNAVAILABLE}.isdisjoint(
        one["metric"] for one in facts["own_metrics"]["metrics"]
    )


def test_a_team_sees_the_figures_of_its_own_topics(facts_of: FactsOf, tmp_path: Path) -> None:
    owned = "owners: [{team: a, topics: [mine]}, {team: b, topics: ['*']}]"
    (tmp_path / "owners.yaml").write_text(owned)
    facts = add_owners(facts_of(of_topics), owners.load(tmp_path / "owners.yaml"))
    (metric,) = of_team(facts, "a")["own_metrics"]["metrics"]
    assert [row["topic"] for row in metric["worst"]] == ["mine"]
    assert metric["subjects"] is None


def test_gold_of_an_older_jmxlake_wants_a_rollup_first(lake: Path, tmp_path: Path) -> None:
    older = tmp_path / "lake"
    shutil.copytree(lake, older)
    for table in (tables.LABELLED, tables.WINDOWS["labelled"]):
        shutil.rmtree(older / table.path)
    with pytest.raises(TableNotFoundError, match=r"gold/labelled.*Run jmxlake rollup first"):
        reported(older, hostile_labels.__name__, objective_files.load())


def test_the_page_about_own_metrics_has_files_that_load(tmp_path: Path) -> None:
    text = (FACTS.parents[2] / "docs/agent.md").read_text("utf-8")
    blocks = re.findall(r"cat > \S+ <<'END'\n(.*?)^END$", text, re.DOTALL | re.MULTILINE)
    for kind in ("family", "apiVersion"):
        (tmp_path / kind).mkdir()
        for number, block in enumerate(one for one in blocks if f"{kind}: " in one):
            (tmp_path / kind / f"{number}.yaml").write_text(block, "utf-8")
    loaded = catalogue.load(tmp_path / "family")
    own = {name for name in loaded.metrics if name not in known()}
    assert own == {"connect.connector.failed_tasks", "connect.task.runs"}
    assert {one.metric for one in objective_files.load(tmp_path / "apiVersion")} <= own


def test_a_filter_with_items_or_texts_is_refused(tmp_path: Path) -> None:
    """No server compares these."""
    for key, value in (("item", "used"), ("states", {"up": 1})):
        metric = {"object": "a:type=B", "unit": "1", "description": "x", "filter": "positive"}
        content = {
            "family": "acme", "via": "jmx", "roles": ["broker"],
            "metrics": {"acme.b": {**metric, key: value}},
        }  # fmt: skip
        (tmp_path / "acme.yaml").write_text(yaml.safe_dump(content), "utf-8")
        with pytest.raises(ConfigError, match="a server cannot compare items and texts"):
            catalogue.load(tmp_path)
