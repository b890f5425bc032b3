"""``jmxlake doctor`` on real tables: what is wrong is found; where nothing is, nothing is told."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake

from collector.delivery import arrow
from collector.delivery.arrow import to_arrow
from collector.delivery.bronze_table import BronzeTable
from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import delta_rs
from lakehouse.core.table_faults import older
from lakehouse.ops.doctor.all_checks import Diagnosis
from lakehouse.ops.doctor.finding import LATE
from tests import bronze_commits, gold_builder
from tests.lake_builder import BASE, CLUSTER, Batch, micros
from tests.rig.s3.server import S3Server

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

pytestmark = pytest.mark.reads

HOUR = 3600.0
SPAN = 6 * HOUR
NOW = BASE + dt.timedelta(seconds=SPAN + 600)


class Lake:
    """A lake as three agents fill it, table by table, through the agents' own code."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._events: list[tuple[Any, ...]] = []
        bronze_commits.make(str(root), {})

    def deliver(self, agent: str, number: int, batch: Batch) -> None:
        """A batch of an agent, with the clock of this host."""
        for table, rows in (
            (tables.RUNS, batch.runs), (tables.MEMBERS, batch.members),
            (tables.SCRAPES, batch.scrapes),
        ):  # fmt: skip
            if rows:
                told = [tuple(row[name] for name in table.column_names) for row in rows]
                BronzeTable(str(self.root), table, dict).append(
                    to_arrow(table, told), agent, number
                )

    def event(self, kind: str, at: float, old: str | None = None, new: str | None = None) -> None:
        row = dict.fromkeys(tables.EVENTS.column_names)
        row.update(
            date=micros(at) // 86_400_000_000, cluster=CLUSTER, source="broker-1", at=micros(at),
            kind=kind, old=old, new=new, agent="agent-1", batch=1,
        )  # fmt: skip
        told = to_arrow(tables.EVENTS, [tuple(row.values())])
        BronzeTable(str(self.root), tables.EVENTS, dict).append(told, "agent-1", 1)

    def rolled_up(self, at: dt.datetime = NOW) -> None:
        """Every table of gold as the rollup leaves it, without rows; and where it came."""
        read = (tables.RUNS, tables.SCRAPES, tables.MEMBERS)
        told: dict[str, Any] = {f"{one.name}_version": self.delta(one).version() for one in read}
        told |= {"finished_at": at, "window_seconds": 300, "hours": 1}
        told |= {"runs_id": str(self.delta(tables.RUNS).metadata().id)}
        for table in tables.GOLD:
            gold_builder.put(self.root, table, *([told] if table is tables.PROGRESS else []))

    def subjects(self, *names: str) -> None:
        seen = {"first_seen": BASE, "last_seen": BASE + dt.timedelta(seconds=SPAN)}
        rows = [{"cluster": CLUSTER, "kind": "source", "source": name, **seen} for name in names]
        gold_builder.put(self.root, tables.SUBJECTS, *rows)

    def delta(self, table: tables.Table) -> DeltaTable:
        return DeltaTable(f"{self.root}/{table.path}")

    def look(self, **changed: Any) -> Diagnosis:
        location = delta_rs.locate(str(self.root), None)
        scope = {"now": NOW, "days": 7, "late": LATE, "version": "0.1.0", **changed}
        made = Diagnosis(location, **scope)
        made.run()
        return made

    def found(self, **changed: Any) -> dict[str, str]:
        return {one.check: f"{one.where}: {one.what}" for one in self.look(**changed).findings}


def told(agent: str, source: str, start: float = 0.0, end: float = SPAN, **rest: Any) -> Batch:
    batch = Batch(agent)
    at = start
    while at < end:
        for family in ("min_isr", "topology"):
            batch.scrape(family, at, min(at + 300.0, end), source=source, **rest)
        batch.run("kafka.partition.under_min_isr", at, at + 300.0, 0.0, topic="t", partition=1)
        at += 300.0
    return batch


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three brokers, each with its agent, all well."""
    made = Lake(tmp_path / "lake")
    for number in (1, 2, 3):
        made.deliver(f"agent-{number}", 1, told(f"agent-{number}", f"broker-{number}"))
    made.event("agent_start", 0.0)
    made.rolled_up()
    return made


def test_healthy_lake_has_no_findings(lake: Lake) -> None:
    lake.subjects("broker-1", "broker-2", "broker-3", "controller-9")
    seen = lake.look()
    assert seen.findings == []
    assert [one.agent for one in seen.agents] == ["agent-1", "agent-2", "agent-3"]
    assert {one.version for one in seen.agents} == {"0.1.0"}, "commits tell it"
    assert seen.agents[0].sources == (f"{CLUSTER}/broker-1",)
    assert {one.table for one in seen.tables} == {
        one.path for one in (*tables.BRONZE, *tables.GOLD)
    }


def test_doctor_changes_no_file(lake: Lake) -> None:
    before = {path: path.read_bytes() for path in lake.root.rglob("*") if path.is_file()}
    lake.look()
    after = {path: path.read_bytes() for path in lake.root.rglob("*") if path.is_file()}
    assert before == after


def test_silent_sources_and_gaps_are_findings(lake: Lake) -> None:
    lake.deliver("agent-4", 1, told("agent-4", "broker-4", 0.0, 2 * HOUR))
    late = told("agent-5", "broker-5", 0.0, HOUR)
    late.scrape("min_isr", HOUR, HOUR + 1200, "timeout", source="broker-5", error="no answer")
    lake.deliver("agent-5", 1, late)
    lake.deliver("agent-5", 2, told("agent-5", "broker-5", 2 * HOUR))
    found = lake.found()
    assert found.keys() == {"silent", "gap"}
    assert found["silent"].startswith("cluster-a broker-4: no agent has reported it since 2026")
    assert "12:00:00 UTC, for 4 h 10 min; the last was agent agent-4" in found["silent"]
    assert "broker-5: not scraped for 1 h from 2026-11-16 11:00:00 UTC" in found["gap"]
    assert "1 h in 7 days: 2 of its families" in found["gap"]
    assert "timeout for 20 min (no answer)" in found["gap"]


def test_silence_covered_by_second_agent_has_no_gap(lake: Lake) -> None:
    lake.deliver("other", 1, told("other", "broker-1", HOUR, 2 * HOUR))
    lake.deliver("replaced", 1, told("replaced", "broker-2", -HOUR, 600.0))
    assert lake.found().keys() == {"two_agents"}


@pytest.mark.edge(3)
def test_two_agents_of_one_source_are_an_error(lake: Lake) -> None:
    lake.deliver("other", 1, told("other", "broker-1", HOUR, 2 * HOUR))
    (found,) = lake.look().findings
    assert (found.severity, found.where) == ("error", f"{CLUSTER} broker-1")
    assert found.what.startswith("agents agent-1 and other scrape it from 2026-11-16 11:00:00 UTC")
    assert "1 h of it: min_isr, topology" in found.what
    assert found.todo.endswith("jmxlake rollup LAKE --since 2026-11-16")


@pytest.mark.edge(3)
def test_handover_between_agents_has_no_finding(lake: Lake) -> None:
    lake.deliver("new", 1, told("new", "broker-1", SPAN - 20.0, SPAN))
    assert lake.found() == {}


@pytest.mark.edge(3)
@pytest.mark.parametrize("table", [tables.SCRAPES, tables.RUNS])
def test_copied_rows_are_an_error(lake: Lake, table: tables.Table) -> None:
    batch = Batch("agent-1")
    batch.counter("kafka.broker.isr_shrinks", 0, 300, 1.0)
    lake.deliver("agent-1", 2, batch)
    delta = lake.delta(table)
    write_deltalake(delta, delta.to_pyarrow_table(), mode="append")
    found = [one for one in lake.look().findings if one.check == "copied"]
    first = min(found, key=lambda one: one.where)
    assert (first.severity, first.where) == ("error", f"{CLUSTER} broker-1")
    assert first.what.startswith("duplicate rows of agent agent-1 from 2026-11-16")


def test_an_agent_that_reads_nothing(lake: Lake) -> None:
    failing = {"outcome": "refused", "error": "connection refused"}
    lake.deliver("agent-1", 2, told("agent-1", "broker-9", **failing))
    found = lake.found()
    assert found.keys() == {"unread"}
    assert "in this period: refused (connection refused)" in found["unread"]


def test_dropped_batches_spools_and_clocks_are_findings(lake: Lake) -> None:
    lake.event("batch_dropped", SPAN, "3..7")
    lake.event("spool_restored", SPAN)
    lake.event("clock_step", SPAN, "0", "-3600000000")
    found = lake.found()
    assert found.keys() == {"dropped", "spool", "clock_set"}
    assert "batches 3..7, of unknown, last at" in found["dropped"]
    assert "by -1 h" in found["clock_set"]


def test_a_clock_that_is_ahead_by_its_rows(lake: Lake) -> None:
    lake.deliver("agent-1", 2, told("agent-1", "broker-1", SPAN + 7200, SPAN + 9000))
    found = lake.found()
    assert "agent agent-1 recorded rows until 2026-11-16 18:30:00 UTC" in found["clock_future"]
    assert "silent" not in found


def test_a_clock_that_is_ahead_by_the_order_of_commits(lake: Lake) -> None:
    """The agents' own commits, of which one is told a later instant."""
    lake.deliver("agent-1", 2, told("agent-1", "broker-1", SPAN, SPAN + 300))
    log = lake.root / tables.SCRAPES.path / "_delta_log" / f"{1:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            assert action["commitInfo"][tables.COMMIT_AGENT] == "agent-1"
            action["commitInfo"]["timestamp"] += 600_000
    log.write_text("\n".join(json.dumps(action) for action in actions) + "\n")
    found = lake.found()
    assert found.keys() == {"clock_skew"}
    assert found["clock_skew"].startswith("cluster-a/broker-1: its clock is ahead of agent")
    assert "by 9 min" in found["clock_skew"] or "by 10 min" in found["clock_skew"]


def test_a_table_that_was_never_maintained(lake: Lake) -> None:
    for table in (tables.EVENTS, tables.RUNS):
        bronze_commits.idle(lake.root, table, 250)
    lake.rolled_up()
    found = lake.found()
    assert found.keys() == {"uncheckpointed"}
    assert "commits without a checkpoint, more than 200" in found["uncheckpointed"]


def test_foreign_engine_and_schema_are_findings(lake: Lake, tmp_path: Path) -> None:
    log = lake.root / tables.RUNS.path / "_delta_log"
    info = {"timestamp": 1, "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0"}
    version = lake.delta(tables.RUNS).version() + 1
    (log / f"{version:020}.json").write_text(json.dumps({"commitInfo": info}) + "\n")
    (lake.root / tables.EVENTS.path).rename(tmp_path / "away")
    other = tables.Table("bronze", "events", "", (tables.Column("x", "string", ""),))
    DeltaTable.create(f"{lake.root}/{tables.EVENTS.path}", schema=arrow.schema(other))
    found = lake.found()
    assert f"Apache-Spark/4.2.0 Delta-Lake/4.4.0 wrote version {version}, " in found["engine"]
    assert "property jmxlake.schema is missing" in found["schema"]
    assert "unknown" in found, "its rows cannot be read"


def test_lost_table_is_one_finding_and_the_rest_is_checked(lake: Lake, tmp_path: Path) -> None:
    (lake.root / tables.EVENTS.path).rename(tmp_path / "away")
    assert [(one.check, one.where) for one in lake.look().findings] == [
        ("missing", "bronze/events")
    ]


def test_damaged_log_is_unknown(lake: Lake) -> None:
    (lake.root / tables.SLI.path / "_delta_log" / f"{0:020}.json").write_text("{")
    seen = lake.look()
    assert [(one.check, one.where) for one in seen.findings] == [("unknown", "gold/sli")]
    assert not seen.good


def test_a_rollup_that_is_behind(lake: Lake) -> None:
    lake.deliver("agent-1", 2, told("agent-1", "broker-1", SPAN, SPAN + 300.0))
    committed = dt.datetime.now(dt.UTC)
    assert "rollup" not in lake.found(now=committed)
    found = lake.found(now=committed + dt.timedelta(days=2))["rollup"]
    assert found.startswith(
        "gold/progress: not rolled up: 1 commit of bronze/runs, the first for 2 d"
    )


def test_missing_and_unreadable_gold_are_findings(tmp_path: Path) -> None:
    bare = Lake(tmp_path / "lake")
    assert bare.found().keys() == {"silent", "missing"}
    assert bare.found(with_gold=False).keys() == {"silent", "unknown"}


def test_gold_of_other_version_or_protocol_is_a_finding(lake: Lake, tmp_path: Path) -> None:
    (lake.root / tables.SLA.path).rename(tmp_path / "away")
    fewer = tables.Table("gold", "sla", "", tables.SLA.columns[:-1])
    DeltaTable.create(
        f"{lake.root}/{tables.SLA.path}", schema=arrow.schema(fewer),
        configuration={"delta.enableDeletionVectors": "true"},
    )  # fmt: skip
    found = lake.found()
    assert f"gold/sla: {tables.SLA.columns[-1].name} is missing, not string" in found["schema"]
    assert "deletionVectors" in found["protocol"]


def test_gold_of_the_layout_before_is_one_finding(lake: Lake) -> None:
    for table in (tables.COVERAGE, tables.TOPICS, tables.WINDOWS["topics"]):
        shutil.rmtree(lake.root / table.path)
    gold_builder.put(lake.root, older(tables.COVERAGE))
    assert lake.found().keys() == {"schema"}
    assert lake.found()["schema"].startswith("gold: an older version wrote it")


def test_a_broker_that_no_agent_reads(lake: Lake) -> None:
    lake.subjects("broker-1", "broker-7")
    assert lake.found().keys() == {"unwatched"}


def test_command_prints_text_and_json(lake: Lake) -> None:
    """Two of the findings are of the clock of today: the lake's agents ended in 2026."""
    run = CliRunner().invoke(main, ["doctor", str(lake.root), "--days", "400"])
    assert run.exit_code == 4, run.output
    assert run.stdout.startswith(f"{lake.root}: ")
    assert "[silent]" in run.stdout
    told = json.loads(
        CliRunner().invoke(main, ["doctor", str(lake.root), "--days", "400", "--json"]).stdout
    )
    assert not told["good"]
    assert {one["check"] for one in told["findings"]} >= {"silent"}
    assert len(told["agents"]) == 3


def test_the_command_ends_with_0_where_all_is_well(tmp_path: Path) -> None:
    fresh = Lake(tmp_path / "lake")
    start = dt.datetime.now(dt.UTC).timestamp() - BASE.timestamp() - HOUR
    for number in (1, 2):
        batch = told(f"agent-{number}", f"broker-{number}", start, start + HOUR - 300)
        fresh.deliver(f"agent-{number}", 1, batch)
    fresh.event("agent_start", start)
    fresh.rolled_up(dt.datetime.now(dt.UTC))
    run = CliRunner().invoke(main, ["doctor", str(fresh.root)])
    assert (run.exit_code, run.stdout.count("\n")) == (0, 1), run.output
    assert ": no problems. 2 agents in 7 days" in run.stdout


def test_the_command_fails_with_one_line(tmp_path: Path) -> None:
    run = CliRunner().invoke(main, ["doctor", str(tmp_path)])
    assert run.exit_code == 1
    assert len(run.stderr.splitlines()) == 1
    assert CliRunner().invoke(main, ["doctor", str(tmp_path), "--days", "0"]).exit_code == 2


def test_doctor_imports_no_spark_pandas_or_pyarrow(lake: Lake) -> None:
    command = [sys.executable, "-m", "tests.delta_rs_alone", "doctor", str(lake.root), "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 4, ran.stderr
    assert json.loads(ran.stdout)["findings"]


def test_s3_lake_is_checked_and_exported_without_secrets(tmp_path: Path) -> None:
    with S3Server.start(tmp_path / "s3") as server:
        url, options = server.url("lake"), server.options
        bronze_commits.make(url, options)
        bronze_commits.commit_all(url, options, "a", range(1, 3))
        row = {"cluster": "c", "window_start": BASE}
        row |= {"metric": "a.b", "topic": "t", "value_mean": 1.0}
        gold_builder.put(url, tables.TOPICS, row, options=options)
        right, wrong = tmp_path / "right.yaml", tmp_path / "wrong.yaml"
        right.write_text(yaml.safe_dump(options))
        wrong.write_text(yaml.safe_dump({**options, "aws_secret_access_key": "not-this-one"}))

        def ran(file: Path, *command: str) -> Result:
            return CliRunner().invoke(main, [*command, "--options-file", str(file)])

        seen = ran(right, "doctor", url, "--days", "400")
        assert seen.exit_code == 4, seen.output
        assert "[silent]" in seen.stdout
        told = ran(right, "export", url, "topics", "--format", "csv")
        assert '"a.b"' in told.stdout, told.output
        for command in (("doctor", url), ("export", url, "topics", "--format", "csv")):
            refused = ran(wrong, *command)
            assert refused.exit_code == 1
            assert len(refused.stderr.splitlines()) == 1
            assert "not-this-one" not in refused.output
            assert options["aws_secret_access_key"] not in refused.output
