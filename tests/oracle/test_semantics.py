"""What gold means, each test a sentence about one of the stories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.oracle import gold, stories

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Reader = Callable[..., dict[str, Any]]
    Everything = Callable[..., list[dict[str, Any]]]

pytestmark = pytest.mark.spark

SECOND = 1_000_000
GRAINS = ("5m", "1h", "1d", "1w")


@pytest.fixture(scope="module")
def every(rolled: Path) -> Everything:
    """Reads rows of gold by time: of a table and cluster, with these key columns."""
    tables = {name: gold.told(rolled, name) for name in gold.KEYS}

    def read(name: str, cluster: str, **key: Any) -> list[dict[str, Any]]:
        key = {"cluster": cluster, **key}
        names = gold.KEYS[name]
        found = [
            {**dict(zip(names, own, strict=True)), **figures}
            for own, figures in tables[name].items()
            if all(own[names.index(column)] == value for column, value in key.items())
        ]
        return sorted(found, key=lambda row: row.get("window", 0))

    return read


@pytest.fixture(scope="module")
def one(every: Everything) -> Reader:
    """Reads one row."""

    def read(name: str, cluster: str, **key: Any) -> dict[str, Any]:
        found = every(name, cluster, **key)
        assert len(found) == 1, f"{len(found)} rows of {name} with {key}"
        return found[0]

    return read


def bounds(row: dict[str, Any], name: str = "positive") -> tuple[int, ...]:
    """Low bound, figure and high bound in whole seconds."""
    columns = (f"{name}_low_us", f"{name}_us", f"{name}_high_us")
    assert all(row[column] % SECOND == 0 for column in columns)
    return tuple(row[column] // SECOND for column in columns)


def test_time_that_no_scrape_vouches_for_is_neither_good_nor_bad(one: Reader):
    row = one("sli", "unknown_time", objective="min-isr")
    assert (row["good_us"], row["bad_us"], row["bad_high_us"]) == (240 * SECOND, 0, 0)
    topic = one("topics", "unknown_time", grain="5m", metric=stories.ISR)
    assert topic["observed_us"] == 240 * SECOND


def test_a_failed_attempt_is_time_that_an_agent_accounts_for(one: Reader):
    refused = one("coverage", "unknown_time", grain="1h", outcome="refused")
    assert refused["duration_us"] == 60 * SECOND
    row = one("sli", "unknown_time", objective="coverage", source="broker-1")
    assert (row["good_us"], row["bad_us"]) == (240 * SECOND, 60 * SECOND)


@pytest.mark.parametrize("grain", GRAINS)
def test_every_grain_bears_the_bounds_of_an_incident(one: Reader, grain: str):
    row = one("partitions", "edges", metric=stories.ISR, grain=grain)
    assert bounds(row) == (45, 60, 70)
    topic = one("topics", "edges", metric=stories.ISR, grain=grain)
    assert bounds(topic) == bounds(topic, "any") == (45, 60, 70)
    assert topic["max_concurrent"] == 1


@pytest.mark.parametrize("grain", GRAINS[1:])
def test_a_lead_that_reaches_over_a_cut_counts_once(one: Reader, grain: str):
    row = one("partitions", "edges_over_a_cut", metric=stories.ISR, grain=grain)
    assert bounds(row) == (10 + 20 + 10, 10 + 40 + 10, 15 + 40 + 20)


def test_what_of_a_bound_lies_before_its_window_is_told(every: Everything):
    rows = every("sli", "edges_over_a_cut", objective="min-isr")
    assert [row["spill_us"] for row in rows] == [0, 0, 7 * SECOND]
    assert [row["bad_high_us"] for row in rows] == [15 * SECOND, 40 * SECOND, 20 * SECOND]


def test_a_change_between_two_values_above_zero_is_no_edge(one: Reader):
    row = one("topics", "value_changes_while_bad", grain="5m")
    assert bounds(row) == bounds(row, "any") == (200, 200, 200)
    assert (row["min"], row["max"], row["value_seconds"]) == (5.0, 7.0, 1200.0)


def test_over_a_threshold_it_is_an_edge(one: Reader):
    sli = one("sli", "value_changes_while_bad", objective="copied-late")
    assert sli["bad_us"] == sli["bad_low_us"] == 100 * SECOND
    assert sli["bad_high_us"] == 110 * SECOND


def test_the_bad_value_wins_where_two_sources_contradict_one_another(one: Reader):
    row = one("topics", "bad_wins", metric=stories.ISR, grain="5m")
    assert (row["observed_us"], row["any_us"]) == (600 * SECOND, 100 * SECOND)
    sli = one("sli", "bad_wins", objective="min-isr")
    assert (sli["good_us"], sli["bad_us"]) == (200 * SECOND, 100 * SECOND)


@pytest.mark.parametrize("cluster", ["two_brokers", "two_agents"])
def test_a_partition_that_two_report_is_observed_once(one: Reader, cluster: str):
    row = one("topics", cluster, metric=stories.ISR, grain="5m")
    assert (row["observed_us"], row["series"]) == (900 * SECOND, 3)
    assert one("sli", cluster, objective="min-isr")["good_us"] == 300 * SECOND


def test_a_partition_is_followed_from_leader_to_leader(one: Reader):
    row = one("partitions", "leader_moves", metric=stories.ISR, grain="5m")
    assert row["observed_us"] == 300 * SECOND
    assert bounds(row) == (26, 30, 30), "the new leader's lead lies where it was bad already"
    sli = one("sli", "leader_moves", objective="min-isr")
    assert (sli["good_us"], sli["bad_us"]) == (270 * SECOND, 30 * SECOND)


def test_folded_and_unfolded_series_add_up(one: Reader):
    row = one("topics", "folded_and_not", metric=stories.ISR, grain="5m")
    assert (row["observed_us"], row["series"]) == (1200 * SECOND, 4)
    assert (row["positive_us"], row["max_concurrent"]) == (100 * SECOND, 1)


def test_a_partition_without_a_leader_is_as_unavailable_as_one_under_its_min_isr(one: Reader):
    row = one("topics", "unavailable", metric="kafka.partition.unavailable", grain="5m")
    assert (row["any_us"], row["max_concurrent"]) == (200 * SECOND, 1)
    assert one("sli", "unavailable", objective="min-isr")["bad_us"] == 200 * SECOND
    assert one("sli", "unavailable", objective="leaderless")["bad_us"] == 110 * SECOND


def test_time_not_wholly_seen_is_told_though_the_topic_was_bad_in_it(one: Reader):
    row = one("sli", "bad_and_unseen", objective="min-isr")
    assert (row["good_us"], row["bad_us"]) == ((100 + 80) * SECOND, 100 * SECOND)
    assert row["seen_us"] == (150 + 80) * SECOND, "the other partition, half a minute while bad"


def test_a_partition_that_is_told_to_have_no_leader_is_seen(one: Reader):
    assert one("sli", "unavailable", objective="min-isr")["seen_us"] == 300 * SECOND


@pytest.mark.parametrize("objective", ["copy-lag", "delete-lag"])
def test_a_lag_is_good_only_while_it_is_read_of_every_broker_that_leads_a_part(
    every: Everything, objective: str
):
    windows = every("sli", "tier_not_read", objective=objective)
    assert [row["good_us"] for row in windows] == [(300 - 60) * SECOND], "no row for the second"
    assert windows[0]["seen_us"] == (300 - 60) * SECOND
    isr = every("sli", "tier_not_read", objective="min-isr")
    assert [row["good_us"] for row in isr] == [300 * SECOND] * 2, "that was read all the while"


def test_a_client_is_well_only_while_every_broker_is_read(every: Everything):
    windows = every("sli", "broker_not_read", objective="produce-throttling")
    assert [row["good_us"] for row in windows] == [250 * SECOND, 0, 0, 300 * SECOND], (
        "not in the next window, in which nobody read broker-2, nor in the next hour, in which "
        "nobody read broker-3, of which only the cluster knows; for what is fenced nobody waits"
    )


def test_an_increase_over_a_reset_is_not_known_and_not_zero(one: Reader):
    row = one("topics", "counter_reset", metric=stories.FETCHED, grain="1h")
    assert (row["increase"], row["observed_us"]) == (150.0, 600 * SECOND)


def test_a_counter_goes_on_over_an_agents_restart(one: Reader):
    row = one("topics", "agent_restart", metric=stories.FETCHED, grain="5m")
    assert (row["increase"], row["observed_us"]) == (42.0, 300 * SECOND)


def test_a_client_is_throttled_while_any_broker_throttles_it(one: Reader):
    row = one("clients", "clients_come_and_go", grain="1w")
    assert (row["client_id"], row["positive_us"]) == ("comes", 200 * SECOND)
    assert bounds(row, "any") == (140, 150, 150), "the other broker covers half of the tail"


def test_a_week_over_the_new_year_is_one_week(one: Reader):
    isr = {"metric": stories.ISR}
    week = one("partitions", "new_year", grain="1w", **isr)
    assert (week["period"], week["positive_us"]) == ("2020", 20 * SECOND)
    months = ("2020-12", "2021-01")
    days = [one("partitions", "new_year", grain="1d", period=month, **isr) for month in months]
    assert [day["positive_us"] for day in days] == [10 * SECOND, 10 * SECOND]


def test_a_single_run_is_enough(one: Reader):
    row = one("partitions", "one_row", metric=stories.ISR, grain="1w")
    assert (row["observed_us"], row["positive_us"]) == (10 * SECOND, 10 * SECOND)


@pytest.mark.parametrize("grain", GRAINS[1:])
def test_offsets_lost_have_bounds_and_an_unknown_part(one: Reader, grain: str):
    row = one("non_consumed", "offsets_lost", grain=grain)
    assert (row["offsets_low"], row["offsets_high"]) == (5.0, 19.0)
    assert (row["observed_us"], row["unknown_us"]) == (600 * SECOND, 300 * SECOND)


def test_what_an_agents_cap_folds_is_counted_without_a_partition(one: Reader):
    row = one("non_consumed", "beyond_the_cap", grain="5m")
    assert (row["partition"], row["offsets_low"]) == (None, 7.0)


def test_a_metric_of_no_shipped_catalogue_rolls_up(one: Reader):
    row = one("brokers", "users_own_bean", grain="1d", metric="acme.cache.misses")
    assert (row["max"], row["observed_us"]) == (12.0, 600 * SECOND)
    assert one("brokers", "users_own_bean", grain="1d", metric="acme.cache.hits")["max"] == 18.0
    group = one("groups", "users_own_bean", grain="1d")
    assert (group["topic"], group["mean"]) == (None, 3.0)
