"""Daily maintenance of gold: old 5-minute rows are deleted, and small files are compacted."""

import datetime as dt
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from lakehouse import tables
from lakehouse.engines.engine import Engine
from lakehouse.engines.relation import before_date
from lakehouse.rollup.table_schemas import EVERY

KEEP_WINDOWS_DAYS: Final = 100


def horizon(committed: dt.datetime, keep_windows_days: int) -> dt.date:
    """Return the first date whose 5-minute rows gold keeps, from the newest commit to bronze."""
    return (committed - dt.timedelta(days=keep_windows_days)).date()


def tidy(
    engine: Engine, horizon: dt.date, check: Callable[[], None], step: Callable[[str], None]
) -> None:
    """Delete old 5-minute rows, compact small files, and delete unused files.

    After a kill the table is unchanged, and the next vacuum deletes new files.

    Args:
        engine: The engine.
        horizon: First date whose 5-minute rows are kept.
        check: Called before each commit; raises if the lease is lost.
        step: Receives each completed step.
    """

    def tidy_one(table: tables.Table) -> None:
        if table not in engine.scratch and not engine.commits(table, 1)[0].number:
            return  # an empty table
        check()
        if table in tables.EXPIRING:
            engine.write(table, None, before_date(horizon))
        engine.tidy(table)
        step(f"tidied {table.name}")

    with ThreadPoolExecutor(engine.at_once) as pool:
        list(pool.map(tidy_one, (*EVERY, *engine.scratch)))
