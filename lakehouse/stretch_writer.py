"""One stretch into gold: a commit for each table."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lakehouse import lake as lakes
from lakehouse.errors import LeaseLostError
from lakehouse.lease_row import is_conflict
from lakehouse.upkeep import AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse.bronze import Bronze
    from lakehouse.gold import Job


def write(
    bronze: Bronze, jobs: Sequence[Job], check: Callable[[], None], step: Callable[[str], None]
) -> None:
    """Replace the rows of the touched hours in every table.

    Args:
        bronze: What is read.
        jobs: The tables, and what makes their rows.
        check: Called before each commit; raises where no more may be made.
        step: Told the name of each table that has got its commit.

    Raises:
        LeaseLostError: Somebody else changed a table meanwhile.
    """

    def replace(job: Job) -> None:
        rows = job.rows()
        check()
        try:
            lakes.replace(bronze.lake, job.table, rows, job.where)
        except Exception as error:
            if not is_conflict(error):
                raise
            raise LeaseLostError(
                f"{bronze.lake.name(job.table)}: somebody else changed it meanwhile; run it again, "
                "and let nobody but the rollup write to gold"
            ) from error
        step(job.table.name)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        begun = [pool.submit(replace, job) for job in jobs]
        try:
            for one in begun:
                one.result()
        finally:
            pool.shutdown(cancel_futures=True)
