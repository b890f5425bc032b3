"""What an agent that has read well and badly shows of itself in ``/metrics``."""

from __future__ import annotations

import pytest

from collector.model import Answer, Scrape
from collector.spool.recorder import Backlog
from collector.spool.spool import Depth
from collector.telemetry import memory
from collector.telemetry.self_metrics import AgentStats, Measured


def exposed() -> dict[str, set[str]]:
    """Labels by sample."""
    stats = AgentStats()
    stats.expect({("broker-1", "min_isr"): ("jmx", 10_000_000)})
    for outcome, answer in (("ok", Answer((), 7)), ("timeout", None)):
        scrape = Scrape("min_isr", 0, 0, 1, 10_000_000, outcome, None, answer, source="broker-1")  # type: ignore[arg-type]
        stats.scraped(scrape)
    stats.window_rows = stats.factors = {"min_isr": 1}
    backlog = Backlog(Depth(0, 0, 0, 1), 1, 0, 1, 0)
    stats.registry.register(Measured(stats, lambda: backlog, lambda: "abc", 0.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "java", lambda: (1, 1.0))
        return {
            sample.name: set(sample.labels)
            for metric in stats.registry.collect()
            for sample in metric.samples
        }
