"""Availability, latency and traffic: facts of a small lake, and what the page says of them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse.core import lake as lakes
from lakehouse.core.periods import Period
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts import build
from lakehouse.report.facts.report_record import with_answers
from lakehouse.report.tables import clients
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from lakehouse.slo.openslo import objective_files
from tests import rollups, sample_facts
from tests.lake_builder import BASE, Batch, micros

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.report.tables.section import Detail

WINDOW = 300
SECOND = 1_000_000
PRODUCE, FETCH = "kafka.broker.produce.answers", "kafka.broker.fetch.answers"
P99 = "kafka.broker.produce.time.p99"
LEADERLESS = "kafka.partition.leaderless"
KILLED, BACK = 700, 1000
"""When broker 2 was down: at the windows 2 and 3 of the period, which are the third and fourth."""


def written(*, after: bool = True) -> Batch:
    """Five windows before ``after``, of which a report is on the second to the fourth."""
    batch = Batch()
    for number in range(5 if after else 4):
        start, end = number * WINDOW, (number + 1) * WINDOW
        for source in ("broker-1", "broker-2"):
            spans = [(start, end)]
            if source == "broker-2":
                spans = [(start, min(end, KILLED)), (max(start, BACK), end)]
            for first, last in ((a, b) for a, b in spans if a < b):
                for family in ("requests", "traffic", "leaders", "min_isr"):
                    batch.scrape(family, first, last, source=source)
                batch.run(P99, first, last, 40.0 + 100 * number, source=source)
                for error, many in (("NONE", 100.0), ("NOT_ENOUGH_REPLICAS", 10.0 * (number == 2))):
                    labels = [("error", error)]
                    batch.counter(PRODUCE, first, last, many, source=source, labels=labels)
                batch.counter("kafka.topic.bytes_in", first, last, 7.0, source=source, topic="t")
        batch.counter(FETCH, start, end, 3.0, labels=[("error", "a=b,c\\d")])
    batch.scrape("min_isr", KILLED, BACK, "refused", source="broker-2")
    batch.run(LEADERLESS, KILLED, 900, 1.0, topic="t", partition=0, lead=10.0, tail=20.0)
    batch.run(LEADERLESS, 900, BACK, 1.0, topic="u", partition=0, lead=10.0, tail=20.0)
    return batch


def facts_of(root: Path, batch: Batch, *names: str) -> Any:
    """Facts over the second to the fourth window, with optional objectives."""
    rollups.prepare(root)
    batch.commit(root)
    engine = LocalEngine(lakes.at(str(root)))
    objectives = [
        one for one in objective_files.load(objective_files.OPTIONAL) if one.name in names
    ] or objective_files.load()
    rollup(engine, objectives, Wanted(tidy="never"))
    start = BASE + dt.timedelta(seconds=WINDOW)
    period = Period(start, start + dt.timedelta(seconds=3 * WINDOW))
    return build.facts(engine, objectives, period, now=period.end + dt.timedelta(hours=1))


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return facts_of(tmp_path_factory.mktemp("lake"), written(), "produce-latency")


TIE: Final = "\u00a0"


def requests_of(facts: Any) -> Detail:
    """The section of the page on requests."""
    found = clients.REQUESTS.detail(facts)
    assert found is not None
    return found


def row(facts: Any, name: str, **wanted: Any) -> Any:
    rows = facts["service"][name]
    (one,) = (one for one in rows if all(one[key] == value for key, value in wanted.items()))
    return one


def test_a_count_is_bounded_by_what_the_windows_at_its_edges_hold(facts: Any) -> None:
    one = row(facts, "brokers", source="broker-1", request="produce")
    assert (one["answers"], one["answers_low"], one["answers_high"]) == (310, 210, 410)
    assert (one["errors"], one["errors_low"], one["errors_high"]) == (10, 10, 10)
    assert (one["good_low"], one["good"], one["good_high"]) == (
        pytest.approx(200 / 210), pytest.approx(300 / 310), pytest.approx(400 / 410),
    )  # fmt: skip


def test_a_broker_that_is_down_counts_no_error_and_is_not_available(facts: Any) -> None:
    one = row(facts, "brokers", source="broker-2", request="produce")
    assert one["unknown_us"] == (BACK - KILLED) * SECOND
    assert row(facts, "requests", request="produce")["unknown_us"] == one["unknown_us"]
    assert "1 broker was not observed for up to 5 min." in requests_of(facts).note.replace(TIE, " ")


def test_time_without_a_leader_is_a_union_with_its_edges(facts: Any) -> None:
    told = facts["service"]
    assert told["leaderless_us"] == 300 * SECOND
    assert told["leaderless_low_us"] == 260 * SECOND  # either may have ended twenty seconds before
    assert told["leaderless_high_us"] == 310 * SECOND


def test_errors_have_the_names_that_brokers_gave_them(facts: Any) -> None:
    found = {(one["request"], one["error"]): one["answers"] for one in facts["service"]["errors"]}
    assert found == {("produce", "NOT_ENOUGH_REPLICAS"): 20, ("fetch", "a=b,c\\d"): 9}


def test_a_p99_is_never_averaged_and_its_time_is_that_of_the_objective(facts: Any) -> None:
    one = row(facts, "latency", source="broker-1", request="produce")
    assert (one["threshold_ms"], one["p99_ms_max"]) == (500, 340)
    assert (one["slow_us"], one["slow_high_us"], one["unknown_us"]) == (0, 0, 0)
    said = requests_of(facts).line.replace(TIE, " ")
    assert "; 0 of 2 brokers exceeded 500 ms p99; highest p99 at least 340 ms" in said


def test_traffic_is_unknown_while_any_broker_was_not_read(facts: Any) -> None:
    one = row(facts, "topics", topic="t")
    assert one["unknown_us"] == (BACK - KILLED) * SECOND
    assert one["bytes_in"] == 3 * 7 + 3 * 7


def test_what_happens_at_the_end_is_not_bounded_where_nothing_was_read_after_it(
    tmp_path: Path,
) -> None:
    made = facts_of(tmp_path, written(after=False))
    one = row(made, "brokers", source="broker-1", request="produce")
    assert (one["answers"], one["answers_low"], one["answers_high"]) == (310, 210, None)
    assert one["good_high"] == 1, "all that was not counted may have been good"
    assert "no objective limits the p99" in requests_of(made).line


def without_p99(first: float = 0) -> Batch:
    """Return the same rows, but the second broker hides its p99 from an instant on."""
    batch = written()
    batch.runs = [
        row
        for row in batch.runs
        if row["metric"] != P99 or row["source"] == "broker-1" or row["end"] <= micros(first)
    ]
    return batch


@pytest.mark.edge(5)
def test_a_broker_that_hides_its_p99_leaves_latency_partly_known(tmp_path: Path) -> None:
    made = facts_of(tmp_path, without_p99())
    one = row(made, "latency", source="broker-2", request="produce")
    assert (one["p99_ms_max"], one["unknown_us"]) == (None, 3 * WINDOW * SECOND)
    (decided,) = (one for one in made["answers"] if one["question"] == "latency")
    assert decided["state"] == "partly_known"
    said = requests_of(made).line.replace(TIE, " ")
    assert "highest p99 at least 340 ms" in said
    assert "1 broker without data" in said


@pytest.mark.edge(5)
def test_a_p99_that_was_hidden_for_a_time_is_no_maximum(tmp_path: Path) -> None:
    made = facts_of(tmp_path, without_p99(2 * WINDOW))
    one = row(made, "latency", source="broker-2", request="produce")
    assert (one["p99_ms_max"], one["unknown_us"]) == (140, 2 * WINDOW * SECOND)
    assert "highest p99 at least 340 ms" in requests_of(made).line.replace(TIE, " ")


@pytest.mark.parametrize(
    ("families", "said"),
    [
        (["min_isr"], "family requests is disabled. Set families.requests.enabled: true."),
        (["min_isr", "requests"], "Not known: family requests failed on 1 source."),
    ],
)
def test_what_was_not_read_is_one_line_and_no_zero(families: list[str], said: str) -> None:
    silent = sample_facts.silent_week()
    silent["coverage"]["sources"] = [
        sample_facts.source("broker-1", family, sample_facts.WEEK, sample_facts.WEEK)
        for family in families
    ]
    silent["coverage"]["observed_us"] = 1  # another family was read
    found = requests_of(silent)
    line = found.line.replace(TIE, " ")
    assert said.removesuffix(".") in line
    assert "0 %" not in line
    assert not found.tables


STATES: Final = {
    "min-isr": "bad", "availability": "bad", "latency": "partly_known", "traffic": "partly_known",
    **dict.fromkeys(("throttling", "tier-lag", "lost", "lag", "remote-reads"), "not_collected"),
    "racks": "not_collected", "events": "partly_known",
}  # fmt: skip
"""Of a rolled-up lake: brokers were killed, and agents read the golden signals only."""


@pytest.mark.edge(8)
@pytest.mark.parametrize("anchor", STATES)
def test_answers_of_a_lake_rest_on_observed_time(facts: Any, anchor: str) -> None:
    (row,) = (one for one in facts["answers"] if one["question"] == anchor)
    assert row["state"] == STATES[anchor]
    if row["state"] == "not_collected":
        assert row["reason"].startswith("Not collected: ")
    else:
        assert row["observed_us"] < row["expected_us"]


@pytest.mark.edge(6)
@pytest.mark.parametrize("floor", [83, 84, 100])
def test_answers_of_a_lake_obey_the_floor(facts: Any, floor: float) -> None:
    """Five sixths of the time of both brokers were observed."""
    found = with_answers(facts | {"min_coverage_percent": floor})["answers"]
    (row,) = (one for one in found if one["question"] == "events")
    assert row["observed_percent"] == pytest.approx(250 / 3)
    assert row["state"] == ("not_known" if floor > 83.4 else "partly_known")
