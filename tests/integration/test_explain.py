"""``jmxlake explain`` over a small lake: its story agrees with gold."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake

from collector.delivery import arrow
from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import lake as lakes, periods
from lakehouse.core.metrics import LEADERLESS, UNDER_MIN_ISR
from lakehouse.engines.engine import Engine, ask
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import SubjectError
from lakehouse.explain.story import explain
from lakehouse.slo import attainment
from lakehouse.slo.openslo import objective_files
from tests.lake_builder import CLUSTER, Batch, micros
from tests.rollups import local

if TYPE_CHECKING:
    from pathlib import Path

WEEK = periods.week("2026-W47")
SECOND = 1_000_000
LAG = "kafka.topic.remote_copy_lag.bytes"
THROTTLE = "kafka.client.produce.throttle_time"
LOST = "kafka.group.non_consumed"
HOSTILE = "evil\u202e\x1b[31m"
NOW = micros(900)


def bronze() -> Batch:
    """Three windows of a cluster of which broker-2 goes silent, and broker-9 was never read."""
    batch = Batch()
    for start in (0.0, 300.0, 600.0):
        end = start + 300
        batch.run("kafka.topic.partitions", start, end, 3.0, topic="t")
        batch.run("kafka.topic.remote_storage_enabled", start, end, 1.0, topic="t")
        batch.run("kafka.cluster.node.fenced", start, end, 0.0, labels=[("node", "broker-9")])
        for family in ("min_isr", "leaders", "tiered", "quotas", "offsets"):
            batch.scrape(family, start, end)
        batch.scrape("controller", start, end, source="controller-3000")
        batch.zeros(UNDER_MIN_ISR, start, end, "other", [0, 1])
        batch.zeros(UNDER_MIN_ISR, start, end, "t", [2])
    isr = {"metric": UNDER_MIN_ISR, "value": 1.0, "topic": "t"}
    batch.run(start=100, end=160, partition=0, lead=10, tail=10, **isr)
    batch.zeros(UNDER_MIN_ISR, 0, 100, "t", [0])
    batch.zeros(UNDER_MIN_ISR, 160, 270, "t", [0])
    # Over the cut of a window, and beside it what another broker says of another partition.
    batch.run(start=270, end=300, partition=0, lead=5, **isr)
    batch.run(start=300, end=340, partition=0, tail=10, **isr)
    batch.run(start=310, end=400, partition=1, source="broker-2", lead=5, tail=20, **isr)
    batch.zeros(UNDER_MIN_ISR, 340, 600, "t", [0])
    batch.zeros(UNDER_MIN_ISR, 600, 900, "t", [0])
    batch.run(LEADERLESS, 640, 700, 1.0, topic="t", partition=1, lead=10, tail=10)
    for start in (0.0, 300.0):
        batch.run(LAG, start, start + 300, 500.0, topic="t")
        batch.run(LAG, start, start + 100, 700.0, topic="t", source="broker-2")
    batch.run(THROTTLE, 0, 60, 500.0, user="u", client_id="c", tail=20)
    batch.run(THROTTLE, 30, 90, 300.0, source="broker-2", user="u", client_id="c")
    batch.run(THROTTLE, 0, 60, 100.0, user="u", client_id=HOSTILE)
    batch.run(THROTTLE, 0, 60, 100.0, user="u")
    for name, lost in (("low", 5.0), ("high", 15.0)):
        batch.counter(f"{LOST}.{name}", 0, 300, lost, group="g", topic="t", partition=0)
        batch.counter(f"{LOST}.{name}", 0, 300, 1.0, group="h", topic="t", partition=0)
    batch.run("kafka.broker.under_min_isr_partitions", 310, 400, 1.0, source="broker-2")
    for family in ("min_isr", "tiered"):
        batch.scrape(family, 0, 300, source="broker-2")
        batch.scrape(family, 300, 350, source="broker-2")
        batch.scrape(family, 350, 500, "refused", source="broker-2", error="connection refused")
        batch.scrape(family, 600, 900, source="broker-2")
    return batch


def noticed(root: Path) -> None:
    """Events: of the topic's partitions, of another topic, of broker-2, and of a quota of all."""
    rows = []
    for seconds, kind, source, told in (
        (105.0, "leader_change", "broker-1", {"topic": "t", "partition": 0, "new": "1"}),
        (320.0, "leader_change", "broker-1", {"topic": "t", "partition": 1, "new": "1"}),
        (105.0, "leader_change", "broker-1", {"topic": "other", "partition": 0, "new": "1"}),
        (520.0, "source_restart", "broker-2", {}),
        (20.0, "quota_change", "broker-1", {"user": "u", "new": "producer_byte_rate=1"}),
        (20.0, "quota_change", "broker-1", {"user": "v", "new": "producer_byte_rate=1"}),
    ):
        row = dict.fromkeys(tables.EVENTS.column_names) | told
        row |= {"date": micros(seconds) // 86_400_000_000, "cluster": CLUSTER, "source": source,
                "at": micros(seconds), "kind": kind, "agent": "agent-1", "batch": 1}  # fmt: skip
        rows.append(tuple(row[name] for name in tables.EVENTS.column_names))
    made = DeltaTable.create(
        str(root / tables.EVENTS.path), schema=arrow.schema(tables.EVENTS), mode="ignore",
        partition_by=["date"], configuration=tables.EVENTS.properties,
        raise_if_key_not_exists=False,
    )  # fmt: skip
    write_deltalake(made, arrow.to_arrow(tables.EVENTS, rows), mode="append")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("explain")
    bronze().commit(root)
    local(root)
    return root


@pytest.fixture(scope="module")
def with_events(lake: Path) -> Path:
    noticed(lake)
    return lake


def of_lake(root: Path) -> Engine:
    return LocalEngine(lakes.at(str(root)))


def told(root: Path, subject: str) -> dict[str, Any]:
    return explain(of_lake(root), objective_files.load(), subject, WEEK, now_us=NOW)


def of(story: dict[str, Any], metric: str) -> list[dict[str, Any]]:
    return [row for row in story["intervals"] if row["metric"] == metric]


def seconds(story: dict[str, Any], metric: str) -> list[tuple[float, float]]:
    spans = [(row["start"], row["end"]) for row in of(story, metric)]
    return [
        tuple((periods.micros(dt.datetime.fromisoformat(end)) - micros(0)) / SECOND for end in span)
        for span in spans
    ]


def test_a_lake_without_events_has_its_story(lake: Path) -> None:
    assert told(lake, "t")["events"] == []


@pytest.fixture(scope="module")
def topic(with_events: Path) -> dict[str, Any]:
    return told(with_events, "t")


def test_the_topic_s_intervals_are_unions_over_brokers_and_windows(topic: Any) -> None:
    assert seconds(topic, UNDER_MIN_ISR) == [(100, 160), (270, 400)]
    first, second = of(topic, UNDER_MIN_ISR)
    assert (first["lead_us"], first["tail_us"]) == (10 * SECOND, 10 * SECOND)
    assert (first["lasted_low_us"], first["lasted_high_us"]) == (50 * SECOND, 70 * SECOND)
    assert (second["parts"], second["told_by"]) == (["0", "1"], ["broker-1", "broker-2"])
    assert (second["worst_low"], second["worst_high"], second["unit"]) == (2.0, None, "partitions")
    assert seconds(topic, LEADERLESS) == [(640, 700)]


@pytest.mark.parametrize("metric", [UNDER_MIN_ISR, LEADERLESS, LAG])
def test_the_sums_are_gold_s(with_events: Path, topic: Any, metric: str) -> None:
    engine = of_lake(with_events)
    names = "r.any_us, r.any_low_us, r.any_high_us, r.max_total, r.max_concurrent"
    of_topic = f"FROM {{rows}} r WHERE r.topic = 't' AND r.metric = '{metric}'"
    rows = engine.rows(tables.TOPICS)
    ((*times, total, concurrent),) = ask(engine, f"SELECT {names} {of_topic}", rows=rows)
    (mine,) = (one for one in topic["sums"] if one["metric"] == metric)
    assert [mine[name] for name in ("lasted_us", "lasted_low_us", "lasted_high_us")] == times
    assert mine["worst_high"] is None, "a source was silent"
    if metric == LAG:
        assert total == 1200.0  # a sum over brokers has no low bound of its own
    else:
        assert mine["worst_low"] == concurrent


def test_who_was_silent_meanwhile_and_why(topic: Any) -> None:
    _, second = of(topic, UNDER_MIN_ISR)
    silent = [(s["source"], s["family"], s["outcome"], s["error"]) for s in second["silent"]]
    assert silent == [
        ("broker-9", "any", None, None),
        ("broker-2", "min_isr", "refused", "connection refused"),
    ]
    (lag,) = of(topic, LAG)
    assert [(s["family"], s["outcome"]) for s in lag["silent"]] == [
        ("any", None), ("tiered", "refused"), ("tiered", None),
    ]  # fmt: skip


def test_what_was_noticed_in_an_interval(topic: Any) -> None:
    first, second = of(topic, UNDER_MIN_ISR)
    assert [(e["kind"], e["partition"]) for e in first["events"]] == [("leader_change", 0)]
    assert [(e["kind"], e["partition"]) for e in second["events"]] == [("leader_change", 1)]
    assert [e["kind"] for e in topic["events"]] == [
        "leader_change", "leader_change", "source_restart",
    ]  # fmt: skip


def test_verdicts_are_the_report_s_and_unknown_time_adds_up(with_events: Path, topic: Any) -> None:
    stated = attainment.read(of_lake(with_events), objective_files.load(), WEEK, NOW)
    mine = {one.objective.name: one for one in stated if one.subject.topic == "t"}
    assert {row["objective"] for row in topic["objectives"]} == set(mine)
    assert "min-isr" in mine
    for row in topic["objectives"]:
        figures = mine[row["objective"]].figures()
        assert {name: row[name] for name in figures} == figures
        assert sum(one["unknown_us"] for one in row["unknown"]) == row["unknown_us"]
        assert sum(one["bad_us"] for one in row["bad"]) == row["bad_us"]


def test_a_partition_has_its_own_intervals_and_its_topic_s_verdict(with_events: Path) -> None:
    story = told(with_events, "t/1")
    assert seconds(story, UNDER_MIN_ISR) == [(310, 400)]
    assert seconds(story, LEADERLESS) == [(640, 700)]
    assert of(story, LAG) == []
    assert "min-isr" in {row["objective"] for row in story["objectives"]}
    assert {e["partition"] for e in story["events"]} == {1, None}
    assert told(with_events, "t/2")["intervals"] == []


def test_a_client_is_its_user_and_client_id_and_nobody_else(with_events: Path) -> None:
    story = told(with_events, "u/c")
    (one,) = of(story, THROTTLE)
    assert seconds(story, THROTTLE) == [(0, 90)]
    assert (one["worst_low"], one["worst_high"]) == (500.0, None)
    assert one["lasted_low_us"] == 90 * SECOND, "the other broker covers the uncertain tail"
    assert [(e["kind"], e["user"]) for e in one["events"]] == [("quota_change", "u")]
    assert seconds(told(with_events, "user:u"), THROTTLE) == [(0, 60)]


def test_a_group_lost_between_the_low_and_the_high_count(with_events: Path) -> None:
    (one,) = told(with_events, "g")["intervals"]
    assert (one["worst_low"], one["worst_high"]) == (5.0, None)
    assert (one["parts"], one["lasted_us"]) == (["t/0"], None)


def test_a_broker_is_bad_when_it_is_not_seen(with_events: Path) -> None:
    story = told(with_events, "broker-2")
    assert seconds(story, "jmxlake.coverage") == [(350, 600)]
    assert [s["outcome"] for s in of(story, "jmxlake.coverage")[0]["silent"]] == [
        "refused", "refused", None, None,
    ]  # fmt: skip
    never = told(with_events, "broker-9")
    assert seconds(never, "jmxlake.coverage") == [(0, 900)]
    assert {s["source"] for s in never["silences"]} == {"broker-9"}


def test_of_bronze_events_alone_are_read(with_events: Path, topic: Any, tmp_path: Path) -> None:
    shutil.copytree(with_events, tmp_path / "lake")
    for table in (tables.RUNS, tables.SCRAPES, tables.MEMBERS):
        shutil.rmtree(tmp_path / "lake" / table.path)
    engine = LocalEngine(lakes.Lake(str(tmp_path / "lake")))
    assert explain(engine, objective_files.load(), "t", WEEK, now_us=NOW) == topic


def test_the_command_tells_a_person_and_a_program(with_events: Path) -> None:
    run = CliRunner().invoke(main, ["explain", str(with_events), "t", "--week", "2026-W47"])
    assert run.exit_code == 0, run.stderr
    assert run.stdout.startswith("Topic t of cluster cluster-a\n")
    assert "Under its min ISR  Mon 16 Nov 10:01:40 to Mon 16 Nov 10:02:40" in run.stdout
    assert "\x1b" not in run.stdout
    asked = ["explain", str(with_events), "u/" + HOSTILE, "--json", "--cluster", CLUSTER]
    run = CliRunner().invoke(main, asked)
    assert run.exit_code == 0, run.stderr
    assert run.stdout.isascii()
    assert json.loads(run.stdout)["subject"]["client_id"] == HOSTILE
    run = CliRunner().invoke(main, ["explain", str(with_events), r"u/evil\u202e\u001b[31m"])
    assert run.stdout.startswith(r"User u, client id evil\u202e\u001b[31m of cluster")


def test_a_name_that_is_not_in_the_lake_is_one_line(with_events: Path) -> None:
    run = CliRunner().invoke(main, ["explain", str(with_events), "othr", "--week", "2026-W47"])
    assert run.exit_code == 1
    last = run.stderr.splitlines()[-1]
    assert last.startswith("jmxlake: othr: ")
    assert last.endswith("did you mean topic:other?")
    run = CliRunner().invoke(main, ["explain", str(with_events), "t", "--cluster", "x"])
    assert "has no such cluster; it has cluster-a" in run.stderr.splitlines()[-1]


def test_another_cluster_s_subject_is_not_this_one(with_events: Path) -> None:
    with pytest.raises(SubjectError, match="no such cluster"):
        explain(of_lake(with_events), objective_files.load(), "t", WEEK, cluster="elsewhere")


@pytest.fixture(scope="module")
def with_ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four windows; of the topic ``gone`` and of broker-2 the last three tell no more."""
    batch = Batch()
    for start in (0.0, 300.0, 600.0, 900.0):
        end = start + 300
        brokers, topics = ("broker-1", "broker-2"), ("t", "gone")
        for source in brokers if start == 0 else brokers[:1]:
            batch.run("kafka.cluster.node.fenced", start, end, 0.0, labels=[("node", source)])
            for family in ("topology", "min_isr"):
                batch.scrape(family, start, end, source=source)
        for topic in topics if start == 0 else topics[:1]:
            batch.run("kafka.topic.partitions", start, end, 1.0, topic=topic)
            batch.zeros(UNDER_MIN_ISR, start, end, topic, [0])
    root = tmp_path_factory.mktemp("ended")
    batch.commit(root)
    local(root)
    return root


@pytest.mark.parametrize(("name", "objective"), [("gone", "min-isr"), ("broker-2", "coverage")])
def test_of_whom_came_to_an_end_nothing_is_expected_any_more(
    with_ended: Path, name: str, objective: str
) -> None:
    engine, now = of_lake(with_ended), micros(1200)
    story = explain(engine, objective_files.load(), name, WEEK, now_us=now)
    stated = attainment.read(engine, objective_files.load(), WEEK, now)
    mine = [one for one in stated if name in (one.subject.topic, one.subject.source)]
    reported = {one.objective.name: one.figures() for one in mine}
    told = {row["objective"]: row for row in story["objectives"]}
    assert set(told) == set(reported)
    for each, figures in reported.items():
        assert {key: told[each][key] for key in figures} == figures
    row = told[objective]
    assert (row["expected_us"], row["unknown_us"]) == (300 * SECOND, 0)
    assert (row["verdict"], row["unknown"]) == ("met", [])
