"""The figures that a report starts with: bounds, change to last week, and those of a team."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from lakehouse.core.periods import HOUR_US
from lakehouse.report.facts.build import MOST_KEY_FIGURES, change_of, with_figures
from lakehouse.report.facts.by_owner import add_owners, of_team
from lakehouse.report.facts.fields import Bounds, bounds_json
from tests.unit.test_owners import loaded

if TYPE_CHECKING:
    from pathlib import Path

WEEK_US = 168 * HOUR_US
WEEKS = [f"2026-W{number}" for number in range(40, 48)]
MINUTE_US = 60_000_000
TOPIC = ("topic", "partition", "user", "client_id", "group", "source")
Facts = dict[str, Any]


def subject(bad: float = 0, unknown: float = 0, verdict: str = "met", **names: str) -> Facts:
    """A subject with so many bad and unknown minutes; its bad time is known to half a minute."""
    bad_us, unknown_us, edge = round(bad * MINUTE_US), round(unknown * MINUTE_US), MINUTE_US // 2
    seen = WEEK_US - unknown_us
    return {
        **dict.fromkeys(TOPIC), **names, "expected_us": WEEK_US, "unknown_us": unknown_us,
        "good_us": seen - bad_us, "bad_us": bad_us, "bad_low_us": max(0, bad_us - edge),
        "bad_high_us": bad_us + edge if bad_us else 0, "budget_us": 10 * MINUTE_US,
        "budget_of_window_us": 10 * MINUTE_US, "verdict": verdict, "ahead_us": 0,
        "attainment": 1 - bad_us / seen if seen else None,
    }  # fmt: skip


def past(week: str, bad: float | None, unknown: float = 0, verdict: str = "met") -> Facts:
    """A week of an objective; None: nothing is known of it."""
    one = subject(bad or 0, unknown)
    times = ("bad_us", "bad_low_us", "bad_high_us", "unknown_us", "attainment")
    known = {key: None if bad is None else one[key] for key in times}
    return {
        "week": week, "verdict": "no_data" if bad is None else verdict, "subject": None, **known,
        "subjects": 1, "missed": 0, "uncertain": 0, "no_data": int(bad is None), "restated": False,
    }  # fmt: skip


def objective(name: str, metric: str, subjects: list[Facts], before: list[Facts]) -> Facts:
    return copy.deepcopy({
        "name": name, "title": name, "target": 0.999, "level": "topic", "metrics": [metric],
        "unknown": "interval", "subjects": subjects, "history": before, "composites": [],
    })  # fmt: skip


def facts(**given: Any) -> Facts:
    """Facts of a quiet week after quiet weeks, before anything is compared."""
    quiet = [past(week, 0) for week in WEEKS[:-1]]
    topic, client = subject(topic="orders"), subject(user="u", client_id="c")
    sources = [
        {"source": "broker-1", "family": name, "expected_us": WEEK_US, "observed_us": WEEK_US}
        for name in ("min_isr", "quotas", "offsets", "partitions", "client_rates")
    ]
    made: Facts = {
        "from": "2026-11-16T00:00:00Z", "to": "2026-11-23T00:00:00Z",
        "week": {"iso": "2026-W47", "time_zone": "UTC"}, "running": False, "elapsed": 1.0,
        "objectives": [
            objective("min-isr", "kafka.partition.unavailable", [topic], quiet),
            objective("leaderless", "kafka.partition.leaderless", [topic], quiet),
            objective("lost", "kafka.group.non_consumed", [subject(group="a")], quiet),
            objective("throttled", "kafka.client.produce.throttle_time", [client], quiet),
            objective("coverage", "jmxlake.coverage", [subject(source="broker-1")], quiet),
        ],
        "verdicts": [],
        "min_isr": {"topics": [{"topic": "orders", "unavailable_any_us": 0}], "partitions": []},
        "throttling": {
            "clients": [], "clients_throttled": 0, "clients_throttled_low": 0,
            "clients_throttled_high": 0, "clients_known": 1,
        },
        "lost_before_read": {"groups": [], "totals": [], "weeks": []},
        "coverage": {
            "expected_us": WEEK_US, "observed_us": WEEK_US, "percent": 100.0, "sources": sources,
            "weeks": [{"week": week, "percent": 100.0} for week in WEEKS[:-1]],
        },
        "trends": {"weeks": WEEKS, "objectives": []},
    }  # fmt: skip
    return copy.deepcopy(made | given)


def figure(told: Facts, name: str) -> Facts:
    found: list[Facts] = [one for one in told["key_figures"] if one["name"] == name]
    assert len(found) == 1
    return found[0]


def named(made: Facts, name: str) -> Facts:
    found: list[Facts] = [one for one in made["objectives"] if one["name"] == name]
    assert len(found) == 1
    return found[0]


def min_isr(now: Facts, before: Facts, **given: Any) -> Facts:
    """The key figure of a topic that was so now, and so in the week before."""
    made = facts(**given)
    row = named(made, "min-isr")
    row["subjects"], row["history"][-1] = [now | {"topic": "orders"}], before
    return figure(with_figures(made), "writes_unavailable")


_bounds = st.tuples(
    st.integers(0, 100), st.integers(0, 100), st.one_of(st.none(), st.integers(0, 100))
).map(lambda it: Bounds(it[0] + it[1], it[0], None if it[2] is None else it[0] + it[1] + it[2]))


@given(_bounds, _bounds)
def test_a_change_is_unclear_if_and_only_if_the_bounds_overlap(now: Bounds, then: Bounds) -> None:
    told = change_of(now, then)
    assert now.low is not None
    assert then.low is not None
    overlap = (then.high is None or now.low <= then.high) and (
        now.high is None or then.low <= now.high
    )
    is_same = now == then and now.low == now.high
    assert (told == "unclear") == (overlap and not is_same)
    if told == "worse":
        assert (now.value or 0) > (then.value or 0)
    if told == "better":
        assert (now.value or 0) < (then.value or 0)


def test_more_bad_time_than_the_bounds_of_both_weeks_is_worse() -> None:
    told = min_isr(subject(20), past("2026-W46", 11))
    assert (told["change"], told["value"], told["topic"]) == ("worse", 20 * MINUTE_US, "orders")
    assert (told["value_low"], told["value_high"]) == (19.5 * MINUTE_US, 20.5 * MINUTE_US)
    assert told["previous"] == {
        "week": "2026-W46", "value": 11 * MINUTE_US, "low": 10.5 * MINUTE_US,
        "high": 11.5 * MINUTE_US,
    }  # fmt: skip
    assert told["history"] == [0] * 6 + [11 * MINUTE_US, 20 * MINUTE_US]
    assert told["objective"] == "min-isr"


def test_unobserved_time_may_hide_what_would_make_it_worse_or_better() -> None:
    assert min_isr(subject(5), past("2026-W46", 20))["change"] == "better"
    assert min_isr(subject(5, unknown=60), past("2026-W46", 20))["change"] == "unclear"
    assert min_isr(subject(20), past("2026-W46", 5, unknown=60))["change"] == "unclear"


def test_nothing_is_compared_while_a_week_runs_or_without_a_week_before() -> None:
    running = min_isr(subject(20), past("2026-W46", 11), running=True, elapsed=0.5)
    assert (running["change"], running["previous"]) == ("none", None)
    first = min_isr(subject(20), past("2026-W46", None))
    assert (first["change"], first["previous"]) == ("none", None)
    assert first["history"][-2] is None, "what is not known is not 0"


def test_a_quiet_week_after_a_quiet_week_is_the_same() -> None:
    told = with_figures(facts())
    assert {one["name"]: one["change"] for one in told["key_figures"]} == dict.fromkeys(
        ("writes_unavailable", "no_leader", "messages_lost", "clients_throttled", "coverage"),
        "same",
    )
    assert all(one["state"] == "known" for one in told["key_figures"])
    assert len(told["key_figures"]) <= MOST_KEY_FIGURES


def test_coverage_is_compared_by_its_gap_and_shown_as_share() -> None:
    made = facts()
    made["coverage"] |= {"percent": 80.0, "observed_us": round(0.8 * WEEK_US)}
    made["coverage"]["weeks"][-1]["percent"] = 99.0
    told = figure(with_figures(made), "coverage")
    assert told["value"] == pytest.approx(0.8)
    assert told["previous"]["value"] == pytest.approx(0.99)
    assert told["change"] == "worse"
    assert told["history"][-2:] == pytest.approx([0.01, 0.2])


def test_failed_requests_are_compared_with_counts_of_the_weeks_before() -> None:
    made = facts()
    read = {"source": "broker-1", "family": "requests"}
    made["coverage"]["sources"].append({**read, "expected_us": WEEK_US, "observed_us": WEEK_US})
    counts = bounds_json("answers", Bounds(1000, 1000, 1000))
    counts |= {"good": 0.98} | bounds_json("errors", Bounds(20, 20, 20))
    made["service"] = {
        "requests": [{"request": "produce", **counts}],
        "brokers": [{"request": "produce", "source": "broker-1", **counts}],
        "weeks": [{"week": WEEKS[-2], "answers": 2000, "errors": 10}],
    }
    told = figure(with_figures(made), "requests_failed")
    assert told["history"] == [None] * 6 + [pytest.approx(0.005), pytest.approx(0.02)]
    assert told["previous"]["value"] == pytest.approx(0.005)
    assert told["change"] == "unclear", "counts of a week before have no bounds"


@pytest.mark.parametrize(
    ("high", "shown", "change"), [(42.0, 42.0, "worse"), (None, 40.0, "worse")]
)
def test_lost_messages_are_summed_over_groups(high: Any, shown: float, change: str) -> None:
    made = facts()
    made["lost_before_read"]["totals"] = [
        {"group": "a", "offsets_low": 30.0, "offsets_high": high and high - 10, "unknown_us": 0},
        {"group": "b", "offsets_low": 10.0, "offsets_high": 10.0, "unknown_us": 0},
    ]
    made["lost_before_read"]["weeks"] = [
        {"week": "2026-W46", "group": "a", "offsets_low": 5.0, "offsets_high": 6.0}
    ]
    told = figure(with_figures(made), "messages_lost")
    assert (told["value"], told["value_low"], told["value_high"]) == (shown, 40.0, high)
    assert (told["group"], told["subject_value_low"]) == ("a", 30.0)
    assert (told["previous"]["value"], told["change"]) == (6.0, change)
    assert told["history"] == [0] * 6 + [6.0, shown]


def test_lost_messages_of_a_week_in_which_nobody_looked_are_not_known() -> None:
    made = facts()
    named(made, "lost")["history"][2] = past("2026-W42", None)
    assert figure(with_figures(made), "messages_lost")["history"][2] is None


def test_throttled_clients_are_counted_by_the_trends_in_the_weeks_before() -> None:
    made = facts()
    made["throttling"] |= {
        "clients_throttled": 1, "clients_throttled_low": 1, "clients_throttled_high": 1,
        "clients": [{"user": "u", "client_id": "c", "kind": "produce", "throttled_us": 90,
                     "throttled_low_us": 80, "throttled_high_us": 100, "unknown_us": 7}],
    }  # fmt: skip
    week = {"bad_us": 9, "bad_low_us": 9, "bad_high_us": 9}
    rows: list[Facts] = [
        {"user": name, "client_id": "c", "weeks": [None] * 6 + [week, None]} for name in ("a", "b")
    ]
    made["trends"]["objectives"] = [{"name": "throttled", "subjects": rows}]
    told = figure(with_figures(made), "clients_throttled")
    assert (told["value"], told["of"], told["user"]) == (1, 1, "u")
    assert (told["subject_value"], told["subject_unit"]) == (90, "us")
    assert told["history"] == [0] * 6 + [2, 1]
    assert told["change"] == "better"


def test_clients_that_were_hardly_observed_may_have_been_throttled() -> None:
    made = facts()
    named(made, "throttled")["history"][-1] |= {"uncertain": 2}
    assert figure(with_figures(made), "clients_throttled")["change"] == "unclear"


@pytest.mark.edge(6)
def test_throttled_clients_beside_unobserved_time_are_at_least() -> None:
    made = facts()
    made["throttling"] |= dict.fromkeys(
        ("clients_throttled", "clients_throttled_low", "clients_throttled_high"), 2
    ) | {"clients_known": 12}
    made["coverage"]["sources"] = [
        one | {"observed_us": WEEK_US * 3 // 4} for one in made["coverage"]["sources"]
    ]
    told = figure(with_figures(made), "clients_throttled")
    assert (told["value"], told["value_low"], told["value_high"]) == (2, 2, None)


@pytest.mark.edge(5)
@pytest.mark.parametrize(
    ("bad", "shown"), [(0, ("not_known", None, None)), (10, ("known", 10 * MINUTE_US, None))]
)
def test_brokers_that_counted_more_leave_no_figure_of_zero(
    bad: float, shown: tuple[str, float | None, None]
) -> None:
    made = facts()
    named(made, "min-isr")["subjects"] = [subject(bad, topic="orders")]
    made["min_isr"]["brokers"] = [
        {"under_min_isr_partition_seconds": 1e6, "sum_of_partitions_seconds": 0.0}
    ]
    told = figure(with_figures(made), "writes_unavailable")
    assert (told["state"], told["value"], told["value_high"]) == shown
    if not bad:
        assert "no source showed which" in told["reason"]


def test_without_an_objective_throttled_clients_are_of_an_unknown_number() -> None:
    made = facts()
    assert figure(with_figures(made), "clients_throttled")["of"] == 1
    made["objectives"] = [one for one in made["objectives"] if one["name"] != "throttled"]
    assert figure(with_figures(made), "clients_throttled")["of"] is None


@pytest.mark.parametrize("question", ["min-isr", "lost", "throttling"])
@pytest.mark.parametrize("missing", ["section", "coverage"])
def test_without_its_facts_no_figure_is_known(question: str, missing: str) -> None:
    made = facts()
    if missing == "coverage":
        made["coverage"] |= {"observed_us": 0, "percent": 0.0}
        made["coverage"]["sources"] = [
            one | {"observed_us": 0} for one in made["coverage"]["sources"]
        ]
    else:
        section = {"min-isr": "min_isr", "lost": "lost_before_read"}.get(question, question)
        made[section] = None
    names = {"min-isr": ("writes_unavailable", "no_leader"), "lost": ("messages_lost",)}
    for name in names.get(question, ("clients_throttled",)):
        told = figure(with_figures(made), name)
        assert told["state"] != "known"
        assert (told["value"], told["change"], told["history"][-1]) == (None, "none", None)


def test_what_is_bad_in_the_little_that_was_observed_is_at_least() -> None:
    made = facts()
    made["coverage"]["sources"] = [
        one | {"observed_us": WEEK_US // 10} for one in made["coverage"]["sources"]
    ]
    made["min_isr"]["topics"] = [{"topic": "orders", "unavailable_any_us": 20 * MINUTE_US}]
    named(made, "min-isr")["subjects"] = [subject(20, unknown=9000, topic="orders")]
    told = figure(with_figures(made), "writes_unavailable")
    assert (told["state"], told["value_high"]) == ("known", None)
    assert told["value"] == 20 * MINUTE_US


def test_what_changed_in_the_set_of_missed_objectives() -> None:
    made = facts()
    verdicts = {"min-isr": ("met", "missed"), "leaderless": ("missed", "met"),
                "lost": ("uncertain", "missed"), "throttled": ("missed", "missed")}  # fmt: skip
    for name, (before, now) in verdicts.items():
        row = named(made, name)
        row["history"][-1]["verdict"], row["subjects"][0]["verdict"] = before, now
    assert with_figures(made)["previous"] == {
        "week": "2026-W46", "newly_missed": ["min-isr"], "no_longer_missed": ["leaderless"],
        "missed": 2,
    }  # fmt: skip


def test_in_the_first_week_of_a_lake_nothing_is_compared() -> None:
    made = facts()
    for row in made["objectives"]:
        row["history"] = [past(week, None) for week in WEEKS[:-1]]
    made["coverage"]["weeks"] = [{"week": week, "percent": None} for week in WEEKS[:-1]]
    told = with_figures(made)
    assert told["previous"] is None
    assert {one["change"] for one in told["key_figures"]} == {"none"}
    assert all(one["history"][:-1] == [None] * 7 for one in told["key_figures"])


def test_a_period_that_is_no_week_is_not_compared_with_one() -> None:
    told = with_figures(facts(week=None))
    assert told["previous"] is None
    assert {one["change"] for one in told["key_figures"]} == {"none"}


OWNERS = """
owners:
  - {team: shop, topics: [orders], groups: [a], users: [u]}
  - {team: web, topics: [clicks], groups: [b]}
  - {team: platform, sources: ["broker-*"]}
"""


def owned(folder: Path) -> Facts:
    """A week in which both teams' topics were bad, the other's more."""
    made = facts(team=None, owners=None, composites=[], cluster="c")
    row = named(made, "min-isr")
    row["subjects"] = [
        subject(50, topic="clicks", verdict="missed"), subject(20, topic="orders", verdict="missed")
    ]  # fmt: skip
    row["history"] = [past(week, 30, verdict="missed") for week in WEEKS[:-1]]
    known = {"expected_us": WEEK_US, "unknown_us": 0, "is_over": True, "is_known": True}
    share = 15 * MINUTE_US / WEEK_US
    bad = {**known, "share": share, "share_low": share, "share_high": share,
           "bad_us": 15 * MINUTE_US, "bad_low_us": 15 * MINUTE_US,
           "bad_high_us": 15 * MINUTE_US}  # fmt: skip
    good = {**known, "share": 0.0, "share_low": 0.0, "share_high": 0.0,
            "bad_us": 0, "bad_low_us": 0, "bad_high_us": 0}  # fmt: skip
    trend = {**dict.fromkeys(TOPIC), "topic": "orders", "weeks": [good] * 6 + [bad, good]}
    made["trends"]["objectives"] = [{"name": "min-isr", "never_bad": 0, "subjects": [trend]}]
    made["lost_before_read"]["weeks"] = [
        {"week": "2026-W46", "group": name, "offsets_low": low, "offsets_high": low}
        for name, low in (("a", 1.0), ("b", 100.0))
    ]
    return add_owners(with_figures(made), loaded(folder, OWNERS))


def test_the_owner_of_an_objective_is_that_of_its_worst_subject(tmp_path: Path) -> None:
    told = owned(tmp_path)
    assert [named(told, name)["owner"] for name in ("min-isr", "leaderless", "coverage")] == [
        "web", "shop", "platform",
    ]  # fmt: skip
    assert figure(told, "writes_unavailable")["team"] == "web"


def test_figures_of_a_team_are_made_of_its_own_rows(tmp_path: Path) -> None:
    told = of_team(owned(tmp_path), "shop")
    row = named(told, "min-isr")
    assert (row["owner"], row["status"], row["used"]) == ("shop", "missed", 2.0)
    assert [week["verdict"] for week in row["history"]] == ["met"] * 6 + ["missed"] * 2
    own = figure(told, "writes_unavailable")
    assert (own["topic"], own["value"], own["team"]) == ("orders", 20 * MINUTE_US, "shop")
    assert own["history"] == [0] * 6 + [15 * MINUTE_US, 20 * MINUTE_US]
    assert figure(told, "messages_lost")["history"][-2] == 1.0
    assert figure(told, "coverage")["value"] == 1.0
    assert told["previous"]["missed"] == 1


def test_a_team_met_no_week_in_which_a_subject_that_is_not_listed_was_uncertain(
    tmp_path: Path,
) -> None:
    made = owned(tmp_path)
    row = named(made, "leaderless")
    row["history"][3] |= {"verdict": "uncertain", "uncertain": 1}
    row["history"][4] |= {"verdict": "no_data"}
    own = named(of_team(made, "shop"), "leaderless")
    trends = made["trends"]["objectives"]
    assert [one["name"] for one in trends] == ["min-isr"], "leaderless was never bad"
    assert {one["verdict"] for one in own["history"][:-1]} == {"no_data"}
    trends.append({"name": "leaderless", "never_bad": 2, "subjects": []})
    own = named(of_team(made, "shop"), "leaderless")
    assert [one["verdict"] for one in own["history"]] == [
        "met", "met", "met", "no_data", "no_data", "met", "met", "met",
    ]  # fmt: skip


# Greater bad time than the worst status has, and losses in addition to unread time.


def test_figure_is_of_subject_with_most_bad_time() -> None:
    made = facts()
    uncertain = subject(unknown=3 * 24 * 60, verdict="uncertain", topic="orders")
    known = subject(2, verdict="met", topic="scratch")
    named(made, "leaderless")["subjects"] = [uncertain, known]
    row = figure(with_figures(made), "no_leader")
    assert (row["topic"], row["value"], row["state"]) == ("scratch", 2 * MINUTE_US, "known")


def test_figure_beside_subject_without_data_has_no_upper_bound() -> None:
    made = facts()
    blind = subject(unknown=7 * 24 * 60, verdict="no_data", topic="orders")
    named(made, "leaderless")["subjects"] = [blind, subject(2, topic="scratch")]
    row = figure(with_figures(made), "no_leader")
    assert (row["value"], row["value_high"]) == (2 * MINUTE_US, None)
    named(made, "leaderless")["subjects"] = [blind, subject(0, topic="scratch")]
    assert figure(with_figures(made), "no_leader")["state"] == "not_known"


@pytest.mark.parametrize(("share", "high"), [(1.0, 30.0), (0.7, None)])
def test_loss_beside_unread_time_has_no_upper_bound(share: float, high: float | None) -> None:
    made = facts()
    for row in made["coverage"]["sources"]:
        if row["family"] == "offsets":
            row["observed_us"] = round(row["observed_us"] * share)
    lost = {"group": "a", "topics": 1, "partitions": 1, "unknown_us": 0}
    made["lost_before_read"]["totals"] = [{**lost, "offsets_low": 20.0, "offsets_high": 30.0}]
    row = figure(with_figures(made), "messages_lost")
    assert (row["value_low"], row["value_high"]) == (20.0, high)


# Counts of brokers or controllers that no series showed.


@pytest.mark.parametrize(
    ("counted", "statuses"),
    [(0.0, ["met", "met"]), (1200.0, ["uncertain", "met"]), (None, ["uncertain", "uncertain"])],
)
def test_objective_is_not_met_while_more_was_counted(
    counted: float | None, statuses: list[str]
) -> None:
    made = facts()
    made["min_isr"] |= {
        "brokers": [{"under_min_isr_partition_seconds": counted, "sum_of_partitions_seconds": 0}],
        "controllers": [{"offline_partition_seconds": 180.0 if counted is None else 0.0}],
    }
    found = with_figures(made)
    assert [named(found, name)["status"] for name in ("min-isr", "leaderless")] == statuses
    assert named(found, "throttled")["status"] == "met"
