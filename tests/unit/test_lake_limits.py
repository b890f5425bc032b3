"""The cap on series: the excess is one series, and what has a value is kept first."""

from __future__ import annotations

from collector.model import Reading, Series
from collector.sources.base.lake_limits import capped
from lakehouse.tables import OTHER


def test_below_the_cap_nothing_changes() -> None:
    readings = (Reading("m", "gauge", frozenset({Series("m", "t", 0)})),)
    assert capped(readings, 1) == (readings, 0)
    assert capped(readings, 1)[0][0].zeros is readings[0].zeros


def test_the_excess_is_folded_and_counted() -> None:
    zeros = frozenset(Series("m", "t", number) for number in range(10))
    values = {Series("m", "u", number): 2.0 for number in range(3)}
    (reading,), dropped = capped((Reading("m", "gauge", zeros, values),), 5)
    assert dropped == 8
    assert reading.values == values
    assert len(reading.zeros) == 3
    assert Series("m", OTHER) in reading.zeros


def test_folded_values_are_added_up() -> None:
    values: dict[Series, float | None] = {
        Series("m", client_id=f"c{number}"): float(number) for number in range(4)
    }
    values[Series("m", client_id="c4")] = None
    (reading,), dropped = capped((Reading("m", "gauge", frozenset(), values),), 2)
    assert dropped == 3
    assert reading.values == {
        Series("m", client_id="c0"): 0.0,
        Series("m", client_id="c1"): 1.0,
        Series("m", client_id=OTHER): 5.0,
    }


def test_the_same_series_are_kept_from_scrape_to_scrape() -> None:
    def scrape(order: range) -> tuple[Reading, ...]:
        values = {Series("m", "t", number): 1.0 for number in order}
        return capped((Reading("m", "gauge", frozenset(), values),), 4)[0]

    assert scrape(range(9)) == scrape(range(8, -1, -1))


def test_counters_beyond_the_cap_are_left_out_by_name_and_counted() -> None:
    def scrape(counts: dict[str, float]) -> tuple[Reading, int]:
        zeros = frozenset(Series("m", name) for name, count in counts.items() if not count)
        values = {Series("m", name): count for name, count in counts.items() if count}
        (reading,), dropped = capped((Reading("m", "counter", zeros, values),), 2)
        return reading, dropped

    before, dropped = scrape({"a": 0, "b": 1000, "c": 7, "d": 0})
    after, _ = scrape({"a": 1, "b": 1000, "c": 7, "d": 9})
    assert dropped == 2
    for reading in (before, after):
        assert {one.topic for one in reading.zeros | reading.values.keys()} == {"a", "b"}
