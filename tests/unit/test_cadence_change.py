"""A changed interval or catalogue of a running agent: no time is lost or recorded twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collector.encoding.encoder import Encoder
from collector.model import Answer, Identity, Reading, Scrape, Series
from lakehouse.tables import FLAG_INCREASE

S = 1_000_000
WINDOW = 300 * S
IDENTITY = Identity("c", "1", "4.3.1", 1)


def scrape(at_seconds: float, interval_seconds: int) -> Scrape:
    reading = Reading("m", "gauge", values={Series("m"): 5.0})
    at_us = round(at_seconds * S)
    return Scrape(
        "f", at_us, at_us, at_us + 1000, interval_seconds * S, "ok", IDENTITY, Answer((reading,), 1)
    )


@pytest.mark.parametrize(("before", "after"), [(10, 1), (1, 10), (60, 1)])
def test_previous_scrape_covers_by_its_own_interval(before: int, after: int) -> None:
    encoder = Encoder(WINDOW)
    start = 3000.0
    changed = start + 3 * before - 0.001  # just before the next tick of the old cadence
    for number in range(3):
        encoder.record(scrape(start + number * before, before))
    for number in range(5):
        encoder.record(scrape(changed + number * after, after))
    end = changed + 4 * after
    sealed = encoder.flush(round(end * S) + 1000)
    assert sum(run.end - run.start for run in sealed.runs) == round((end - start) * S)
    accounts = sorted(sealed.accounts, key=lambda account: account.start)
    assert [account.interval_us for account in accounts] == [before * S, after * S]
    assert accounts[0].end == accounts[1].start
    assert sum(account.scrapes for account in accounts) == 8


def test_metric_changed_to_counter_is_not_gauge() -> None:
    encoder = Encoder(WINDOW)
    for number in range(6):
        gauge = scrape(3000 + number * 10, 10)
        counter = Answer((Reading("m", "counter", values={Series("m"): 7.0}),), 1)
        encoder.record(gauge if number < 3 else replace(gauge, answer=counter))
    runs = encoder.flush(3060 * S).runs
    gauges = [run for run in runs if FLAG_INCREASE not in run.flags]
    assert [(run.value, run.end) for run in gauges] == [(5.0, 3030 * S + 1000)]
