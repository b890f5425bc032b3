"""What a command takes for the present: a history that ended long ago is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.agent.plan import Task
from collector.agent.scrape_attempt import Scraper
from collector.catalogue import load
from collector.cli.command import Step
from collector.cli.scrape import _read_place, attempt
from collector.errors import SourceError, SourceTimeoutError
from collector.model import Answer, Identity, Moment

if TYPE_CHECKING:
    from collector.catalogue import Family

NOW_US = 1_800_000_000_000_000
S = 1_000_000


class FakeClock:
    def wall_us(self) -> int:
        return NOW_US

    def steady_us(self) -> int:
        return NOW_US


class FakeLog:
    """Answers one after the other, each but the last with more to come."""

    def __init__(self, *ages_s: int) -> None:
        self._ages = list(ages_s)

    def identify(self) -> Identity:
        return Identity("c", "1", None, 0)

    def read(self, family: Family) -> Answer:
        del family
        if not self._ages:
            return Answer((), 0)
        at_us = NOW_US - self._ages.pop(0) * S
        return Answer((), 0, moments=(Moment(at_us, ()),), more=bool(self._ages))

    def close(self) -> None:
        """Nothing is open."""


def task(*ages_s: int) -> Task:
    scraper = Scraper(FakeLog(*ages_s), FakeClock())
    return Task(load().family("metadata_log"), 10 * S, scraper, "metadata_log")


class FakeDeaf(FakeLog):
    asked = 0

    def identify(self) -> Identity:
        self.asked += 1
        raise SourceError("nothing listens there")


def deaf(family: str, source: FakeDeaf) -> Task:
    return Task(load().family(family), 10 * S, Scraper(source, FakeClock()), "jmx")


def test_a_log_that_ended_long_ago_is_unknown_with_its_age() -> None:
    scrape = attempt(task(31 * 60))
    assert (scrape.outcome, scrape.answer) == ("timeout", None)
    assert scrape.error is not None
    assert scrape.error.startswith("the newest record is of 2027-01-15 07:29:00 UTC, 31m 00s ago. ")


def test_a_log_of_now_is_known_and_read_to_its_end() -> None:
    assert attempt(task(29)).outcome == "ok"
    assert attempt(task(7200, 3600, 1)).outcome == "ok"
    assert attempt(task(1, 3600)).outcome == "timeout"


def test_a_log_that_holds_nothing_final_is_unknown() -> None:
    assert attempt(task()).answer is None


def test_a_place_that_does_not_answer_is_tried_and_told_once() -> None:
    source, said = FakeDeaf(), list[Step]()
    tasks = [deaf(family, source) for family in ("log", "log_offsets", "replication")]
    told = list(_read_place("jmx", tasks, None, said.append))
    assert source.asked == 1
    assert said == [Step("jmx", "nothing listens there", ok=False)]
    assert [one.unknown for one in told] == ["jmx did not respond"] * 3
    assert [one.scrape.family for one in told] == ["log", "log_offsets", "replication"]
    assert {one.scrape.error for one in told} == {"nothing listens there"}


class FakeSlowAtFirst(FakeDeaf):
    """Does not answer the first requests in time."""

    def __init__(self, late: int) -> None:
        super().__init__(1)
        self._late = late

    def identify(self) -> Identity:
        self.asked += 1
        if self.asked > self._late:
            return Identity("c", "1", None, 0)
        raise SourceTimeoutError("no answer in time")


@pytest.mark.parametrize("late", [1, 2])
def test_first_request_of_a_command_is_repeated_once_after_a_timeout(late: int) -> None:
    source, steps = FakeSlowAtFirst(late), list[Step]()
    list(_read_place("jmx", [deaf("metadata_log", source)], None, steps.append))
    assert [step.ok for step in steps] == [late == 1]
    assert source.asked == 2


def test_what_a_place_does_not_tell_is_said_once_a_cause() -> None:
    said: list[Step] = []
    told = list(_read_place("metadata_log", [task(3600), task(3600), task(1)], None, said.append))
    assert [(step.name, step.ok) for step in said] == [
        ("metadata_log", True),
        ("family metadata_log", False),
    ]
    assert [one.unknown is None for one in told] == [False, False, True]
