"""Measure a scrape of remote storage's metadata topic: ``python -m bench.remote_log CONFIG``."""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Final

from collector.agent import plan
from collector.config import loader

_FAMILY: Final = "remote_log"
_SCRAPES: Final = 50
_PAUSE_SECONDS: Final = 0.2
_FIRST_SECONDS: Final = 60


def measure(path: Path) -> dict[str, float]:
    """Return the median processor time (ms) of a scrape, of all threads of this process.

    Args:
        path: Configuration of an agent with the section ``remote_log``.
    """
    config = loader.load(path)
    catalogue = plan.catalogue(config)
    tasks = plan.tasks(config, catalogue, plan.scrapers(config))
    (task,) = (one for one in tasks if one.family.name == _FAMILY)
    until = time.monotonic() + _FIRST_SECONDS
    while task.scraper.attempt(task.family, task.interval_us).answer is None:
        if time.monotonic() > until:
            raise RuntimeError(f"{_FAMILY} was not read in {_FIRST_SECONDS} s")
        time.sleep(_PAUSE_SECONDS)
    used: list[float] = []
    for _ in range(_SCRAPES):
        time.sleep(_PAUSE_SECONDS)
        began = time.process_time()
        task.scraper.attempt(task.family, task.interval_us)
        used.append(time.process_time() - began)
    return {"remote_log_cpu_ms": round(statistics.median(used) * 1e3, 2)}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
