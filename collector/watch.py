"""Watches sources: each in a thread of its own, each family at its cadence."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from collector.plan import Task
    from collector.samples import Scrape


class Watch:
    """Reads until it is closed; a source that hangs holds up no other.

    Args:
        tasks: What is read.
        take: Called with every attempt, by the source's thread.
    """

    def __init__(self, tasks: Sequence[Task], take: Callable[[Scrape], None]) -> None:
        self._take = take
        self._stop = threading.Event()
        by_source: dict[str, list[Task]] = defaultdict(list)
        for task in tasks:
            by_source[task.source].append(task)
        for source, own in by_source.items():
            threading.Thread(target=self._read, args=(own,), name=source, daemon=True).start()

    def close(self) -> None:
        """Begin no further attempt; nobody waits for those under way."""
        self._stop.set()

    def _read(self, tasks: list[Task]) -> None:
        due = [(0.0, number) for number in range(len(tasks))]
        while True:
            when, number = min(due)
            if self._stop.wait(max(0.0, when - time.monotonic())):
                return
            task = tasks[number]
            began = time.monotonic()
            scrape = task.scraper.attempt(task.family, task.interval_us)
            if self._stop.is_set():
                return
            self._take(scrape)
            due[number] = (max(when, began) + task.interval_us / 1e6, number)
