"""Upkeep of gold once a day: old finest rows go, and small files become large ones."""

import datetime as dt
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from lakehouse import tables
from lakehouse.engines import replace_where
from lakehouse.engines.engine import Engine
from lakehouse.rollup.table_schemas import EVERY

KEEP_WINDOWS_DAYS: Final = 100


def horizon(committed: dt.datetime, keep_windows_days: int) -> dt.date:
    """The date from which on gold keeps the finest rows, by bronze's newest commit."""
    return (committed - dt.timedelta(days=keep_windows_days)).date()


def tidy(
    engine: Engine, horizon: dt.date, check: Callable[[], None], step: Callable[[str], None]
) -> None:
    """Remove old finest rows, put small files together and delete those that are not needed.

    A kill leaves a table as it was, and files that the next vacuum takes.

    Args:
        engine: The engine.
        horizon: The date from which on finest rows are kept.
        check: Called before each commit; raises where no more may be made.
        step: Called with what was done.
    """

    def tidy_one(table: tables.Table) -> None:
        if table not in engine.scratch and not engine.commits(table, 1)[0].number:
            return  # nothing was ever written to it
        check()
        if table in tables.EXPIRING:
            engine.write(table, None, replace_where.before(horizon))
        engine.tidy(table)
        step(f"tidied {table.name}")

    with ThreadPoolExecutor(engine.at_once) as pool:
        list(pool.map(tidy_one, (*EVERY, *engine.scratch)))
