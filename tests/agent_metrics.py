"""What an agent that has read well and badly shows of itself in ``/metrics``."""

from __future__ import annotations

from collections import Counter

import pytest

from collector.errors import SpoolError
from collector.model import Answer, Scrape
from collector.spool.spool import Depth
from collector.telemetry import memory
from collector.telemetry.agent_stats import AgentStats, Measured


class FakeSpool:
    """Spool and recorder of an agent, whose numbers are made up."""

    catalogue, max_bytes = "abc", 1 << 30

    def __init__(self) -> None:
        self.content = Depth(0, 0, 0, None)
        self.sealed_us, self.dropped_batches = 1_700_000_000_000_000, 0
        self.reported: Counter[str] = Counter()
        self.fails = False

    def depth(self) -> Depth:
        if self.fails:
            raise SpoolError("away")
        return self.content


def exposed() -> dict[str, set[str]]:
    """Labels by sample."""
    stats = AgentStats()
    stats.expect({("broker-1", "min_isr"): ("jmx", 10_000_000)})
    for outcome, answer in (("ok", Answer((), 7)), ("timeout", None)):
        scrape = Scrape("min_isr", 0, 0, 1, 10_000_000, outcome, None, answer, source="broker-1")  # type: ignore[arg-type]
        stats.scraped(scrape)
    stats.window_rows = stats.factors = {"min_isr": 1}
    waiting = FakeSpool()
    stats.registry.register(Measured(stats, waiting, waiting, 0.0))  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "java", lambda: (1, 1.0))
        return {
            sample.name: set(sample.labels)
            for metric in stats.registry.collect()
            for sample in metric.samples
        }
