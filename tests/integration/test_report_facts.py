"""The report's facts from a real gold: what the unit tests of their parts take as given."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import lake as lakes, periods
from lakehouse.core.periods import Period
from lakehouse.engines.gold_reader import last_week
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import PeriodError
from lakehouse.explain.story import explain
from lakehouse.report.facts import build as reports
from lakehouse.report.facts.gold import Gold
from lakehouse.slo import attainment
from lakehouse.slo.openslo import objective_files
from lakehouse.slo.report_calendar import Calendar, parse_business_hours
from tests import rollups
from tests.lake_builder import Batch, micros

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.reads

ISR = "kafka.partition.under_min_isr"
THROTTLE = "kafka.client.produce.throttle_time"
RATE = "kafka.client.produce.byte_rate"
QUOTA = "kafka.quota.produce.byte_rate"
HEADROOM = "kafka.group.retention_headroom.low"
HOUR = 3600.0
SECOND = 1_000_000


def batch(cluster: str = "cluster-a") -> Batch:
    """Two hours of Monday, 10:00 to 12:00 UTC; t-0 is bad for a minute in each."""
    made = Batch()
    rest = {"cluster": cluster}
    for hour in (0.0, HOUR):
        for start in (hour, hour + 300):
            end = start + 300
            made.zeros(ISR, start, end, "t", [1, 2], **rest)
            made.run("kafka.topic.partitions", start, end, 3.0, topic="t", **rest)
            made.run("kafka.topic.replication_factor", start, end, 2.0, topic="t", **rest)
            made.run("kafka.topic.min_insync_replicas", start, end, 2.0, topic="t", **rest)
            for family in ("min_isr", "topology", "client_rates", "quota_limits", "offsets"):
                made.scrape(family, start, end, **rest)
            made.run(QUOTA, start, end, 1e6, user="u", **rest)
            made.run(QUOTA, start, end, 1e6, user="idle", **rest)
            made.counter("kafka.topic.remote_copy.bytes", start, end, 50.0, topic="t", **rest)
            made.run("kafka.topic.remote_log_size.bytes", start, end, 7.0, topic="t", **rest)
        made.run(ISR, hour + 100, hour + 160, 1.0, topic="t", partition=0, **rest)
        made.zeros(ISR, hour, hour + 100, "t", [0], **rest)
        made.zeros(ISR, hour + 160, hour + 300, "t", [0], **rest)
        made.zeros(ISR, hour + 300, hour + 600, "t", [0], **rest)
        made.run(RATE, hour, hour + 60, 900_000.0, user="u", **rest)
        made.run(RATE, hour, hour + 60, 800_000.0, source="broker-2", user="u", **rest)
        made.run(THROTTLE, hour, hour + 60, 500.0, user="u", tail=20, **rest)
    for start, low in ((0.0, 7200.0), (300.0, 1800.0)):
        made.run(HEADROOM, start, start + 300, low, group="slow", topic="t", partition=0, **rest)
        made.run(HEADROOM, start, start + 300, 7200.0, group="slow", topic="t", partition=1, **rest)
        made.run(HEADROOM, start, start + 300, 60.0 if not start else None, group="saved",
                 topic="t", partition=0, **rest)  # fmt: skip
    return made


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("facts")
    batch().commit(folder)
    other = Batch(agent="agent-2")
    other.zeros(ISR, 0.0, 300.0, "other", [0, 1], cluster="cluster-b")
    other.scrape("min_isr", 0.0, 300.0, cluster="cluster-b")
    other.commit(folder)
    rollups.local(folder)
    return folder


@pytest.fixture(scope="module")
def told(root: Path) -> dict[str, Any]:
    """From 10:00 to 12:00, of which 12:00 to 13:00 in Berlin are business hours."""
    calendar = Calendar("Europe/Berlin", parse_business_hours("Mon-Fri 12:00-13:00"))
    period = periods.span("2026-11-16T10:00:00Z", "2026-11-16T12:00:00Z")
    return reports.facts(
        LocalEngine(lakes.at(str(root))),
        objective_files.load(),
        period,
        cluster="cluster-a",
        calendar=calendar,
    )


def of_topic(objectives: Any, topic: str = "t") -> Any:
    (objective,) = [one for one in objectives if one["name"] == "min-isr"]
    (subject,) = [one for one in objective["subjects"] if one["topic"] == topic]
    return subject


def test_business_hours_are_a_part_of_all_hours(told: dict[str, Any]):
    whole, part = (of_topic(one["objectives"]) for one in (told, told["business_hours"]))
    assert told["business_hours"]["spans"] == [["2026-11-16T11:00:00Z", "2026-11-16T12:00:00Z"]]
    assert (whole["bad_us"], part["bad_us"]) == (120 * SECOND, 60 * SECOND)
    assert (whole["good_us"], part["good_us"]) == (1080 * SECOND, 540 * SECOND)
    assert part["expected_us"] == 3600 * SECOND
    assert part["unknown_us"] == 3000 * SECOND


def test_remote_storage_has_size_and_uploads(told: dict[str, Any]):
    (row,) = told["tiering"]["topics"]
    assert (row["topic"], row["uploaded_bytes"], row["read_bytes"]) == ("t", 200.0, None)
    assert row["stored_byte_seconds"] == 7.0 * 1200


def test_recommendations_of_the_story(told: dict[str, Any]):
    found = told["hygiene"]
    assert [row["topic"] for row in found["no_spare_replica"]] == ["t"]
    assert found["replication_one"] == []
    assert [row["user"] for row in found["unused_quotas"]] == ["idle"]
    (near,) = found["near_quota"]
    assert (near["user"], near["rate_max_of_a_broker"], near["share"]) == ("u", 900_000.0, 0.9)
    assert near["suggested_at_least"] is True
    (slow,) = found["overtaken"]
    assert (slow["group"], slow["least_seconds"]) == ("slow", 1800.0), "its worst partition, last"
    assert slow["as_of"] == "2026-11-16T10:10:00Z"


def test_detection_floor_is_longer_than_an_interval(told: dict[str, Any]):
    assert told["detection_floor_us"] == 25 * SECOND + 2 * SECOND // 10, "and two slow answers"


def test_span_equal_to_a_week_is_not_a_week(told: dict[str, Any]):
    assert told["week"] is None
    assert told["time_zone"] == "Europe/Berlin"
    assert told["restated"] is None, "nothing was ever published"


def test_default_week_of_report_ended_and_of_explain_runs(root: Path):
    engine = LocalEngine(lakes.at(str(root)))
    monday = micros(7 * 24 * HOUR)  # it was that hour a week ago
    for now_us, week in ((micros(HOUR), "2026-W47"), (monday, "2026-W47")):
        assert periods.week_name(last_week(engine, now_us)) == week


def test_sums_by_week_are_those_of_each_week(root: Path):
    """Hours stand in for weeks, the first without any row."""
    hours = [Period.of((micros(n * HOUR), micros((n + 1) * HOUR))) for n in range(-1, 2)]
    gold = Gold(LocalEngine(lakes.at(str(root))), "cluster-a", hours[0], 300)
    for table, metrics in ((tables.COVERAGE, ()), (tables.TOPICS, (ISR,))):
        single = [gold.within(one).sums(table, metrics) for one in hours]
        plain = [[{**row, "window_start": None} for row in rows] for rows in single]
        found = gold.by_week(table, hours, metrics)
        assert [[{**row, "window_start": None} for row in rows] for rows in found] == plain
        assert [bool(rows) for rows in found] == [False, True, True]
    assert gold.by_week(tables.COVERAGE, []) == []


def test_week_of_other_zone_has_the_same_figures(root: Path):
    engine, weeks = LocalEngine(lakes.at(str(root))), {}
    for zone in ("UTC", "Europe/Berlin", "Asia/Kolkata"):
        calendar = Calendar(zone)
        period = periods.week("2026-W47", calendar.zone)
        told = reports.facts(
            engine, objective_files.load(), period, cluster="cluster-a", calendar=calendar
        )
        weeks[zone] = told
    assert {told["week"]["iso"] for told in weeks.values()} == {"2026-W47"}
    assert [told["from"] for told in weeks.values()] == [
        "2026-11-16T00:00:00Z", "2026-11-15T23:00:00Z", "2026-11-15T18:30:00Z",
    ]  # fmt: skip
    bad = {zone: of_topic(told["objectives"])["bad_us"] for zone, told in weeks.items()}
    assert set(bad.values()) == {120 * SECOND}
    under = {told["min_isr"]["topics"][0]["under_us"] for told in weeks.values()}
    assert under == {120 * SECOND}
    for told in weeks.values():
        (line,) = [one for one in told["timelines"] if one["name"] == "under_min_isr"]
        assert line["points"][0][0] >= told["from"]
        assert sum(point[1] or 0 for point in line["points"]) > 0


def test_revised_figure_is_next_to_the_published_one(root: Path):
    engine = LocalEngine(lakes.at(str(root)))
    period = periods.span("2026-11-16T10:00:00Z", "2026-11-16T11:00:00Z")
    wanted = objective_files.load()
    now = micros(24 * HOUR)
    found = [one for one in attainment.read(engine, wanted, period, now)
             if one.subject.cluster == "cluster-a"]  # fmt: skip
    older = [
        dataclasses.replace(one, times=one.times._replace(bad_us=1)) if one.subject.topic else one
        for one in found
    ]
    attainment.publish(engine, older, period)
    told = reports.facts(engine, wanted, period, cluster="cluster-a")
    restated = {row["objective"]: row for row in told["restated"] if row["topic"] == "t"}
    assert restated["min-isr"]["before"]["bad_us"] == 1
    assert restated["min-isr"]["now"]["bad_us"] == 60 * SECOND
    assert all(row["topic"] == "t" for row in told["restated"])
    attainment.publish(engine, found, period)
    again = reports.facts(engine, wanted, period, cluster="cluster-a")
    (row,) = [one for one in again["restated"] if one["objective"] == "min-isr"]
    assert (row["before"]["bad_us"], row["before"]["statement"]) == (1, 1), "the old one stays"


def test_every_cluster_and_a_team_by_one_command_each(root: Path, tmp_path: Path):
    folder = tmp_path / "clusters"
    span = [
        "--from",
        "2026-11-16T11:00",
        "--to",
        "2026-11-16T13:00",
        "--time-zone",
        "Europe/Berlin",
    ]
    done = CliRunner().invoke(main, ["report", str(root), *span, "--every-cluster", str(folder)])
    assert done.exit_code == 0, done.stderr
    written = {json.loads(one.read_text())["cluster"] for one in folder.iterdir()}
    assert written == {"cluster-a", "cluster-b"}
    summed = CliRunner().invoke(main, ["summary", *map(str, sorted(folder.iterdir()))])
    assert summed.exit_code == 0, summed.stderr
    assert len(summed.stdout.splitlines()) == 2
    owners = tmp_path / "owners.yaml"
    owners.write_text("owners: [{team: red, topics: [t]}, {team: blue, users: [u]}]")
    team = ["--cluster", "cluster-a", "--owners", str(owners), "--team", "blue", "--json", "-"]
    done = CliRunner().invoke(main, ["report", str(root), *span, *team])
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["from"] == "2026-11-16T10:00:00Z", "an instant without an offset is of the zone"
    assert told["min_isr"]["topics"] == []
    (client,) = told["throttling"]["clients"]
    assert (client["user"], client["team"]) == ("u", "blue")
    assert [row["team"] for row in told["owners"]["accounts"]] == ["blue"]


def test_hours_without_readings_of_older_gold_are_refused(tmp_path: Path):
    """Their incidents are not known; a report without any would say that there were none."""
    batch().commit(tmp_path)
    rollups.local(tmp_path)
    DeltaTable(str(tmp_path / tables.READINGS.path)).delete()
    engine = LocalEngine(lakes.at(str(tmp_path)))
    with pytest.raises(PeriodError, match="an older jmxlake rolled up 2026-11-16"):
        reports.facts(engine, objective_files.load(), periods.week("2026-W47"))
    with pytest.raises(PeriodError, match="Run jmxlake rollup --since 2026-11-16"):
        explain(engine, objective_files.load(), "topic:t", periods.week("2026-W47"))
