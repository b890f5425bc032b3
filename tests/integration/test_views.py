"""The views of gold on DuckDB and Spark: the same rows, with the figures of the report."""

from __future__ import annotations

import datetime as dt
import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse import tables
from lakehouse.ops.views import render
from tests import dashboard
from tests.deploy.bundle_file import read
from tests.docs.pages import under
from tests.gold_builder import put
from tests.notebooks import bind
from tests.sql_views import NOW, Row, asked, in_duckdb, jmxlake
from tests.story_lake import Story

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import duckdb
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.reads

PAGE: Final = (Path(__file__).parents[2] / "docs" / "views.md").read_text("utf-8")
QUESTIONS: Final = under(PAGE, "sql")["Example queries"]
LISTED: Final = PAGE.partition("## List of views")[2].partition("\n## ")[0]
VIEWS: Final = "${var.catalog}.${resources.schemas.views.name}."
SPAN: Final = ("--from", "2026-11-16T10:00Z", "--to", "2026-11-16T14:00Z")
IN_SPAN: Final = "WHERE hour_utc < TIMESTAMP '2026-11-16 14:00:00'"
NOW_THERE: Final = "'2026-11-20 15:00:00Z'"
MINUTE: Final = 6e7
GIB: Final = 2**30


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The story's lake, rolled up and stated."""
    root = tmp_path_factory.mktemp("views") / "lake"
    root.mkdir()
    Story(hours=4).tell().commit(root)
    jmxlake("rollup", str(root), "--engine", "local")
    _put_distributions(root)
    _put_upload_lag(root)
    jmxlake("slo", "publish", str(root), *SPAN)
    jmxlake("slo", "publish", str(root), "--week", "2026-W47")
    return root


def _put_distributions(root: Path) -> None:
    """Add values with percentiles, which no agent of the story requests."""
    series = {"cluster": "c", "metric": "kafka.client.produce.throttle_time", "client_id": "app"}
    for hour in (10, 40):
        start = dt.datetime(2026, 11, 16, tzinfo=dt.UTC) + dt.timedelta(hours=hour)
        for bucket, minutes in ((0, 30), (64, 25), (640, 5)):
            value = {"sign": 1, "bucket": bucket, "series_us": minutes * 60_000_000}
            row = {**series, "window_start": start, **value, "value_seconds": 0.0}
            put(root, tables.DISTRIBUTIONS, row)


def _put_upload_lag(root: Path) -> None:
    """Add a lag from the log of tiered storage, which no agent of the story reads."""
    start = dt.datetime(2026, 11, 17, 16, tzinfo=dt.UTC)
    lag = {"metric": "kafka.partition.upload_lag.records", "value_max": 500.0}
    row = {"cluster": "c", "topic": "orders", "window_start": start, **lag}
    put(root, tables.TOPICS, row)
    put(root, tables.PARTITIONS, {**row, "partition_id": 0})


@pytest.fixture(scope="module")
def report(lake: Path) -> Any:
    return json.loads(jmxlake("report", str(lake), *SPAN, "--json", "-"))


@pytest.fixture(scope="module")
def ask(lake: Path) -> Callable[[str], list[Row]]:
    """Asks the views; those of hours are also in the schema ``span``, cut off as the report is."""
    connection = in_duckdb(lake)
    connection.execute("CREATE SCHEMA span")
    for view in render.views():
        if "hour_utc" in view.columns:
            cut = f"FROM kafka.{view.name} {IN_SPAN}"
            connection.execute(f"CREATE VIEW span.{view.name} AS {cut}")
    return asker(connection)


def asker(connection: duckdb.DuckDBPyConnection) -> Callable[[str], list[Row]]:
    return partial(asked, connection)


def about(wanted: float | None) -> Any:
    """Sums of doubles depend on their order."""
    return None if wanted is None else pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_verdicts(ask: Callable[[str], list[Row]], report: Any) -> None:
    names = ("topic", "user", "client_id", "group", "source")
    found = {
        (row["objective"], row["topic"], row["user_name"], row["client_id"],
         row["consumer_group"], row["source"]): row
        for row in ask("FROM kafka.verdicts WHERE period = 'span'")
    }  # fmt: skip
    wanted = {
        (objective["name"], *(subject[name] for name in names)): (subject, objective)
        for objective in report["objectives"]
        for subject in objective["subjects"]
    }
    assert found.keys() == wanted.keys()
    assert len(found) > 10
    for key, (subject, objective) in wanted.items():
        row = found[key]
        assert row["verdict"] == subject["verdict"]
        assert row["target_percent"] == about(100 * objective["target"])
        for name in ("attainment", "attainment_low", "attainment_high"):
            share = subject[name]
            assert row[f"{name}_percent"] == about(None if share is None else 100 * share)
        for name in ("bad", "bad_low", "bad_high", "unknown", "budget_left"):
            assert row[f"{name}_minutes"] == about(subject[f"{name}_us"] / MINUTE)


def test_time_of_topics(ask: Callable[[str], list[Row]], report: Any) -> None:
    for view in ("span.topic_hours", "kafka.topic_days"):
        found = ask(
            "SELECT topic, sum(unavailable_minutes) AS any, sum(unavailable_low_minutes) AS low, "
            "sum(unavailable_high_minutes) AS high, sum(under_min_isr_minutes) AS under, "
            "max(most_partitions_unavailable) AS most FROM VIEW GROUP BY topic "
            "ORDER BY topic".replace("VIEW", view)
        )
        assert found == [
            {
                "topic": one["topic"],
                "any": about(one["unavailable_any_us"] / MINUTE),
                "low": about(one["unavailable_any_low_us"] / MINUTE),
                "high": about(one["unavailable_any_high_us"] / MINUTE),
                "under": about(one["any_us"] / MINUTE),
                "most": one["max_concurrent"],
            }
            for one in sorted(report["min_isr"]["topics"], key=lambda one: one["topic"])
        ]
        assert sum(one["any"] for one in found) > 1


def test_incidents(ask: Callable[[str], list[Row]], report: Any) -> None:
    found = ask(
        "SELECT topic, partition_id, kind, strftime(start_utc, '%Y-%m-%dT%H:%M:%SZ') AS start, "
        "strftime(end_utc, '%Y-%m-%dT%H:%M:%SZ') AS until, "
        "CAST(round(60e6 * (minutes - low_minutes)) AS BIGINT) AS tail, "
        "CAST(round(60e6 * (high_minutes - minutes)) AS BIGINT) AS lead, sources "
        "FROM kafka.min_isr_incidents ORDER BY ALL"
    )
    wanted = sorted(
        (
            partition["topic"], partition["partition"], one["kind"], one["start"], one["end"],
            one["tail_us"], one["lead_us"], len(one["sources"]),
        )
        for partition in report["min_isr"]["partitions"]
        for one in partition["incidents"]
    )  # fmt: skip
    assert [tuple(row.values()) for row in found] == wanted
    assert len(wanted) > 5


def test_throttled_clients(ask: Callable[[str], list[Row]], report: Any) -> None:
    found = ask(
        "SELECT user_name, client_id, request, sum(throttled_minutes) AS minutes, "
        "sum(throttled_low_minutes) AS low, max(max_throttle_ms) AS most "
        "FROM span.throttled_clients GROUP BY ALL"
    )
    assert found == [
        {
            "user_name": one["user"],
            "client_id": one["client_id"],
            "request": one["kind"],
            "minutes": about(one["throttled_us"] / MINUTE),
            "low": about(one["throttled_low_us"] / MINUTE),
            "most": one["throttle_ms_max"],
        }
        for one in report["throttling"]["clients"]
        if one["throttled_us"]
    ]
    assert found


def test_consumer_groups_and_their_losses(ask: Callable[[str], list[Row]], report: Any) -> None:
    (behind,) = ask(
        "SELECT consumer_group, topic, sum(behind_minutes) AS minutes, "
        "max(most_records_low) AS low, "
        "CASE WHEN count(most_records_high) = count(*) THEN max(most_records_high) END AS high, "
        "max(oldest_low_minutes) AS oldest FROM span.consumer_groups GROUP BY ALL"
    )
    (group,) = report["consumer_lag"]["groups"]
    assert behind == {
        "consumer_group": group["group"],
        "topic": group["topic"],
        "minutes": about(group["behind_us"] / MINUTE),
        "low": group["most"]["records_low"],
        "high": group["most"]["records_high"],
        "oldest": about(group["most"]["seconds_low"] / 60),
    }
    (lost,) = ask(
        "SELECT consumer_group, topic, partition_id, sum(lost_low) AS low, sum(lost_high) AS high "
        "FROM span.lost_records GROUP BY ALL"
    )
    (wanted,) = report["lost_before_read"]["groups"]
    names = ("group", "topic", "partition", "offsets_low")
    assert tuple(lost.values())[:-1] == tuple(wanted[name] for name in names)
    # The partition's own readings were whole, but a broker that may have led others was unread.
    assert (lost["high"], wanted["offsets_high"]) == (12431.0, None)


def test_the_remote_tier(ask: Callable[[str], list[Row]], report: Any) -> None:
    (lag,) = ask(
        "SELECT topic, sum(lag_minutes) AS minutes, max(most_lag_gib) AS most "
        "FROM span.tier_lag WHERE way = 'upload' GROUP BY topic"
    )
    (topic,) = report["tier_lag"]["topics"]
    assert lag == {
        "topic": topic["topic"],
        "minutes": about(topic["copy"]["lagging_us"] / MINUTE),
        "most": topic["copy"]["max_bytes"] / GIB,
    }
    (reads,) = ask(
        "SELECT topic, sum(requests) AS requests, sum(read_gib) AS gib, sum(errors) AS errors "
        "FROM span.remote_reads GROUP BY topic"
    )
    (read,) = report["remote_reads"]["topics"]
    assert reads == {
        "topic": read["topic"], "requests": read["requests"], "gib": about(read["bytes"] / GIB),
        "errors": read["errors"],
    }  # fmt: skip


def test_traffic_and_answers(ask: Callable[[str], list[Row]], report: Any) -> None:
    found = ask(
        "SELECT topic, sum(records_in) AS records, sum(written_gib) AS written, "
        "sum(read_gib) AS read FROM span.traffic GROUP BY topic ORDER BY topic"
    )
    service = report["service"]
    assert found == [
        {
            "topic": one["topic"],
            "records": about(one["records_in"]),
            "written": about(one["bytes_in"] / GIB),
            "read": about(one["bytes_out"] / GIB),
        }
        for one in sorted(service["topics"], key=lambda one: one["topic"])
    ]
    errors = ask(
        "SELECT request, error, sum(answers) AS answers FROM span.answers "
        "WHERE error <> 'NONE' GROUP BY request, error ORDER BY answers DESC"
    )
    assert errors == [
        {name: one[name] for name in ("request", "error", "answers")} for one in service["errors"]
    ]
    good = ask(
        "SELECT source, request, sum(answers) FILTER (WHERE error = 'NONE') / sum(answers) AS good "
        "FROM span.answers GROUP BY ALL ORDER BY source, request"
    )
    wanted = [{name: one[name] for name in ("source", "request", "good")}
              for one in service["brokers"]]  # fmt: skip
    wanted.sort(key=lambda one: (one["source"], one["request"]))
    assert good == [{**one, "good": about(one["good"])} for one in wanted]


def test_sources_seen(ask: Callable[[str], list[Row]], report: Any) -> None:
    found = ask(
        "SELECT source, family, sum(seen_minutes) AS seen, sum(unknown_minutes) AS unknown "
        "FROM span.sources_seen GROUP BY ALL ORDER BY source, family"
    )
    wanted = sorted(
        (one["source"], one["family"], one["observed_us"] / MINUTE, one["unknown_us"] / MINUTE)
        for one in report["coverage"]["sources"]
    )
    assert [tuple(one.values()) for one in found] == [
        (source, family, about(seen), about(unknown)) for source, family, seen, unknown in wanted
    ]
    assert sum(one[3] for one in wanted) > 0


@pytest.mark.parametrize("table", [t for t in tables.HOURS if render.key(t)], ids=lambda t: t.name)
def test_keys_hold(table: tables.Table, lake: Path) -> None:
    """Of what Unity Catalog gets, the part that is a claim about rows."""
    connection = in_duckdb(lake)
    place, key = f'"{lake}/{table.path}"', ", ".join(f'"{name}"' for name in render.key(table))
    rows = connection.execute(f"SELECT {key} FROM {place}").fetchall()  # noqa: S608
    assert len(rows) == len(set(rows)) > 0
    if above := render.PARENTS.get(table):
        keys = ", ".join(f'"{name}"' for name in render.key(above))
        orphans = f'FROM {place} ANTI JOIN "{lake}/{above.path}" USING ({keys})'
        assert connection.execute(orphans).fetchall() == []


def test_a_date_leaves_files_out(ask: Callable[[str], list[Row]]) -> None:
    dated = [view.name for view in render.views() if "date_utc" in view.columns]
    assert len(dated) == 13
    for name in dated:
        (plan,) = ask(f"EXPLAIN FROM kafka.{name} WHERE date_utc = DATE '1999-01-01'")
        assert "Scanning Files: 0/" in plan["explain_value"], name


def test_the_page_is_right(ask: Callable[[str], list[Row]], lake: Path) -> None:
    assert len(QUESTIONS) == 5
    for one in QUESTIONS:
        assert ask(one)
    for head in ("Dimensions", "Percentiles"):
        for one in under(PAGE, "sql")[head]:
            ask(one)
    listed = re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| `.*?\|", LISTED)))
    assert listed == [one.name for one in render.views()]
    commands = re.findall(r"(?m)^jmxlake (views .*) > views.sql$", PAGE)
    assert {one.split()[2] for one in commands} == render.DIALECTS.keys()
    for one in commands:
        assert "CREATE OR REPLACE VIEW" in jmxlake(*re.sub(r"\blake$", str(lake), one).split())


@pytest.fixture
def in_spark(
    spark: SparkSession, lake: Path, tmp_path: Path
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Create the views in Spark's schema ``views_of_kafka``, and return a DuckDB that has them."""
    zone, owners = "Europe/Berlin", tmp_path / "owners.yaml"
    owners.write_text('owners: [{team: everybody, topics: "*", clients: "*", groups: "*"}]\n')
    week = ("--week", "2026-W47", "--time-zone", zone)  # its own weeks
    jmxlake("weekly", str(lake), *week, "--owners", str(owners))
    before = spark.conf.get("spark.sql.session.timeZone")
    schema = spark.catalog.currentDatabase()
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")  # nothing depends on it
    try:
        sql = jmxlake(
            "views", "--dialect", "spark", "--schema", "views_of_kafka", "--time-zone", zone,
            str(lake),
        )  # fmt: skip
        for one in filter(str.strip, sql.replace(NOW, f"TIMESTAMP {NOW_THERE}").split(";\n")):
            spark.sql(one)
        spark.catalog.setCurrentDatabase("views_of_kafka")
        yield in_duckdb(lake, zone, f"TIMESTAMPTZ {NOW_THERE}")
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
        spark.catalog.setCurrentDatabase(schema)
        spark.sql("DROP SCHEMA IF EXISTS views_of_kafka CASCADE")


@pytest.mark.spark
def test_spark_has_the_same_rows_and_the_comments(
    spark: SparkSession, in_spark: duckdb.DuckDBPyConnection
) -> None:
    ask = asker(in_spark)
    for view in render.views():
        name = f"views_of_kafka.{view.name}"
        found = [row.asDict() for row in spark.table(name).collect()]
        wanted = ask(f"FROM kafka.{view.name}")
        assert sorted(map(_plain, found)) == sorted(map(_plain, wanted)), view.name
        assert found, view.name
        described = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        comments = {row["col_name"]: row["comment"] for row in described[: len(view.columns)]}
        assert comments == view.columns
        assert view.comment in [row["data_type"] for row in described]
    for name, sql, parameters in users_of_views():  # the nightly test compares their rows
        first = asked(in_spark, sql, parameters)[0]
        assert spark.sql(bind(sql, parameters)).columns == list(first), name


def users_of_views() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield the SQL in documentation, dashboard and alerts: its name, text and parameters."""
    for number, one in enumerate(QUESTIONS):
        yield f"question {number}", one.replace("kafka.", ""), {}
    for dataset in dashboard.datasets(dashboard.read()).values():
        yield dataset.name, dataset.sql, dataset.parameters
    for name, alert in read()["resources"]["alerts"].items():
        yield name, alert["query_text"].replace(VIEWS, ""), {}


@pytest.mark.nightly
@pytest.mark.spark
def test_spark_answers_queries_of_docs_dashboard_and_alerts(
    spark: SparkSession, in_spark: duckdb.DuckDBPyConnection
) -> None:
    for name, sql, parameters in users_of_views():
        found = [row.asDict() for row in spark.sql(bind(sql, parameters)).collect()]
        wanted = asked(in_spark, sql, parameters)
        assert sorted(map(_plain, found)) == sorted(map(_plain, wanted)), name  # some are ties
        assert found, name


@pytest.mark.nightly
@pytest.mark.spark
def test_spark_measures_the_views(
    spark: SparkSession, lake: Path, ask: Callable[[str], list[Row]]
) -> None:
    """Metric views of Spark give the same figures as sums over the views in DuckDB."""
    try:
        given = ("--dialect", "spark", "--schema", "measured", "--metric-views", "--run")
        assert jmxlake("views", *given, str(lake)) == ""
        for one in render.metric_views():
            by = ", ".join(one.dimensions[:3])
            measures = ", ".join(f"MEASURE({name}) AS {name}" for name in one.measures)
            of_spark = f"SELECT {by}, {measures} FROM measured.{one.name} GROUP BY {by}"  # noqa: S608
            found = spark.sql(of_spark)
            sums = ", ".join(f"{sql} AS {name}" for name, sql in one.measures.items())
            rows = f"kafka.{one.source} WHERE {one.filter or 'true'}"
            wanted = ask(f"SELECT {by}, {sums} FROM {rows} GROUP BY {by}")  # noqa: S608
            assert wanted, one.name
            assert in_order(row.asDict() for row in found.collect()) == [
                {name: about(value) if isinstance(value, float) else value
                 for name, value in row.items()}
                for row in in_order(wanted)
            ], one.name  # fmt: skip
            described = spark.sql(f"DESCRIBE TABLE measured.{one.name}").collect()
            assert {row.col_name: row.comment for row in described} == one.comments
    finally:
        spark.sql("DROP SCHEMA IF EXISTS measured CASCADE")


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows by their first columns."""
    return sorted(rows, key=lambda row: [str(value) for value in [*row.values()][:3]])


@pytest.mark.spark
def test_run_creates_them_by_spark(spark: SparkSession, lake: Path) -> None:
    try:
        said = jmxlake("views", "--dialect", "spark", "--schema", "views_run", "--run", str(lake))
        assert said == ""
        assert spark.table("views_run.topic_weeks").count() > 0
    finally:
        spark.sql("DROP SCHEMA IF EXISTS views_run CASCADE")


def _plain(row: Row) -> str:
    """Return a row as text. The last bits of a sum depend on its order."""
    return json.dumps(
        {
            name: float(f"{round(value, 9):.12g}") + 0.0 if isinstance(value, float) else value
            for name, value in row.items()
        },
        default=str,
    )
