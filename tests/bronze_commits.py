"""Commits to bronze as agents make them, small and many; and a lake that grew old.

As a program it is such an agent: ``python -m tests.bronze_commits LAKE OPTIONS AGENT COMMITS``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    QueryBuilder,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError

from collector.delivery import arrow
from lakehouse import tables
from lakehouse.tables.bronze import writer_properties
from tests.lake_builder import Batch

if TYPE_CHECKING:
    from pathlib import Path

DAY_MS = 86_400_000
WINDOW = 300.0
NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def make(lake: str, options: dict[str, str], *, comments: bool = True) -> None:
    """Make the tables of bronze; older agents wrote no comments of columns."""
    for table in tables.BRONZE:
        schema = arrow.schema(table)
        DeltaTable.create(
            f"{lake}/{table.path}",
            schema=schema if comments else arrow.to_arrow(table, ()).schema,
            mode="ignore",
            partition_by=list(table.partition_by),
            configuration=table.properties,
            storage_options=options,
            raise_if_key_not_exists=False,
        )


def rows_of(table: tables.Table, agent: str, number: int, count: int) -> list[tuple[Any, ...]]:
    """The rows of an agent's batch; batch n is of the n-th window."""
    batch, start = Batch(agent, number), number * WINDOW
    if table is tables.EVENTS:
        day = Batch(agent, number)
        day.run("m", start, start + WINDOW, 1.0)
        at = day.runs[0]["start"]
        nothing = (None, None, None, None, None)
        one = (at // 86_400_000_000, "c", "broker-1", at, "agent_start", *nothing, None, "x")
        return [(*one, agent, number)] * count
    for index in range(count):
        batch.run("m", start, start + WINDOW, float(index), topic=f"t{index}")
        batch.scrape(f"f{index}", start, start + WINDOW)
        batch.set_of("partitions", f"t{index}", [number], None, agent)
    found = {"runs": batch.runs, "members": batch.members, "scrapes": batch.scrapes}[table.name]
    return [tuple(row[name] for name in table.column_names) for row in found]


def commit(delta: DeltaTable, table: tables.Table, agent: str, number: int, count: int = 3) -> None:
    """Commit a batch once: what an agent does, see collector/delivery/delivery.py."""
    while (delta.transaction_version(f"{agent}/{table.name}") or 0) < number:
        try:
            append(delta, table, agent, number, count)
        except CommitFailedError:
            delta.update_incremental()


def append(delta: DeltaTable, table: tables.Table, agent: str, number: int, count: int = 3) -> None:
    """Commit a batch without looking whether it is there; to look takes longer than to commit."""
    write_deltalake(
        delta,
        arrow.to_arrow(table, rows_of(table, agent, number, count)),
        mode="append",
        writer_properties=writer_properties(table),
        commit_properties=CommitProperties(
            app_transactions=[Transaction(f"{agent}/{table.name}", number)], max_commit_retries=100
        ),
        post_commithook_properties=NO_HOOKS,
    )


def commit_all(
    lake: str, options: dict[str, str], agent: str, numbers: range, only: Any = tables.BRONZE
) -> None:
    """Commit batches to every table."""
    opened = [(t, DeltaTable(f"{lake}/{t.path}", storage_options=options)) for t in only]
    for number in numbers:
        for table, delta in opened:
            delta.update_incremental()
            commit(delta, table, agent, number)


def read(lake: str, options: dict[str, str], table: tables.Table) -> list[tuple[str, int, int]]:
    """Agent, batch and number of rows of every batch that is in a table."""
    delta = DeltaTable(f"{lake}/{table.path}", storage_options=options)
    query = "SELECT agent, batch, count(*) AS n FROM bronze GROUP BY agent, batch ORDER BY 1, 2"
    found = QueryBuilder().register("bronze", delta).execute(query).read_all()
    return list(zip(*(found.column(name).to_pylist() for name in found.column_names), strict=True))


def idle(lake: Path, table: tables.Table, commits: int) -> None:
    """Commits that bring nothing, as quick as files are written."""
    log = lake / table.path / "_delta_log"
    info = {"timestamp": time.time_ns() // 1_000_000, "engineInfo": "delta-rs:py-1.6.6"}
    first = 1 + max(int(one.stem) for one in log.glob("*.json"))
    for version in range(first, first + commits):
        line = json.dumps({"commitInfo": {**info, "operation": "WRITE"}})
        (log / f"{version:020}.json").write_text(line + "\n")


def record_progress(lake: str, options: dict[str, str] | None = None, **versions: int) -> None:
    """What the rollup writes last, for tests without Spark."""
    table = tables.PROGRESS
    now = time.time_ns() // 1000
    values = {"finished_at": now, "window_seconds": 300, "hours": 1}
    values |= {f"{one}_version": versions.get(one, 0) for one in ("runs", "scrapes", "members")}
    row = tuple(values.get(name) for name in table.column_names)
    write_deltalake(
        f"{lake}/{table.path}", arrow.to_arrow(table, [row]), mode="append", storage_options=options
    )


def age(lake: Path, days: int) -> None:
    """Let a local lake without checkpoints be older: log, files, and what the log says of them."""
    for log in sorted(lake.glob("bronze/*/_delta_log/*.json")):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for action in actions:
            for name in ("timestamp", "modificationTime", "deletionTimestamp"):
                for what in action.values():
                    if isinstance(what, dict) and what.get(name):
                        what[name] -= days * DAY_MS
        log.write_text("\n".join(json.dumps(action) for action in actions) + "\n")
    for file in lake.glob("bronze/**/*"):
        old = file.stat().st_mtime - days * DAY_MS / 1000
        os.utime(file, (old, old))


if __name__ == "__main__":
    place, settings, name, commits = sys.argv[1:]
    commit_all(place, json.loads(settings), name, range(1, int(commits) + 1))
