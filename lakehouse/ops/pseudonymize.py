"""Replacement of the name of a user or client ID in a lake.

Such a name can identify a person. The replacement covers every row of bronze and gold, so figures,
incidents and published SLO results do not change. Older versions of the tables keep the old name
until clean-up removes their files.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from lakehouse import tables
from lakehouse.core.delta_rs import TABLE, Location, delta_errors, query
from lakehouse.engines.delta_tables import row_schema, schema_mode
from lakehouse.errors import TableNotFoundError
from lakehouse.ops.maintain.actions import Executor
from lakehouse.tables.bronze import writer_properties
from lakehouse.tables.table import identifier, standard_text, texts

_AT_ONCE: Final = 500  # sets per commit
_COMMIT: Final = CommitProperties({"jmxlake": "forget"}, max_commit_retries=100)


def find(location: Location, name: str) -> Iterator[tuple[str, int]]:
    """Yield the tables of a lake, by layer and name, with the number of rows that have the name.

    Raises:
        MaintenanceError: A table cannot be read.
    """
    for table, delta in _tables(location, "bronze", "gold"):
        yield table.path, _count(table, delta, name)


def forget(
    location: Location, name: str, other: str, hold: Callable[[], AbstractContextManager[object]]
) -> Iterator[tuple[str, int]]:
    """Replace the name in each table; yield the same as ``find``.

    Bronze is first: a running rollup writes the rows that it has read to gold before it releases
    the lease. After an interruption, run it again with the same ``other``.

    Args:
        location: The lake, a path or URL.
        name: The name.
        other: The replacement.
        hold: Holds the lease of gold during the writes to gold.

    Raises:
        LeaseHeldError: A rollup is running, or Spark writes this gold.
        MaintenanceError: A table cannot be read or written.
    """
    executor = Executor(location, uuid.uuid4().hex)
    for layer in ("bronze", "gold"):
        concerned = list(_tables(location, layer))
        with hold() if layer == "gold" and concerned else nullcontext():
            for table, delta in concerned:
                with delta_errors(location.url(table)):
                    if layer == "bronze" and _count(table, delta, name):
                        executor.take_ownership(delta)
                    yield table.path, _replace(table, delta, name, other)


def _tables(location: Location, *layers: str) -> Iterator[tuple[tables.Table, DeltaTable]]:
    """Yield the existing tables of some layers that can contain names."""
    for table in (*tables.BRONZE, *tables.GOLD):
        if table.layer in layers and (table is tables.MEMBERS or _columns(table)):
            try:
                yield table, location.open(table)
            except TableNotFoundError:
                continue


def _count(table: tables.Table, delta: DeltaTable, name: str) -> int:
    if table is tables.MEMBERS:
        return len(_sets(delta, name))
    (row,) = query(delta, f"SELECT count(*) AS n FROM {TABLE} WHERE {_has(table, name)}")
    return int(row["n"])


def _replace(table: tables.Table, delta: DeltaTable, name: str, other: str) -> int:
    if table is tables.MEMBERS:
        return _replace_in_sets(delta, name, other)
    old, new = standard_text(name), standard_text(other)
    columns = map(identifier, _columns(table))
    names = {name: f"CASE {name} WHEN {old} THEN {new} ELSE {name} END" for name in columns}
    updated = delta.update(
        names, predicate=_has(table, name), writer_properties=writer_properties(table),
        commit_properties=_COMMIT,
    )  # fmt: skip
    return int(updated["num_updated_rows"])


def _replace_in_sets(delta: DeltaTable, name: str, other: str) -> int:
    """Replace the name in sets; their IDs stay the same, because runs refer to them."""

    def renamed(client: Mapping[str, str | None]) -> dict[str, str | None]:
        return {key: other if old == name else old for key, old in client.items()}

    sets = [{**row, "clients": [*map(renamed, row["clients"])]} for row in _sets(delta, name)]
    for first in range(0, len(sets), _AT_ONCE):
        rows = sets[first : first + _AT_ONCE]
        write_deltalake(
            delta, pa.Table.from_pylist(rows, row_schema(tables.MEMBERS)), mode="overwrite",
            schema_mode=schema_mode(tables.MEMBERS, delta),
            predicate=f"{identifier('set')} IN {texts(row['set'] for row in rows)}",
            writer_properties=writer_properties(tables.MEMBERS), commit_properties=_COMMIT,
        )  # fmt: skip
    return len(sets)


def _sets(delta: DeltaTable, name: str) -> list[dict[str, Any]]:
    """Return the sets with a client of this name."""
    names = ", ".join(map(identifier, tables.MEMBERS.column_names))
    rows = query(delta, f"SELECT {names} FROM {TABLE} WHERE kind = 'clients'")
    return [row for row in rows if any(name in client.values() for client in row["clients"])]


def _has(table: tables.Table, name: str) -> str:
    return " OR ".join(f"{identifier(own)} = {standard_text(name)}" for own in _columns(table))


def _columns(table: tables.Table) -> tuple[str, ...]:
    return tuple(
        column for column in ("user", "user_name", "client_id") if column in table.column_names
    )
