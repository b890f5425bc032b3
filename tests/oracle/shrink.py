"""``python -m tests.oracle.shrink 28 topics``: the least of a fleet for which gold is still wrong.

Each round tries many smaller fleets at once, as clusters of one lake, so that a round is a rollup.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakehouse import lake as lakes
from lakehouse import rollup
from lakehouse.session import session
from tests.oracle import decoded, fleets, gold
from tests.oracle.objectives import OBJECTIVES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.lake_builder import Batch

Rows = list[tuple[str, dict[str, Any]]]


@click.command()
@click.argument("seed", type=int)
@click.argument("table", type=click.Choice(list(gold.KEYS)))
def main(seed: int, table: str) -> None:
    """Leave out rows of fleet SEED as long as TABLE differs from the oracle; print what is left."""
    spark, whole = session(), fleets.fleet(seed)
    rows: Rows = [("runs", row) for row in whole.runs] + [("scrapes", row) for row in whole.scrapes]
    parts = 2
    while len(rows) > 1:
        size = max(1, -(-len(rows) // parts))
        tried = [rows[:at] + rows[at + size :] for at in range(0, len(rows), size)]
        wrong = _wrong(spark, whole, tried, table)
        click.echo(f"{len(rows)} rows: {len(wrong)} of {len(tried)} are wrong", err=True)
        if wrong:
            rows = min((tried[number] for number in wrong), key=len)
        elif size == 1:
            break
        parts = min(len(rows), max(2, parts if wrong else 2 * parts))
    for kind, row in rows:
        click.echo(f"{kind} { {name: value for name, value in row.items() if value is not None} }")


def _wrong(spark: SparkSession, whole: Batch, tried: list[Rows], table: str) -> list[int]:
    """Which of several smaller fleets gold is still wrong about."""
    batch = replace(whole, runs=[], scrapes=[], members=[])
    for number, rows in enumerate(tried):
        cluster = f"try-{number:03}"
        for kind, row in rows:
            getattr(batch, kind).append({**row, "cluster": cluster})
        batch.members += [{**row, "cluster": cluster} for row in whole.members]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        batch.commit(root)
        rollup.rollup(spark, lakes.at(folder), OBJECTIVES)
        bronze = decoded.read(root, time.time_ns() // 1000)
        expected = gold.wanted(bronze, OBJECTIVES)[table]
        lines = gold.differences(table, gold.told(root, table), expected)
    return [n for n in range(len(tried)) if any(f"'try-{n:03}'" in line for line in lines)]


if __name__ == "__main__":
    main()
