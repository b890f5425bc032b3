"""``python -m tests.oracle.shrink fleet-028 topics``: the least for which the kernel is wrong.

Each round tries many smaller fleets at once, as clusters of one call.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from lakehouse import tables
from lakehouse.kernel.build_program import build_program
from tests.kernel_tables import COMMITTED, bronze, rolled_up
from tests.oracle import fleets, gold, meaning, odd_values, stories, whole_hours
from tests.oracle.objectives import OBJECTIVES

if TYPE_CHECKING:
    from tests.lake_builder import Batch

Rows = list[tuple[str, dict[str, Any]]]

_MADE = {"fleet": fleets.fleet, "odd": odd_values.fleet, "hour": whole_hours.fleet}


@click.command()
@click.argument("cluster")
@click.argument("table", type=click.Choice(list(gold.KEYS)))
def main(cluster: str, table: str) -> None:
    """Leave out rows of a generated CLUSTER as long as TABLE differs from the oracle; print it."""
    whole = _made(cluster)
    rows: Rows = [("runs", row) for row in whole.runs] + [("scrapes", row) for row in whole.scrapes]
    parts = 2
    while len(rows) > 1:
        size = max(1, -(-len(rows) // parts))
        tried = [rows[:at] + rows[at + size :] for at in range(0, len(rows), size)]
        wrong = _wrong(whole, tried, table)
        click.echo(f"{len(rows)} rows: {len(wrong)} of {len(tried)} are wrong", err=True)
        if wrong:
            rows = min((tried[number] for number in wrong), key=len)
        elif size == 1:
            break
        parts = min(len(rows), max(2, parts if wrong else 2 * parts))
    for kind, row in rows:
        click.echo(f"{kind} { {name: value for name, value in row.items() if value is not None} }")
    click.echo("\n".join(_differences(_tried(whole, [rows]), table)))


def _made(cluster: str) -> Batch:
    """The rows of a generated cluster, or of a story, by its name."""
    kind, _, seed = cluster.partition("-")
    if kind in _MADE:
        return _MADE[kind](int(seed))
    (told,) = (one for one in stories.all_stories() if one.runs[0]["cluster"] == cluster)
    return told


def _wrong(whole: Batch, tried: list[Rows], table: str) -> list[int]:
    """Which of several smaller fleets the kernel is still wrong about."""
    lines = _differences(_tried(whole, tried), table)
    return [n for n in range(len(tried)) if any(f"'try-{n:03}'" in line for line in lines)]


def _tried(whole: Batch, tried: list[Rows]) -> Batch:
    batch = replace(whole, runs=[], scrapes=[], members=[])
    for number, rows in enumerate(tried):
        cluster = {"cluster": f"try-{number:03}"}
        for kind, row in rows:
            getattr(batch, kind).append({**row, **cluster})
        batch.members += [{**row, **cluster} for row in whole.members]
    return batch


def _differences(batch: Batch, table: str) -> list[str]:
    program = build_program(tables.DEFAULT_WINDOW_SECONDS, COMMITTED, OBJECTIVES, meaning.LAKE)
    expected = gold.wanted(bronze(batch), OBJECTIVES)[table]
    return gold.differences(table, rolled_up(program, batch)[table], expected)


if __name__ == "__main__":
    main()
