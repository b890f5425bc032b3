"""Memory for a window of 200,000 rows: ``python -m bench.large_window CONFIG`` prints it as JSON.

An agent's own parts: it reads all families of a real broker, which fills what an agent remembers.
What changes so much is made up: series of a client family, another value at every scrape.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.telemetry import memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.model import Scrape

ROWS: Final = 200_000
_S: Final = 1_000_000
_WINDOW_US: Final = 300 * _S
_INTERVAL_US: Final = 10 * _S
_ROUNDS: Final = 5


def scrapes(start_us: int) -> Iterator[Scrape]:
    """A window of them, and one after it."""
    from collector.model import Answer, Identity, Reading, Scrape, Series  # noqa: PLC0415

    name, identity = "made_up.rate", Identity("cluster", "1", "4.3.1", 1)
    changes = _WINDOW_US // _INTERVAL_US
    series = [Series(name, client_id=f"client-{number}") for number in range(ROWS // changes + 1)]
    for tick in range(changes + 1):
        at = start_us + tick * _INTERVAL_US
        values = {one: tick + number / 7 for number, one in enumerate(series)}
        answer = Answer((Reading(name, "gauge", values=values),), len(series))
        yield Scrape("made_up", at, at, at, _INTERVAL_US, "ok", identity, answer)


def measure(path: Path) -> dict[str, float]:
    """Megabytes once the window is delivered, and the resident peak since reading began.

    Args:
        path: An agent's configuration: which broker, where its spool and its lake are.
    """
    memory.configure_malloc()  # first of all, as the agent does
    from bench.peak import anonymous_mb, peak_mb, resident_mb  # noqa: PLC0415
    from collector.agent import plan  # noqa: PLC0415
    from collector.config import loader  # noqa: PLC0415
    from collector.delivery.delivery import Delivery  # noqa: PLC0415
    from collector.delivery.store import of_lake  # noqa: PLC0415
    from collector.spool.recorder import Recorder  # noqa: PLC0415
    from collector.spool.spool import Spool  # noqa: PLC0415

    config = loader.load(path)
    catalogue, scrapers = plan.catalogue(config), plan.scrapers(config)
    with Spool(config.spool.path, config.spool.max_size) as spool:
        recorder = Recorder(spool, plan.scope(config, catalogue), config.window.us)
        delivery = Delivery(config.lake.path, of_lake(config.lake), spool, recorder)
        delivery.check()
        memory.freeze_garbage()
        memory.trim()
        Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak begins anew
        for task in plan.tasks(config, catalogue, scrapers) * _ROUNDS:
            recorder.record(task.scraper.attempt(task.family, task.interval_us))
        start_us = (time.time_ns() // 1_000 // _WINDOW_US + 1) * _WINDOW_US
        for scrape in scrapes(start_us):
            recorder.record(scrape)
        recorder.seal(start_us + 2 * _WINDOW_US)
        while delivery.deliver_next():
            pass
        memory.trim()
        return {"mb": resident_mb(), "anon_mb": anonymous_mb(), "peak_mb": peak_mb()}


if __name__ == "__main__":
    found = measure(Path(sys.argv[1]))
    print(json.dumps({name: round(number, 1) for name, number in found.items()}))
