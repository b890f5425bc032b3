"""The demo's report against the truth: what the controllers' log, the clients and the driver say.

The demo runs once, as a person would run it; every test compares one part of its report.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from deltalake import DeltaTable

from demo.agents import INTERVALS, WINDOW
from lakehouse.core.periods import window_seconds
from lakehouse.slo.openslo import objective_files
from tests.demo_truth.__main__ import QUESTIONS
from tests.notebooks import cells, registered
from tests.oracle import decoded, gold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from tests.oracle.plain import Rows

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.waits]

_SECONDS = 3_600
_WINDOW_US = window_seconds(WINDOW) * 1_000_000
_LONGEST_HEARD_US = 2_000_000  # a scrape interval
_NOTHING = "No data for this cell"
_MILLIONTHS = 1e-3  # gold's sums are made of rows in millionths, some hundreds of them


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """The folder that the demo left."""
    if earlier := pytestconfig.getoption("--demo"):
        return Path(earlier).resolve()
    folder = tmp_path_factory.mktemp("demo") / "demo"
    ran = subprocess.run(
        [sys.executable, "-m", "demo", "--folder", str(folder)],
        capture_output=True, text=True, timeout=_SECONDS, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:] + ran.stdout[-3000:]
    return folder


@pytest.fixture(scope="module")
def truth(demo: Path) -> Any:
    written = json.loads((demo / "truth.json").read_text())
    assert written["scenarios_missed"] == [], "the demo could not play all"
    return written


@pytest.fixture(scope="module")
def report(demo: Path) -> Any:
    return json.loads((demo / "report.json").read_text())


@pytest.fixture(scope="module")
def slowest_us(demo: Path) -> dict[str, int]:
    """The longest time that a scrape of each family took, from the agents' own account."""
    scrapes = duckdb.read_parquet(DeltaTable(f"{demo}/lake/bronze/scrapes").file_uris())
    rows = scrapes.aggregate("family, max(seconds_max)").fetchall()
    return {family: round(seconds * 1e6) for family, seconds in rows}


@pytest.fixture(scope="module")
def heard_us(truth: Any) -> int:
    """The longest that a leader took to hear of what the controllers decided."""
    heard_us: int = truth["slowest_heard_us"]
    assert 0 < heard_us < _LONGEST_HEARD_US, "no bound would be worth a word"
    return heard_us


def interval_us(family: str) -> int:
    return int(INTERVALS[family].removesuffix("s")) * 1_000_000


def by_key(facts: Iterable[dict[str, Any]], *key: str) -> dict[Any, list[dict[str, Any]]]:
    found = defaultdict(list)
    for fact in facts:
        name = tuple(fact[part] for part in key)
        found[name if len(key) > 1 else name[0]].append(fact)
    return found


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def assert_bounds(
    row: dict[str, Any], name: str, spans: list[dict[str, Any]], width_us: int, heard_us: int
) -> None:
    """The bounds hold the truth, and are as tight per incident as promised.

    Brokers show what the controllers decided once they have heard of it, so what they show of an
    incident may be shorter, or longer, by as much as that took.
    """
    true_us = sum(span["us"] for span in spans)
    low, high = row[f"{name}_low_us"], row[f"{name}_high_us"]
    apart_us = len(spans) * heard_us
    where = f"{row.get('topic')} {row.get('partition', '')} {name}"
    assert low - apart_us <= true_us <= high + apart_us, f"{where}: {low} <= {true_us} <= {high}"
    assert high - low <= len(spans) * width_us, f"{where}: {high - low} wide, {len(spans)} spans"


def width_us(family: str, slowest: dict[str, int]) -> int:
    """Two scrape intervals; each from a question to the next scrape's answer."""
    return 2 * (interval_us(family) + slowest[family])


def test_under_min_isr_per_partition(
    report: Any, truth: Any, slowest_us: dict[str, int], heard_us: int
) -> None:
    spans = by_key(truth["under_min_isr"], "topic", "partition")
    rows = {(row["topic"], row["partition"]): row for row in report["min_isr"]["partitions"]}
    assert len([key for key in spans if key[0] == "orders"]) >= 3
    for key, own in spans.items():
        assert key in rows, f"{key} was under min ISR and is not in the report"
        assert_bounds(rows[key], "under", own, width_us("min_isr", slowest_us), heard_us)
    reported = {key for key, row in rows.items() if row["under_us"]}
    assert reported <= set(spans), "a partition is reported that was well"


def test_any_under_min_isr_per_topic(
    report: Any, truth: Any, slowest_us: dict[str, int], heard_us: int
) -> None:
    spans = by_key(truth["under_min_isr_any"], "topic")
    rows = {row["topic"]: row for row in report["min_isr"]["topics"]}
    for topic, own in spans.items():
        assert_bounds(rows[topic], "any", own, width_us("min_isr", slowest_us), heard_us)
    for topic, row in rows.items():
        if topic not in spans:
            assert not row["any_us"], topic


def test_leaderless_topic_without_reporter_is_unavailable(
    report: Any, truth: Any, slowest_us: dict[str, int], heard_us: int, demo: Path
) -> None:
    spans = by_key(truth["leaderless"], "topic", "partition")
    assert {topic for topic, _ in spans} == {"audit"}
    rows = {(row["topic"], row["partition"]): row for row in report["min_isr"]["partitions"]}
    for key, own in spans.items():
        assert_bounds(rows[key], "leaderless", own, width_us("leaders", slowest_us), heard_us)
    audit = next(row for row in report["min_isr"]["topics"] if row["topic"] == "audit")
    assert audit["unavailable_any_low_us"] > 0
    objective = next(o for o in report["objectives"] if o["name"] == "min-isr")
    subject = next(s for s in objective["subjects"] if s["topic"] == "audit")
    assert subject["bad_low_us"] > 0
    runs = duckdb.read_parquet(DeltaTable(f"{demo}/lake/bronze/runs").file_uris())
    brokers_said = runs.filter(
        "metric = 'kafka.partition.under_min_isr' AND topic = 'audit' AND value > 0"
    )
    assert brokers_said.count("*").fetchall() == [(0,)]


def test_throttled_time_of_each_client_and_of_no_other(report: Any, truth: Any) -> None:
    rows = {
        (row["user"], row["client_id"], row["kind"]): row
        for row in report["throttling"]["clients"]
        if row["throttled_us"]
    }
    throttled = {
        (client["user"], client["client_id"], client["kind"]): client
        for client in truth["clients"]
        if client["throttled"]
    }
    assert len(throttled) == 4
    assert set(rows) == set(throttled)
    for key, client in throttled.items():
        row = rows[key]
        true_us = sum(
            (instant(span["end"]) - instant(span["start"])).total_seconds() * 1e6
            for span in client["spans"]
        )
        assert row["throttled_low_us"] <= true_us <= row["throttled_high_us"], key
        assert row["quota"] == client["quota"], key


def test_upload_and_delete_lag_of_the_tiered_topic(report: Any, truth: Any, demo: Path) -> None:
    row = next(row for row in report["tier_lag"]["topics"] if row["topic"] == "events.tiered")
    runs = duckdb.read_parquet(DeltaTable(f"{demo}/lake/bronze/runs").file_uris())
    for lag in truth["tier_lags"]:
        kind = row[lag["kind"]]
        driven_us = (instant(lag["end"]) - instant(lag["start"])).total_seconds() * 1e6
        assert kind["lagging_low_us"] > 0, lag["kind"]
        assert kind["lagging_high_us"] <= driven_us + 4 * interval_us("tiered"), lag["kind"]
        assert kind["max_bytes"] > 0
        assert kind["last_bytes"] == 0, "it had caught up"
        metric = f"kafka.topic.remote_{lag['kind']}_lag.bytes"
        after = runs.filter(
            f"metric = '{metric}' AND topic = 'events.tiered' AND value > 0 "
            f"AND start > TIMESTAMPTZ '{lag['end']}' + INTERVAL 6 SECOND"
        )
        assert after.count("*").fetchall() == [(0,)], f"{lag['kind']} lag after it was gone"


def test_a_copy_quota_held_its_brokers_back_while_it_was_set(report: Any, truth: Any) -> None:
    """From when on just is not known: uploads wait once the quota is used up."""
    (lag,) = [one for one in truth["tier_lags"] if one["kind"] == "copy"]
    limited, seen, released = (instant(lag[key]) for key in ("limited", "visible_from", "released"))
    rows = {row["source"]: row for row in report["tier_lag"]["brokers"]}
    for source in ("broker-1", "broker-3"):
        low, high = (rows[source][f"held_back_{bound}_us"] for bound in ("low", "high"))
        assert 0 < low <= (released - limited).total_seconds() * 1e6, source
        assert high >= (released - seen).total_seconds() * 1e6, source
    assert rows["broker-2"]["held_back_us"] is None, "it leads no tiered partition"
    assert {row["copies_failed"] for row in rows.values()} == {0}


def test_topic_size_equals_its_files(demo: Path, report: Any) -> None:
    """To the byte: nothing was written to invoices in the demo's last windows."""
    files = [*demo.glob("cluster/broker-*/data/**/invoices-*/*.log")]
    assert len({file.parent for file in files}) == 6, "two partitions on three brokers"
    (row,) = [row for row in report["capacity"]["topics"] if row["topic"] == "invoices"]
    windows = duckdb.read_parquet(DeltaTable(f"{demo}/lake/gold/topics_windows").file_uris())
    whole = windows.filter(
        f"metric = 'kafka.log.size' AND topic = 'invoices' AND series_seen_us = {6 * _WINDOW_US}"
    )
    means = [mean for (mean,) in whole.order("window_start").project("value_mean").fetchall()]
    assert round(6 * means[-1]) == sum(file.stat().st_size for file in files)
    assert 0 < row["disk_bytes_mean"] <= 6 * means[-1]


def test_offsets_that_expired_before_a_group_read_them(report: Any, truth: Any) -> None:
    """tests/demo_truth/lost.py compares all; of a group that stood still more is known."""
    lost = [fact for fact in truth["expired"] if fact["group"] == "slow-readers"]
    assert all(fact["offsets"] > 0 for fact in lost), "the demo expired nothing"
    rows = [row for row in report["lost_before_read"]["groups"] if row["group"] == "slow-readers"]
    assert {row["partition"] for row in rows} == {fact["partition"] for fact in lost}
    assert all(row["offsets_low"] > 0 for row in rows), "its lower bound is not zero"


def test_the_killed_broker_is_unknown_while_it_was_away(report: Any, truth: Any) -> None:
    killed = truth["killed_brokers"][0]
    away_us = (instant(killed["restarted_at"]) - instant(killed["killed_at"])).total_seconds() * 1e6
    sources = {(row["source"], row["family"]): row for row in report["coverage"]["sources"]}
    row = sources[killed["source"], "min_isr"]
    assert row["percent"] < 100
    assert row["unknown_us"] >= away_us - 2 * interval_us("min_isr")
    assert row["observed_us"] + row["unknown_us"] == row["expected_us"]
    killed_at, restarted_at = instant(killed["killed_at"]), instant(killed["restarted_at"])
    noticed = killed_at + 2 * timedelta(microseconds=interval_us("min_isr"))
    assert any(
        instant(gap["start"]) <= noticed and instant(gap["end"]) >= restarted_at
        for gap in row["gaps"]
    ), row["gaps"]
    for (source, family), other in sources.items():
        if source == killed["source"]:
            continue
        if family == "offsets":  # asks every broker for its groups, until the dead one is fenced
            assert other["unknown_us"] < 20_000_000, (source, other)
        else:
            assert other["percent"] > 90, (source, family, other)


def test_remote_reads_were_counted(report: Any, truth: Any) -> None:
    rows = {row["topic"]: row for row in report["remote_reads"]["topics"]}
    assert rows["events.tiered"]["requests"] > 0
    assert rows["events.tiered"]["bytes"] > truth["remote_reads"][0]["bytes"] * 0.5


def test_page_has_the_figures_of_the_facts(demo: Path) -> None:
    page = (demo / "report.html").read_text()
    for name in ("orders", "audit", "alice", "billing-etl", "events.tiered", "slow-readers"):
        assert name in page


@pytest.fixture(scope="module")
def by_python(demo: Path) -> dict[str, Rows]:
    """Gold as plain Python computes it from the demo's bronze."""
    bronze = decoded.read(demo / "lake", time.time_ns() // 1000, _WINDOW_US)
    return gold.wanted(bronze, objective_files.load(demo / "objectives"))


@pytest.mark.parametrize("name", gold.KEYS)
def test_gold_equals_plain_python(demo: Path, by_python: dict[str, Rows], name: str) -> None:
    found = gold.told(demo / "lake", name)
    assert gold.differences(name, found, by_python[name], _MILLIONTHS) == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_figures_equal_the_counts_of_the_clients(report: Any, truth: Any, question: str) -> None:
    figures = list(QUESTIONS[question](truth, report))
    assert len(figures) >= 3
    assert [one for one in figures if not one.holds] == []


def test_demo_has_no_rejected_rows(report: Any) -> None:
    assert report["rejected"] == 0


@pytest.mark.nightly
def test_the_notebooks_show_the_week(demo: Path, report: Any, spark: SparkSession) -> None:
    """They run unchanged; the platform's names are given to them as the platform would.

    Two of them: tests/everywhere/test_notebooks.py runs all.
    """
    week = "{}-W{:02}".format(*instant(report["from"]).isocalendar()[:2])
    named = registered(spark, demo / "lake", "demo_bronze", "demo_gold")
    throttled = next(one for one in report["throttling"]["clients"] if one["client_id"])
    user, client = throttled["user"], throttled["client_id"]
    given = {**named, "week": week, "client": f"{user}/{client}" if user else f"client:{client}"}
    folder = Path(__file__).parents[2] / "dashboards"
    shown = {
        name: cells(str(folder / f"{name}.py"), spark, given)
        for name in ("min_isr", "client_story")
    }
    assert not [name for name, pages in shown.items() if _NOTHING in pages[0]]
    assert all(rows for _, rows in shown.values())
    assert "orders" in shown["min_isr"][0]
    assert client in shown["client_story"][0]
