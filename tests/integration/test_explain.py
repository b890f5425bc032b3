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
from lakehouse.explain.terminal import view
from lakehouse.report.facts.build import facts
from lakehouse.report.facts.by_owner import add_owners
from lakehouse.report.owners import Owner, Owners, Rule, pattern
from lakehouse.report.summary import lines
from lakehouse.report.summary.summarize import summarize
from lakehouse.slo import attainment
from lakehouse.slo.openslo import objective_files
from tests.lake_builder import CLUSTER, Batch, micros
from tests.rollups import local

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.reads

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
def with_changes(lake: Path) -> Path:
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


def test_lake_without_changes_has_story(lake: Path) -> None:
    assert told(lake, "t")["changes"] == []


@pytest.fixture(scope="module")
def topic(with_changes: Path) -> dict[str, Any]:
    return told(with_changes, "t")


def test_topic_intervals_are_unions_over_brokers_and_windows(topic: Any) -> None:
    assert seconds(topic, UNDER_MIN_ISR) == [(100, 160), (270, 400)]
    first, second = of(topic, UNDER_MIN_ISR)
    assert (first["lead_us"], first["tail_us"]) == (10 * SECOND, 10 * SECOND)
    assert (first["lasted_low_us"], first["lasted_high_us"]) == (50 * SECOND, 70 * SECOND)
    assert (second["parts"], second["sources"]) == (["0", "1"], ["broker-1", "broker-2"])
    assert (second["worst_low"], second["worst_high"], second["unit"]) == (2.0, None, "partitions")
    assert seconds(topic, LEADERLESS) == [(640, 700)]


@pytest.mark.parametrize("metric", [UNDER_MIN_ISR, LEADERLESS, LAG])
def test_the_sums_are_gold_s(with_changes: Path, topic: Any, metric: str) -> None:
    engine = of_lake(with_changes)
    names = "r.affected_us, r.affected_low_us, r.affected_high_us, r.max_total, r.max_concurrent"
    of_topic = f"FROM {{rows}} r WHERE r.topic = 't' AND r.metric = '{metric}'"
    rows = engine.rows(tables.TOPICS)
    ((*times, total, concurrent),) = ask(engine, f"SELECT {names} {of_topic}", rows=rows)
    mine = of(topic, metric)
    lasted = ("lasted_us", "lasted_low_us", "lasted_high_us")
    assert [sum(row[name] for row in mine) for name in lasted] == times
    assert mine[0]["worst_high"] is None, "a source was silent"
    if metric == LAG:
        assert total == 1200.0  # a sum over brokers has no low bound of its own
    else:
        assert max(row["worst_low"] for row in mine) == concurrent


def test_gap_has_outcome_and_error(topic: Any) -> None:
    gaps = {(s["source"], s["family"], s["outcome"], s["error"]) for s in topic["gaps"]}
    assert ("broker-9", "any", None, None) in gaps
    assert ("broker-2", "min_isr", "refused", "connection refused") in gaps
    assert ("broker-2", "tiered", None, None) in gaps


def test_changes_are_of_topic_and_sources(topic: Any) -> None:
    assert [(e["kind"], e["topic"], e["partition"]) for e in topic["changes"]] == [
        ("leader_change", "t", 0), ("leader_change", "t", 1), ("source_restart", None, None),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def reported(with_changes: Path) -> Any:
    now = periods.instant(NOW)
    return facts(of_lake(with_changes), objective_files.load(), WEEK, now=now)


SUBJECTS = ["t", "other", "t/1", "t/2", "u/c", "user:u", f"u/{HOSTILE}", "g", "h", "broker-2"]


def test_report_event_is_in_story_of_its_subjects(with_changes: Path, reported: Any) -> None:
    """The same number, the same figures and the same words."""
    summary = summarize(reported)
    rows = {row["number"]: row for row in reported["events"]}
    events = {one.number: one for one in summary.events}
    seen: dict[str, list[int]] = {}
    for name in SUBJECTS:
        story = told(with_changes, name)
        assert story["events_in_report"] == len(rows)
        seen[name] = [one["number"] for one in story["events"]]
        for one in story["events"]:
            event, words = events[one["number"]], one["words"]
            assert {key: one[key] for key in one if key != "words"} == rows[one["number"]]
            assert words["title"] == lines.plain(event.title)
            assert words["cause"] == lines.plain(event.cause)
            assert words["impact"] == lines.plain(event.impact)
            assert words["next_step"] == lines.plain(event.next_step)
            assert words["used"] == event.used
            assert words["title"] in " ".join(view(story, terminal=False, width=120).split())
    assert set(rows) <= {number for own in seen.values() for number in own}
    of_topic = [number for number, row in rows.items() if "t" in row["topics"]]
    assert of_topic
    assert set(of_topic) <= set(seen["t"])
    assert seen["other"] == seen["t/2"] == []
    assert all(rows[number]["client_id"] == "c" for number in seen["u/c"])
    assert seen["u/c"]


def test_story_has_the_owners_of_the_report(with_changes: Path, reported: Any) -> None:
    rules = {"topic": "sales", "source": "platform"}
    given = Owners(tuple(
        Rule(Owner(team), {name: pattern(["*"])}) for name, team in rules.items()
    ))  # fmt: skip
    owned = add_owners(reported, given)
    rows = {row["number"]: row for row in owned["events"]}
    words = {one.number: lines.plain(lines.event_owner(one)) for one in summarize(owned).events}
    for name, owner in (("t", "sales"), ("broker-2", "platform")):
        story = explain(
            of_lake(with_changes), objective_files.load(), name, WEEK, now_us=NOW, owners=given
        )
        assert story["owner"] == owner
        assert f", owner {owner}\n" in view(story, terminal=False, width=120)
        assert story["events"]
        for one in story["events"]:
            assert {key: one[key] for key in one if key != "words"} == rows[one["number"]]
            assert one["words"]["owner"] == words[one["number"]]
        of_topic = [one["words"]["owner"] for one in story["events"] if one["group"] is None]
        assert name != "t" or set(of_topic) == {"Owner: sales."}


def test_incident_has_bounds_of_report(with_changes: Path, reported: Any) -> None:
    keys = ("start", "end", "lead_us", "tail_us")
    for partition in (0, 1):
        mine = of(told(with_changes, f"t/{partition}"), UNDER_MIN_ISR)
        theirs = [
            tuple(row[key] for key in keys)
            for row in reported["incidents"]
            if (row["metric"], row["topic"], row["partition"]) == (UNDER_MIN_ISR, "t", partition)
        ]
        assert [tuple(row[key] for key in keys) for row in mine] == sorted(theirs)
        assert theirs


def test_lead_is_of_first_source(tmp_path: Path) -> None:
    """Broker-1 from 100 to 160 s, lead 10; broker-2 from 101 s, lead 30: explain had 29 s."""
    batch = Batch()
    batch.run("kafka.topic.partitions", 0, 300, 1.0, topic="t")
    isr: dict[str, Any] = {"metric": UNDER_MIN_ISR, "value": 1.0, "topic": "t", "end": 160}
    for source, start, lead in (("broker-1", 100, 10), ("broker-2", 101, 30)):
        batch.scrape("min_isr", 0, 300, source=source)
        batch.run(start=start, source=source, lead=lead, partition=0, **isr)
    batch.commit(tmp_path)
    local(tmp_path)
    now = periods.instant(micros(300))
    report = facts(of_lake(tmp_path), objective_files.load(), WEEK, now=now)
    (theirs,) = (row for row in report["incidents"] if row["metric"] == UNDER_MIN_ISR)
    for name in ("t", "t/0"):
        (mine,) = of(told(tmp_path, name), UNDER_MIN_ISR)
        assert mine["lead_us"] == theirs["lead_us"] == 10 * SECOND


def test_verdicts_are_the_report_s_and_unknown_time_adds_up(with_changes: Path, topic: Any) -> None:
    stated = attainment.read(of_lake(with_changes), objective_files.load(), WEEK, NOW)
    mine = {one.objective.name: one for one in stated if one.subject.topic == "t"}
    assert {row["objective"] for row in topic["objectives"]} == set(mine)
    assert "min-isr" in mine
    for row in topic["objectives"]:
        figures = mine[row["objective"]].figures()
        assert {name: row[name] for name in figures} == figures
        assert sum(one["unknown_us"] for one in row["unknown"]) == row["unknown_us"]
        assert sum(one["bad_us"] for one in row["bad"]) == row["bad_us"]


def test_budget_of_a_running_week_is_the_report_s(reported: Any, topic: Any) -> None:
    stated = {
        one["name"]: row
        for one in reported["objectives"]
        for row in one["subjects"]
        if (row.get("topic"), row.get("partition")) == ("t", None)
    }
    assert {row["objective"] for row in topic["objectives"]} == set(stated)
    for row in topic["objectives"]:
        of_report = stated[row["objective"]]
        for figure in ("budget_whole_us", "used", "used_low", "used_high"):
            assert row[figure] == of_report[figure], (row["objective"], figure)
    assert any(row["used"] for row in topic["objectives"])


def test_partition_has_own_intervals_and_topic_verdict(with_changes: Path) -> None:
    story = told(with_changes, "t/1")
    assert seconds(story, UNDER_MIN_ISR) == [(310, 400)]
    assert seconds(story, LEADERLESS) == [(640, 700)]
    assert of(story, LAG) == []
    assert "min-isr" in {row["objective"] for row in story["objectives"]}
    assert {e["partition"] for e in story["changes"]} == {1, None}
    assert told(with_changes, "t/2")["intervals"] == []


def test_client_is_matched_by_user_and_client_id(with_changes: Path) -> None:
    story = told(with_changes, "u/c")
    (one,) = of(story, THROTTLE)
    assert seconds(story, THROTTLE) == [(0, 90)]
    assert (one["worst_low"], one["worst_high"]) == (500.0, None)
    assert one["lasted_low_us"] == 90 * SECOND, "the other broker covers the uncertain tail"
    assert [e["user"] for e in story["changes"] if e["kind"] == "quota_change"] == ["u"]
    assert seconds(told(with_changes, "user:u"), THROTTLE) == [(0, 60)]


def test_a_group_lost_between_the_low_and_the_high_count(with_changes: Path) -> None:
    (one,) = told(with_changes, "g")["intervals"]
    assert (one["worst_low"], one["worst_high"]) == (5.0, None)
    assert (one["parts"], one["lasted_us"]) == (["t/0"], None)


def test_broker_has_own_gaps_only(with_changes: Path) -> None:
    story = told(with_changes, "broker-2")
    assert [(s["outcome"], s["family"]) for s in story["gaps"]] == [
        ("refused", "min_isr"), ("refused", "tiered"), (None, "min_isr"), (None, "tiered"),
    ]  # fmt: skip
    text = " ".join(view(story, terminal=False).split())
    assert "10:05:50 broker-2, 2 families: 4 min 10 s, refused: connection refused" in text
    assert {s["source"] for s in told(with_changes, "broker-9")["gaps"]} == {"broker-9"}


def test_explain_reads_of_bronze_the_events_only(
    with_changes: Path, topic: Any, tmp_path: Path
) -> None:
    shutil.copytree(with_changes, tmp_path / "lake")
    for table in (tables.RUNS, tables.SCRAPES, tables.MEMBERS):
        shutil.rmtree(tmp_path / "lake" / table.path)
    engine = LocalEngine(lakes.Lake(str(tmp_path / "lake")))
    assert explain(engine, objective_files.load(), "t", WEEK, now_us=NOW) == topic


def test_command_prints_text_and_json(with_changes: Path) -> None:
    run = CliRunner().invoke(main, ["explain", str(with_changes), "t", "--week", "2026-W47"])
    assert run.exit_code == 0, run.stderr
    assert run.stdout.startswith("Topic t of cluster cluster-a\n")
    assert "Under min ISR  Mon 16 Nov 10:01:40 to 10:02:40, 1 min" in run.stdout
    assert "\x1b" not in run.stdout
    between = [
        "--from",
        "2026-11-16T10:00Z",
        "--to",
        "2026-11-16T10:05Z",
        "--time-zone",
        "Asia/Tokyo",
    ]
    run = CliRunner().invoke(main, ["explain", str(with_changes), "t", *between])
    assert run.exit_code == 0, run.stderr
    assert "Under min ISR  Mon 16 Nov 19:01:40 to 19:02:40, 1 min" in run.stdout
    assert "Leaderless  Mon" not in run.stdout
    run = CliRunner().invoke(
        main, ["explain", str(with_changes), "t", *between, "--week", "2026-W47"]
    )
    assert (run.exit_code, "use either --week" in run.stderr) == (2, True)
    asked = ["explain", str(with_changes), "u/" + HOSTILE, "--json", "--cluster", CLUSTER]
    run = CliRunner().invoke(main, asked)
    assert run.exit_code == 0, run.stderr
    assert run.stdout.isascii()
    assert json.loads(run.stdout)["subject"]["client_id"] == HOSTILE
    run = CliRunner().invoke(main, ["explain", str(with_changes), r"u/evil\u202e\u001b[31m"])
    assert run.stdout.startswith(r"User u, client id evil\u202e\u001b[31m of cluster")


def test_a_name_that_is_not_in_the_lake_is_one_line(with_changes: Path) -> None:
    run = CliRunner().invoke(main, ["explain", str(with_changes), "othr", "--week", "2026-W47"])
    assert run.exit_code == 1
    last = run.stderr.splitlines()[-1]
    assert last.startswith("jmxlake: othr: ")
    assert last.endswith("did you mean topic:other?")
    run = CliRunner().invoke(main, ["explain", str(with_changes), "t", "--cluster", "x"])
    assert "cluster x is not in" in run.stderr.splitlines()[-1]


def test_subject_of_other_cluster_is_not_found(with_changes: Path) -> None:
    with pytest.raises(SubjectError, match="cluster elsewhere is not in "):
        explain(of_lake(with_changes), objective_files.load(), "t", WEEK, cluster="elsewhere")


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
def test_ended_subject_has_no_expected_time_afterwards(
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
