"""Rows of gold as OpenMetrics text with timestamps, as a backfill for Prometheus.

A family of metrics is a figure of a metric at a level, named as recording rules are:
``topic:kafka_partition_under_min_isr:positive_seconds``. The colons mark a computed value. The
timestamp of a sample is the end of its window. A figure that is null in gold has no sample; nothing
becomes zero.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from lakehouse import tables
from lakehouse.core.periods import micros
from lakehouse.errors import LakehouseError

Read = Callable[[tuple[str, ...], str], Iterable[Mapping[str, Any]]]
"""Gives the rows with a figure: takes the columns, by which it sorts, and the figure."""

# Prometheus ignores an empty label, and cannot read NUL.
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"', "\0": "\u2400"})
_IN_HELP: Final = str.maketrans({"\\": "\\\\", "\n": "\\n"})
SUBJECT: Final = "subject"
"""Label with the names of a series' labels, empty ones too, for tables with optional labels."""

_FORMS: Final = {
    tables.TOPICS.name: ("topic", ""),
    tables.PARTITIONS.name: ("partition", ""),
    tables.CLIENTS.name: ("client", ""),
    tables.GROUPS.name: ("group", ""),
    tables.BROKERS.name: ("broker", ""),
    tables.LABELLED.name: ("series", ""),
    tables.COVERAGE.name: ("source", "jmxlake_coverage"),
    tables.SLI.name: ("objective", "jmxlake_sli"),
    tables.CONSUMER_LAG.name: ("group", "kafka_consumer_lag"),
    tables.NON_CONSUMED.name: ("group", "kafka_group_non_consumed"),
}
FORMS: Final = _FORMS | {tables.WINDOWS[name].name: form for name, form in _FORMS.items()}
"""The tables that can be exported, each with the kind of subject of its series, and the name of the
metric where it has no column ``metric``; rows of the others are not numbers at an instant."""


def lines(table: tables.Table, seconds: int, read: Read) -> Iterator[str]:
    """A table as OpenMetrics, line by line; nothing if there are no samples.

    Args:
        table: One of ``FORMS``.
        seconds: Length of its windows.
        read: Called once for each figure, because the samples of a family must be adjacent.

    Raises:
        LakehouseError: Two metrics would have the same name.
    """
    (level, name), length_us, empty = FORMS[table.name], seconds * 1_000_000, True
    labels = [key for key in table.keys if key not in {"cluster", "metric"}]
    is_optional = any(one.nullable for one in table.columns if one.name in labels)
    by = (*([] if name else ["metric"]), "cluster", *labels, "window")
    for column in table.measures:
        metrics: dict[str, str] = {}
        figure = re.sub("_us$", "_seconds", column.name)
        for row in read((*by, column.name), column.name):
            metric = name or row["metric"]
            family = f"{level}:{re.sub('[^a-zA-Z0-9_]', '_', metric)}:{figure}"
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
                yield f"{family}{_labels(row, labels, optional=is_optional)} {value} {at}\n"
            empty = False
    if not empty:
        yield "# EOF\n"


def _value(value: Any, column: str) -> str | None:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        return repr(value / 1_000_000) if column.endswith("_us") else str(value)
    if math.isnan(value):
        return None
    return repr(value) if math.isfinite(value) else f"{'+' if value > 0 else '-'}Inf"


def _labels(row: Mapping[str, Any], names: Sequence[str], *, optional: bool) -> str:
    present = [name for name in names if row[name] is not None]
    labels = {name: str(row[name]).translate(_ESCAPES) for name in ("cluster", *present)}
    if optional:
        labels[SUBJECT] = ",".join(present)
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
