"""The layout of bronze in Parquet, as agents and the maintenance write it.

It is apart from the declarations because it needs deltalake, which a Spark cluster lacks. The
settings were measured (docs/storage.md) and are readable by Spark 4.2, DuckDB and delta-rs. No
BYTE_STREAM_SPLIT: Spark reads it fast from 4.3 on only, and Delta for that is not out.
"""

from typing import Final

from deltalake import ColumnProperties, WriterProperties

from lakehouse.tables.table import Table

# An hour of a date is then a few row groups, which a reader finds by their statistics.
_ROW_GROUP_ROWS: Final = 131_072
# All values of a row group in one page: what repeats from batch to batch is then seen to repeat.
_PAGE_BYTES: Final = _ROW_GROUP_ROWS * 16

_AGENT_LEVEL: Final = 3  # memory and processor of a broker's host, for files that live an hour
COMPACTED_LEVEL: Final = 19  # once, elsewhere, for files that live for years

# Instants and amounts repeat in sequences, which Zstandard finds as long as they lie on bytes.
# DELTA_BINARY_PACKED and dictionaries pack them into bits, and hide them from it.
_PLAIN: Final = ("int", "bigint", "timestamp", "double")
_FOUND_BY: Final = ("cluster", "source", "start", "end")


def writer_properties(table: Table, level: int = _AGENT_LEVEL) -> WriterProperties:
    """Properties for an agent's commits, small files that are compacted soon, or for another level.

    Only columns by which readers skip files and row groups have statistics.
    """
    found_by = (*table.sort_by, *_FOUND_BY)
    return WriterProperties(
        compression="ZSTD",
        compression_level=level,
        max_row_group_size=_ROW_GROUP_ROWS,
        data_page_row_count_limit=_ROW_GROUP_ROWS,
        data_page_size_limit=_PAGE_BYTES,
        default_column_properties=ColumnProperties(statistics_enabled="NONE"),
        column_properties={
            column.name: ColumnProperties(
                dictionary_enabled=column.type not in _PLAIN,
                statistics_enabled="CHUNK" if column.name in found_by else "NONE",
            )
            for column in table.columns
            if "<" not in column.type
        },
    )
