"""A lake of many small live files, made quickly: one real file under many names."""

from __future__ import annotations

import json
import os
import time
import uuid
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake
from deltalake.transaction import AddAction, RemoveAction

from collector.delivery import arrow
from lakehouse import tables
from lakehouse.tables.bronze import writer_properties

if TYPE_CHECKING:
    from pathlib import Path

FILES_A_DATE = 1_000
ROWS = 300
_WINDOW_US = 300_000_000
_DAY_US = 86_400_000_000
_FIRST_DAY = 20_000
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def rows_of(table: tables.Table, day: int, number: int) -> list[tuple[Any, ...]]:
    """A batch such as an agent's of one window: the columns' values vary, their types count."""
    start = day * _DAY_US + number * _WINDOW_US
    return [
        tuple(_value(column, day, start, index) for column in table.columns)
        for index in range(ROWS if table is tables.RUNS else 20)
    ]


def make(lake: Path, files: int, commits: int) -> None:
    """Make bronze with so many live files in each table, a checkpoint, then so many commits."""
    for table in tables.BRONZE:
        delta = DeltaTable.create(
            f"{lake}/{table.path}",
            schema=arrow.schema(table),
            partition_by=list(table.partition_by),
            configuration=table.properties,
            raise_if_key_not_exists=False,
        )
        if files:
            _multiply(lake / table.path, table, delta, files)
        delta.create_checkpoint()
        for number in range(commits):
            _append(delta, table, number)


def _append(delta: DeltaTable, table: tables.Table, number: int) -> None:
    write_deltalake(
        delta,
        arrow.to_arrow(table, rows_of(table, _FIRST_DAY, number)),
        mode="append",
        writer_properties=writer_properties(table),
        post_commithook_properties=_NO_HOOKS,
    )


def _multiply(root: Path, table: tables.Table, delta: DeltaTable, files: int) -> None:
    _append(delta, table, 0)
    log = root / "_delta_log" / f"{delta.version():020}.json"
    actions = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    add = next(action["add"] for action in actions if "add" in action)
    adds: list[AddAction | RemoveAction] = []
    for number in range(files - 1):
        values = dict(add["partitionValues"])
        folder = root
        if values:
            day = _FIRST_DAY + 1 + number // FILES_A_DATE
            values["date"] = str(time.strftime("%Y-%m-%d", time.gmtime(day * 86_400)))
            folder = root / f"date={values['date']}"
        folder.mkdir(exist_ok=True)
        path = folder / f"part-00000-{uuid.uuid4()}-c000.zstd.parquet"
        os.link(root / add["path"], path)
        name = str(path.relative_to(root))
        stamp = add["modificationTime"]
        adds.append(AddAction(name, add["size"], values, stamp, True, add["stats"]))  # noqa: FBT003
    delta.create_write_transaction(
        adds,
        mode="append",
        schema=delta.schema(),
        partition_by=list(table.partition_by),
        post_commithook_properties=_NO_HOOKS,
    )
    delta.update_incremental()


def _value(column: tables.Column, day: int, start: int, index: int) -> Any:
    if column.name == "date":
        return day
    if column.nullable and column.name != "topic":
        return None
    if column.type == "timestamp":
        return start + index
    if column.type in ("int", "bigint"):
        return index
    return f"{column.name}-{index}" if column.type == "string" else float(index)
