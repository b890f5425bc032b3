"""``jmxlake-agent run --dry-run``: the rows that would be written, counted and thrown away."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

import click

from collector.commands.printable import printable
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from collector.sections import Config
    from collector.spool import Spool

_GROUP_BYTES = 1 << 20
_COUNTED = (
    (tables.RUNS, "start", "metric"),
    (tables.SCRAPES, "start", "family"),
    (tables.EVENTS, "at", "kind"),
)


class _Counting:
    """Stands where batches are delivered: counts their rows, and lets them go.

    Attributes:
        rows: By window's start in microseconds, table, and metric, family or kind of event.
    """

    def __init__(self, spool: Spool, window_us: int) -> None:
        self._spool, self._window_us = spool, window_us
        self.rows = Counter[tuple[int, str, str]]()

    def deliver_next(self) -> int:
        waiting = self._spool.waiting(_GROUP_BYTES)
        for one in waiting:
            for table, at, of in _COUNTED:
                for row in one.batch.rows.get(table.name, ()):
                    at_us = row[table.positions[at]]
                    start_us = at_us - at_us % self._window_us
                    self.rows[start_us, table.name, row[table.positions[of]]] += 1
            self._spool.acknowledge(one.number)
        return len(waiting)


def run(
    config: Config, windows: int, stop: Event, arm: Callable[[], None], *, as_json: bool
) -> None:
    """Read to the end of so many whole windows, and print what each would have written.

    Args:
        config: What is read; its lake and spool are not touched.
        windows: How many, after the one that is under way.
        stop: Ends it sooner.
        arm: Has signals set it; called after the JVM has set its own handlers.
        as_json: One JSON object a line.
    """
    from collector import planning, wiring
    from collector.spool import Spool

    catalogue = planning.catalogue(config)
    window_us, now_us = config.window.us, time.time_ns() // 1_000
    first_us = now_us - now_us % window_us + window_us
    end_us = first_us + windows * window_us
    with (
        tempfile.TemporaryDirectory() as folder,
        Spool(Path(folder) / "spool.db", config.spool.max_size.bytes) as spool,
    ):
        recorder = wiring.recorder(config, catalogue, spool)
        scrapers = planning.scrapers(config, recorder.told_us)
        arm()
        counting = _Counting(spool, window_us)
        agent = wiring.agent(config, catalogue, scrapers, recorder, spool, counting)
        timer = Timer((end_us - now_us) / 1e6, stop.set)
        timer.daemon = True
        timer.start()
        try:
            agent.run(stop)
        finally:
            timer.cancel()
    counted = sorted(counting.rows.items())
    whole = [(key, rows) for key, rows in counted if first_us <= key[0] < end_us]
    _print(whole, as_json=as_json)


def _print(counted: list[tuple[tuple[int, str, str], int]], *, as_json: bool) -> None:
    for (start_us, table, name), rows in counted:
        at = datetime.fromtimestamp(start_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        row = {"window": at, "table": table, "name": name, "rows": rows}
        line = f"{at}  {rows:>9,}  bronze/{table}  {printable(name)}"
        click.echo(json.dumps(row) if as_json else line)
