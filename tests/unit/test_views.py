"""The views of gold as text, and what DuckDB makes of them over a few rows."""

from __future__ import annotations

import datetime as dt
import functools
import re
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pytest
import yaml
from click.testing import CliRunner

from lakehouse import tables
from lakehouse.cli import views as cli_views
from lakehouse.cli.main import main
from lakehouse.core.metrics import UNAVAILABLE
from lakehouse.core.subjects import state_of
from lakehouse.ops.views import render
from tests.exponential_histogram import bucket_of, percentile
from tests.gold_builder import put

if TYPE_CHECKING:
    from pathlib import Path

HOUR: Final = dt.datetime(2026, 11, 16, 10, tzinfo=dt.UTC)
HOUR_US: Final = int(HOUR.timestamp()) * 1_000_000
HOUR_LENGTH_US: Final = 3_600_000_000
BEFORE: Final = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
AFTER: Final = dt.datetime(2027, 1, 1, tzinfo=dt.UTC)
RESERVED: Final = {"user", "group", "partition", "window", "start", "end", "date", "max", "min"}
_TYPES: Final = {"string": "VARCHAR", "timestamp": "TIMESTAMPTZ", "array<string>": "VARCHAR[]"}

Row = dict[str, Any]


@functools.cache
def _empty(zone: str) -> duckdb.DuckDBPyConnection:
    """Return the views of a zone over empty tables, which take longer to make than to fill."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'America/New_York'; CREATE SCHEMA gold")
    for table in tables.GOLD:
        columns = ", ".join(f'"{one.name}" {_type(one.type)}' for one in table.columns)
        connection.execute(f'CREATE TABLE gold."{table.name}" ({columns})')
    dialect = render.DIALECTS["duckdb"]
    for one in render.statements(dialect, "kafka", lambda t: f'gold."{t.name}"', zone):
        connection.execute(one)
    return connection.begin()


class Views:
    """The views over tables of DuckDB that have the columns of gold.

    Instances of a zone share a connection. Each instance starts with empty tables.
    """

    def __init__(self, zone: str = "UTC") -> None:
        self._connection = _empty(zone).rollback().begin()

    def put(self, table: tables.Table, *rows: Row) -> None:
        for given in rows:
            row = given
            if "window_start" in given:
                start = given["window_start"]
                row = {"date": start.date(), table.start: start, **given}
                del row["window_start"]
            names = ", ".join(f'"{name}"' for name in row)
            marks = ", ".join("?" * len(row))
            sql = f'INSERT INTO gold."{table.name}" ({names}) VALUES ({marks})'  # noqa: S608
            self._connection.execute(sql, list(row.values()))

    def rows(self, view: str) -> list[Row]:
        found = self._connection.execute(f"FROM kafka.{view}")
        names = [one[0] for one in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _type(type_: str) -> str:
    if type_.startswith("array"):
        return "VARCHAR[]"
    if type_.startswith("map"):
        return "MAP(VARCHAR, TIMESTAMPTZ)" if "timestamp" in type_ else "MAP(VARCHAR, DOUBLE)"
    return _TYPES.get(type_, type_)


@pytest.mark.parametrize("view", render.views(), ids=lambda one: one.name)
def test_every_column_has_a_readable_name_and_a_comment(view: render.View) -> None:
    connection = Views()._connection
    found = connection.execute(f"DESCRIBE kafka.{view.name}").fetchall()
    assert [row[0] for row in found] == list(view.columns)
    assert not RESERVED & view.columns.keys()
    assert not [name for name in view.columns if name.endswith("_us")]
    told = connection.execute(
        "SELECT column_name, comment FROM duckdb_columns() "
        "WHERE schema_name = 'kafka' AND table_name = ?",
        [view.name],
    )
    assert dict(told.fetchall()) == view.columns


def test_every_dialect_has_the_same_views() -> None:
    for name, dialect in render.DIALECTS.items():
        told = list(render.statements(dialect, "a.b", lambda t: f"gold.{t.name}", "Europe/Berlin"))
        created = [one for one in told if one.startswith("CREATE OR REPLACE VIEW")]
        assert len(created) == len(render.views()), name
        assert not [one for one in told if ";\n" in one], "scripts are split there"
        assert not [one for one in created if re.search(r"\b(utc|local|micros)\(|\{", one)]
        assert not [one for one in created if {"`": '"', '"': "`"}[dialect.quote] in one]


def test_what_is_not_known_is_null_and_never_zero() -> None:
    views, key = Views(), {"cluster": "c", "window_start": HOUR, "topic": "t"}
    views.put(
        tables.TOPICS,
        {**key, "metric": UNAVAILABLE, "affected_us": 0, "series_seen_us": 60_000_000, "series": 1},
        {**key, "metric": "kafka.topic.bytes_in", "increase": None},
    )
    lag = {"seen_us": 0, "behind_us": 0, "behind_low_us": 0, "behind_high_us": 0}
    views.put(tables.CONSUMER_LAG, {**key, "consumer_group": "g", **lag, "seconds_unknown_us": 0})
    lost = {"offsets_low": 0.0, "offsets_high": 0.0, "series_seen_us": 0}
    lost |= {"consumer_group": "g", "partition_id": 0, "series_unknown_us": 3_600_000_000}
    views.put(tables.LOST_OFFSETS, {**key, **lost})
    times = dict.fromkeys(("good_us", "bad_us", "bad_low_us", "bad_high_us", "unknown_us"), 0)
    views.put(tables.SLA, {"cluster": "c", "objective": "o", "statement": 1, **times})
    (hour,), (behind,), (expired,), (verdict,), (traffic,) = (
        views.rows(name)
        for name in ("topic_hours", "consumer_groups", "lost_records", "verdicts", "traffic")
    )
    assert (hour["unavailable_minutes"], hour["leaderless_minutes"]) == (0, None)
    assert (behind["behind_minutes"], behind["oldest_high_minutes"]) == (None, None)
    assert (expired["lost_low"], expired["lost_high"]) == (None, None)
    assert expired["unknown_minutes"] == 60
    assert (verdict["bad_minutes"], verdict["attainment_percent"]) == (None, None)
    assert (traffic["written_gib"], traffic["records_in"]) == (None, None)
    (day,) = views.rows("topic_days")
    assert (day["leaderless_minutes"], day["hours_seen"]) == (None, 1)
    assert day["seen_percent"] == pytest.approx(100 / 60)


def test_of_several_statements_the_newest_counts() -> None:
    views = Views()
    for statement, good in ((1, 0.5), (2, 0.75)):
        row = {"cluster": "c", "objective": "o", "topic": "t", "attainment": good}
        views.put(tables.SLA, {**row, "statement": statement, "bad_us": 90_000_000})
    (found,) = views.rows("verdicts")
    assert (found["statement"], found["attainment_percent"]) == (2, 75)
    assert found["bad_minutes"] == 1.5


def test_instants_are_those_of_the_zone_whatever_the_session_says() -> None:
    views = Views("Europe/Berlin")
    summer = dt.datetime(2026, 7, 1, 22, 30, tzinfo=dt.UTC)
    row = {"cluster": "c", "topic": "t", "metric": UNAVAILABLE, "affected_us": 1, "series": 1}
    views.put(tables.TOPICS, {**row, "window_start": HOUR}, {**row, "window_start": summer})
    found = {(f"{row['hour_utc']}", f"{row['hour_local']}") for row in views.rows("topic_hours")}
    assert found == {
        ("2026-11-16 10:00:00", "2026-11-16 11:00:00"),
        ("2026-07-01 22:30:00", "2026-07-02 00:30:00"),
    }
    assert dt.date(2026, 7, 2) in {row["day_local"] for row in views.rows("topic_days")}


def test_weeks_are_those_of_the_zone_and_the_last_is_the_newest_that_has_ended() -> None:
    views, key = Views("America/New_York"), {"cluster": "c", "source": "s", "family": "f"}
    times = {"outcome": "ok", "outcome_us": 1, "scrapes": 1}
    late_on_sunday = dt.datetime(2021, 1, 4, 4, 59, tzinfo=dt.UTC)
    for at in (late_on_sunday, late_on_sunday + dt.timedelta(minutes=1), HOUR.replace(year=9000)):
        views.put(tables.COVERAGE, {**key, **times, "window_start": at})
    found = {
        row["choice"]: (row["iso_week"], str(row["week_local"]))
        for row in views.rows("week_choices")
    }
    assert found.pop("(last)") == ("2021-W01", "2021-01-04")
    future = max(found)
    assert found == {
        "2020-W53": ("2020-W53", "2020-12-28"),
        "2021-W01": ("2021-W01", "2021-01-04"),
        future: (future, found[future][1]),
    }
    assert future.startswith("9000-W")


def test_of_a_week_a_subject_counts_once_by_the_last_own_period_that_ended_in_it() -> None:
    views = Views("Europe/Berlin")
    monday = dt.datetime(2026, 11, 15, 23, tzinfo=dt.UTC)  # at midnight in Berlin
    wanted = set()
    for day, grain, topic, counts in (
        (-7, "1w", "t", True), (-1, "28d", "t", False), (0, "28d", "t", True),
        (0, "28d", "gone", True), (0, "span", "t", False), (7, "1w", "t", True),
    ):  # fmt: skip
        end = monday + dt.timedelta(days=day)
        row = {
            "cluster": "c",
            "objective": "o",
            "period_kind": grain,
            "topic": topic,
            "statement": 1,
        }
        views.put(tables.SLA, {**row, "period_start": HOUR, "period_end": end, "stated_at": end})
        if counts:
            wanted.add((end.replace(tzinfo=None), topic, str((end - dt.timedelta(days=6)).date())))
    found = views.rows("verdicts")
    assert {
        (row["to_utc"], row["topic"], str(row["week_local"])) for row in found if row["is_of_week"]
    } == wanted
    assert len(found) == 6
    assert {row["subject"] for row in found} == {"topic t", "topic gone"}


def test_a_zero_of_a_week_is_that_of_a_statement_and_a_day_s_that_of_a_reading() -> None:
    views, monday = Views(), dt.datetime(2026, 11, 16, tzinfo=dt.UTC)
    end = monday + dt.timedelta(days=7)
    for user, attainment in (("idle", 1.0), ("unseen", None)):
        row = {
            "cluster": "c",
            "objective": "produce-throttling",
            "period_kind": "1w",
            "user_name": user,
        }
        more = {"period_start": monday, "period_end": end, "stated_at": end, "statement": 1}
        views.put(tables.SLA, {**row, **more, "attainment": attainment, "unknown_us": 6e7})
    weeks = {row["user_name"]: row for row in views.rows("client_weeks")}
    assert weeks["idle"]["throttled_high_minutes"] == 0
    assert weeks["unseen"]["throttled_high_minutes"] is None
    assert {row["unknown_minutes"] for row in weeks.values()} == {1}
    for hour, outcome in ((0, "ok"), (24, "timeout")):
        at = monday + dt.timedelta(hours=hour)
        reading = {"cluster": "c", "source": "s", "family": "quotas", "outcome": outcome}
        views.put(tables.COVERAGE, {**reading, "window_start": at, "outcome_us": 1, "scrapes": 1})
    days = sorted(views.rows("cluster_days"), key=lambda row: row["day_local"])
    assert [row["throttled_minutes"] for row in days] == [0, *[None] * 6]
    assert {row["unavailable_minutes"] for row in days} == {None}
    assert {(row["observed_percent"], row["state"]) for row in days} == {(None, "not_known")}


@pytest.mark.parametrize(("outcome", "rate"), [("ok", 0), ("timeout", None)])
def test_a_silent_cluster_has_no_burn_rate_of_the_last_hours(
    outcome: str, rate: float | None
) -> None:
    # It was bad a day before the newest hour, in which only the other cluster was observed.
    views, newest = Views(), HOUR + dt.timedelta(hours=24)
    named = {"cluster": "c", "objective": "coverage", "source": "broker-1"}
    views.put(tables.SLI, {**named, "window_start": HOUR, "bad_low_us": HOUR_US})
    views.put(tables.SLA, {
        **named, "period_kind": "1w", "period_start": HOUR, "period_end": newest,
        "stated_at": newest, "statement": 1, "target": 0.99, "attainment": 0.5,
    })  # fmt: skip
    for cluster, at, how in (("c", HOUR, "ok"), ("c", newest, outcome), ("other", newest, "ok")):
        reading = {"cluster": cluster, "source": "s", "family": "quotas", "outcome": how}
        views.put(tables.COVERAGE, {**reading, "window_start": at, "outcome_us": 1, "scrapes": 1})
    (row,) = views.rows("budget_burn")
    assert row["rate_3d"] > 0
    assert row["rate_6h"] == rate


@pytest.mark.parametrize(
    ("end", "expected"),
    [(None, [60, 60, 60]), (90, [60, 30])],
    ids=["it goes on", "the cluster lists other nodes and not it"],
)
def test_time_in_which_a_source_was_not_seen(end: int | None, expected: list[float]) -> None:
    """broker-2 was read for an hour; broker-1, which lists the nodes, for three."""
    views = Views()

    def minutes(number: float) -> dt.datetime:
        return HOUR + dt.timedelta(minutes=number)

    for source, last, listed in (("broker-1", 180, 180), ("broker-2", 60, end or 180)):
        views.put(
            tables.SUBJECTS,
            {"cluster": "c", "kind": "source", "source": source, "first_seen": HOUR,
             "last_seen": minutes(last), "attributes_at": minutes(listed)},
        )  # fmt: skip
        for hour in range(last // 60):
            views.put(
                tables.COVERAGE,
                {"cluster": "c", "window_start": minutes(60 * hour), "source": source,
                 "family": "f",
                 "outcome": "ok", "outcome_us": 3_600_000_000, "scrapes": 360},
            )  # fmt: skip
    found = sorted(
        (row["hour_utc"], row["seen_minutes"] + row["unknown_minutes"], row["seen_percent"])
        for row in views.rows("sources_seen")
        if row["source"] == "broker-2"
    )
    assert [row[1] for row in found] == expected
    assert [row[2] for row in found] == [100, *[0] * (len(expected) - 1)]


def hours_of(start: str, number: int) -> list[dt.datetime]:
    first = dt.datetime.fromisoformat(start)
    return [first + dt.timedelta(hours=hour) for hour in range(number)]


@pytest.mark.edge(12)
@pytest.mark.parametrize(
    ("start", "hours", "percent", "state"),
    [
        ("2026-10-24T22:00Z", 24, 96, "partly_known"),
        ("2026-10-24T22:00Z", 25, 100, "good"),
        ("2026-03-28T23:00Z", 23, 100, "good"),
        ("2026-03-28T23:00Z", 22, 100 * 22 / 23, "partly_known"),
        ("2026-11-15T23:00Z", 24, 100, "good"),
    ],
)
def test_local_days_have_as_many_hours_as_their_zone_says(
    start: str, hours: int, percent: float, state: str
) -> None:
    views = Views("Europe/Berlin")
    seen = {"cluster": "c", "source": "broker-1", "first_seen": BEFORE, "last_seen": AFTER}
    views.put(tables.SUBJECTS, {"kind": "source", "attributes_at": AFTER, **seen})
    for hour in hours_of(start, hours):
        row = {"cluster": "c", "topic": "t", "metric": UNAVAILABLE, "window_start": hour}
        no_time = dict.fromkeys(("affected_us", "affected_low_us", "affected_high_us"), 0)
        views.put(tables.TOPICS, {**row, **no_time, "series_seen_us": HOUR_LENGTH_US, "series": 1})
        views.put(tables.COVERAGE, read_whole(hour, "broker-1", "min_isr"))
    (topic,) = views.rows("topic_days")
    (cluster,) = (one for one in views.rows("cluster_days") if one["observed_percent"])
    for day in (topic, cluster):
        assert (day["observed_percent"], day["state"]) == (pytest.approx(percent), state)


def read_whole(hour: dt.datetime, source: str, family: str) -> Row:
    return {
        "cluster": "c", "window_start": hour, "source": source, "family": family, "outcome": "ok",
        "outcome_us": HOUR_LENGTH_US, "scrapes": 360,
    }  # fmt: skip


@pytest.mark.edge(6)
@pytest.mark.parametrize(
    ("read", "percent", "state"),
    [
        ({"broker-1": ("log",)}, None, "not_known"),
        ({"broker-1": ("min_isr", "log")}, 100, "good"),
        ({"broker-1": ("min_isr", "leaders"), "broker-2": ("log",)}, 50, "partly_known"),
        ({"broker-1": ("min_isr", "quotas"), "broker-2": ("quotas",)}, 50, "partly_known"),
        ({"broker-1": ("quotas",), "broker-2": ()}, 50, "partly_known"),
        ({"broker-1": (), "cluster-1": ("leaders", "offsets")}, 100, "good"),
        ({"broker-1": ("metadata_log",), "broker-2": ()}, 100, "good"),
    ],
)
def test_a_day_is_as_good_as_its_least_observed_figure(
    read: dict[str, tuple[str, ...]], percent: float | None, state: str
) -> None:
    views = Views()
    for source, of_source in read.items():
        seen = {"source": source, "first_seen": BEFORE, "last_seen": AFTER, "attributes_at": AFTER}
        views.put(tables.SUBJECTS, {"cluster": "c", "kind": "source", **seen})
        for hour in hours_of("2026-11-16T00:00Z", 24):
            for family in of_source:
                views.put(tables.COVERAGE, read_whole(hour, source, family))
    day = min(views.rows("cluster_days"), key=lambda one: str(one["day_local"]))
    assert (day["observed_percent"], day["state"]) == (percent, state)


@pytest.mark.edge(5)
def test_partitions_that_nobody_reports_are_not_observed() -> None:
    views = Views()
    key = {"cluster": "c", "window_start": HOUR, "topic": "t"}
    no_time = dict.fromkeys(("affected_us", "affected_low_us", "affected_high_us"), 0)
    of_three = {"series": 3, "series_seen_us": 3 * HOUR_LENGTH_US}
    views.put(tables.TOPICS, {**key, **no_time, **of_three, "metric": UNAVAILABLE})
    (hour,) = views.rows("topic_hours")
    assert (hour["observed_percent"], hour["state"]) == (100, "good"), "without the objective"
    views.put(tables.OBJECTIVES, {"objective": "min-isr"})
    (hour,) = views.rows("topic_hours")
    assert (hour["observed_percent"], hour["state"]) == (None, "not_known"), "never all of them"
    judged = {"objective": "min-isr", "good_us": HOUR_LENGTH_US // 5 * 4, "bad_us": 0}
    views.put(tables.SLI, {**key, **judged})
    (hour,) = views.rows("topic_hours")
    assert (hour["observed_percent"], hour["state"]) == (80, "partly_known")


def test_unity_catalog_gets_keys_and_tags() -> None:
    place = render.DIALECTS["databricks"].name
    told = list(
        render.statements(
            render.DIALECTS["databricks"], "m.k", lambda t: place("m", "g", t.name), "UTC"
        )
    )
    assert (
        "ALTER TABLE `m`.`g`.`topics` ADD CONSTRAINT topics_key "
        "PRIMARY KEY (`hour`, `cluster`, `metric`, `topic`)"
    ) in told
    assert (
        "ALTER TABLE `m`.`g`.`labelled` ADD CONSTRAINT labelled_of_sources "
        "FOREIGN KEY (`hour`, `cluster`, `metric`, `source`) "
        "REFERENCES `m`.`g`.`sources` (`hour`, `cluster`, `metric`, `source`)"
    ) in told
    tagged = {one.split(" SET TAGS")[0] for one in told if "SET TAGS" in one}
    personal = {
        f"ALTER TABLE `m`.`g`.`{table.name}` ALTER COLUMN `{column}`"
        for table in tables.GOLD
        for column in ("user_name", "client_id")
        if column in table.column_names
    }
    assert tagged == personal
    assert "SET TAG ON COLUMN `m`.`k`.`throttled_clients`.user_name personal_data = `user`" in told
    spark = render.statements(render.DIALECTS["spark"], "k", lambda t: t.name, "UTC")
    assert not [one for one in spark if "TAG" in one or "CONSTRAINT" in one]


@pytest.mark.parametrize("dialect", ["spark", "databricks"])
def test_metric_views_measure_columns_of_views(dialect: str) -> None:
    given = ["views", "main.kafka_gold", "--dialect", dialect, "--schema", "main.kafka"]
    printed = CliRunner().invoke(main, [*given, "--metric-views"]).output.split(";\n\n")
    made = [one for one in printed if "WITH METRICS" in one]
    assert len(made) == 6
    columns = {view.name: view.columns for view in render.views()}
    for one in made:
        told = yaml.safe_load(one.split("$$")[1])
        source = told["source"].split(".")[-1].strip("`")
        names = [column["name"] for column in (*told["dimensions"], *told["measures"])]
        assert re.findall(r"(?m)^    `(\w+)` COMMENT '", one) == names
        assert {column["expr"] for column in told["dimensions"]} <= columns[source].keys()
        measured = {
            name for text in told["measures"] for name in re.findall(r"sum\((\w+)\)", text["expr"])
        }
        assert measured <= columns[source].keys()
    plain = CliRunner().invoke(main, given).output
    assert "WITH METRICS" not in plain


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--dialect", "trino", "a.b", "--metric-views"], "trino does not have them"),
        (["--dialect", "trino", "{lake}"], "use the CATALOG.SCHEMA of gold"),
        (["--dialect", "trino", "a.b", "--schema", "a.b"], "--schema a.b: gold is in this schema"),
        (["--dialect", "duckdb", "{lake}", "--schema", "a;b"], "use SCHEMA or CATALOG.SCHEMA"),
        (
            ["--dialect", "spark", "a.b", "--time-zone", "Europe/Atlantis"],
            "unknown on this machine",
        ),
        (["--dialect", "duckdb", "{lake}"], "gold/subjects: no such table. Run jmxlake rollup"),
        (["--dialect", "duckdb", "--run", "a.b"], "--run: Spark does not run duckdb"),
        (["--dialect", "duckdb", "elsewhere"], "no table bronze/runs"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(given: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / tables.RUNS.path / "_delta_log").mkdir(parents=True)
    put(tmp_path, tables.SLA)
    ran = CliRunner().invoke(main, ["views", *(one.format(lake=tmp_path) for one in given)])
    assert ran.exit_code in {1, 2}
    assert said in ran.output
    assert "CREATE" not in ran.output


def test_run_gives_spark_what_is_printed_but_for_keys_and_tags(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class FakeSession:
        ran: Final[list[str]] = []

        def sql(self, statement: str) -> None:
            self.ran.append(statement)

    given = ["views", "main.kafka_gold", "--dialect", "databricks", "--schema", "main.kafka"]
    printed = CliRunner().invoke(main, given).output.split(";\n\n")
    monkeypatch.setattr(cli_views, "session", FakeSession)
    ran = CliRunner().invoke(main, [*given, "--run"])
    assert (ran.exit_code, ran.output) == (0, "")
    assert FakeSession.ran == [one for one in printed if one.startswith("CREATE")]
    assert len(FakeSession.ran) == 1 + len(render.views())


def test_names_of_places_cannot_leave_their_literal() -> None:
    url = "s3://a'b`c\"d"
    for name, wanted in (("duckdb", "'s3://a''b`c\"d/"), ("spark", "`s3://a'b``c\"d/")):
        ran = CliRunner().invoke(main, ["views", "--dialect", name, url])
        assert ran.exit_code == 0, ran.output
        assert wanted in ran.output


@pytest.mark.edge(6)
@pytest.mark.parametrize("percent", [0.0, 0.43, 49.9, 50.0, 80.0, 98.9, 99.0, 100.0])
@pytest.mark.parametrize("bad", [0, 60_000_000])
def test_view_state_is_that_of_the_report(percent: float, bad: int) -> None:
    """The thresholds are declared once, and both languages decide alike."""
    views, observed = Views(), round(percent * 36_000_000)
    views.put(
        tables.TOPICS,
        {"cluster": "c", "metric": UNAVAILABLE, "topic": "t", "window_start": HOUR, "series": 2,
         "series_seen_us": 2 * observed, "affected_us": bad, "affected_low_us": bad,
         "affected_high_us": bad},
    )  # fmt: skip
    (row,) = views.rows("topic_hours")
    assert row["observed_percent"] == pytest.approx(percent)
    assert row["state"] == ("bad" if bad > 0 else state_of(percent))
    (day,) = views.rows("topic_days")
    assert day["observed_percent"] == pytest.approx(percent / 24), "of all hours of the day"
    assert day["state"] == ("bad" if bad > 0 else state_of(percent / 24))


@pytest.mark.edge(6)
@pytest.mark.parametrize(
    ("view", "objective", "key"),
    [
        ("topic_weeks", "min-isr", {"topic": "t"}),
        ("client_weeks", "produce-throttling", {"client_id": "billing"}),
        ("tier_lag_weeks", "copy-lag", {"topic": "t"}),
    ],
)
@pytest.mark.parametrize(
    ("unknown", "verdict"),
    [(0.001, "met"), (0.2, "met"), (0.996, "met"), (0.005, "uncertain"), (0.2, "uncertain")],
)
def test_view_week_hardly_observed_is_not_good(
    view: str, objective: str, key: Row, unknown: float, verdict: str
) -> None:
    views, week = Views(), dt.timedelta(days=7)
    us = week // dt.timedelta(microseconds=1)
    good = us - round(us * unknown)
    views.put(
        tables.SLA,
        {"cluster": "c", "objective": objective, "period_kind": "1w", "period_start": HOUR - week,
         "period_end": HOUR, "statement": 1, "stated_at": HOUR, "verdict": verdict, "good_us": good,
         "bad_us": 0, "bad_low_us": 0, "bad_high_us": 0, "unknown_us": us - good,
         "expected_us": us, "attainment": 1.0, **key},
    )  # fmt: skip
    (row,) = views.rows(view)
    share = 100 * (1 - unknown)
    assert row["observed_percent"] == pytest.approx(share)
    state = state_of(share)
    state = "partly_known" if state == "good" and verdict == "uncertain" else state
    assert row["state"] == state
    (stated,) = views.rows("verdicts")
    assert stated["state"] == state
    views.put(tables.OWNERS, {"cluster": "c", "kind": "x", **key, "team": "ops"})
    (team,) = views.rows("team_weeks")
    assert team["state"] == state


def test_verdicts_and_weeks_of_teams_have_the_owner_of_their_subject() -> None:
    views, end = Views(), dt.datetime(2026, 11, 16, tzinfo=dt.UTC)
    us = 7 * 24 * 3_600_000_000
    for topic, verdict, good in (("a", "met", us), ("b", "missed", us // 2), ("c", "met", us)):
        views.put(
            tables.SLA,
            {"cluster": "k", "objective": "o", "period_kind": "1w", "topic": topic, "target": 0.9,
             "period_start": end - dt.timedelta(days=7), "period_end": end, "stated_at": end,
             "statement": 1, "verdict": verdict, "attainment": good / us, "good_us": good,
             "bad_us": us - good, "bad_low_us": us - good, "bad_high_us": us - good,
             "unknown_us": 0, "expected_us": us},
        )  # fmt: skip
    for topic, team, cluster in (("a", "x", "k"), ("b", "x", "k"), ("c", "y", "other")):
        views.put(
            tables.OWNERS, {"cluster": cluster, "kind": "topic", "topic": topic, "team": team}
        )
    assert {row["topic"]: row["team"] for row in views.rows("verdicts")} == {
        "a": "x", "b": "x", "c": None,
    }  # fmt: skip
    (week,) = views.rows("team_weeks")
    assert (week["team"], week["subjects"], week["missed"], week["uncertain"]) == ("x", 2, 1, 0)
    assert (week["attainment_percent"], week["bad_minutes"]) == (75, 5040)


def test_percentiles_are_those_of_the_time() -> None:
    """Check the views with the buckets of a plain exponential histogram."""
    views, timed = Views(), [(-2.0, 10), (0.0, 30), (1.5, 40), (80.0, 19), (1e6, 1)]
    for hour, share in ((0, 3), (25, 1)):
        at = HOUR + dt.timedelta(hours=hour)
        for value, seconds in timed:
            sign, bucket = bucket_of(value)
            views.put(
                tables.DISTRIBUTIONS,
                {"cluster": "c", "metric": "m", "source": "broker-1", "window_start": at,
                 "sign": sign, "bucket": bucket, "series_us": share * seconds * 1_000_000,
                 "value_seconds": 0.0},
            )  # fmt: skip
    (week,) = views.rows("percentile_weeks")
    days = views.rows("percentile_days")
    assert len(days) == 2
    for row in (week, *days):
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)):
            assert row[name] == pytest.approx(percentile(timed, share), rel=1e-12), name
        assert row["greatest"] == pytest.approx(1e6, rel=0.0055)
    assert sorted(row["seen_minutes"] for row in days) == pytest.approx([100 / 60, 300 / 60])
    assert week["seen_minutes"] == pytest.approx(400 / 60)
    values = {row["metric_value"] for row in views.rows("value_histograms")}
    assert sorted(values) == pytest.approx([value for value, _ in timed], rel=0.0055)


def test_versions_of_an_objective_say_which_one_is_current() -> None:
    views, later = Views(), HOUR + dt.timedelta(days=1)
    row = {"objective": "o", "target": 0.99}
    views.put(tables.OBJECTIVES, {**row, "valid_from": HOUR, "valid_until": later})
    views.put(tables.OBJECTIVES, {**row, "target": 0.999, "valid_from": later})
    found = {round(row["target_percent"], 3): row["is_current"] for row in views.rows("objectives")}
    assert found == {99: False, 99.9: True}
