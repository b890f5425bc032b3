"""A lake is maintained while its agent writes it and is killed."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lakehouse import tables
from lakehouse.tables.bronze import writer_properties
from tests.rig.stage import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.rig.stage import Stage

_KILLS: Final = 12
_SCRAPES: Final = 60


def maintained_and_killed(stage: Stage) -> Outcome:
    """Every table is compacted, checkpointed and vacuumed all the time, while agents die."""
    outcome = Outcome()
    rig = stage.rig()
    first = rig.start()
    rig.await_kept(_SCRAPES)
    with _maintained(rig.lake) as rounds:
        first.kill()
        for _ in range(_KILLS - 1):
            process = rig.start()
            time.sleep(stage.dice.uniform(0.0, 1.0))
            process.kill()
        last = rig.start()
        rig.await_kept(_SCRAPES)
        last.stop()
        outcome.must_end(last)
    outcome.kills += _KILLS
    outcome.expect(rounds["compacted"], "nothing was compacted")
    outcome.ask(rig)
    return outcome


@contextmanager
def _maintained(lake: Path) -> Iterator[dict[str, int]]:
    """Maintenance at a pace that no operator would choose."""
    stop, rounds = threading.Event(), {"compacted": 0}

    def work() -> None:
        while not stop.wait(0.1):
            for table in tables.BRONZE:
                with suppress(DeltaError, OSError):  # it lost a race: the next round is soon
                    rounds["compacted"] += _maintain(table, f"{lake}/{table.path}")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield rounds
    finally:
        stop.set()
        thread.join()


def _maintain(table: tables.Table, url: str) -> int:
    delta = DeltaTable(url)
    figures = delta.optimize.compact(writer_properties=writer_properties(table))
    delta.create_checkpoint()
    delta.vacuum(dry_run=False)  # what is older than the retention, as it is declared
    return int(figures["numFilesRemoved"])
