"""Rows of gold as OpenMetrics text with timestamps, as a backfill for Prometheus.

A family of metrics is a figure of a metric at a level, named as recording rules are:
``topic:kafka_partition_under_min_isr:positive_seconds``. The colons mark a computed value. The
timestamp of a sample is the end of its window. A figure that is null in gold has no sample; nothing
becomes zero.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lakehouse import tables
from lakehouse.core.periods import micros
from lakehouse.errors import LakehouseError

Read = Callable[[tuple[str, ...], str], Iterable[Mapping[str, Any]]]
"""Gives the rows with a figure: takes the columns, by which it sorts, and the figure."""

_NO_NAME: Final = re.compile(r"[^a-zA-Z0-9_]")
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})
_IN_HELP: Final = str.maketrans({"\\": "\\\\", "\n": "\\n"})
# Prometheus ignores an empty label, and cannot read NUL.
_NUL: Final = "\u2400"
_FIGURES: Final = ("bigint", "double", "boolean")
SUBJECT: Final = "subject"
"""Label with the names of a series' labels, empty ones too, for tables with optional labels."""


@dataclass(frozen=True, slots=True)
class Form:
    """The format of a table of gold.

    Attributes:
        level: Kind of subject of a series.
        labels: Columns that identify a series, beside cluster and metric.
        name: Name of the metric, for a table without a column ``metric``.
        optional: Whether some labels may be null.
    """

    level: str
    labels: tuple[str, ...]
    name: str | None = None
    optional: bool = False


_SUBJECT: Final = ("objective", "topic", "user", "client_id", "group", "source")
_FORMS: Final = {
    tables.TOPICS.name: Form("topic", ("topic",)),
    tables.PARTITIONS.name: Form("partition", ("topic", "partition")),
    tables.CLIENTS.name: Form("client", ("user", "client_id"), optional=True),
    tables.GROUPS.name: Form("group", ("group", "topic"), optional=True),
    tables.BROKERS.name: Form("broker", ("source",)),
    tables.LABELLED.name: Form("series", ("source", "labels")),
    tables.COVERAGE.name: Form("source", ("source", "family", "outcome"), "jmxlake_coverage"),
    tables.SLI.name: Form("objective", _SUBJECT, "jmxlake_sli", optional=True),
    tables.CONSUMER_LAG.name: Form("group", ("group", "topic"), "kafka_consumer_lag"),
    tables.NON_CONSUMED.name: Form(
        "group", ("group", "topic", "partition"), "kafka_group_non_consumed", optional=True
    ),
}
FORMS: Final = _FORMS | {tables.WINDOWS[name].name: form for name, form in _FORMS.items()}
"""The tables that can be exported; rows of the others are not numbers at an instant."""


def lines(table: tables.Table, seconds: int, read: Read) -> Iterator[str]:
    """A table as OpenMetrics, line by line; nothing if there are no samples.

    Args:
        table: One of ``FORMS``.
        seconds: Length of its windows.
        read: Called once for each figure, because the samples of a family must be adjacent.

    Raises:
        LakehouseError: Two metrics would have the same name.
    """
    form, length_us, empty = FORMS[table.name], seconds * 1_000_000, True
    by = (*(() if form.name else ("metric",)), "cluster", *form.labels, "window")
    for column in figures(table):
        metrics: dict[str, str] = {}
        for row in read((*by, column.name), column.name):
            metric = form.name or row["metric"]
            family = f"{form.level}:{_NO_NAME.sub('_', metric)}:{_figure(column.name)}"
            if family not in metrics:
                about = f"{metric}: {column.comment}".translate(_IN_HELP)
                yield f"# TYPE {family} gauge\n"
                yield f"# HELP {family} {about}\n"
            if metrics.setdefault(family, metric) != metric:
                raise LakehouseError(
                    f"{metric} and {metrics[family]} would have the same name in Prometheus, "
                    f"{family}: export them one by one, with --metric"
                )
            value = _value(row[column.name], column.name)
            if value is not None:
                at = (micros(row["window"]) + length_us) // 1_000_000
                yield f"{family}{_labels(row, form)} {value} {at}\n"
            empty = False
    if not empty:
        yield "# EOF\n"


def figures(table: tables.Table) -> list[tables.Column]:
    """The numeric columns of a table."""
    return [column for column in table.columns if column.type in _FIGURES]


def _figure(column: str) -> str:
    return f"{column.removesuffix('_us')}_seconds" if column.endswith("_us") else column


def _value(value: Any, column: str) -> str | None:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        return repr(value / 1_000_000) if column.endswith("_us") else str(value)
    if math.isnan(value):
        return None
    return repr(value) if math.isfinite(value) else f"{'+' if value > 0 else '-'}Inf"


def _labels(row: Mapping[str, Any], form: Form) -> str:
    present = [name for name in form.labels if row[name] is not None]
    labels = {name: row[name] for name in ("cluster", *present)}
    if form.optional:
        labels[SUBJECT] = ",".join(present)
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: Any) -> str:
    return str(value).translate(_ESCAPES).replace("\0", _NUL)
