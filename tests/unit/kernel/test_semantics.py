"""What gold means, each test a sentence about one of the stories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakehouse import tables
from lakehouse.core.metrics import Definition, meanings_of, shipped, shipped_traits
from lakehouse.kernel.build_program import build_program
from tests.kernel_inputs import together
from tests.kernel_tables import COMMITTED, rolled_up
from tests.lake_builder import Batch
from tests.oracle import gold, stories
from tests.oracle.objectives import OBJECTIVES

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse.kernel import run_in_duckdb

    Reader = Callable[..., dict[str, Any]]
    Everything = Callable[..., list[dict[str, Any]]]

SECOND = 1_000_000
SIZES = ("_windows", "")
"""What is added to a table's name for its finest rows, and for those an hour."""


@pytest.fixture(scope="module")
def every(program: run_in_duckdb.Program) -> Everything:
    """Reads rows of gold by time: of a table and cluster, with these key columns."""
    found = rolled_up(program, together(stories.all_stories()))

    def read(name: str, cluster: str, **key: Any) -> list[dict[str, Any]]:
        key = {"cluster": cluster, **key}
        names = gold.KEYS[name]
        rows = [
            {**dict(zip(names, own, strict=True)), **figures}
            for own, figures in found[name].items()
            if all(own[names.index(column)] == value for column, value in key.items())
        ]
        return sorted(rows, key=lambda row: row.get("hour") or row.get("window_start", 0))

    return read


@pytest.fixture(scope="module")
def one(every: Everything) -> Reader:
    """Reads one row."""

    def read(name: str, cluster: str, **key: Any) -> dict[str, Any]:
        found = every(name, cluster, **key)
        assert len(found) == 1, f"{len(found)} rows of {name} with {key}"
        return found[0]

    return read


def bounds(row: dict[str, Any], name: str = "series_affected") -> tuple[int, ...]:
    """Low bound, figure and high bound in whole seconds."""
    columns = (f"{name}_low_us", f"{name}_us", f"{name}_high_us")
    assert all(row[column] % SECOND == 0 for column in columns)
    return tuple(row[column] // SECOND for column in columns)


def test_time_that_no_scrape_vouches_for_is_neither_good_nor_bad(one: Reader):
    row = one("sli_windows", "unknown_time", objective="min-isr")
    assert (row["good_us"], row["bad_us"], row["bad_high_us"]) == (240 * SECOND, 0, 0)
    topic = one("topics_windows", "unknown_time", metric=stories.ISR)
    assert topic["series_seen_us"] == 240 * SECOND


def test_a_failed_attempt_is_time_that_an_agent_accounts_for(one: Reader):
    refused = one("coverage", "unknown_time", outcome="refused")
    assert refused["outcome_us"] == 60 * SECOND
    row = one("sli_windows", "unknown_time", objective="coverage", source="broker-1")
    assert (row["good_us"], row["bad_us"]) == (240 * SECOND, 60 * SECOND)


@pytest.mark.parametrize("size", SIZES)
def test_hours_bear_the_bounds_of_an_incident_as_windows_do(one: Reader, size: str):
    row = one(f"partitions{size}", "edges", metric=stories.ISR)
    assert bounds(row) == (45, 60, 70)
    topic = one(f"topics{size}", "edges", metric=stories.ISR)
    assert bounds(topic) == bounds(topic, "affected") == (45, 60, 70)
    assert topic["max_concurrent"] == 1


def test_a_lead_that_reaches_over_a_cut_counts_once(one: Reader):
    row = one("partitions", "edges_over_a_cut", metric=stories.ISR)
    assert bounds(row) == (10 + 20 + 10, 10 + 40 + 10, 15 + 40 + 20)


def test_what_of_a_bound_lies_before_its_window_is_told(every: Everything):
    rows = every("sli_windows", "edges_over_a_cut", objective="min-isr")
    assert [row["before_us"] for row in rows] == [0, 0, 7 * SECOND]
    assert [row["bad_high_us"] for row in rows] == [15 * SECOND, 40 * SECOND, 20 * SECOND]


def test_a_change_between_two_values_above_zero_is_no_edge(one: Reader):
    row = one("topics_windows", "value_changes_while_bad")
    assert bounds(row) == bounds(row, "affected") == (200, 200, 200)
    assert (row["value_min"], row["value_max"], row["value_seconds"]) == (5.0, 7.0, 1200.0)


def test_of_an_hour_only_what_its_first_window_says_lies_before_it(every: Everything):
    """The lead over the later cut lies within the hour."""
    for name in ("topics", "partitions"):
        windows = every(f"{name}_windows", "edges_over_a_cut", metric=stories.ISR)
        assert [row["series_before_us"] for row in windows] == [0, 0, 7 * SECOND]
        assert every(name, "edges_over_a_cut", metric=stories.ISR)[0]["series_before_us"] == 0
    first, second = every("topics", "spilled_hours", metric=stories.ISR)
    assert (first["before_us"], first["series_before_us"]) == (9 * SECOND, 17 * SECOND)
    assert second["before_us"] == second["series_before_us"] == 0, "not seen in its first window"
    sli = every("sli", "spilled_hours", objective="min-isr")
    assert [row["before_us"] for row in sli] == [9 * SECOND, 0]


def test_of_a_good_hour_nothing_is_kept_but_the_hour(one: Reader, every: Everything):
    row = one("sli", "good_hour", objective="min-isr")
    assert row["good_us"] == row["seen_us"] == 3600 * SECOND
    assert (row["bad_us"], row["bad_high_us"], row["before_us"]) == (0, 0, 0)
    assert every("sli_windows", "good_hour", objective="min-isr") == []
    coverage = one("sli", "good_hour", objective="coverage")
    assert (coverage["good_us"], coverage["seen_us"]) == (3600 * SECOND, None)


def test_an_hour_that_was_good_but_may_have_been_bad_keeps_its_windows(
    one: Reader, every: Everything
):
    row = one("sli", "good_hour", objective="lost-before-read")
    assert (row["good_us"], row["bad_high_us"]) == (3600 * SECOND, 300 * SECOND)
    windows = every("sli_windows", "good_hour", objective="lost-before-read")
    assert [one["bad_high_us"] for one in windows] == [300 * SECOND, *[0] * 11]


def test_without_topology_the_highest_partition_claimed_in_the_window_must_do(every: Everything):
    windows = every("sli_windows", "never_described", objective="min-isr")
    assert [row["good_us"] for row in windows] == [300 * SECOND] * 2


def test_an_attribute_has_the_instant_at_which_it_was_told_last(one: Reader):
    topic = one("subjects", "attributes_apart", topic="t")
    told, tiered = "kafka.topic.partitions", "kafka.topic.remote_storage_enabled"
    assert topic["attributes"] == {told: 3.0, tiered: 1.0}
    apart = topic["attribute_instants"][told] - topic["attribute_instants"][tiered]
    assert apart == 200 * SECOND
    assert topic["attributes_at"] == topic["attribute_instants"][told]


def test_over_a_threshold_it_is_an_edge(one: Reader):
    sli = one("sli_windows", "value_changes_while_bad", objective="copied-late")
    assert sli["bad_us"] == sli["bad_low_us"] == 100 * SECOND
    assert sli["bad_high_us"] == 110 * SECOND


def test_the_bad_value_wins_where_two_sources_contradict_one_another(one: Reader):
    row = one("topics_windows", "bad_wins", metric=stories.ISR)
    assert (row["series_seen_us"], row["affected_us"]) == (600 * SECOND, 100 * SECOND)
    sli = one("sli_windows", "bad_wins", objective="min-isr")
    assert (sli["good_us"], sli["bad_us"]) == (200 * SECOND, 100 * SECOND)


@pytest.mark.parametrize("cluster", ["two_brokers", "two_agents"])
def test_a_partition_that_two_report_is_observed_once(one: Reader, cluster: str):
    row = one("topics_windows", cluster, metric=stories.ISR)
    assert (row["series_seen_us"], row["series"]) == (900 * SECOND, 3)
    assert one("sli_windows", cluster, objective="min-isr")["good_us"] == 300 * SECOND


def test_a_partition_is_followed_from_leader_to_leader(one: Reader):
    row = one("partitions_windows", "leader_moves", metric=stories.ISR)
    assert row["series_seen_us"] == 300 * SECOND
    assert bounds(row) == (26, 30, 30), "the new leader's lead lies where it was bad already"
    sli = one("sli_windows", "leader_moves", objective="min-isr")
    assert (sli["good_us"], sli["bad_us"]) == (270 * SECOND, 30 * SECOND)


def test_folded_and_unfolded_series_add_up(one: Reader):
    row = one("topics_windows", "folded_and_not", metric=stories.ISR)
    assert (row["series_seen_us"], row["series"]) == (1200 * SECOND, 4)
    assert (row["series_affected_us"], row["max_concurrent"]) == (100 * SECOND, 1)


def test_a_partition_without_a_leader_is_as_unavailable_as_one_under_its_min_isr(one: Reader):
    row = one("topics_windows", "unavailable", metric="kafka.partition.unavailable")
    assert (row["affected_us"], row["max_concurrent"]) == (200 * SECOND, 1)
    assert one("sli_windows", "unavailable", objective="min-isr")["bad_us"] == 200 * SECOND
    assert one("sli_windows", "unavailable", objective="leaderless")["bad_us"] == 110 * SECOND


def test_time_not_wholly_seen_is_told_though_the_topic_was_bad_in_it(one: Reader):
    row = one("sli_windows", "bad_and_unseen", objective="min-isr")
    assert (row["good_us"], row["bad_us"]) == ((100 + 80) * SECOND, 100 * SECOND)
    assert row["seen_us"] == (150 + 80) * SECOND, "the other partition, half a minute while bad"


def test_a_partition_that_is_told_to_have_no_leader_is_seen(one: Reader):
    assert one("sli_windows", "unavailable", objective="min-isr")["seen_us"] == 300 * SECOND


@pytest.mark.parametrize("objective", ["copy-lag", "delete-lag"])
def test_a_lag_is_good_only_while_it_is_read_of_every_broker_that_leads_a_part(
    every: Everything, objective: str
):
    windows = every("sli_windows", "tier_not_read", objective=objective)
    assert [row["good_us"] for row in windows] == [(300 - 60) * SECOND], "no row for the second"
    assert windows[0]["seen_us"] == (300 - 60) * SECOND
    isr = every("sli_windows", "tier_not_read", objective="min-isr")
    assert [row["good_us"] for row in isr] == [300 * SECOND] * 2, "that was read all the while"


def test_what_a_fenced_broker_claims_to_lead_is_not_seen(one: Reader):
    row = one("sli_windows", "isolated_leader", objective="min-isr")
    assert (row["good_us"], row["seen_us"]) == (100 * SECOND, 100 * SECOND), "it may be so since"


def test_a_client_is_well_only_while_every_broker_is_read(every: Everything):
    windows = every("sli_windows", "broker_not_read", objective="produce-throttling")
    good = [250 * SECOND, 0, 0, 300 * SECOND, 290 * SECOND]
    assert [row["good_us"] for row in windows] == good, (
        "not in the next window, in which nobody read broker-2, nor in the next hour, in which "
        "nobody read broker-3, of which only the cluster knows; for what is fenced nobody waits, "
        "nor for what was down, though for its start"
    )


def test_an_increase_over_a_reset_is_not_known_and_not_zero(one: Reader):
    row = one("topics", "counter_reset", metric=stories.FETCHED)
    assert (row["increase"], row["series_seen_us"]) == (150.0, 600 * SECOND)


def test_a_counter_goes_on_over_an_agents_restart(one: Reader):
    row = one("topics_windows", "agent_restart", metric=stories.FETCHED)
    assert (row["increase"], row["series_seen_us"]) == (42.0, 300 * SECOND)


def test_a_client_is_throttled_while_any_broker_throttles_it(one: Reader):
    row = one("clients", "clients_come_and_go")
    assert (row["client_id"], row["series_affected_us"]) == ("comes", 200 * SECOND)
    assert bounds(row, "affected") == (140, 150, 150), "the other broker covers half of the tail"


def test_the_hours_beside_a_new_year_are_two(every: Everything):
    hours = every("partitions", "new_year", metric=stories.ISR)
    assert [hour["series_affected_us"] for hour in hours] == [10 * SECOND, 10 * SECOND]


def test_a_single_run_is_enough(one: Reader):
    row = one("partitions", "one_row", metric=stories.ISR)
    assert (row["series_seen_us"], row["series_affected_us"]) == (10 * SECOND, 10 * SECOND)


def test_offsets_lost_have_bounds_and_an_unknown_part(one: Reader):
    row = one("lost_offsets", "offsets_lost")
    assert (row["offsets_low"], row["offsets_high"]) == (5.0, 19.0)
    assert (row["series_seen_us"], row["series_unknown_us"]) == (600 * SECOND, 300 * SECOND)


def test_what_an_agents_cap_folds_is_counted_without_a_partition(one: Reader):
    row = one("lost_offsets_windows", "beyond_the_cap")
    assert (row["partition_id"], row["offsets_low"]) == (None, 7.0)


def test_a_metric_of_no_shipped_catalogue_rolls_up(one: Reader):
    row = one("sources", "users_own_bean", metric="acme.cache.misses")
    assert (row["value_max"], row["series_seen_us"]) == (12.0, 600 * SECOND)
    assert one("sources", "users_own_bean", metric="acme.cache.hits")["value_max"] == 18.0
    labelled = one("labelled", "users_own_bean", metric="acme.cache.misses", labels="cache=b")
    assert (labelled["value_max"], labelled["series_seen_us"]) == (12.0, 300 * SECOND)
    odd = one("labelled", "users_own_bean", metric="acme.cache.loads")
    assert (odd["labels"], odd["increase"]) == (r"a=,b=x\,y\=\\z", 5.0)
    group = one("groups", "users_own_bean")
    assert (group["topic"], group["value_mean"]) == (None, 3.0)


@pytest.mark.parametrize(
    ("defined", "good"), [([Definition("my.own.bean", "mine", "idle")], 100), ([], 300)]
)
def test_a_users_own_bean_is_unknown_while_its_family_is_not_read(
    defined: list[Definition], good: int
):
    """The lake says which family it is read with: another broker's part of it may be above."""
    it = stories.Story("own_family")
    it.topology(0, 300, 2)
    it.run("my.own.bean", 0, 300, 1.0, topic="t")
    it.zeros(0, 300, 0)
    it.zeros(0, 300, 1, source="broker-2")
    for source, until in (("broker-1", 300), ("broker-2", 100)):
        it.scrape(0, 300, source=source)
        it.scrape(0, until, family="mine", source=source)
    own = build_program(
        tables.DEFAULT_WINDOW_SECONDS,
        COMMITTED,
        OBJECTIVES,
        meanings_of([*shipped(), *defined], shipped_traits()),
    )
    rows = rolled_up(own, it.batch)["sli_windows"]
    found = [row["good_us"] for key, row in rows.items() if "own-bean" in key]
    assert found == [good * SECOND]


def of_limits(row: dict[str, Any]) -> tuple[int, ...]:
    """Good time, and the bounds of bad time with the time itself between, in whole seconds."""
    return row["good_us"] // SECOND, *bounds(row, "bad")


def test_a_broker_is_bad_while_a_gauge_of_it_is_below_the_threshold(one: Reader):
    row = one("sli_windows", "handlers_busy", objective="idle", source="broker-1")
    # Each start may be 10 s earlier, the first end 10 s and the second 5 s.
    assert of_limits(row) == (60, 45, 60, 80)


def test_what_brokers_report_of_a_groups_topic_is_added_up(one: Reader):
    row = one("sli_windows", "lag_of_two_brokers", objective="lag", consumer_group="g")
    assert of_limits(row) == (250, 40, 50, 60)


def test_of_a_whole_cluster_it_is_unknown_while_its_agent_could_not_read(one: Reader):
    row = one("sli_windows", "lag_of_a_whole_cluster", objective="lag", consumer_group="g")
    assert of_limits(row) == (220, 40, 50, 60)
    seen = one("consumer_lag_windows", "lag_of_a_whole_cluster", consumer_group="g", topic="t")
    assert (seen["seen_us"], seen["behind_us"]) == (270 * SECOND, 50 * SECOND)


def test_what_is_known_by_bounds_is_surely_bad_by_the_better_one(one: Reader):
    row = one("sli_windows", "behind_by_bounds", objective="behind", consumer_group="g")
    assert of_limits(row) == (120, 60, 60, 120)
    least = one("sli_windows", "behind_by_bounds", objective="ahead", consumer_group="g")
    assert of_limits(least) == (120, 60, 60, 120)


@pytest.mark.edge(8)
@pytest.mark.parametrize("read", [0, 120, 300])
def test_group_is_good_only_while_every_broker_is_read(program: run_in_duckdb.Program, read: int):
    """A broker that no agent reads may lead the partition in which the group lost records."""
    batch = Batch()
    batch.scrape("offsets", 0, 300)
    batch.run("kafka.cluster.node.fenced", 0, 300, 0.0, labels=[("node", "broker-2")])
    if read:
        batch.scrape("offsets", 0, read, source="broker-2")
    for bound in ("low", "high"):
        batch.counter(
            f"kafka.group.non_consumed.{bound}", 0, 300, 0.0, group="g", topic="t", partition=0
        )
    found = rolled_up(program, batch)["sli_windows"]
    good = {row["good_us"] for key, row in found.items() if "lost" in key[2] or "g" in key}
    assert good == ({read * SECOND} if read else set())
