"""Parquet layout of bronze for agents and the maintenance.

It is a module of its own because it needs deltalake, which a Spark cluster does not have. The
settings were measured (bench/README.md). Spark 4.2, DuckDB and delta-rs can read the files.
BYTE_STREAM_SPLIT is not used, because Spark reads it fast only from 4.3, for which Delta was not
released.
"""

from typing import Final

from deltalake import ColumnProperties, WriterProperties

from lakehouse.tables.table import Table

# An hour is then a few row groups, which a reader finds with their statistics.
_ROW_GROUP_ROWS: Final = 131_072
# A row group has one page, so Zstandard finds values that repeat from batch to batch.
_PAGE_BYTES: Final = _ROW_GROUP_ROWS * 16

_AGENT_LEVEL: Final = 3  # a broker's host has little CPU time, and the files exist for an hour
COMPACTED_LEVEL: Final = 19  # the files exist for years

# Instants and amounts repeat in sequences, which Zstandard finds only at byte boundaries.
# DELTA_BINARY_PACKED and dictionaries pack them into bits.
_PLAIN: Final = ("int", "bigint", "timestamp", "double")
_FOUND_BY: Final = ("cluster", "source", "start", "end")


def writer_properties(table: Table, level: int = _AGENT_LEVEL) -> WriterProperties:
    """Return the properties for an agent's commits, or for another compression level.

    Only columns with which readers skip files and row groups have statistics.
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
