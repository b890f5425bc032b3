"""Metric views of Unity Catalog and Spark 4.2, from the declarations in ``metric_views.yaml``.

The definitions have version 0.1 of the specification, which both read. That version has no
comments, so the column list of the statement has them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

import yaml

from lakehouse.tables.table import spark_identifier, spark_text


@dataclass(frozen=True, slots=True)
class _Declared:
    """A declaration, with the keys of the file."""

    comment: str
    source: str
    dimensions: Sequence[str]
    filter: str = ""
    sum: Sequence[str] = ()
    max: Sequence[str] = ()
    measures: Mapping[str, Sequence[str]] = field(default_factory=dict)


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
    dimensions: Sequence[str]
    measures: Mapping[str, str]
    comments: Mapping[str, str]


@lru_cache
def _declared() -> Mapping[str, _Declared]:
    text = resources.files(__package__).joinpath("metric_views.yaml").read_text("utf-8")
    return {name: _Declared(**keys) for name, keys in yaml.safe_load(text).items()}


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
    definition = {
        "version": "0.1", "source": source, **filtered, "dimensions": columns, "measures": measures,
    }  # fmt: skip
    return yaml.safe_dump(definition, sort_keys=False, width=1_000)
