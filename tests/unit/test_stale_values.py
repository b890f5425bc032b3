"""A copy lag is stale while a copy is under way."""

from __future__ import annotations

import pytest

from collector import catalogue
from collector.agent.removed_values import StaleValues
from collector.model import Answer, Reading, Series

TIERED = catalogue.load().family("tiered")
LAG = "kafka.topic.remote_copy_lag.bytes"
BEGUN, BYTES, ERRORS = TIERED.metric(LAG).written_after


def scrape(begun: float, done: float = 0, failed: float = 0, lag: float = 0) -> Answer:
    """Return the response of a broker with two topics. A meter exists from its first event."""
    counts = {BEGUN: begun, BYTES: done, ERRORS: failed}
    meters = [
        Reading(name, "counter", values={Series(name, "t"): count})
        for name, count in counts.items()
        if count
    ]
    zeros = {Series(LAG, "other")} | ({Series(LAG, "t")} if not lag else set())
    values = {Series(LAG, "t"): lag} if lag else {}
    return Answer((Reading(LAG, "gauge", frozenset(zeros), values), *meters), 5)


def known(answers: list[Answer]) -> list[float | None]:
    """The lag of t at each scrape; None: it is unknown."""
    stale, found = StaleValues(), list[float | None]()
    for answer in answers:
        reading = stale.removed_from(answer, TIERED).readings[0]
        assert Series(LAG, "other") in reading.zeros
        lag = Series(LAG, "t")
        found.append(0.0 if lag in reading.zeros else reading.values.get(lag))
    return found


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([scrape(0), scrape(1), scrape(1), scrape(1, 900)], [0, None, None, 0]),
        ([scrape(3, 900), scrape(3, 900), scrape(4, 1200)], [0, 0, 0]),
        ([scrape(3, 900), scrape(4, 900), scrape(4, 900, 1, lag=300)], [0, None, 300]),
        ([scrape(3, 900, lag=5), scrape(4, 900, lag=5), scrape(5, 900, lag=5)], [5, None, None]),
        ([scrape(3, 900), scrape(4, 900), scrape(0), scrape(1, 5)], [0, None, 0, 0]),
    ],
    ids=["first copy", "ended in time", "failed", "several", "restarted"],
)
def test_lag_is_unknown_while_copy_is_running(
    answers: list[Answer], expected: list[float | None]
) -> None:
    assert known(answers) == expected


def test_response_of_other_family_is_unchanged() -> None:
    answer = Answer((Reading("kafka.partition.under_min_isr", "gauge"),), 0)
    assert StaleValues().removed_from(answer, catalogue.load().family("min_isr")) is answer
