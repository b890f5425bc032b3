"""Changes that a reload reports, and delays of metrics."""

from __future__ import annotations

from typing import Any

import pytest

from collector.agent.plan import Task, changes, delays
from collector.agent.scrape_attempt import Scraper
from collector.catalogue import load
from collector.catalogue.entries import Delays
from collector.config.loader import parse

S = 1_000_000


def task(name: str, scraper: object, seconds: int = 10) -> Task:
    family = load().family(name)
    return Task(family, seconds * S, scraper, family.via)  # type: ignore[arg-type]


def test_reload_reports_changed_families_and_sources() -> None:
    old, new = object.__new__(Scraper), object.__new__(Scraper)
    before = {"min_isr": task("min_isr", old), "quotas": task("quotas", old)}
    before["leaders"] = task("leaders", old)
    after = {"min_isr": task("min_isr", old, 2), "leaders": task("leaders", new)}
    after["tiered"] = task("tiered", old)
    assert changes(before, after) == {
        "added": ["tiered"],
        "removed": ["quotas"],
        "changed": ["min_isr"],
        "sources": ["admin"],
    }
    assert changes(before, dict(before)) == {}


@pytest.mark.parametrize(
    ("families", "refresh_us"),
    [
        ({}, 0),
        ({"client_telemetry": {"enabled": True}}, 90 * S),
        ({"client_telemetry": {"enabled": True, "refresh": "45s"}}, 45 * S),
        ({"client_telemetry": {"enabled": True}, "client": {"enabled": False}}, 90 * S),
    ],
)
def test_metric_of_two_families_has_the_delays_of_enabled_ones(
    families: dict[str, Any], refresh_us: int
) -> None:
    settings = {
        "source": {"node": 1, "jmx": {"port": 9999}},
        "lake": {"path": "/lake"},
        "spool": {"path": "/spool.db"},
        "families": families,
    }
    found = delays(parse(settings, "agent.yaml"), load())
    assert found["kafka.producer.produce_throttle_time.max"] == Delays(60 * S, refresh_us)
