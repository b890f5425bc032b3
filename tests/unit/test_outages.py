"""One log line when a source stops responding, one when it responds again."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from collector.catalogue import load
from collector.model import Answer, Identity, Scrape
from collector.telemetry.logs import OutageLog

if TYPE_CHECKING:
    from collections.abc import Iterator

S = 1_000_000
REFUSED = "127.0.0.1:9999: connection refused"


class FakeClock:
    """A steady clock that the test sets."""

    now = 0

    def steady_us(self) -> int:
        return self.now * S

    def wall_us(self) -> int:
        return self.now * S


class Stage:
    """The log of a source with families of two transports; ``log`` has its own connection."""

    def __init__(self, source: str = "broker-1") -> None:
        self.clock = FakeClock()
        self.log = OutageLog(self.clock)
        self.source, catalogue = source, load()
        self.families = {
            (source, name): (catalogue.family(name).via, connection)
            for name, connection in (
                ("min_isr", "jmx"), ("quotas", "jmx"), ("log", "log"), ("leaders", "admin"),
                ("offsets", "admin"),
            )
        }  # fmt: skip
        self.log.expect(self.families)

    def fail(self, *names: str, error: str = REFUSED, identified: bool = False) -> None:
        identity = Identity("c", "1", "4.4.0", 1) if identified else None
        for name in names:
            scrape = Scrape(name, 0, 0, 1, 10 * S, "refused", identity, error=error)
            self.log.scraped(replace(scrape, source=self.source))

    def respond(self, *names: str) -> None:
        identity = Identity("c", "1", "4.4.0", 1)
        for name in names:
            scrape = Scrape(name, 0, 0, 1, 10 * S, "ok", identity, Answer((), 0))
            self.log.scraped(replace(scrape, source=self.source))


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    caplog.set_level(logging.INFO, "jmxlake")

    class Fields(list[dict[str, Any]]):
        def __iter__(self) -> Iterator[dict[str, Any]]:
            return iter([record.fields for record in caplog.records])  # type: ignore[attr-defined]

        def __len__(self) -> int:
            return len(caplog.records)

    return Fields()


def events(logged: list[dict[str, Any]]) -> list[str]:
    return [line["event"] for line in logged]


def test_outage_of_a_source_is_two_lines(stage: Stage, logged: list[dict[str, Any]]) -> None:
    stage.fail("min_isr", "quotas", "log")
    stage.clock.now = 20
    stage.fail("offsets", "leaders", error="admin: no answer within 5 s")
    stage.fail("min_isr", error="127.0.0.1:9999: the broker is starting")
    stage.clock.now = 42
    stage.respond("min_isr", "quotas")
    stage.respond("leaders")
    first, last = logged
    assert first == {
        "event": "scrape_failed", "source": "broker-1", "transport": "jmx",
        "families": ["min_isr", "quotas", "log"], "error": REFUSED,
    }  # fmt: skip
    assert last == {
        "event": "scrape_recovered", "source": "broker-1",
        "families": ["min_isr", "quotas", "log", "leaders", "offsets"], "down_s": 42,
    }  # fmt: skip


def test_failure_during_a_scrape_joins_its_outage(
    stage: Stage, logged: list[dict[str, Any]]
) -> None:
    stage.fail("min_isr", error="connection reset", identified=True)
    stage.fail("quotas", "log")
    stage.respond("quotas")
    assert events(logged) == ["scrape_failed", "scrape_recovered"]
    assert next(iter(logged))["families"] == ["min_isr", "quotas", "log"]


def test_one_failed_scrape_is_not_an_outage(stage: Stage, logged: list[dict[str, Any]]) -> None:
    stage.fail("min_isr", error="no answer within 5 s", identified=True)
    stage.respond("min_isr", "quotas")
    assert events(logged) == []
    stage.fail("offsets", error="no answer within 5 s", identified=True)
    stage.fail("offsets", error="permission denied", identified=True)
    stage.respond("offsets")
    assert events(logged) == ["scrape_failed", "scrape_recovered"]
    assert next(iter(logged))["error"] == "permission denied"


def test_family_that_always_fails_does_not_hide_an_outage(
    stage: Stage, logged: list[dict[str, Any]]
) -> None:
    for _ in range(3):
        stage.fail("offsets", error="permission denied", identified=True)
        stage.respond("leaders")
    stage.clock.now = 3600
    stage.fail("min_isr")
    stage.fail("offsets", error="permission denied", identified=True)
    stage.respond("min_isr")
    assert [(line["event"], line["families"]) for line in logged] == [
        ("scrape_failed", ["offsets"]),
        ("scrape_failed", ["min_isr", "quotas", "log"]),
        ("scrape_recovered", ["min_isr", "quotas", "log"]),
    ]


def test_other_error_is_logged_after_five_minutes(
    stage: Stage, logged: list[dict[str, Any]]
) -> None:
    for stage.clock.now in range(0, 1300, 10):
        stage.fail("min_isr", error=REFUSED if stage.clock.now < 60 else f"{stage.clock.now} s")
        stage.fail("leaders", error="admin: no answer within 5 s")
    assert [line["error"] for line in logged] == [
        REFUSED, "300 s", "admin: no answer within 5 s", "600 s", "1200 s"
    ]  # fmt: skip


def test_family_with_its_own_connection_fails_alone(
    stage: Stage, logged: list[dict[str, Any]]
) -> None:
    for _ in range(3):
        stage.fail("log", error="no answer within 30 s")
        stage.respond("min_isr", "quotas")
    (line,) = logged
    assert line["families"] == ["log"]
    stage.respond("log")
    assert events(logged) == ["scrape_failed", "scrape_recovered"]


def test_family_that_still_fails_after_the_outage_is_a_new_line(
    stage: Stage, logged: list[dict[str, Any]]
) -> None:
    stage.fail("min_isr", "quotas", "log")
    stage.respond("min_isr")
    for _ in range(2):
        stage.fail("quotas", error="the response is not valid", identified=True)
    assert events(logged) == ["scrape_failed", "scrape_recovered", "scrape_failed"]


def test_removed_family_does_not_keep_an_outage_open(
    stage: Stage, logged: list[dict[str, Any]]
) -> None:
    stage.fail("offsets", error="permission denied", identified=True)
    stage.fail("min_isr")
    kept = {read: via for read, via in stage.families.items() if read[1] != "offsets"}
    stage.log.expect(kept)
    stage.respond("min_isr")
    stage.fail("offsets", error="permission denied")
    assert events(logged) == ["scrape_failed", "scrape_recovered"]


def test_outages_of_two_sources_are_separate(logged: list[dict[str, Any]]) -> None:
    one, other = Stage("broker-1"), Stage("broker-2")
    one.log.expect(one.families | other.families)
    other.log = one.log
    one.fail("min_isr")
    other.fail("min_isr")
    one.respond("min_isr")
    assert [(line["event"], line["source"]) for line in logged] == [
        ("scrape_failed", "broker-1"), ("scrape_failed", "broker-2"),
        ("scrape_recovered", "broker-1"),
    ]  # fmt: skip
