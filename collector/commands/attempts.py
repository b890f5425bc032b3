"""One attempt at each family, for commands that say how it is now."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collector.plan import Task
    from collector.samples import Answer, Scrape

_STALE_US: Final = 30_000_000


def attempt(task: Task) -> Scrape:
    """Read a family once, a history to its end; what it told long ago is not known now."""
    scrape = task.scraper.attempt(task.family, task.interval_us)
    if task.family.via != "metadata_log":
        return scrape
    asked_us = scrape.asked_us
    while scrape.answer is not None and scrape.answer.more:
        scrape = task.scraper.attempt(task.family, task.interval_us)
    scrape = replace(scrape, asked_us=min(asked_us, scrape.asked_us))
    why = None if scrape.answer is None else stale(scrape.answer, scrape.answered_us)
    return replace(scrape, outcome="timeout", answer=None, error=why) if why else scrape


def stale(answer: Answer, now_us: int) -> str | None:
    """Why a history that ends long ago does not say how it is now; None: it is of now.

    Args:
        answer: The end of a history.
        now_us: The instant that it is compared with.
    """
    if not answer.moments:
        return "the log holds nothing that is final yet: does the broker reach the controllers?"
    at_us = answer.moments[-1].at_us
    age_us = now_us - at_us
    if age_us <= _STALE_US:
        return None
    at = datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return (
        f"as of {at}, {_age(age_us / 1e6)} old: is the broker up, and does it reach the"
        " controllers?"
    )


def _age(seconds: float) -> str:
    from collector.commands.display import span

    return f"{seconds / 60:.0f} min" if 60 <= seconds < 7200 else span(seconds)
