"""No output of a report states good news on time that was not observed.

The facts are made by hand: a quiet week of which less and less was observed. The decision on every
question is looked at in JSON and CSV, and what the sections of the page state of it.
"""

from __future__ import annotations

import csv
import io
import json
import re
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final, cast

import pytest
from hypothesis import given, settings, strategies as st

from lakehouse.core.metrics import families
from lakehouse.report import evidence
from lakehouse.report.csv_files import files
from lakehouse.report.facts.report_record import QUESTIONS, metrics_of, question, with_answers
from lakehouse.report.facts.sections.consumer_groups import group_totals
from lakehouse.report.figures import value_at
from lakehouse.report.tables import availability, clients, storage
from lakehouse.report.tables.section import details
from tests import sample_facts
from tests.sample_facts import MINUTE, SECOND, WEEK, Facts, exactly

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse.report.summary.summarize import Summary

ANSWERED: Final = (
    "availability", "latency", "min-isr", "throttling", "tier-lag", "lost", "lag", "remote-reads",
)  # fmt: skip
"""The questions that have good news in a quiet week."""

SECTIONS: Final = (*ANSWERED, "hygiene", "racks")

PLACES: Final = {
    "availability": "requests", "latency": "requests", "min-isr": "availability",
    "throttling": "throttling", "tier-lag": "tiered", "lost": "loss", "lag": "lag",
    "remote-reads": "tiered", "hygiene": "risks",
}  # fmt: skip
"""The sections of the page that state the answers."""

_CLAIM: Final = re.compile(
    r"\b0 (?:of [\d,]+ )?(?:topic|client|group|tiered topic|broker|partition|risk)"
    r"|\b100 %|±0|\bNo \w|\bNothing|\bnone\b"
)
"""Words of good news."""


def answer(facts: Facts, name: str) -> evidence.Evidence:
    """Decide one question by its name."""
    return evidence.decide(facts, question(name))


def quiet() -> Facts:
    """A quiet week, all of which was observed, with every section that states good news."""
    facts = sample_facts.quiet_week()
    facts["week"] = {"iso": "2026-W46", "time_zone": "UTC"}
    facts["timelines"], facts["service"]["unknown_us"] = [], 0
    facts["coverage"]["sources"] += [
        sample_facts.source(f"broker-{n}", family, WEEK)
        for n in (1, 2, 3) for family in ("leaders", "client_rates")
    ]  # fmt: skip
    facts["collected"] = sorted(metrics_of(QUESTIONS))
    facts["consumer_lag"]["groups_read"] = 2
    facts["racks"] = [{"source": f"broker-{n}", "rack": f"rack-{n}"} for n in (1, 2, 3)]
    lists = ("replication_one", "no_spare_replica", "near_quota", "unused_quotas", "overtaken")
    facts["hygiene"] = {**{key: [] for key in lists}, "within_hours": 24, "replicas_untold": 0}
    for one in facts["objectives"]:
        judged = question({"min-isr": "min-isr"}.get(one["name"], "throttling")).judged
        one |= {"metrics": list(judged), "from": facts["from"], "to": facts["to"]}
    return facts


def observed(share: float, *wanted: str) -> Facts:
    """The same of which a share was observed, of some families or all."""
    facts = quiet()
    sources = facts["coverage"]["sources"]
    for one in sources:
        if not wanted or one["family"] in wanted:
            seen = round(one["expected_us"] * share)
            one |= {"observed_us": seen, "unknown_us": one["expected_us"] - seen}
    total, seen = (sum(one[key] for one in sources) for key in ("expected_us", "observed_us"))
    facts["coverage"] |= {"expected_us": total, "observed_us": seen, "percent": 100 * seen / total}
    return facts


def clean(text: str) -> str:
    return text.replace("\u00a0", " ")


@cache
def _quiet_outputs(name: str) -> dict[str, dict[str, str]]:
    return outputs(CASES[name]())


def lines(facts: Facts) -> dict[str, str]:
    """The lines of the page's sections, by anchor."""
    summary = cast("Summary", SimpleNamespace(is_blind=False))
    made = {one.anchor: clean(one.line) for one in details(facts, summary)}
    return {anchor: re.sub("[\u2068\u2069]", "", said) for anchor, said in made.items()}


def outputs(facts: Facts) -> dict[str, dict[str, str]]:
    """What the page states on each question, and its state in files, by output and question."""
    said = lines(facts)
    found = {"page": {name: said[anchor] for name, anchor in PLACES.items()}}
    (table,) = (content for name, content in files(with_answers(facts)) if name == "answers.csv")
    found["csv"] = {row["question"]: row["state"] for row in csv.DictReader(io.StringIO(table))}
    made = with_answers(facts)["answers"]
    found["json"] = {row["question"]: row["state"] for row in json.loads(json.dumps(made))}
    return found


def without_fact(path: str) -> Facts:
    facts = quiet()
    section, _, key = path.partition(".")
    facts[section][key] = None
    return facts


def stopped_broker() -> Facts:
    """A broker was stopped for 40 seconds: its errors since the last scrape are gone."""
    facts = quiet()
    for row in (*facts["service"]["requests"], *facts["service"]["brokers"]):
        row |= {"errors_high": None, "good_low": None, "unknown_us": 40 * SECOND}
    return facts


def incomplete(table: str, share: float = 1.0) -> Facts:
    facts = quiet()
    facts["incomplete"] = [
        {"table": table, "from": facts["from"],
         "to": sample_facts.iso(sample_facts.WEEK_START + share * sample_facts.timedelta(days=7)),
         "reason": "the table was replaced"}
    ]  # fmt: skip
    return facts


CASES: Final[dict[str, Callable[[], Facts]]] = {
    "quiet": quiet,
    "hardly": lambda: observed(0.0043),
    "one second": lambda: observed(1 / 604_800),
    "below the floor": lambda: observed(0.4999),
    "most": lambda: observed(0.8),
    "nearly all": lambda: observed(0.985),
    "stopped broker": stopped_broker,
}


@pytest.mark.parametrize("anchor", SECTIONS)
def test_answer_observed_week_is_good_news(anchor: str) -> None:
    """Without good news in a quiet week the tests below would show nothing."""
    found = _quiet_outputs("quiet")
    assert found["json"][anchor] == found["csv"][anchor] == "good"
    if said := found["page"].get(anchor):
        assert _CLAIM.search(said), said
        assert "coverage" not in said


@pytest.mark.edge(6)
@pytest.mark.parametrize("name", ["min-isr", "throttling"])
def test_uncertain_subject_among_many_leaves_a_question_partly_known(name: str) -> None:
    facts = quiet()
    own = next(one for one in facts["objectives"] if set(one["metrics"]) & {*question(name).judged})
    assert answer(facts, name).state == "good"
    own["subjects"][0] |= {"verdict": "uncertain"}
    assert answer(facts, name).state == "partly_known"


@pytest.mark.edge(6)
@pytest.mark.parametrize("case", ["hardly", "one second", "below the floor"])
@pytest.mark.parametrize("anchor", SECTIONS)
def test_answer_below_floor_is_not_known(anchor: str, case: str) -> None:
    found = _quiet_outputs(case)
    assert found["json"][anchor] == found["csv"][anchor] == "not_known"
    if said := found["page"].get(anchor):
        assert not _CLAIM.search(said), said
        assert "Not known: only " in said, said
        assert "of this week was observed" in said, said


@pytest.mark.edge(6)
@pytest.mark.parametrize(("case", "share"), [("most", "80 %"), ("nearly all", "98.5 %")])
@pytest.mark.parametrize("anchor", SECTIONS)
def test_answer_partly_observed_states_coverage(anchor: str, case: str, share: str) -> None:
    found = _quiet_outputs(case)
    assert found["json"][anchor] == found["csv"][anchor] == "partly_known"
    if said := found["page"].get(anchor):
        assert f"coverage {share}" in said, said


@pytest.mark.edge(7)
def test_availability_stopped_broker_is_not_exact() -> None:
    found = _quiet_outputs("stopped broker")
    assert found["json"]["availability"] == "partly_known"
    said = found["page"]["availability"]
    assert "100 % of the counted produce requests" in said
    summary = cast("Summary", SimpleNamespace(is_blind=False))
    (detail,) = (one for one in details(stopped_broker(), summary) if one.anchor == "requests")
    assert "Errors in unobserved time are not known." in detail.note
    assert "3 brokers were not observed for up to 40 s." in clean(detail.note)


@pytest.mark.parametrize("floor", [0, 30, 81])
def test_answer_floor_is_a_setting(floor: float) -> None:
    facts = observed(0.8) | {"min_coverage_percent": floor}
    wanted = "not_known" if floor > 80 else "partly_known"
    assert {answer(facts, anchor).state for anchor in ANSWERED} == {wanted}


HIDDEN: Final = {
    "min_isr": {"min-isr", "racks"}, "quotas": {"throttling"}, "tiered": {"tier-lag", "remote-reads"},  # noqa: E501
    "offsets": {"lost", "lag"}, "requests": {"availability", "latency"},
}  # fmt: skip


@pytest.mark.edge(8)
@pytest.mark.parametrize("family", HIDDEN)
def test_answer_disabled_family_is_not_collected(family: str) -> None:
    facts = quiet()
    sources = facts["coverage"]["sources"]
    facts["coverage"]["sources"] = [one for one in sources if one["family"] != family]
    found = outputs(facts)
    for anchor in HIDDEN[family]:
        assert found["json"][anchor] == found["csv"][anchor] == "not_collected"
        if said := found["page"].get(anchor):
            assert f"not collected: family {family} is disabled." in said.lower(), said
            assert f"families.{family}.enabled: true" in said
    for anchor in {*ANSWERED} - HIDDEN[family]:
        assert found["json"][anchor] == "good", "the others were observed"


@pytest.mark.edge(8)
@pytest.mark.parametrize("family", HIDDEN)
def test_answer_failed_family_is_not_known(family: str) -> None:
    facts = observed(0.0, family)
    for anchor in HIDDEN[family]:
        found = answer(facts, anchor)
        assert (found.state, found.reason) == (
            "not_known", f"Not known: family {family} failed on 3\u00a0sources.",
        )  # fmt: skip


@pytest.mark.edge(8)
@pytest.mark.parametrize(
    ("anchor", "metric"),
    [
        ("lag", "kafka.group.lag"), ("lost", "kafka.group.non_consumed.low"),
        ("min-isr", "kafka.partition.under_min_isr"), ("tier-lag", "kafka.topic.remote_copy_lag.bytes"),  # noqa: E501
        ("latency", "kafka.broker.produce.time.p99"),
    ],
)  # fmt: skip
def test_answer_absent_metric_is_not_collected(anchor: str, metric: str) -> None:
    """The family is read, and its metric was never there: no agent reads group lag."""
    facts = quiet()
    facts["collected"] = [one for one in facts["collected"] if one != metric]
    found = answer(facts, anchor)
    assert found.state == "not_collected"
    assert f"no agent reports {metric}, although family" in str(found.reason)
    assert "catalogue" not in str(found.reason), "the shipped catalogue has it"


def test_answer_absent_idle_metric_is_good() -> None:
    """A client without a throttled request has no bean: that is a reading."""
    facts = quiet()
    facts["collected"] = []
    assert answer(facts, "throttling").state == "good"


NULLS: Final = {
    "consumer_lag.groups": "lag", "lost_before_read.totals": "lost", "min_isr.topics": "min-isr",
    "throttling.clients": "throttling", "tier_lag.topics": "tier-lag",
    "remote_reads.topics": "remote-reads", "service.requests": "availability",
    "service.latency": "latency",
}  # fmt: skip


NULL_AT: Final = {"latency": 1, "remote-reads": -1}
"""Where a section of several questions states the answer; the first is the default."""


@pytest.mark.edge(8)
@pytest.mark.parametrize("path", NULLS)
def test_answer_null_fact_is_not_known(path: str) -> None:
    found, anchor = outputs(without_fact(path)), NULLS[path]
    states = {found["json"][anchor], found["csv"][anchor]}
    assert states <= {"not_known", "not_applicable"}
    said = found["page"][anchor].split("; ")[NULL_AT.get(anchor, 0)]
    assert not _CLAIM.search(said), said


@pytest.mark.edge(8)
@pytest.mark.parametrize(
    ("path", "anchor", "keys"),
    [
        ("min_isr.topics", "min-isr", ("unavailable_any_us", "any_us", "leaderless_us")),
        ("tier_lag.topics", "tier-lag", ("copy", "delete")),
    ],
)
def test_answer_subjects_without_data_are_not_known(
    path: str, anchor: str, keys: tuple[str, ...]
) -> None:
    facts = quiet()
    section, key = path.split(".")
    for row in facts[section][key]:
        row.update(dict.fromkeys(keys))
    found = answer(facts, anchor)
    assert found.state == "not_known"
    assert "no data" in str(found.reason)


@pytest.mark.edge(8)
def test_answer_some_subjects_without_data_counts_them() -> None:
    facts = quiet()
    for row in facts["min_isr"]["topics"][:2]:
        row["unavailable_any_us"] = None
    assert lines(facts)["availability"] == "0 of 4 topics affected; 2 topics without data"


def test_answer_no_group_is_not_applicable() -> None:
    facts = quiet()
    facts["collected"] = [one for one in facts["collected"] if one != "kafka.group.lag"]
    facts["consumer_lag"] = {"groups": None, "partitions": None, "groups_read": 0}
    found = answer(facts, "lag")
    assert (found.state, found.reason) == (
        "not_applicable", "Not applicable: no consumer group was observed.",
    )  # fmt: skip


def test_answer_no_tiered_topic_is_not_applicable() -> None:
    facts = quiet()
    facts["tier_lag"]["topics"] = []
    found = answer(facts, "tier-lag")
    assert (found.state, found.reason) == (
        "not_applicable", "Not applicable: no topic has remote storage enabled.",
    )  # fmt: skip


@pytest.mark.edge(2)
@pytest.mark.parametrize(
    ("table", "anchor"),
    [
        ("gold/clients", "throttling"), ("gold/topics", "min-isr"), ("gold/topics", "tier-lag"),
        ("gold/lost_offsets", "lost"), ("gold/consumer_lag", "lag"), ("gold/labelled", "availability"),  # noqa: E501
        ("gold/topics", "remote-reads"), ("gold/incidents", "min-isr"), ("clients", "hygiene"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("share", "state"), [(1.0, "not_known"), (0.7, "not_known"), (0.2, "partly_known")]
)
def test_answer_incomplete_table_is_not_observed(
    table: str, anchor: str, share: float, state: str
) -> None:
    assert answer(incomplete(table, share), anchor).state == state
    others = {"throttling": "lost"}.get(anchor, "throttling")
    if "clients" not in table:
        assert answer(incomplete(table, share), others).state == "good"


@pytest.mark.edge(6)
@pytest.mark.parametrize("share", [0.0043, 0.8])
def test_bad_news_is_told_however_little_was_observed(share: float) -> None:
    facts = observed(share)
    facts["min_isr"]["topics"][0] |= exactly("unavailable_any", 20 * MINUTE)
    said = lines(facts)["availability"]
    assert answer(facts, "min-isr").state == "bad"
    assert said.startswith("At least 1 of 6 topics affected; worst ")
    floor = "not known: only 0.43 % of this week was observed"
    assert said.endswith(floor if share < 0.5 else "coverage 80 %")


def test_broker_that_was_not_asked_is_not_observed() -> None:
    """Quotas are enabled for one broker of three."""
    facts = quiet()
    facts["coverage"]["sources"] = [
        one for one in facts["coverage"]["sources"]
        if one["family"] != "quotas" or one["source"] == "broker-1"
    ]  # fmt: skip
    found = answer(facts, "throttling")
    assert found.state == "not_known"
    assert found.observed_percent == pytest.approx(100 / 3)


@pytest.mark.parametrize(
    ("path", "question_", "rows"),
    [
        ("service.latency", "latency", 3),
        ("consumer_lag", "lag", 1),
        ("min_isr.brokers", "racks", 3),
    ],
)
def test_metric_that_a_read_family_hides_is_not_observed(
    path: str, question_: str, rows: int
) -> None:
    facts = quiet()
    found = value_at(facts, path)
    own = found if isinstance(found, list) else [found]
    assert len(own) == rows
    assert answer(facts, question_).state == "good"
    own[0]["unknown_us"] = round(0.02 * WEEK)
    assert answer(facts, question_).state == "partly_known", "even if others were observed"
    for row in own:
        row["unknown_us"] = round(0.7 * WEEK)
    hidden = answer(facts, question_)
    assert (hidden.state, hidden.observed_percent) == ("not_known", pytest.approx(30))


# What brokers counted, and no source showed (row 4).


@pytest.mark.edge(4)
@pytest.mark.parametrize("shown", [None, 0.0, 30.0])
@pytest.mark.parametrize("brokers", [1, 3])
def test_brokers_own_count_is_bad_news(brokers: int, shown: float | None) -> None:
    facts = quiet()
    for row in facts["min_isr"]["brokers"][:brokers]:
        row |= {"under_min_isr_partition_seconds": 1200.0, "sum_of_partitions_seconds": shown}
    found = outputs(facts)
    assert found["json"]["min-isr"] == found["csv"]["min-isr"] == "bad"
    length = {1: "20 min", 3: "1 h"}[brokers]
    part = {None: "no source showed which", 0.0: "no source showed which"}.get(
        shown, "sources showed"
    )
    said = found["page"]["min-isr"]
    assert said.startswith(f"Brokers counted partitions under min ISR for {length}"), said
    assert part in said
    assert not _CLAIM.search(said), said


@pytest.mark.edge(4)
@pytest.mark.parametrize("counted", [[180.0], [180.0, 175.0], [0.0, 180.0]])
def test_controllers_own_count_is_bad_news(counted: list[float]) -> None:
    facts = quiet()
    facts["min_isr"]["controllers"] = [
        {"source": f"controller-{n}", "offline_partition_seconds": seconds}
        for n, seconds in enumerate(counted)
    ]
    assert answer(facts, "min-isr").state == "bad"
    said = lines(facts)["availability"]
    assert "Controllers counted partitions without a leader for 3 min" in said
    assert "no source showed which" in said
    assert not _CLAIM.search(said), said


@pytest.mark.edge(4)
def test_counts_that_agree_are_no_news() -> None:
    facts = quiet()
    for row in facts["min_isr"]["brokers"]:
        row |= {"under_min_isr_partition_seconds": 10.0, "sum_of_partitions_seconds": 8.0}
    assert evidence.hidden(facts, question("min-isr")) == {}


# Words and numbers come from the same row (rows 10 and 11).

STATED: Final = {
    "min-isr": (availability.AVAILABILITY, availability.TOPICS, "unavailable_any_us"),
    "throttling": (clients.THROTTLING, clients.CLIENTS, "throttled_us"),
    "tier-lag": (storage.TIERED, storage.TOPICS, "copy.lagging_us"),
    "lost": (clients.LOSS, clients.GROUPS_WITH_LOSS, "offsets_high"),
    "lag": (clients.LAG, clients.GROUPS_BEHIND, "behind_us"),
    "remote-reads": (storage.TIERED, storage.READ, "bytes"),
}  # fmt: skip
"""The section, the table and the figure of each question whose subjects are counted."""


@pytest.mark.edge(7)
@pytest.mark.parametrize(("unknown_us", "said"), [(0, "peak "), (1, "peak at least ")])
def test_line_with_peak_beside_unknown_time_is_at_least(unknown_us: int, said: str) -> None:
    facts = sample_facts.demo()
    tier = facts["tier_lag"]["topics"][0]
    for row in (tier["copy"], tier["delete"]):
        row["unknown_us"] = unknown_us
    assert f"{said}45.0" in lines(facts)["tiered"]


@pytest.mark.edge(7)
@pytest.mark.parametrize("unknown_us", [0, 100 * SECOND])
def test_table_with_peaks_beside_unknown_time_has_a_note(unknown_us: int) -> None:
    facts = sample_facts.demo()
    for row in facts["throttling"]["clients"]:
        row["unknown_us"] = unknown_us
    table = clients.CLIENTS.listing(facts)
    assert ("A maximum can be higher in that time." in " ".join(table.notes)) == bool(unknown_us)


def generated(figure: int, other: int, number: int, key: str) -> Facts:
    """A row with a figure, and with another one in every column that is not stated."""
    keys = (
        "unavailable_any", "any", "leaderless", "under", "throttled", "held_back", "behind",
    )  # fmt: skip
    row: Facts = {"unknown_us": other, "max_concurrent": other}
    for stem in keys:
        row |= exactly(stem, other)
    way = {**exactly("lagging", other), "max_bytes": other}
    row |= {"copy": dict(way), "delete": dict(way), "flags": []}
    for name in ("writes_refused", "copies_failed", "requests", "errors"):
        row[name] = other
    row |= {"deletions_failed": 0, "bytes": other, "offsets_low": 0, "offsets_high": other}
    row |= {"partitions": 3, "most": {}, "last": {}, "kind": "produce"}
    for name in ("topic", "source", "client_id", "user"):
        row[name] = f"n{number}"
    row["group"] = f"n{number}"
    inner, _, last = key.rpartition(".")
    target = row[inner] if inner else row
    stem = last.removesuffix("_us")
    target |= exactly(stem, figure) if last.endswith("_us") else {last: figure}
    return row


@pytest.mark.edge(10)
@pytest.mark.parametrize("name", STATED)
@settings(max_examples=25)
@given(
    pairs=st.lists(st.tuples(st.integers(1, 10**9), st.integers(1, 10**10)), min_size=1, max_size=6)
)
def test_line_names_the_row_of_its_greatest_figure(name: str, pairs: list[tuple[int, int]]) -> None:
    stated, spec, key = STATED[name]
    rows = [generated(figure, other, n, key) for n, (figure, other) in enumerate(pairs)]
    for row in rows:
        row["delete"] |= exactly("lagging", 0)  # the longer lag of both is stated
    section, _, path = spec.rows.path.partition(".")
    facts = quiet()
    facts[section] = {**facts[section], path: rows}
    if name == "lost":
        facts[section]["groups"] = []
    said = lines(facts)[stated.anchor]
    found = re.search(
        rf"(\d+)(?: of \d+)? {spec.noun}s? (?:affected|read from remote storage); "
        r"(?:worst|most from) [a-z /\d]*?n(\d+),",
        said,
    )
    assert found, said
    assert int(found[1]) == len(rows), "all rows are bad, and each is another subject"
    assert pairs[int(found[2])][0] == max(figure for figure, _ in pairs), said


@pytest.mark.edge(10)
@pytest.mark.parametrize("longest", ["orders", "payments", "shipments"])
def test_worst_topic_is_the_longest_unavailable(longest: str) -> None:
    """A topic with many partitions has more partition-time, and is not the worst for that."""
    facts = quiet()
    for row in facts["min_isr"]["topics"][:3]:
        minutes = 20 if row["topic"] == longest else 12
        row.update(exactly("unavailable_any", minutes * MINUTE))
        row.update(exactly("leaderless", 24 * MINUTE if minutes == 12 else 0))
    said = lines(facts)["availability"]
    assert said.startswith(f"3 of 6 topics affected; worst {longest}, 20 min")
    first = availability.TOPICS.bad_rows(availability.TOPICS.all_rows(facts))[0]
    assert first["topic"] == longest, "the table has the same row first"


@pytest.mark.edge(10)
def test_group_that_lags_in_two_topics_counts_once() -> None:
    facts = quiet()
    late = [sample_facts.late("audit", topic, (1, 2), (3.0, 4.0)) for topic in ("a", "b")]
    facts["consumer_lag"]["groups"] = late
    assert lines(facts)["lag"].startswith("1 of 2 groups affected; worst audit, ")


def lost(group: str, partition: int, low: int, high: int | None) -> Facts:
    return {
        "group": group, "topic": "audit", "partition": partition, "offsets_low": low,
        "offsets_high": high, "unknown_us": 0,
    }  # fmt: skip


@pytest.mark.edge(11)
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [lost("archive", n, us, us) for n, us in enumerate((9500, 8500, 7500, 6500, 5500, 4500))],  # noqa: E501
            "1 group affected; worst archive, up to 42,000 messages",
        ),
        (
            [lost("a", 0, 10_000, 10_000), *(lost("b", n, 4_000, 4_000) for n in range(3))],
            "2 groups affected; worst b, up to 12,000 messages",
        ),
        (
            [lost("a", 0, 9_000, 9_500), lost("a", 1, 100, None)],
            "1 group affected; worst a, at least 9,100 messages",
        ),
        (
            [lost("a", 0, 9_000, 9_500), lost("a", 1, 100, 200)],
            "1 group affected; worst a, up to 9,700 messages",
        ),
    ],
)  # fmt: skip
def test_lost_records_are_those_of_the_whole_group(rows: list[Facts], said: str) -> None:
    facts = quiet()
    facts["lost_before_read"] = {"groups": rows, "totals": group_totals(rows)}
    assert lines(facts)["loss"] == said


def test_families_of_the_questions_are_known() -> None:
    assert all(families(metric) for metric in metrics_of(QUESTIONS))
