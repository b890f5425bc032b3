"""Changes that a reload reports."""

from __future__ import annotations

from collector.agent.plan import Task, changes
from collector.agent.scrape_attempt import Scraper
from collector.catalogue import load

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
