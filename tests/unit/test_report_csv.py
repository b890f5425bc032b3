"""The CSV folder: what a data tool and a spreadsheet read of it."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

import duckdb
import pytest
from hypothesis import given, strategies as st

from lakehouse.report.csv_files import CELL_LIMIT, FILES, files, text
from tests import sample_facts
from tests.trend_facts import WEEKS, facts_of, subject

if TYPE_CHECKING:
    from pathlib import Path

FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")  # noqa: RUF001 - as OWASP lists them


def rows(facts: sample_facts.Facts, name: str) -> list[dict[str, str]]:
    content = dict(files(facts))[f"{name}.csv"]
    return list(csv.DictReader(io.StringIO(content, newline="")))


def test_every_row_says_of_what_cluster_and_period_it_is():
    facts = sample_facts.demo()
    (first, *_) = rows(facts, "verdicts")
    assert (first["cluster"], first["from"], first["to"]) == (
        facts["cluster"], "2026-11-21T06:00:00Z", "2026-11-21T06:06:00Z",
    )  # fmt: skip
    assert (first["objective"], first["verdict"], first["missed"]) == ("min-isr", "missed", "2")


def test_the_figures_are_those_of_the_facts():
    facts = sample_facts.demo()
    orders = next(one for one in rows(facts, "attainment") if one["topic"] == "orders")
    told = facts["objectives"][0]["subjects"][0]
    assert int(orders["bad_high_us"]) == told["bad_high_us"] == 73_900_000
    assert float(orders["attainment"]) == told["attainment"], "not a digit is lost"
    assert int(orders["budget_left_us"]) < 0
    (archive,) = rows(facts, "tier_lag_topics")
    assert (archive["copy_max_bytes"], archive["delete_max_bytes"]) == ("47185920", "8388608")
    assert archive["flags"] == "known_wrong"
    broker = next(one for one in rows(facts, "coverage_sources") if one["source"] == "broker-2")
    assert broker["outcomes"] == "ok=170 refused=10"
    lag = [one for one in rows(facts, "timelines") if one["name"] == "copy_lag_bytes"]
    assert (len(lag), lag[4]["subject"], lag[4]["value"]) == (12, "archive", str(45 * 1024 * 1024))


def test_lists_counts_and_flags_are_text_and_numbers():
    facts = sample_facts.demo()
    facts["incidents"] = [{"event": 1, "sources": ["broker-1", "broker-3"]}]
    facts["events"] = [{"number": 1, "ongoing": True, "size": {"max_value": None}, "from": "f"}]
    (incident,), (event,) = rows(facts, "incidents"), rows(facts, "events")
    assert (incident["event"], incident["sources"]) == ("1", "broker-1 broker-3")
    assert (event["ongoing"], event["start"], event["from"]) == ("1", "f", facts["from"])


def test_what_is_not_known_is_empty_and_no_name_is_not_an_empty_name(tmp_path: Path):
    facts = sample_facts.demo()
    facts["throttling"]["clients"] = [
        sample_facts.client("", None, "produce", throttled_us=None, unknown_us=0)
    ]
    file = tmp_path / "clients.csv"
    file.write_text(dict(files(facts))["throttling_clients.csv"], newline="")
    read = duckdb.read_csv(str(file), header=True, allow_quoted_nulls=False)
    told = read.select("user", "client_id", "throttled_us", "unknown_us").fetchall()
    assert told == [(None, "", None, 0)]


def test_lines_end_as_rfc_4180_has_it_and_every_row_is_one_line():
    for name, content in files(sample_facts.hostile()):
        assert content.endswith("\r\n"), name
        assert not re.search(r"[^\r]\n|\r[^\n]", content), name
        wide = {len(row) for row in csv.reader(io.StringIO(content, newline=""))}
        assert len(wide) == 1, name
        content.encode()


def test_a_table_without_rows_is_its_header():
    found = dict(files({**sample_facts.silent_week(), "changes": []}))
    assert found["changes.csv"].count("\r\n") == 1
    assert set(found) == {f"{file.name}.csv" for file in FILES}


@pytest.mark.parametrize("start", FORMULA)
def test_no_name_becomes_a_formula(start: str):
    facts = sample_facts.demo()
    facts["throttling"]["clients"][0]["client_id"] = f'{start}HYPERLINK("http://x",1)'
    (row, *_) = rows(facts, "throttling_clients")
    assert not row["client_id"].startswith(FORMULA)


@given(st.text(alphabet=[*"=+-@;,|\"' \ta\r\n", "＝", "\u2003", "\u00a0"]))  # noqa: RUF001
def test_no_part_of_a_name_begins_as_a_formula_wherever_a_spreadsheet_cuts(name: str):
    for part in re.split(r"""[,;|"]""", text(name)):
        assert not part.lstrip().startswith(FORMULA)
        assert not set("\t\r\n") & set(part)


@given(st.text(alphabet=st.characters(categories=["L", "N"]), max_size=50))
def test_a_plain_name_stays_as_it_is(name: str):
    assert text(name) == name
    assert text("orders-v2.eu_1") == "orders-v2.eu_1"


def test_a_long_name_fits_into_a_cell():
    assert len(text("A" * 40_000)) == CELL_LIMIT


def test_numbers_below_zero_stay_numbers():
    facts = sample_facts.demo()
    content = dict(files(facts))["attainment.csv"]
    assert re.search(r",-\d+,", content)


@pytest.mark.slow
def test_a_budget_that_burns_is_a_row_and_so_is_what_maintenance_changes():
    facts = sample_facts.fleet(10, 0)
    (first, *_) = found = rows(facts, "burn_rates")
    assert len(found) == 2 * 30, "two pairs of lengths of each subject"
    assert (first["objective"], first["long"], first["long_rate_low"], first["verdict"]) == (
        "min-isr", "1h", "48.1", "burning",
    )  # fmt: skip
    (window,) = rows(facts, "maintenance")
    assert (window["topics"], window["clusters"]) == ("team-*", "")
    without = rows(facts, "without_maintenance")
    assert len(without) == 30
    assert (without[0]["verdict"], without[0]["verdict_without"]) == ("met", "met")


def test_a_trend_is_a_row_and_each_of_its_weeks_is_one():
    facts = facts_of(subject("orders", [None, *[5] * 11, 600]))
    (trend,) = rows(facts, "trends")
    assert (trend["topic"], trend["change"]) == ("orders", "worse")
    weeks = rows(facts, "trends_weeks")
    assert [one["week"] for one in weeks] == WEEKS
    assert weeks[0]["share"] == "", "of a week nobody saw nothing is known"
    assert int(weeks[-1]["bad_us"]) == 600 * sample_facts.MINUTE
