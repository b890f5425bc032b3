"""No output of a report states good news on time that was not observed.

The facts are made by hand: a quiet week of which less and less was observed. Every question and
section that states something is looked at in every output.
"""

from __future__ import annotations

import csv
import io
import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings, strategies as st

from lakehouse.core.metrics import families
from lakehouse.report import evidence
from lakehouse.report.clusters_summary import summary
from lakehouse.report.csv_files import files
from lakehouse.report.facts import build
from lakehouse.report.figures import plain_text
from lakehouse.report.page.page import render
from lakehouse.report.page.questions import answers, questions
from lakehouse.report.resources import declared
from tests import sample_facts
from tests.page_reader import read
from tests.sample_facts import MINUTE, SECOND, WEEK, Facts, exactly

if TYPE_CHECKING:
    from collections.abc import Callable

ANSWERED: Final = (
    "availability", "latency", "min-isr", "throttling", "tier-lag", "lost", "lag", "remote-reads",
)  # fmt: skip
"""The questions that have good news in a quiet week."""

SECTIONS: Final = (*ANSWERED, "hygiene", "racks")

LEADERS: Final = " 0 partitions were without a leader."
"""A second statement of the section on availability, with its own evidence."""

_CLAIM: Final = re.compile(
    r"\b0 (?:of [\d,]+ )?(?:topic|client|group|tiered topic|broker|partition|recommendation|restart)"  # noqa: E501
    r"|\b100 %|±0|\bNo \w|\bNothing|\bnone\b"
)
"""Words of good news."""


def quiet() -> Facts:
    """A quiet week, all of which was observed, with every section that states good news."""
    facts = sample_facts.quiet_week()
    facts["week"] = {"iso": "2026-W46", "time_zone": "UTC"}
    facts["timelines"], facts["service"]["unknown_us"] = [], 0
    facts["coverage"]["sources"] += [
        sample_facts.source(f"broker-{n}", family, WEEK)
        for n in (1, 2, 3) for family in ("leaders", "client_rates")
    ]  # fmt: skip
    facts["collected"] = sorted(build.metrics_of_questions())
    facts["consumer_lag"]["groups_read"] = 2
    facts["racks"] = [{"source": f"broker-{n}", "rack": f"rack-{n}"} for n in (1, 2, 3)]
    lists = ("replication_one", "no_spare_replica", "near_quota", "unused_quotas", "overtaken")
    facts["hygiene"] = {**{key: [] for key in lists}, "within_hours": 24, "replicas_untold": 0}
    for one in facts["objectives"]:
        judged = build.question({"min-isr": "min-isr"}.get(one["name"], "throttling")).judged
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


def outputs(facts: Facts) -> dict[str, dict[str, str]]:
    """What every output states on each question, by output and anchor."""
    page = read(render(facts))
    found = {
        "page": {
            anchor: clean(page.one("section", id=anchor).one("p", class_="answer").text)
            for anchor in SECTIONS
        },
    }
    (table,) = (content for name, content in files(facts) if name == "answers.csv")
    found["csv"] = {row["question"]: row["state"] for row in csv.DictReader(io.StringIO(table))}
    made = build.with_answers(facts)["answers"]
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
    for output in ("page",):
        if said := found[output].get(anchor):
            assert _CLAIM.search(said) or anchor == "racks", (output, said)
            assert "Coverage" not in said


@pytest.mark.edge(6)
@pytest.mark.parametrize("case", ["hardly", "one second", "below the floor"])
@pytest.mark.parametrize("anchor", SECTIONS)
def test_answer_below_floor_is_not_known(anchor: str, case: str) -> None:
    found = _quiet_outputs(case)
    assert found["json"][anchor] == found["csv"][anchor] == "not_known"
    for output in ("page",):
        if said := found[output].get(anchor):
            assert not _CLAIM.search(said), (output, said)
            assert "Not known: only " in said, (output, said)
            assert "of this week was observed" in said, (output, said)


@pytest.mark.edge(6)
@pytest.mark.parametrize(("case", "share"), [("most", "80 %"), ("nearly all", "98.5 %")])
@pytest.mark.parametrize("anchor", SECTIONS)
def test_answer_partly_observed_states_coverage(anchor: str, case: str, share: str) -> None:
    found = _quiet_outputs(case)
    assert found["json"][anchor] == found["csv"][anchor] == "partly_known"
    for output in ("page",):
        if said := found[output].get(anchor):
            assert f"Coverage {share}" in said, (output, said)


@pytest.mark.edge(7)
def test_availability_stopped_broker_is_not_exact() -> None:
    found = _quiet_outputs("stopped broker")
    assert found["json"]["availability"] == "partly_known"
    for output in ("page",):
        said = found[output]["availability"]
        assert "±0" not in said
        assert "of the counted produce requests" in said
        assert "Errors in unobserved time are unknown." in said
        assert "3 brokers have no data for up to 40 s" in said


@pytest.mark.parametrize("floor", [0, 30, 81])
def test_answer_floor_is_a_setting(floor: float) -> None:
    facts = observed(0.8) | {"min_coverage_percent": floor}
    wanted = "not_known" if floor > 80 else "partly_known"
    assert {build.answer(facts, anchor).state for anchor in ANSWERED} == {wanted}


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
        for output in ("page",):
            if said := found[output].get(anchor, ""):
                assert f"Not collected: family {family} is disabled." in said, (output, said)
                assert f"families.{family}.enabled: true" in said
    for anchor in {*ANSWERED} - HIDDEN[family]:
        assert found["json"][anchor] == "good", "the others were observed"


@pytest.mark.edge(8)
@pytest.mark.parametrize("family", HIDDEN)
def test_answer_failed_family_is_not_known(family: str) -> None:
    facts = observed(0.0, family)
    for anchor in HIDDEN[family]:
        found = build.answer(facts, anchor)
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
    found = build.answer(facts, anchor)
    assert found.state == "not_collected"
    assert f"no agent reports {metric}" in str(found.reason)


def test_answer_absent_idle_metric_is_good() -> None:
    """A client without a throttled request has no bean: that is a reading."""
    facts = quiet()
    facts["collected"] = []
    assert build.answer(facts, "throttling").state == "good"


NULLS: Final = {
    "consumer_lag.groups": "lag", "lost_before_read.groups": "lost", "min_isr.topics": "min-isr",
    "throttling.clients": "throttling", "tier_lag.topics": "tier-lag",
    "remote_reads.topics": "remote-reads", "service.requests": "availability",
    "service.latency": "latency",
}  # fmt: skip


@pytest.mark.edge(8)
@pytest.mark.parametrize("path", NULLS)
def test_answer_null_fact_is_not_known(path: str) -> None:
    found, anchor = outputs(without_fact(path)), NULLS[path]
    states = {found["json"][anchor], found["csv"][anchor]}
    assert states <= {"not_known", "not_applicable"}
    for output in ("page",):
        assert not _CLAIM.search(found[output][anchor].removesuffix(LEADERS)), output


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
    found = build.answer(facts, anchor)
    assert found.state == "not_known"
    assert "no data" in str(found.reason)


@pytest.mark.edge(8)
def test_answer_some_subjects_without_data_counts_them() -> None:
    facts = quiet()
    for row in facts["min_isr"]["topics"][:2]:
        row["unavailable_any_us"] = None
    (section,) = (one for one in questions(facts) if one.anchor == "min-isr")
    assert clean(plain_text(section.answer)) == (
        "0 of 4 topics were under min ISR or without a leader. 2 topics have no data."
    )


def test_answer_no_tiered_topic_is_not_applicable() -> None:
    facts = quiet()
    facts["tier_lag"]["topics"] = []
    found = build.answer(facts, "tier-lag")
    assert (found.state, found.reason) == (
        "not_applicable", "Not applicable: no topic has remote storage enabled.",
    )  # fmt: skip


@pytest.mark.edge(2)
@pytest.mark.parametrize(
    ("table", "anchor"),
    [
        ("gold/clients", "throttling"), ("gold/topics", "min-isr"), ("gold/topics", "tier-lag"),
        ("gold/non_consumed", "lost"), ("gold/consumer_lag", "lag"), ("gold/labelled", "availability"),  # noqa: E501
        ("gold/topics", "remote-reads"), ("gold/incidents", "min-isr"), ("clients", "hygiene"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("share", "state"), [(1.0, "not_known"), (0.7, "not_known"), (0.2, "partly_known")]
)
def test_answer_incomplete_table_is_not_observed(
    table: str, anchor: str, share: float, state: str
) -> None:
    assert build.answer(incomplete(table, share), anchor).state == state
    others = {"throttling": "lost"}.get(anchor, "throttling")
    if "clients" not in table:
        assert build.answer(incomplete(table, share), others).state == "good"


@pytest.mark.edge(6)
@pytest.mark.parametrize("share", [0.0043, 0.8])
def test_bad_news_is_told_however_little_was_observed(share: float) -> None:
    facts = observed(share)
    facts["min_isr"]["topics"][0] |= exactly("unavailable_any", 20 * MINUTE)
    (section,) = (one for one in questions(facts) if one.anchor == "min-isr")
    said = clean(plain_text(section.answer))
    assert build.answer(facts, "min-isr").state == "bad"
    assert said.startswith("At least 1 of 6 topics was under min ISR or without a leader. Worst: ")
    assert f"Coverage {'0.43' if share < 0.5 else '80'} %." in said


def test_broker_that_was_not_asked_is_not_observed() -> None:
    """Quotas are enabled for one broker of three."""
    facts = quiet()
    facts["coverage"]["sources"] = [
        one for one in facts["coverage"]["sources"]
        if one["family"] != "quotas" or one["source"] == "broker-1"
    ]  # fmt: skip
    found = build.answer(facts, "throttling")
    assert found.state == "not_known"
    assert found.observed_percent == pytest.approx(100 / 3)


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
    length = {1: "20 m 0 s", 3: "1 h 0 m"}[brokers]
    part = {None: "no source showed which", 0.0: "no source showed which"}.get(
        shown, "sources showed"
    )
    for output in ("page",):
        said = found[output]["min-isr"]
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
    assert build.answer(facts, "min-isr").state == "bad"
    for anchor in ("min-isr", "availability"):
        (section,) = (one for one in answers(facts) if one.anchor == anchor)
        said = clean(plain_text(section.answer))
        assert "Controllers counted partitions without a leader for 3 m 0 s" in said
        assert "no source showed which" in said
        assert "0 partitions" not in said


@pytest.mark.edge(4)
def test_counts_that_agree_are_no_news() -> None:
    facts = quiet()
    for row in facts["min_isr"]["brokers"]:
        row |= {"under_min_isr_partition_seconds": 10.0, "sum_of_partitions_seconds": 8.0}
    assert evidence.hidden(facts, build.question("min-isr")) == {}


# Words and numbers come from the same row (rows 10 and 11).

STATED: Final = {
    ("min-isr", 0): "unavailable_any_us", ("min-isr", 1): "writes_refused",
    ("throttling", 0): "throttled_us", ("tier-lag", 0): "copy.lagging_us",
    ("tier-lag", 1): "delete.lagging_us", ("tier-lag", 2): "copies_failed",
    ("tier-lag", 3): "held_back_us", ("lost", 0): "offsets_high", ("lag", 0): "behind_us",
    ("remote-reads", 0): "bytes", ("remote-reads", 1): "held_back_us",
}  # fmt: skip
"""The figure that each statement states, by question and place; written anew for this test."""


def statements(anchor: str) -> list[dict[str, Any]]:
    spec = declared("page.yaml")["questions"][anchor]
    return [*spec["says"], *spec.get("also", ())]


def test_every_statement_is_in_the_table_above() -> None:
    questions_ = declared("page.yaml")["questions"]
    made = {(anchor, n) for anchor in questions_ for n in range(len(statements(anchor)))}
    assert made == set(STATED)


@pytest.mark.edge(7)
@pytest.mark.parametrize(("unknown_us", "said"), [(0, "peak "), (1, "peak at least ")])
def test_statement_peak_beside_unknown_time_is_at_least(unknown_us: int, said: str) -> None:
    facts = sample_facts.demo()
    tier = facts["tier_lag"]["topics"][0]
    for row in (
        *facts["service"]["latency"],
        tier["copy"],
        tier["delete"],
        *facts["min_isr"]["topics"],
    ):
        row["unknown_us"] = unknown_us
    answered = {one.anchor: plain_text(one.answer) for one in answers(facts)}
    for anchor, peak in (("latency", "2.3"), ("tier-lag", "45.0"), ("min-isr", "3")):
        assert f"{said}{peak}" in answered[anchor]


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
@pytest.mark.parametrize(("anchor", "place"), STATED)
@settings(max_examples=25)
@given(
    pairs=st.lists(st.tuples(st.integers(1, 10**9), st.integers(1, 10**10)), min_size=1, max_size=6)
)
def test_statement_names_the_row_of_its_greatest_figure(
    anchor: str, place: int, pairs: list[tuple[int, int]]
) -> None:
    key = STATED[anchor, place]
    spec, statement = declared("page.yaml")["questions"][anchor], statements(anchor)[place]
    rows = [generated(figure, other, n, key) for n, (figure, other) in enumerate(pairs)]
    first = next(iter(spec["tables"]))
    section, _, name = spec["tables"][statement.get("table", first)].partition(".")
    facts = quiet()
    facts[section] = {**facts[section], name: rows}
    if anchor == "lost":
        facts[section]["groups"] = []
    (one,) = (each for each in questions(facts) if each.anchor == anchor)
    said = clean(plain_text(one.answer))
    verb = statement["is"][len(rows) > 1]
    found = re.search(
        rf"(\d+)(?: of \d+)? [a-z ]+ {re.escape(verb)}\. (?:Worst|Most): [a-z ]*n(\d+)", said
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
    (section,) = (one for one in questions(facts) if one.anchor == "min-isr")
    said = clean(plain_text(section.answer))
    assert said.startswith("3 of 6 topics were under min ISR or without a leader. ")
    assert f"Worst: {longest}, 20 m 0 s" in said
    table = section.listings[0]
    assert table.rows[0][0].content[0].text == longest, "the table has the same row first"  # type: ignore[union-attr]


@pytest.mark.edge(10)
def test_group_that_lags_in_two_topics_counts_once() -> None:
    facts = quiet()
    late = [sample_facts.late("audit", topic, (1, 2), (3.0, 4.0)) for topic in ("a", "b")]
    facts["consumer_lag"]["groups"] = late
    (section,) = (one for one in questions(facts) if one.anchor == "lag")
    assert clean(plain_text(section.answer)).startswith("1 of 2 groups lagged. Worst: audit on ")


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
            "1 group lost records. Worst: archive, 42,000 (±0) offsets in 6 partitions.",
        ),
        (
            [lost("a", 0, 10_000, 10_000), *(lost("b", n, 4_000, 4_000) for n in range(3))],
            "2 groups lost records. Worst: b, 12,000 (±0) offsets in 3 partitions.",
        ),
        (
            [lost("a", 0, 9_000, 9_500), lost("a", 1, 100, None)],
            "1 group lost records. Worst: a, at least 9,100 offsets in 2 partitions.",
        ),
        (
            [lost("a", 0, 9_000, 9_500), lost("a", 1, 100, 200)],
            "1 group lost records. Worst: a, 9,100 to 9,700 offsets in 2 partitions.",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("has_totals", [True, False])
def test_lost_records_are_those_of_the_whole_group(
    rows: list[Facts], said: str, *, has_totals: bool
) -> None:
    """Saved facts of an older version have no totals."""
    from lakehouse.report.facts_lookup import group_totals  # noqa: PLC0415

    facts = quiet()
    facts["lost_before_read"] = {"groups": rows}
    if has_totals:
        facts["lost_before_read"]["totals"] = group_totals(rows)
    (section,) = (one for one in questions(facts) if one.anchor == "lost")
    assert clean(plain_text(section.answer)) == said


def test_families_of_the_questions_are_known() -> None:
    assert all(families(metric) for metric in build.metrics_of_questions())


# The headline (row 6).


def headlines(facts: Facts) -> list[str]:
    """The first sentence of every output."""
    page = read(render(facts)).one("h1").text
    said = [page, summary([facts])["clusters"][0]["headline"]]
    return [" ".join(clean(str(one)).split()) for one in said]


@pytest.mark.edge(6)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_headline_first_week_of_lake_says_since_when(zone: str) -> None:
    """Agents were installed on a Sunday evening: all expected time was observed, and no more."""
    facts = quiet() | {"time_zone": zone}
    facts["coverage"]["since"] = "2026-11-15T20:15:00Z"
    hour = {"UTC": "20", "Europe/Berlin": "21"}[zone]
    for said in headlines(facts):
        assert f"Nothing was observed before Sun 15 Nov {hour}:15:00" in said
    facts["coverage"]["since"] = None
    assert not any("observed before" in said for said in headlines(facts))


@pytest.mark.edge(6)
@pytest.mark.parametrize("policy", ["good", "exclude"])
@pytest.mark.parametrize("both_ways", ["uncertain", "missed", "no_data"])
def test_headline_lenient_objective_is_not_plainly_met(policy: str, both_ways: str) -> None:
    facts = quiet()
    for one in facts["objectives"][:1]:
        one["unknown"] = policy
        for row in one["subjects"]:
            row["interval_verdict"] = both_ways
    for said in headlines(facts):
        assert "1 of the met depends on how unknown time counts." in said
