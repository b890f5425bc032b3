"""Metric views of Unity Catalog and Spark 4.2, from the declarations in ``metric_views.yaml``.

The definitions have version 0.1 of the specification, which both read. That version has no
comments, so the column list of the statement has them.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

import msgspec

from lakehouse.tables.table import spark_identifier, spark_text


class _Declared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    comment: str
    source: str
    dimensions: tuple[str, ...]
    filter: str = ""
    sum: tuple[str, ...] = ()
    max: tuple[str, ...] = ()
    measures: Mapping[str, tuple[str, str]] = {}


class MetricView(NamedTuple):
    """A metric view.

    Attributes:
        name: Name of the metric view.
        comment: Description of its measures.
        source: The view that it reads.
        filter: Condition on rows of the source. Empty: all rows.
        dimensions: Columns of the source.
        measures: Aggregate expressions by name.
        comments: Comments by name of a dimension or measure, in order.
    """

    name: str
    comment: str
    source: str
    filter: str
    dimensions: tuple[str, ...]
    measures: Mapping[str, str]
    comments: Mapping[str, str]


@lru_cache
def _declared() -> Mapping[str, _Declared]:
    text = resources.files(__package__).joinpath("metric_views.yaml").read_bytes()
    return msgspec.yaml.decode(text, type=dict[str, _Declared])


def metric_views(columns: Mapping[str, Mapping[str, str]]) -> Iterator[MetricView]:
    """Yield the metric views.

    Args:
        columns: Comments of the columns of each view, by name.

    Raises:
        KeyError: A declaration names a view or column that does not exist.
    """
    for name, one in _declared().items():
        known = columns[one.source]
        plain = {
            column: f"{function}({column})"
            for function, names in (("sum", one.sum), ("max", one.max))
            for column in names
        }
        comments = {column: known[column] for column in (*one.dimensions, *plain)}
        comments |= {measure: comment for measure, (_, comment) in one.measures.items()}
        measures = plain | {measure: sql for measure, (sql, _) in one.measures.items()}
        yield MetricView(
            name, one.comment, one.source, one.filter, one.dimensions, measures, comments
        )


def statement(one: MetricView, name: str, source: str) -> str:
    """Return the statement that creates a metric view.

    Args:
        one: The metric view.
        name: Its name in SQL.
        source: Name of its source in SQL.
    """
    listed = ",\n".join(
        f"    {spark_identifier(column)} COMMENT {spark_text(comment)}"
        for column, comment in one.comments.items()
    )
    return (
        f"CREATE OR REPLACE VIEW {name} (\n{listed})\nWITH METRICS\nLANGUAGE YAML\n"
        f"COMMENT {spark_text(one.comment)}\nAS $$\n{_definition(one, source)}$$"
    )


def _definition(one: MetricView, source: str) -> str:
    columns = [{"name": name, "expr": name} for name in one.dimensions]
    measures = [{"name": name, "expr": sql} for name, sql in one.measures.items()]
    filtered = {"filter": one.filter} if one.filter else {}
    definition = {"version": "0.1", "source": source, **filtered}
    return msgspec.yaml.encode(definition | {"dimensions": columns, "measures": measures}).decode()
