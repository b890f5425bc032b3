"""How bronze is laid out in Parquet, by whoever writes it: agents and the maintenance.

Apart from the declarations, because it needs deltalake and a Spark cluster has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalake import ColumnProperties, WriterProperties

if TYPE_CHECKING:
    from lakehouse.tables.columns import Table

# An hour of a date is then a few row groups, which a reader finds by their statistics.
_ROW_GROUP_ROWS: Final = 131_072
_PACKED: Final = ("int", "bigint", "timestamp")


def writer_properties(table: Table) -> WriterProperties:
    """Zstandard, dictionaries for strings, differences for whole numbers and instants.

    No BYTE_STREAM_SPLIT: Spark reads it fast from 4.3 on only, and Delta for that is not out.
    """
    packed = ColumnProperties(dictionary_enabled=False, encoding="DELTA_BINARY_PACKED")
    return WriterProperties(
        compression="ZSTD",
        compression_level=3,
        max_row_group_size=_ROW_GROUP_ROWS,
        column_properties={
            column.name: packed for column in table.columns if column.type in _PACKED
        },
    )
