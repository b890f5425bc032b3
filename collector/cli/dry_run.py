"""``jmxlake-agent run --dry-run``: the rows that would be written, counted and thrown away."""

import json
import time
from collections import Counter
from datetime import UTC, datetime
from threading import Event, Timer

import click

from collector.spool.spool import Spool
from lakehouse.tables import EVENTS, RUNS, SCRAPES
from lakehouse.tables.error_text import printable

_COUNTED = ((RUNS, "start", "metric"), (SCRAPES, "start", "family"), (EVENTS, "at", "kind"))


class DryRun:
    """Stands where batches are delivered: counts their rows, and lets them go.

    Args:
        spool: Where batches wait.
        window_us: Length of a window.
        windows: After how many whole windows it ends.
        stop: Is set then.
    """

    def __init__(self, spool: Spool, window_us: int, windows: int, stop: Event) -> None:
        self._spool, self._window_us = spool, window_us
        self._rows = Counter[tuple[int, str, str]]()
        now_us = time.time_ns() // 1_000
        self._first_us = now_us - now_us % window_us + window_us
        self._end_us = self._first_us + windows * window_us
        timer = Timer((self._end_us - now_us) / 1e6, stop.set)
        timer.daemon = True
        timer.start()

    def deliver_next(self) -> int:
        """Count the oldest batches; how many they were."""
        waiting = self._spool.waiting(1 << 20)
        for one in waiting:
            for table, at, of in _COUNTED:
                for row in one.batch.rows.get(table.name, ()):
                    at_us = row[table.positions[at]]
                    start_us = at_us - at_us % self._window_us
                    self._rows[start_us, table.name, row[table.positions[of]]] += 1
            self._spool.acknowledge(one.number)
        return len(waiting)

    def show(self, *, as_json: bool) -> None:
        """Print a line for each whole window, table, and metric, family or kind of event."""
        for (start_us, table, name), rows in sorted(self._rows.items()):
            if self._first_us <= start_us < self._end_us:
                at = datetime.fromtimestamp(start_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                row = {"window": at, "table": table, "name": name, "rows": rows}
                line = f"{at}  {rows:>9,}  bronze/{table}  {printable(name)}"
                click.echo(json.dumps(row) if as_json else line)
