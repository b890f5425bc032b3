"""``jmxlake export`` of real tables of gold, read back by the tools it is for."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import shutil
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from lakehouse import tables
from lakehouse.cli.main import main
from tests import bronze_commits, gold_builder
from tests.hostile import delta

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

pytestmark = pytest.mark.reads

START = dt.datetime(2026, 11, 16, 10, tzinfo=dt.UTC)
ISR, LAG = "kafka.partition.under_min_isr", "kafka.topic.remote_copy_lag.bytes"
ODD = 'cli"ent\\\n,\t\r\u2028\u202e=1+1'


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hours of two metrics and their windows, out of order; a client with an odd name."""
    root = tmp_path_factory.mktemp("export") / "la ke"
    bronze_commits.make(str(root), {})
    for topics, clients, step in (
        (tables.TOPICS, tables.CLIENTS, 3600),
        (tables.WINDOWS["topics"], tables.WINDOWS["clients"], 300),
    ):
        rows = []
        for number in reversed(range(7200 // step)):
            at = START + dt.timedelta(seconds=number * step)
            usual = {"cluster": "c", "window_start": at}
            for metric in (LAG, ISR):
                known = {
                    "value_mean": number / 4,
                    "series_affected_us": number,
                    "known_wrong": False,
                }
                rows += [
                    {**usual, "metric": metric, "topic": topic, **(known if number else {})}
                    for topic in ("t2", "t1")
                ]
            client = {"metric": "kafka.client.produce.throttle_time", "client_id": ODD}
            gold_builder.put(root, clients, {**usual, **client, "value_max": 1.5})
        gold_builder.put(root, topics, *rows)
    gold_builder.progress(root, START)
    subject = {"cluster": "c", "kind": "topic", "topic": "t1", "first_seen": START}
    attributes = [("kafka.topic.partitions", 3.0)]
    gold_builder.put(
        root, tables.SUBJECTS, {**subject, "last_seen": START, "attributes": attributes}
    )
    return root


def export(lake: Path, *arguments: Any) -> Result:
    return CliRunner().invoke(main, ["export", str(lake), *map(str, arguments)])


def test_parquet_is_read_by_other_tools_and_holds_every_row(lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "top*ics [1]?.parquet"
    run = export(lake, "topics_windows", "--format", "parquet", "--out", file)
    assert run.exit_code == 0, run.output
    assert f"jmxlake: 96 rows in {file}" in run.stderr
    assert run.stdout == ""
    assert list(tmp_path.iterdir()) == [file]
    plain = tmp_path / "plain.parquet"
    file.rename(plain)
    schema = pq.read_schema(plain)
    assert tuple(schema.names) == tables.WINDOWS["topics"].column_names
    assert str(schema.field("window_start").type) == "timestamp[us, tz=UTC]"
    told = duckdb.read_parquet(str(plain)).aggregate(
        "date, metric, count(*), count(value_mean), sum(value_mean)", "date, metric"
    )
    day = START.date()
    assert sorted(told.fetchall()) == [(day, ISR, 48, 46, 138.0), (day, LAG, 48, 46, 138.0)]


def test_csv_goes_to_a_pipe_in_order(lake: Path) -> None:
    span = ("--from", "2026-11-16T10:30:00Z", "--to", "2026-11-16T11:00")
    run = export(lake, "topics_windows", "--format", "csv", "--metric", ISR, *span)
    assert run.exit_code == 0, run.output
    header, *lines = run.stdout.splitlines()
    assert header.replace('"', "").split(",") == list(tables.WINDOWS["topics"].column_names)
    assert len(lines) == 12
    assert lines[0].startswith(
        f'2026-11-16,"c",2026-11-16T10:30:00Z,"{ISR}","t1",,,1.5,,,6,,,,,false,'
    )
    assert [line.split(",")[4] for line in lines] == ['"t1"'] * 6 + ['"t2"'] * 6


def test_csv_of_a_map_and_a_table_without_windows(lake: Path) -> None:
    run = export(lake, "subjects", "--format", "csv")
    assert run.stdout.splitlines()[1].endswith('"{""kafka.topic.partitions"": 3.0}",,')


def test_openmetrics_is_taken_by_a_parser_and_unknown_is_absent(lake: Path) -> None:
    run = export(lake, "topics_windows", "--format", "openmetrics")
    assert run.exit_code == 0, run.output
    families = {one.name: one for one in text_string_to_metric_families(run.stdout)}
    stems = {name.split(":")[1] for name in families}
    assert stems == {"kafka_partition_under_min_isr", "kafka_topic_remote_copy_lag_bytes"}
    mean = families["topic:kafka_partition_under_min_isr:value_mean"].samples
    assert len(mean) == 2 * 23, "the first window is not known"
    first = mean[0]
    assert (first.labels, first.value) == ({"cluster": "c", "topic": "t1"}, 0.25)
    assert float(first.timestamp) == START.timestamp() + 600
    seconds = families["topic:kafka_partition_under_min_isr:series_affected_seconds"].samples
    assert seconds[0].value == 1e-06


def test_openmetrics_of_older_table_without_a_column(tmp_path: Path) -> None:
    bronze_commits.make(str(tmp_path), {})
    later = ("seen_us", "before_us")
    columns = tuple(one for one in tables.SLI.columns if one.name not in later)
    row = {"cluster": "c", "window_start": START, "topic": "t"}
    times = dict.fromkeys(("good_us", "bad_us", "bad_low_us", "bad_high_us"), 1_000_000)
    older = dataclasses.replace(tables.SLI, columns=columns)
    gold_builder.put(tmp_path, older, {**row, "objective": "min-isr", **times})
    run = export(tmp_path, "sli", "--format", "openmetrics")
    assert run.exit_code == 0, run.output
    families = {one.name.split(":")[2] for one in text_string_to_metric_families(run.stdout)}
    assert families == {name.replace("_us", "_seconds") for name in times}


def test_openmetrics_keeps_odd_names(lake: Path) -> None:
    run = export(lake, "clients", "--format", "openmetrics")
    (family,) = text_string_to_metric_families(run.stdout)
    assert [one.labels for one in family.samples] == [
        {"cluster": "c", "client_id": ODD, "subject": "client_id"}
    ] * 2
    assert [float(one.timestamp) - START.timestamp() for one in family.samples] == [3600, 7200]


def test_gold_may_lie_elsewhere(lake: Path, tmp_path: Path) -> None:
    run = export(lake, "topics", "--format", "csv", "--gold", lake / "gold")
    assert len(run.stdout.splitlines()) == 9
    nowhere = export(lake, "topics", "--format", "csv", "--gold", tmp_path)
    assert nowhere.exit_code == 1
    assert "no such table. Run jmxlake rollup first" in nowhere.stderr


@pytest.mark.parametrize("form", ["parquet", "csv", "openmetrics"])
def test_export_without_rows_writes_no_file(lake: Path, tmp_path: Path, form: str) -> None:
    span = ("--from", "2025-11-16T10:00:00Z", "--to", "2025-11-17")
    run = export(lake, "topics", "--format", form, "--out", tmp_path / "x", *span)
    assert run.exit_code == 1
    assert "no such rows. The export wrote no file" in run.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("topics", "--format", "parquet"), "requires --out FILE"),
        (("topics", "--format", "csv", "--from", "2026-11-16"), "use --from and --to together"),
        (("sla", "--format", "openmetrics"), "Export sla as parquet or csv"),
        (
            ("subjects", "--format", "csv", "--from", "x", "--to", "y"),
            "subjects has no time column",
        ),
        (("coverage", "--format", "csv", "--metric", "a.b"), "has no column metric"),
        (("topics", "--format", "csv", "--metric", "a'b"), "is not a metric name"),
        (("runs", "--format", "csv"), "'runs' is not one of"),
    ],
)
def test_contradictory_options_are_refused(
    lake: Path, arguments: tuple[str, ...], told: str
) -> None:
    run = export(lake, *arguments)
    assert run.exit_code == 2, run.output
    assert told in " ".join(run.stderr.split())


def test_a_table_that_breaks_off_leaves_the_file_that_was_there(lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("before")
    run = export(lake, "sla", "--format", "csv", "--out", file)
    assert run.exit_code == 1
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("told", [10**6, 1, -1])
@pytest.mark.parametrize("form", ["csv", "parquet", "openmetrics"])
@pytest.mark.parametrize("more", [(), ("--from", "2026-11-16", "--to", "2026-11-17")])
def test_a_log_with_other_counts_is_refused(
    lake: Path, tmp_path: Path, told: int, form: str, more: tuple[str, ...]
) -> None:
    root = tmp_path / "lake"
    shutil.copytree(lake, root)
    delta.edit(root / tables.TOPICS.path, partial(with_count, told))
    run = export(root, "topics", "--format", form, "--out", tmp_path / "x", *more)
    assert run.exit_code == 1
    assert run.stderr.count("\n") == 1
    assert f"rows, but {told:,} in the log" in run.stderr
    assert not (tmp_path / "x").exists()
    more = ("--from", "2026-11-17", "--to", "2026-11-18")  # whose dates have other files
    other = export(root, "topics", "--format", form, "--out", tmp_path / "x", *more)
    assert "no such rows" in other.stderr


def with_count(told: int, add: dict[str, Any]) -> None:
    add["stats"] = json.dumps({**json.loads(add["stats"]), "numRecords": told})


def test_export_imports_no_spark_pandas_or_pyarrow(lake: Path, tmp_path: Path) -> None:
    for form in ("parquet", "openmetrics", "csv"):
        command = [sys.executable, "-m", "tests.delta_rs_alone", "export", str(lake), "topics"]
        command += ["--format", form, "--out", str(tmp_path / form)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert ran.returncode == 0, ran.stderr
    assert {one.name for one in tmp_path.iterdir()} == {"parquet", "openmetrics", "csv"}
