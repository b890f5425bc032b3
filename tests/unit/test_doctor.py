"""What the doctor concludes: plain facts go in, findings come out."""

from __future__ import annotations

import datetime as dt
import re
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, strategies as st
from rich.console import Console

from collector.delivery import arrow
from lakehouse import tables
from lakehouse.cli.doctor import print_tables, to_json, to_text
from lakehouse.core.delta_rs import Location
from lakehouse.ops.doctor import agent_records, agents, sources, table_health as health
from lakehouse.ops.doctor.agent_records import (
    Agent,
    EventCount,
    Failure,
    FamilyRecord,
    Gap,
    MetricTraits,
    SourceName,
)
from lakehouse.ops.doctor.all_checks import Diagnosis
from lakehouse.ops.doctor.finding import CHECKS, LATE, Finding
from lakehouse.ops.doctor.table_health import Backlog, TableHealth
from lakehouse.ops.maintain.plan import day_of
from lakehouse.ops.maintain.table_state import LogEntry
from tests.lake_builder import BASE, Batch, made

if TYPE_CHECKING:
    from collections.abc import Iterable

NOW = dt.datetime(2026, 11, 18, 12, tzinfo=dt.UTC)
MINUTE, HOUR, DAY = dt.timedelta(minutes=1), dt.timedelta(hours=1), dt.timedelta(days=1)
BROKER = SourceName("cluster-a", "broker-1")
DOCS = Path(__file__).parents[2] / "docs"


def record(**changed: Any) -> FamilyRecord:
    until = {"reported_until": NOW, "read_until": NOW}
    return FamilyRecord(**{"source": BROKER, "family": "min_isr", "agent": "a", **until, **changed})


def silent(*records: FamilyRecord) -> list[Finding]:
    return list(sources.silent(records, NOW, LATE))


def brief(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    return [(one.severity, one.check) for one in findings]


def test_who_tells_and_sees_is_well() -> None:
    assert silent(record(), record(family="topology", reported_until=NOW - 29 * MINUTE)) == []


def test_a_source_of_which_nobody_tells_is_silent_since() -> None:
    (found,) = silent(
        record(agent="old", reported_until=NOW - 5 * HOUR, read_until=NOW - 5 * HOUR),
        record(agent="new", reported_until=NOW - 3 * HOUR, read_until=NOW - 4 * HOUR),
    )
    assert brief([found]) == [("error", "silent")]
    assert found.where == "cluster-a broker-1"
    assert "since 2026-11-18 09:00:00 UTC, for 3 h" in found.what
    assert "agent new" in found.what


def test_where_a_whole_cluster_is_silent_it_is_told_once() -> None:
    gone = [
        record(
            source=SourceName(cluster, f"broker-{number}"),
            reported_until=NOW - number * HOUR,
            read_until=None,
        )
        for cluster, count in (("a", 3), ("b", 40))
        for number in range(1, count + 1)
    ]
    found = silent(*gone)
    assert brief(found) == [("error", "silent")] * 4
    assert [one.where for one in found] == ["a broker-1", "a broker-2", "a broker-3", "b"]
    assert "reported 40 sources (broker-1, broker-10, broker-11 and 37 others)" in found[3].what
    assert "the last of them since 2026-11-18 11:00:00 UTC, for 1 h" in found[3].what


def test_of_two_agents_one_that_works_is_enough() -> None:
    assert (
        silent(
            record(agent="old", reported_until=NOW - 5 * HOUR, read_until=NOW - 5 * HOUR), record()
        )
        == []
    )


def test_an_agent_that_reads_nothing_is_another_thing_than_a_silent_one() -> None:
    failing = {"outcome": "refused", "error": "connection refused by broker-1"}
    (found,) = silent(record(read_until=NOW - 3 * HOUR, **failing))
    assert brief([found]) == [("error", "unread")]
    assert "refused (connection refused by broker-1)" in found.what
    (never,) = silent(record(read_until=None, **failing))
    assert brief([never]) == [("error", "unread")]


def test_one_family_of_a_source_that_is_read_is_a_warning() -> None:
    failing = record(
        family="offsets", read_until=NOW - 3 * HOUR, outcome="timeout", error="no answer"
    )
    assert brief(silent(record(), failing)) == [("warning", "family")]
    taken_out = record(family="offsets", read_until=NOW - 3 * HOUR, reported_until=NOW - 3 * HOUR)
    assert silent(record(), taken_out) == [], "nobody tries it any more"
    history = record(family="metadata_log", read_until=NOW - HOUR)
    assert silent(record(), history) == [], "a history is told late"


def test_who_tells_of_the_future_alone_is_a_matter_of_clocks() -> None:
    odd = record(reported_until=None, read_until=None, future_until=NOW + 2 * DAY)
    assert silent(odd) == []
    (found,) = agents.future([odd, record()], NOW)
    assert brief([found]) == [("error", "clock_future")]
    assert "2 d from now" in found.what


def gap(length: dt.timedelta, **changed: Any) -> Gap:
    fields = {"source": BROKER, "family": "min_isr", "total": length}
    return Gap(**{**fields, "start": NOW - DAY, "longest": length, **changed})


def test_long_gaps_are_told_with_what_agents_said_meanwhile() -> None:
    failure = Failure(BROKER, "timeout", 20 * MINUTE, "no answer in 5 s")
    (found,) = sources.gaps([gap(40 * MINUTE), gap(11 * MINUTE, family="log")], [failure], 7)
    assert brief([found]) == [("warning", "gap")]
    assert "not scraped for 40 min from 2026-11-17 12:00:00 UTC" in found.what
    assert "2 of its families, longest min_isr" in found.what
    assert "timeout for 20 min (no answer in 5 s)" in found.what
    (silence,) = sources.gaps([gap(40 * MINUTE)], [], 7)
    assert "no agent reported a reason" in silence.what


def test_short_gaps_are_everyday_life() -> None:
    assert list(sources.gaps([gap(9 * MINUTE, total=6 * HOUR)], [], 7)) == []


def test_a_broker_that_nobody_reads_is_found_while_it_exists() -> None:
    known = [(BROKER, NOW), (SourceName("cluster-a", "broker-2"), NOW - HOUR)]
    known += [(SourceName("cluster-a", "broker-3"), NOW - 8 * DAY)]
    known += [(SourceName("cluster-a", "controller-9"), NOW)]
    found = sources.unwatched(known, [record()], NOW, 7 * DAY)
    assert [one.where for one in found] == ["cluster-a broker-2"]


def test_groups_that_an_agent_of_the_whole_cluster_and_others_report_count_twice() -> None:
    whole = record(source=SourceName("cluster-a", "cluster-all"), family="offsets")
    beside = record(family="offsets")
    (found,) = sources.twice([whole, beside, record()], NOW, LATE)
    assert brief([found]) == [("warning", "twice")]
    assert found.what.startswith("broker-1, cluster-all all report its groups")
    second = record(source=SourceName("cluster-a", "broker-2"), family="offsets")
    gone = record(family="offsets", read_until=NOW - HOUR)
    for well in ([whole], [beside, second], [whole, gone], [whole, record()]):
        assert not list(sources.twice(well, NOW, LATE)), well


def test_series_beyond_the_cap_are_told_once_for_a_source() -> None:
    over = [record(dropped_series=7), record(family="log", dropped_series=1_200), record()]
    (found,) = sources.capped(over)
    assert found.what.startswith("up to 1,200 series above the cap")
    assert found.what.endswith("log, min_isr")


def test_series_beyond_the_cap_are_those_of_a_scrape(tmp_path: Path) -> None:
    # A row of bronze has their sum over its scrapes.
    batch = Batch()
    batch.scrape("log", 0, 300)
    batch.scrapes[0]["dropped_series"] = 7 * batch.scrapes[0]["scrapes"] - 1
    batch.scrapes.append({**batch.scrapes[0], "scrapes": 0, "dropped_series": 0})
    batch.commit(tmp_path)
    scrapes = DeltaTable(tmp_path / tables.SCRAPES.path)
    (found,) = agent_records.family_records(scrapes, BASE - DAY, BASE + DAY)
    assert found.dropped_series == 7


def test_the_time_of_dropped_batches_is_told_by_their_event() -> None:
    span = "2026-11-18T02:30:00.000000+00:00..2026-11-18T11:00:00.250000+00:00"
    event = EventCount(BROKER, "batch_dropped", 2, NOW - HOUR, "17..93", span)
    (found,) = agents.events([event], 7)
    assert brief([found]) == [("error", "dropped")]
    assert f"batches 17..93, of {span}, last at 2026-11-18 11:00:00 UTC" in found.what


def test_commits_that_a_lake_has_lost_are_an_error() -> None:
    event = EventCount(BROKER, "lake_lost_commits", 1, NOW, "runs 17", "runs 5")
    (found,) = agents.events([event], 7)
    assert brief([found]) == [("error", "lost_commits")]
    assert "runs 5 was runs 17" in found.what


def test_lake_that_was_replaced_is_a_warning() -> None:
    event = EventCount(BROKER, "lake_replaced", 1, NOW, "runs 1a", "runs gone")
    (found,) = agents.events([event], 7)
    assert brief([found]) == [("warning", "lake_replaced")]
    assert "expected runs 1a, found runs gone" in found.what


@pytest.mark.parametrize(
    "kind",
    ["spool_damaged", "spool_tail_lost", "spool_restored", "spool_unwritable", "batch_refused",
     "journal_unreadable"],
)  # fmt: skip
def test_what_befell_a_spool_is_told(kind: str) -> None:
    assert brief(agents.events([EventCount(BROKER, kind, 1, NOW)], 7)) == [("warning", "spool")]


def test_what_agents_read_less_often_or_not_is_told() -> None:
    less = EventCount(BROKER, "family_coarsened", 1, NOW, "log every 60 s", "log every 120 s")
    group = EventCount(BROKER, "group_unreadable", 4, NOW, None, "GroupAuthorizationException")
    found = list(agents.events([less, group], 7))
    assert brief(found) == [("warning", "capped"), ("warning", "unread")]
    assert found[0].what.endswith("log every 120 s")


def test_a_clock_that_was_set_and_an_agent_that_restarts_are_told() -> None:
    step = EventCount(BROKER, "clock_step", 3, NOW, "1000000", "91000000")
    starts = EventCount(BROKER, "agent_start", 36, NOW)
    found = list(agents.events([step, starts], 7))
    assert brief(found) == [("warning", "restarts"), ("warning", "clock_set")]
    assert "3 times in 7 days, the last time by +1 min 30 s" in found[1].what
    odd = EventCount(BROKER, "clock_step", 1, NOW, None, "soon")
    (only,) = agents.events([odd], 7)
    assert "the last time by" not in only.what
    few = [
        EventCount(BROKER, "agent_start", 35, NOW),
        EventCount(BROKER, "leader_change", 999, NOW),
    ]
    assert list(agents.events(few, 7)) == []


def commit(agent: str, seconds: float, *, first_try: bool = True) -> LogEntry:
    tries = {"num_retries": 0 if first_try else 1}
    info = {"operationMetrics": tries, tables.COMMIT_AGENT: agent}
    return LogEntry(0, NOW + dt.timedelta(seconds=seconds), None, info)


def test_a_log_whose_instants_go_back_tells_whose_clock_is_ahead() -> None:
    made = [commit("a", 300), commit("b", 10), commit("a", 600), commit("c", 330)]
    assert agents.skews(made) == {
        ("a", "b"): dt.timedelta(seconds=290),
        ("a", "c"): dt.timedelta(seconds=270),
    }
    (found,) = agents.differing(agents.skews(made), 3, {"a": ["c/broker-1"]})
    assert found.where == "c/broker-1"
    assert "is ahead of agent b's clock" in found.what
    assert "by 4 min 50 s or more; 2 agents of 2 others contradict it" in found.what


def test_the_one_that_is_behind_is_named_where_it_is_alone() -> None:
    made = [commit("a", 0), commit("b", 1), commit("c", 2), commit("d", -900)]
    (found,) = agents.differing(agents.skews(made), 4, {})
    assert found.where == "agent d"
    assert "is behind agent c's clock" in found.what
    assert "3 agents of 3 others" in found.what


def test_of_two_nobody_knows_who_is_right() -> None:
    (found,) = agents.differing(agents.skews([commit("a", 300), commit("b", 0)]), 2, {})
    assert "either clock can be wrong" in found.what


def test_a_commit_that_was_tried_again_says_nothing_of_when_it_landed() -> None:
    assert agents.skews([commit("a", 300), commit("b", 0, first_try=False)]) == {}


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0, 200), st.floats(0, 20)), max_size=40),
    st.fixed_dictionaries({one: st.floats(-400, 400) for one in "abcd"}),
)
def test_no_skew_is_told_that_is_not_there(
    made: list[tuple[str, float, float]], skew: dict[str, float]
) -> None:
    """Commits land one after the other, each up to 20 s after its instant was taken."""
    landed, told = 0.0, []
    for agent, pause, delay in made:
        landed += pause
        told.append(commit(agent, landed + skew[agent] - delay))
    for (ahead, behind), least in agents.skews(told).items():
        assert least.total_seconds() <= skew[ahead] - skew[behind] + 20 + 1e-3
    for (first, *_), (second, pause, _) in pairwise(made):
        sure = skew[first] - skew[second] - pause - 20
        if first != second and sure > agents.LEAST.total_seconds():
            assert (first, second) in agents.skews(told)


def test_commits_that_do_not_say_whose_they_are_do_not_count() -> None:
    info = {"operationMetrics": {"num_retries": 0}}
    unnamed = [LogEntry(0, NOW + HOUR, None, info), LogEntry(1, NOW - HOUR, None, info)]
    assert agents.skews([unnamed[0], commit("a", 300), unnamed[1], commit("b", 10)]) == {
        ("a", "b"): dt.timedelta(seconds=290)
    }


def test_agents_of_several_versions_are_named() -> None:
    versions = {"a": "0.9.0", "b": "0.10", "x": None}
    working = [
        Agent(name, (f"c/broker-{number}",), NOW, version)
        for number, (name, version) in enumerate(versions.items(), start=1)
    ]
    found = list(agents.versions(working, "0.9.0"))
    assert brief(found) == [
        ("info", "agent_version"), ("warning", "agent_version"), ("info", "agent_version"),
    ]  # fmt: skip
    assert "0.9.0: c/broker-1; 0.10: c/broker-2" in found[0].what, "by number, not by letter"
    assert "agents have version 0.10, this command has 0.9.0" in found[1].what
    assert "the version of 1 agent is unknown: x" in found[2].what
    assert list(agents.versions(working[:1], "0.9.0")) == []


def test_different_traits_of_an_own_metric_are_a_warning() -> None:
    position, none = frozenset({"position=true"}), frozenset[str]()
    both = [MetricTraits("my.read_offset", position), MetricTraits("my.read_offset", none)]
    (found,) = agents.traits([*both, MetricTraits("my.lag", none)])
    assert brief([found]) == [("warning", "traits")]
    assert "catalogues give my.read_offset different traits" in found.what
    assert list(agents.traits(both[:1])) == []
    older = [MetricTraits("kafka.log.size", one) for one in (position, none)]
    assert list(agents.traits(older)) == [], "an older agent does not write those of shipped ones"


def test_traits_of_catalogues_in_use_are_compared(tmp_path: Path) -> None:
    batch = Batch()
    batch.scrape("min_isr", 0, 300)
    batch.commit(tmp_path)
    words = ("mine", ["broker"], "gauge", "1", "idle", 0, 0, "Mine.", "a")
    defined = [(name, "my.read_offset", *words) for name in ("test", "other", "gone")]
    traits = [("other", "my.read_offset", "mine", "position", "true", "a")]
    for table, rows in zip(tables.CATALOGUES, (defined, traits), strict=True):
        write_deltalake(made(tmp_path, table), arrow.to_arrow(table, rows), mode="append")
    opened = [DeltaTable(str(tmp_path / table.path)) for table in tables.CATALOGUES]
    found = agent_records.metric_traits(*opened, ["test", "other"])
    assert sorted(found, key=lambda one: len(one.traits)) == [
        MetricTraits("my.read_offset", frozenset()),
        MetricTraits("my.read_offset", frozenset({"position=true"})),
    ]
    assert agent_records.metric_traits(*opened, []) == []


def test_clusters_of_mixed_kafka_versions_and_catalogues_are_told() -> None:
    other = SourceName("cluster-a", "broker-2")
    new = record(kafka_version="4.3.1", catalogue="x", reported_until=NOW)
    old = record(kafka_version="4.2.0", catalogue="y", reported_until=NOW - HOUR)
    assert list(agents.cluster_versions([new, old])) == [], "it was upgraded"
    beside = record(source=other, kafka_version="4.2.0", catalogue="y")
    assert brief(agents.cluster_versions([new, beside])) == [
        ("info", "kafka_version"), ("info", "catalogue"),
    ]  # fmt: skip
    silent_on_it = record(source=other)
    assert list(agents.cluster_versions([new, silent_on_it])) == []


def table_health(**changed: Any) -> TableHealth:
    fields = {"table": "bronze/runs", "version": 1000, "live_files": 100, "bytes": 1}
    unread = {"uncheckpointed": 100, "commits_a_day": None}
    return TableHealth(**{**fields, **unread, "reader_version": 1, "writer_version": 4, **changed})


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, []),
        ({"live_files": 3_000}, []),
        ({"live_files": 3_001}, [("warning", "files")]),
        ({"live_files": 30_001}, [("error", "files")]),
        ({"uncheckpointed": 200}, []),
        ({"uncheckpointed": 201}, [("warning", "uncheckpointed")]),
        ({"uncheckpointed": 2_002}, [("error", "uncheckpointed")]),
        ({"uncheckpointed": None, "version": 2_001}, []),
    ],
)
def test_a_table_beyond_its_budget_is_told(changed: dict[str, Any], expected: list[Any]) -> None:
    assert brief(health.over_budget(table_health(**changed))) == expected


def not_cleaned(
    cleaned: int, age: dt.timedelta = 90 * DAY, why: str | None = None
) -> list[Finding]:
    return list(health.not_cleaned(tables.RUNS, cleaned, NOW, age, why))


def test_a_table_that_is_not_cleaned_up_is_told() -> None:
    assert not_cleaned(day_of(NOW)) == not_cleaned(day_of(NOW) - 3) == []
    assert brief(not_cleaned(day_of(NOW) - 4)) == [("warning", "log")]
    assert brief(not_cleaned(-1)) == [("warning", "log")]


def test_a_young_table_needs_no_cleaning_and_the_reason_is_told_of_an_old_one() -> None:
    assert not_cleaned(-1, 30 * DAY) == []
    (found,) = not_cleaned(-1, why="no rollup has been recorded")
    assert found.what.endswith("were never cleaned up, and grow: no rollup has been recorded")


def test_commits_a_day_are_told_where_enough_are_known() -> None:
    hours = [NOW + HOUR * number for number in range(13)]
    assert health.commits_a_day(hours) == 24
    assert health.commits_a_day(hours[::-1]) == 24
    assert health.commits_a_day([NOW, NOW + MINUTE]) is None
    assert health.commits_a_day([]) is None
    assert brief(health.over_budget(table_health(commits_a_day=10_001))) == [
        ("warning", "log_growth")
    ]
    assert list(health.over_budget(table_health(commits_a_day=10_000))) == []


def backlog(unread: int, since: dt.timedelta | None = None, **changed: Any) -> Backlog:
    return Backlog(NOW - HOUR, unread, unread_since=since and NOW - since, **changed)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, ["warning"]),
        (backlog(0), []),
        (backlog(-1), ["error"]),
        (backlog(9, HOUR), []),
        (backlog(9, 3 * HOUR), ["info"]),
        (backlog(9, 27 * HOUR), ["warning"]),
        (backlog(9, 26 * DAY), ["error"]),
        (backlog(9), ["error"]),
        (backlog(0, late_rows=2), ["warning"]),
    ],
)
def test_a_rollup_that_is_behind_is_told_by_what_waits(
    found: Backlog | None, expected: list[str]
) -> None:
    assert [one.severity for one in health.behind(found, NOW, 7)] == expected


def test_rows_that_were_not_used_are_told(tmp_path: Path) -> None:
    late = {
        "reason": "it ends before it starts",
        "row_count": 3,
        "window_start": NOW,
        "date": NOW.date(),
    }
    old = NOW - 11 * DAY
    rows = [late, late | {"window_start": old, "date": old.date(), "row_count": 20}]
    write_deltalake(tmp_path, pa.Table.from_pylist(rows))
    (unused,) = health.rejected(DeltaTable(tmp_path), (), NOW, 7)
    assert unused.what.startswith("3 rows ")
    assert "rejected in the last 7 days could not be used: it ends" in unused.what
    (unused,) = health.rejected(DeltaTable(tmp_path), [old.date()], NOW, 7)
    assert unused.what.startswith("23 rows "), "rejected today, 11 days old"


def test_rejected_dates_are_those_of_recent_rollups(tmp_path: Path) -> None:
    shape = pa.schema(
        [("finished_at", pa.timestamp("us", "UTC")), ("rejected_dates", pa.list_(pa.string()))]
    )
    rows = [
        {"finished_at": NOW - 9 * DAY, "rejected_dates": ["2020-01-01"]},
        {"finished_at": NOW - DAY, "rejected_dates": None},
        {"finished_at": NOW - DAY, "rejected_dates": ["2020-02-02", "2020-13-45", "x'; DROP"]},
    ]
    write_deltalake(tmp_path, pa.Table.from_pylist(rows, shape))
    assert health.rejected_dates(DeltaTable(tmp_path), NOW - 7 * DAY) == {dt.date(2020, 2, 2)}


def test_older_progress_has_no_rejected_dates(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.Table.from_pylist([{"finished_at": NOW}]))
    assert health.rejected_dates(DeltaTable(tmp_path), NOW - 7 * DAY) == set()


def diagnosis(*findings: Finding) -> Diagnosis:
    one = Agent("a", ("c/broker-1",), NOW - 5 * MINUTE, "0.1.0")
    return Diagnosis(
        Location("/lake"), NOW, 7, LATE, "0.1.0", tables=[table_health(commits_a_day=288)],
        agents=[one], findings=list(findings),
    )  # fmt: skip


WORST = Finding("error", "silent", "c broker-1", "no agent reported it", "look there")
LEAST = Finding("info", "catalogue", "c", "two catalogues", "make them one")


def test_a_pipe_gets_a_whole_line_a_finding_the_worst_first() -> None:
    text = to_text(diagnosis(LEAST, WORST))
    assert text.splitlines() == [
        "/lake: 1 error. 1 agent in 7 days, records until 2026-11-18 11:55:00 UTC (5 min ago)",
        "error c broker-1: no agent reported it. Look there. [silent]",
        "info c: two catalogues. Make them one. [catalogue]",
    ]


def on_terminal(found: Diagnosis) -> str:
    stream = StringIO()
    print_tables(found, Console(file=stream, force_terminal=True, highlight=False))
    return stream.getvalue()


def test_a_terminal_gets_the_tables_too() -> None:
    text = on_terminal(diagnosis(WORST))
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert plain != text, "it has colours"
    assert re.search(r"bronze/runs +1,000 +100 +1.B +100 +288 +1/4", plain)
    assert "No agent reported it." in plain


@pytest.mark.parametrize("on", ["terminal", "pipe"])
def test_names_of_others_change_nothing_but_themselves(on: str) -> None:
    odd = "[red]\x1b[2J\u202e\n" + "y" * 32_000
    (found,) = silent(
        record(source=SourceName("c", odd), reported_until=NOW - DAY, read_until=None, agent=odd)
    )
    text = (on_terminal if on == "terminal" else to_text)(diagnosis(found))
    assert "\x1b[2J" not in text
    assert "\u202e" not in text
    assert "\\u001b[2J" in text
    assert "[red]" in text
    assert len(text) < 3_000
    if on == "pipe":
        assert len(text.splitlines()) == 2


def test_only_what_somebody_must_do_is_not_good() -> None:
    assert diagnosis().good
    assert diagnosis(LEAST).good
    assert not diagnosis(LEAST, WORST).good
    assert "no problems" in to_text(diagnosis(LEAST))


def test_every_check_and_key_of_the_json_stands_in_the_docs() -> None:
    docs = (DOCS / "operations.md").read_text()
    for check in CHECKS:
        assert f"| `{check}` |" in docs
    told = to_json(diagnosis(WORST))
    for keys in (told, told["findings"][0], told["tables"][0], told["agents"][0]):
        for key in keys:
            assert f"`{key}`" in docs
