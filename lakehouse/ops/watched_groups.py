"""The table control/watched_groups without Spark: create it, add a row, list its rows."""

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

from arro3.core import Array, DataType, Table, list_array
from deltalake import CommitProperties, DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import ArrayType, PrimitiveType

from lakehouse.core.delta_rs import TABLE, Location, delta_errors, query
from lakehouse.errors import LakehouseError
from lakehouse.tables import WATCHED_GROUPS, watched_groups_fault

_COMMIT: Final = CommitProperties({"jmxlake": "watched-groups"})
# Otherwise the second of two creates version 1.
_CREATION: Final = CommitProperties({"jmxlake": "watched-groups"}, max_commit_retries=0)


def create(location: Location) -> None:
    """Create the table if it does not exist.

    Raises:
        MaintenanceError: The lake cannot be written.
    """
    url = location.url(WATCHED_GROUPS)
    fields = [
        Field(one.name, _type(one.type), nullable=one.nullable, metadata={"comment": one.comment})
        for one in WATCHED_GROUPS.columns
    ]
    with delta_errors(url):
        DeltaTable.create(
            url, Schema(fields), mode="ignore", description=WATCHED_GROUPS.comment,
            configuration=WATCHED_GROUPS.properties, storage_options=location.options,
            commit_properties=_CREATION,
        )  # fmt: skip


def add(
    location: Location, topic: str, groups: Sequence[str], set_by: str | None, at: dt.datetime
) -> None:
    """Append a row, which replaces older rows of the topic.

    Raises:
        LakehouseError: The row is invalid.
        MaintenanceError: The table cannot be written.
    """
    why = watched_groups_fault(topic, groups)
    if why is not None:
        raise LakehouseError(f"watched groups of {topic[:100]!r}: {why}")
    offsets = Array([0, len(groups)], DataType.int32())
    micros = Array([round(at.timestamp() * 1e6)], DataType.int64())
    columns = [
        Array([topic], DataType.utf8()),
        list_array(offsets, Array([*groups], DataType.utf8())),
        Array([set_by], DataType.utf8()),
        micros.cast(DataType.timestamp("us", tz="UTC")),
    ]
    rows = Table.from_arrays(columns, names=list(WATCHED_GROUPS.column_names))
    delta = location.open(WATCHED_GROUPS)
    with delta_errors(location.url(WATCHED_GROUPS)):
        write_deltalake(delta, rows, mode="append", commit_properties=_COMMIT)


def rows(location: Location) -> list[dict[str, Any]]:
    """Return all rows, the newest of each topic first.

    Raises:
        TableNotFoundError: The table does not exist.
        MaintenanceError: The table cannot be read.
    """
    columns = ", ".join(WATCHED_GROUPS.column_names)
    sql = f"SELECT {columns} FROM {TABLE} ORDER BY topic, set_at DESC NULLS LAST"
    return list(query(location.open(WATCHED_GROUPS), sql))


def _type(name: str) -> PrimitiveType | ArrayType:
    inner = name.removeprefix("array<").removesuffix(">")
    return PrimitiveType(name) if inner == name else ArrayType(PrimitiveType(inner))
