"""Declared columns and tables: plain data without an engine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Shelf = Literal["", "windows", "state"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its Spark SQL type and its meaning.

    Attributes:
        over: Aggregate that combines rows of several windows or parts: ``sum``, ``max``, ``min``,
            ``any``, ``first`` (the value of the first window) or ``mean`` (computed again from the
            sums). Empty: it is a key, by which rows are grouped.
        nullable: Whether it can be null. A measure is null if it is unknown.
    """

    name: str
    type: str
    comment: str
    over: str = ""
    nullable: bool = True

    @property
    def ddl(self) -> str:
        """The column as a Spark DDL fragment."""
        required = "" if self.nullable else " NOT NULL"
        comment = spark_text(self.comment)
        return f"{spark_identifier(self.name)} {self.type}{required} COMMENT {comment}"


def identifier(*parts: str, quote: str = '"') -> str:
    """Return a name as an identifier of SQL, which no character of the name can end.

    Args:
        parts: The name; several parts are joined by dots.
        quote: Quotation mark of the dialect: ``"`` in standard SQL (DataFusion, DuckDB, Trino).
    """
    return ".".join(f"{quote}{part.replace(quote, 2 * quote)}{quote}" for part in parts)


def spark_identifier(*parts: str) -> str:
    """Return a name as an identifier of Spark SQL."""
    return identifier(*parts, quote="`")


def spark_text(text: str) -> str:
    """Return a text as a literal of Spark SQL, in which a backslash escapes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def standard_text(text: str) -> str:
    """Return a text as a literal of standard SQL (DataFusion, DuckDB, Trino)."""
    return "'" + text.replace("'", "''") + "'"


def texts(values: Iterable[str]) -> str:
    """Return a list of string literals."""
    return f"({', '.join(map(standard_text, values))})"


@dataclass(frozen=True, slots=True)
class Table:
    """One Delta table of a lake; ``path`` is relative to the lake's root.

    Attributes:
        layer: bronze or gold.
        name: Its name below the layer.
        comment: Meaning of a row.
        columns: In the order in which rows are written.
        partition_by: Columns by which its files are partitioned.
        cluster_by: Columns by which a catalog that manages the files clusters it instead.
        sort_by: Columns by which the rows of one commit are sorted, nulls first.
        properties: Delta table properties.
        shelf: Schema in a catalog. Empty: the schema of the layer. Tables of windows and of the
            rollup's state have schemas of their own, so readers of gold find only tables for them.
            Folders are the same.
    """

    layer: str
    name: str
    comment: str
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict, hash=False)
    shelf: Shelf = ""
    cluster_by: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Path of the table in a lake."""
        return f"{self.layer}/{self.name}"

    @property
    def ddl(self) -> str:
        """All columns as Spark DDL."""
        return ", ".join(column.ddl for column in self.columns)

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that identify a row, without its date and its hour or window."""
        places = {"date", HOUR.name, WINDOW_START.name}
        return tuple(c.name for c in self.columns if not c.over and c.name not in places)

    @property
    def start(self) -> str:
        """Column with the start of a row's hour or window. Empty: the table has none."""
        return next((c.name for c in self.columns if c in {HOUR, WINDOW_START}), "")

    @property
    def measures(self) -> tuple[Column, ...]:
        """Columns that can be combined over windows."""
        return tuple(column for column in self.columns if column.over)

    @property
    def positions(self) -> dict[str, int]:
        """Index of each column in a row, by name."""
        return {column.name: at for at, column in enumerate(self.columns)}

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns' names in order."""
        return tuple(column.name for column in self.columns)

    def declared(self, names: Iterable[str]) -> tuple[Column, ...]:
        """Return the declared columns that are among some names, in order."""
        found = set(names)
        return tuple(column for column in self.columns if column.name in found)

    def wrong_types(self, types: Mapping[str, str]) -> list[str]:
        """Return a text for each declared column that has another type.

        Args:
            types: Types of the existing columns by name, in the form of Spark.
        """
        return [
            f"{column.name} is {types[column.name]}, not {column.type}"
            for column in self.declared(types)
            if types[column.name] != column.type.lower()
        ]

    def undeclared(self, names: Iterable[str]) -> list[str]:
        """Return the names without a declared column, sorted."""
        return sorted(set(names).difference(self.column_names))


def required(name: str, type_: str, comment: str, over: str = "") -> Column:
    """Return a column that is never null."""
    return Column(name, type_, comment, over, nullable=False)


def delta_type(type_: Any) -> str:
    """Return a type of Delta in the form of the declarations."""
    if hasattr(type_, "element_type"):
        return f"array<{delta_type(type_.element_type)}>"
    if hasattr(type_, "key_type"):
        return f"map<{delta_type(type_.key_type)},{delta_type(type_.value_type)}>"
    if hasattr(type_, "fields"):
        return f"struct<{','.join(f'{one.name}:{delta_type(one.type)}' for one in type_.fields)}>"
    name = str(type_.type)
    return {"integer": "int", "long": "bigint"}.get(name, name)


CLUSTER: Final = required("cluster", "string", "Kafka cluster id")
SOURCE: Final = required(
    "source", "string", "name of the source: broker-1, controller-3000, client-x"
)
HOUR: Final = required("hour", "timestamp", "start of the hour, UTC")
WINDOW_START: Final = required("window_start", "timestamp", "start of the window, UTC")


GOLD_PROPERTIES: Final = {
    "delta.enableDeletionVectors": "false",  # not every engine reads them
    # A rollup every five minutes makes 288 commits a day, and each removes files. A reader has a
    # day to finish; jmxlake never reads older versions.
    "delta.logRetentionDuration": "interval 2 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
    "delta.checkpointInterval": "50",
}
"""Delta properties of tables that a rollup can recompute."""

KEPT_PROPERTIES: Final = {
    **GOLD_PROPERTIES,
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
}
"""Delta properties of published results, which cannot be recomputed without bronze."""


def of_gold(
    name: str, comment: str, *columns: Column, partition_by: tuple[str, ...] = (),
    cluster_by: tuple[str, ...] = (), properties: dict[str, str] = GOLD_PROPERTIES,
    shelf: Shelf = "",
) -> Table:  # fmt: skip
    """Return a table of gold."""
    return Table(
        "gold", name, comment, columns, partition_by, properties=properties, shelf=shelf,
        cluster_by=cluster_by,
    )  # fmt: skip
