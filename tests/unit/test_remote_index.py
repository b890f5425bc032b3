"""KIP-1002: what index fetches cost, as the plugin counts them or as remote reads let us think."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from lakehouse.report.facts.fields import Bounds, to_json
from lakehouse.report.facts.gold_figures import Unread
from lakehouse.report.facts.sections.remote_storage import (
    INDEXES,
    Cost,
    RemoteReadCounts,
    cost,
    costs,
)

FIELDS = RemoteReadCounts._fields
FIGURES = (
    "fetches", "round_trips", "seconds", "at_once", "saved", "saved_seconds", "requests",
    "requests_saved",
)  # fmt: skip
AMOUNTS = st.integers(0, 10**9).map(float)


def counts(*reported: Any, **named: float) -> RemoteReadCounts:
    """What a broker reported; all else it did not."""
    known = dict(zip(FIELDS, reported, strict=False))
    return RemoteReadCounts(**dict.fromkeys(FIELDS) | known | named)


def told(one: RemoteReadCounts) -> Cost:
    found = cost(one)
    assert found is not None
    return found


def test_a_plugin_s_misses_are_the_round_trips_and_its_look_ups_the_fetches():
    found = told(counts("broker-1", reads=100.0, hits=7.0, misses=12.0, load_ns=6e9))
    assert found.basis == "measured"
    assert found.fetches == Bounds(19.0, 19.0, 19.0)
    assert found.round_trips == Bounds(12.0, 12.0, 12.0)
    assert found.seconds == Bounds(6.0, 6.0, 6.0)


def test_what_one_fetch_saves_lies_between_two_and_three_indexes_a_segment():
    found = told(counts("broker-1", hits=0.0, misses=12.0, load_ns=6e9))
    assert found.at_once == Bounds(None, 4, 6)
    assert found.saved == Bounds(None, 6.0, 8.0)
    assert found.saved_seconds == Bounds(None, 3.0, 4.0)
    assert found.segment_seconds == Bounds(None, 1.0, 1.5)


def test_a_plugin_that_never_fetched_costs_nothing_and_that_is_known():
    found = told(counts("broker-1", hits=0.0, misses=0.0, load_ns=0.0))
    assert found.round_trips == Bounds(0.0, 0.0, 0.0)
    assert found.saved_seconds == Bounds(None, 0.0, 0.0)


def test_one_by_one_what_our_plugin_counts_is_measured_and_a_saving_modelled():
    one = counts(
        "b", reads=9.0, fetches=12.0, sets=4.0, round_trips=12.0, wait_ns=6e9, request_ns=6e9
    )
    found = told(one)
    assert (found.basis, found.way) == ("measured", "one by one")
    assert (found.fetches, found.round_trips) == (Bounds(12, 12, 12), Bounds(12, 12, 12))
    assert (found.seconds, found.segment_seconds) == (Bounds(6, 6, 6), Bounds(1.5, 1.5, 1.5))
    assert (found.at_once, found.saved) == (Bounds(4, 4, 4), Bounds(8, 8, 8))
    assert found.saved_seconds == Bounds(4.0, 0.0, 4.0)


def test_at_once_what_was_saved_is_measured():
    one = counts("b", fetches=12.0, sets=4.0, round_trips=5.0, wait_ns=2.4e9, request_ns=6e9)
    found = told(one)
    assert (found.basis, found.way) == ("measured", "at once")
    # One segment's indexes had left the memory before the broker asked for them.
    assert (found.at_once, found.saved) == (Bounds(5, 5, 5), Bounds(7, 7, 7))
    assert (found.segment_seconds.value, found.saved_seconds.value) == (0.6, 3.6)


def test_concurrent_requests_save_time_and_no_requests():
    one = counts("b", fetches=12.0, sets=4.0, round_trips=4.0, wait_ns=2e9, request_ns=6e9,
                 index_requests=12.0)  # fmt: skip
    found = told(one)
    assert (found.requests, found.requests_saved) == (Bounds(12, 12, 12), Bounds(0, 0, 0))
    assert (found.saved.value, found.saved_seconds.value) == (8.0, 4.0)


def test_requests_for_several_indexes_save_requests():
    # Four segments, five indexes each: one request of half a second for all.
    one = counts("b", fetches=20.0, sets=8.0, round_trips=4.0, wait_ns=2e9, request_ns=2e9,
                 index_requests=4.0)  # fmt: skip
    found = told(one)
    assert (found.way, found.round_trips.value, found.saved.value) == ("at once", 4.0, 16.0)
    assert (found.requests, found.requests_saved) == (Bounds(4, 4, 4), Bounds(16, 16, 16))
    assert found.saved_seconds == Bounds(8.0, 0.0, 8.0)


def test_one_by_one_requests_are_counted_and_a_saving_modelled():
    found = told(counts("b", fetches=12.0, sets=4.0, round_trips=12.0, index_requests=12.0))
    assert (found.requests, found.requests_saved) == (Bounds(12, 12, 12), Bounds(8, 8, 8))


def test_a_storage_backend_s_requests_replace_the_plugin_s_misses():
    one = counts("b", hits=3.0, misses=20.0, load_ns=2e9, object_fetches=20.0, object_requests=4.0)
    found = told(one)
    assert (found.basis, found.way) == ("measured", "at once")
    assert (found.fetches, found.round_trips) == (Bounds(23, 23, 23), Bounds(4, 4, 4))
    assert (found.requests, found.requests_saved) == (Bounds(4, 4, 4), Bounds(16, 16, 16))
    assert (found.seconds.value, found.segment_seconds.value) == (2.0, 0.5)
    assert found.saved_seconds == Bounds(8.0, 0.0, 8.0)


def test_a_storage_backend_without_requests_cost_nothing():
    found = told(counts("b", hits=0.0, misses=0.0, load_ns=0.0, object_fetches=0.0,
                        object_requests=0.0))  # fmt: skip
    assert (found.requests, found.saved_seconds) == (Bounds(0, 0, 0), Bounds(0, 0, 0))
    assert found.segment_seconds == Bounds(None, None, None)


def test_a_storage_backend_whose_memory_is_too_small_saves_less_than_nothing():
    found = told(counts("b", load_ns=6e9, object_fetches=5.0, object_requests=6.0))
    assert (found.requests_saved, found.saved_seconds) == (Bounds(-1, -1, -1), Bounds(0, 0, 0))


def test_our_plugin_before_its_first_fetch_cost_nothing_and_that_is_known():
    found = told(counts("b", fetches=0.0, sets=0.0, round_trips=0.0, wait_ns=0.0))
    assert (found.seconds, found.saved) == (Bounds(0, 0, 0), Bounds(0, 0, 0))
    assert found.segment_seconds == Bounds(None, None, None)


def test_without_a_plugin_each_segment_that_was_read_fetches_three_indexes():
    # 2,000 bytes of segments of 500: four segments, three indexes each, in 40 reads of 10 ms.
    one = counts(
        "broker-1", reads=40.0, read_bytes=2000.0, stored_byte_seconds=50_000.0,
        stored_segment_seconds=100.0, read_ms=10.0,
    )  # fmt: skip
    found = told(one)
    assert found.basis == "modelled"
    assert found.fetches == Bounds(12.0, 0.0, 120.0)
    assert found.at_once == Bounds(4.0, 0.0, 40.0)
    assert found.saved == Bounds(8.0, 0.0, 80.0)
    # 52 round trips took 0.4 s, 12 of them for indexes; at most 120 of 160.
    assert found.seconds.value == pytest.approx(0.4 * 12 / 52)
    assert found.seconds.high == pytest.approx(0.3)
    assert found.saved_seconds.value == pytest.approx(0.4 * 8 / 52)


def test_fewer_reads_than_segments_fetch_no_more_than_they_are():
    one = counts("b", reads=2.0, read_bytes=1e9, stored_byte_seconds=1e3,
                  stored_segment_seconds=1.0)  # fmt: skip
    assert told(one).at_once == Bounds(2.0, 0.0, 2.0)


def test_a_segment_s_size_that_is_not_known_leaves_the_bounds():
    found = told(counts("b", reads=5.0, read_bytes=100.0))
    assert found.round_trips == Bounds(None, 0.0, 15.0)
    assert found.saved == Bounds(None, 0.0, 10.0)
    assert found.seconds == Bounds(None, 0.0, None)


def test_brokers_before_the_timer_are_modelled_from_the_topics_requests():
    assert told(counts("b", requests=4.0)).at_once.high == 4.0


def test_a_broker_that_tells_nothing_is_not_told_as_zero():
    assert cost(counts("b", read_bytes=100.0, hits=3.0)) is None
    assert costs({"b": {}}) == []


@pytest.mark.edge(6)
def test_costs_broker_never_read_has_no_figures():
    brokers = {
        "a": {"kafka.broker.remote_log_reader.fetches": {"increase": 0.0, "increase_high": 0.0}},
        "c": {},
    }
    unread = {
        name: Unread(us, is_whole=name == "b") for name, us in {"a": 0, "b": 300, "c": 7}.items()
    }
    first, second = costs(brokers, unread)
    assert (first.source, first.round_trips.value, first.unknown_us) == ("a", 0.0, 0)
    assert second == Cost("b", unknown_us=300), "not 0 round trips"
    assert costs({}, unread) == [], "of no broker anything is known"


def test_json_has_every_figure_with_its_bounds():
    row = to_json(told(counts("b", reads=0.0)))
    assert (row["source"], row["basis"]) == ("b", "modelled")
    assert row["way"] == "one by one"
    for name in FIGURES:
        assert [row[f"{name}{end}"] for end in ("", "_low", "_high")] == [0.0, 0.0, 0.0]


@given(AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS)
def test_bounds_hold_the_figure_and_nothing_saves_more_than_there_is(
    reads: float, read: float, stored: float, segments: float, ms: float
) -> None:
    found = told(counts("b", reads, None, read, stored, segments, ms))
    for name in FIGURES:
        value, low, high = getattr(found, name)
        if value is not None:
            assert low <= value <= high * (1 + 1e-9)
    assert found.saved.high <= found.round_trips.high
    assert found.seconds.high is None or found.seconds.high <= reads * ms / 1e3 + 1e-6


@given(AMOUNTS, AMOUNTS)
def test_measured_savings_and_what_is_left_are_what_there_is(misses: float, hits: float) -> None:
    found = told(counts("b", hits=hits, misses=misses))
    assert found.saved.low + found.at_once.high == misses
    assert found.saved.high + found.at_once.low == misses
    assert found.at_once.low * INDEXES >= misses or misses == 0
