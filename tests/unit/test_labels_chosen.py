"""Objectives on some of a source's series, which patterns of their labels choose."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake
from hypothesis import given, strategies as st

from collector.delivery import arrow
from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import lake as lakes
from lakehouse.core.objective import Events, Objective, is_regex, matches, regexes
from lakehouse.core.periods import Period, instant
from lakehouse.engines.gold_reader import labels_in
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import ObjectiveError
from lakehouse.kernel.build_program import _statements
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from lakehouse.slo import attainment
from lakehouse.slo.openslo import objective_files
from tests.gold_builder import put
from tests.lake_builder import BASE, Batch, made, micros
from tests.rollups import prepare

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.slo.sla_statement import Statement

SLO = """\
apiVersion: openslo/v1
kind: SLO
metadata: {{name: orders-run}}
spec:
  service: connect
  indicator:
    metadata: {{name: orders-run}}
    spec:
      thresholdMetric:
        metricSource:
          type: jmxlake
          spec:
            level: {level}
            metric: {metric}
            match: {match}
  budgetingMethod: GoodSeconds
  objectives:
    - {{op: {op}, value: 1, target: 0.9}}
"""
RUNS, EVIL = "connect.task.runs", 'x,task=0\\\'; DROP "{t}" --\n='


def write(folder: Path, match: str, **parts: str) -> Path:
    parts = {"level": "source", "metric": RUNS, "op": "gte", **parts}
    file = folder / "orders.yaml"
    file.write_text(SLO.format(match=match, **parts), "utf-8")
    return file


def checked(folder: Path, match: str, **parts: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code, and what is not supported of the only SLO, against a lake with tasks."""
    table, lake = tables.METRIC_DEFINITIONS, folder / "lake"
    Batch().commit(lake)
    words = ("connect", ["client"], "gauge", "1", "not_applicable", 0, 0, "Runs.", "agent-1")
    rows = arrow.to_arrow(table, [("c", RUNS, *words)])
    write_deltalake(made(lake, table), rows, mode="append")
    for labels in ("connector=orders-sink,task=0", "connector=x\\,y\\=z"):
        row = {"cluster": "c", "window_start": BASE, "metric": RUNS, "source": "client-1"}
        put(lake, tables.LABELLED, row | {"labels": labels})
    call = ["slo", "check", str(write(folder, match, **parts)), "--json"]
    ran = CliRunner().invoke(main, [*call, "--lake", str(lake)])
    assert ran.stdout, ran.output
    (one,) = json.loads(ran.stdout)["objects"]
    return ran.exit_code, [found for found in one["findings"] if found["kind"] != "note"]


def test_a_file_chooses_series_as_it_chooses_names(tmp_path: Path) -> None:
    write(tmp_path, '{source: ["client-*"], connector: ["orders-*", "!*-test"], task: ["!0"]}')
    (one,) = objective_files.load(tmp_path)
    assert one.series == {"connector": ("orders-*", "!*-test"), "task": ("!0",)}
    assert one.matches({"cluster": "c", "source": "client-1"})
    assert not one.matches({"cluster": "c", "source": "broker-1"})
    assert one.has_series({"connector": "orders-sink", "task": "1"})
    assert one.has_series({"connector": "orders-sink"}), "a label that is absent is empty"
    for labels in (
        {"connector": "orders-sink", "task": "0"}, {"connector": "orders-test"}, {"task": "1"}
    ):  # fmt: skip
        assert not one.has_series(labels)
    assert not one.is_at_zero, "gold/incidents has the stretches of all series"


def test_labels_of_the_metric_are_supported(tmp_path: Path) -> None:
    assert checked(tmp_path, '{connector: ["orders-*"], task: ["!0"]}') == (0, [])


@pytest.mark.parametrize(
    ("match", "said"),
    [
        ("{conector: [a]}", "with that label; did you mean connector?"),
        ("{sorce: [a]}", "with that label; did you mean source?"),
        ("{queue: [a]}", "with that label; its labels are connector, task"),
        ("{task: ['[9-0]']}", "a pattern has a reversed range"),
    ],
)
def test_what_can_choose_no_series_is_refused(tmp_path: Path, match: str, said: str) -> None:
    code, (fault,) = checked(tmp_path, match)
    assert (code, fault["kind"]) == (3, "unsupported")
    assert said in fault["message"]
    assert (fault["line"], fault["path"].rpartition(".")[0].rpartition(".")[2]) == (15, "match")


def test_without_a_lake_no_label_is_known(tmp_path: Path) -> None:
    file = write(tmp_path, "{listener: [a]}", metric="kafka.broker.network_processor.idle")
    ran = CliRunner().invoke(main, ["slo", "check", str(file)])
    assert ran.exit_code == 3
    assert "its labels are none yet: name a --lake, after a rollup" in ran.stdout


@pytest.mark.parametrize(
    "parts",
    [
        {"level": "topic", "metric": "my.own.bean", "op": "lte"},
        {"level": "group", "metric": "kafka.group.lag"},
        {"metric": "jmxlake.coverage", "op": "lte"},
    ],
)
def test_only_series_of_sources_have_labels(tmp_path: Path, parts: dict[str, str]) -> None:
    write(tmp_path, "{connector: [a]}", **parts)
    with pytest.raises(ObjectiveError, match="client_id, group, source: mistyped"):
        objective_files.load(tmp_path)


_TEXTS = st.text("ab,=\\'\"{}é\n", max_size=6)


@given(st.dictionaries(_TEXTS, _TEXTS, min_size=1, max_size=3))
def test_labels_are_read_back_from_one_text(labels: dict[str, str]) -> None:
    """By the kernel's own expression."""
    with duckdb.connect() as connection:
        for _, sql in _statements("macros"):
            if "escaped(" in sql:
                connection.execute(sql)
        names, values = list(labels), list(labels.values())
        found = connection.execute("SELECT labels_of(map(?, ?))", [names, values]).fetchone()
    assert found is not None
    assert labels_in(found[0]) == labels


_PATTERNS = st.lists(st.text("ab.*?[]!^-\\|({'é\n", max_size=6), max_size=3)


@given(_PATTERNS, st.text("ab.[]!^-\\|({'é\n", max_size=5))
def test_a_pattern_means_the_same_to_the_kernel(patterns: list[str], name: str) -> None:
    if not all(map(is_regex, patterns)):
        return
    wanted, unwanted = regexes(patterns)
    sql = "SELECT regexp_full_match(?, ?), regexp_full_match(?, ?)"
    (row,) = duckdb.execute(sql, [name, wanted, name, unwanted]).fetchall()
    assert ((not wanted or row[0]) and not (unwanted and row[1])) == matches(name, patterns)


def stated(root: Path, batch: Batch, objectives: tuple[Objective, ...]) -> dict[str, Statement]:
    """The statements of ten minutes, by source."""
    for start in (0, 300):
        batch.scrape("connect", start, start + 300, source="client-1")
    batch.commit(root)
    prepare(root)
    engine = LocalEngine(lakes.at(str(root)))
    rollup(engine, objectives, Wanted(tidy="never"))
    period = Period(instant(micros(0)), instant(micros(600)))
    found = attainment.read(engine, objectives, period, micros(600))
    return {str(one.subject.source): one for one in found}


def test_hostile_labels_are_chosen_as_they_are_written(tmp_path: Path) -> None:
    batch = Batch()
    for start in (0, 300):
        for connector, value in (("x", 0.0), (EVIL, 1.0), ("orders", 0.0), ("x,task=0", 0.0)):
            labels = [("connector", connector), ("a\\=,'", "b")]
            batch.run(RUNS, start, start + 300, value, source="client-1", labels=labels)
    chosen = {"connector": (EVIL.replace("\\", "?"), "orders*", "!o*"), "a\\=,'": ("b",)}
    one = Objective("evil", "", "", "source", RUNS, 1.0, 0.9, op="gte", match=chosen)
    (statement,) = stated(tmp_path, batch, (one,)).values()
    assert (statement.verdict, statement.times.good_us) == ("met", 600_000_000)


def test_hostile_labels_choose_events_too(tmp_path: Path) -> None:
    batch, names = Batch(), ("connect.errors", "connect.records")
    for connector, errors in ((EVIL, 5.0), ("x", 7.0), ("x,task=0\\", 100.0)):
        for name, number in zip(names, (errors, 100.0), strict=True):
            labels = [("connector", connector), ("'", "\\")]
            batch.counter(name, 0, 300, number, source="client-1", labels=labels)
    events = Events(names[0], are_good=False, total=names[1])
    chosen = {"connector": ("x*", "!x", "!*\\"), "'": ("\\",)}
    one = Objective(
        "evil", "", "", "source", names[1], 0.0, 0.9, events=events, match=chosen
    )  # fmt: skip
    (statement,) = stated(tmp_path, batch, (one,)).values()
    assert statement.counts is not None
    assert (statement.counts.good, statement.counts.total) == (95.0, 100.0)


@pytest.mark.parametrize("part", ["a", "\\\\", "\\,", ",", "a\\="])
def test_text_that_has_no_label_is_read_in_one_go(part: str) -> None:
    """A search from each of its characters took hours."""
    assert labels_in(part * 1_000_000) == {}
