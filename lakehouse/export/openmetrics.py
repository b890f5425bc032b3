"""Rows of gold as OpenMetrics text, with instants: what Prometheus takes as a backfill.

A family of metrics is a figure of a metric at a level, named as recording rules are:
``topic:kafka_partition_under_min_isr:positive_seconds``. Colons tell that it was computed. A sample
bears the end of its window: what it says is of the time before. What is unknown is null in gold,
and is not there; nothing is made zero.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lakehouse import tables
from lakehouse.errors import LakehouseError
from lakehouse.periods import micros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from lakehouse.maintain.place import Row
    from lakehouse.tables import Table

    Read = Callable[[tuple[str, ...], str], Iterable[Row]]
    """Gives the rows that have a figure: columns to read, sorted by them, and which figure."""

_NO_NAME: Final = re.compile(r"[^a-zA-Z0-9_]")
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})
_IN_HELP: Final = str.maketrans({"\\": "\\\\", "\n": "\\n"})
# Prometheus takes a label that is empty for one that is not there, and reads no NUL.
_NUL: Final = "\u2400"
_FIGURES: Final = ("bigint", "double", "boolean")
SUBJECT: Final = "subject"
"""Label that names the labels a series has, where not all have the same: an empty one counts."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a table of gold is told.

    Attributes:
        level: What a series is of.
        name: What is told, where rows are not of a metric each.
        labels: Columns that tell series apart, beside cluster and metric.
        optional: Whether some of these may be null.
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
    tables.COVERAGE.name: Form("source", ("source", "family", "outcome"), "jmxlake_coverage"),
    tables.SLI.name: Form("objective", _SUBJECT, "jmxlake_sli", optional=True),
    tables.NON_CONSUMED.name: Form(
        "group", ("group", "topic", "partition"), "kafka_group_non_consumed", optional=True
    ),
}
FORMS: Final = _FORMS | {tables.WINDOWS[name].name: form for name, form in _FORMS.items()}
"""The tables that can be told; of others no sample of a number at an instant can be made."""


def lines(table: Table, seconds: int, read: Read) -> Iterator[str]:
    """A table as OpenMetrics, line by line; nothing at all where there are no samples.

    Args:
        table: One of ``FORMS``.
        seconds: Length of its windows.
        read: Asked once for each figure, for a family's samples must stand together.

    Raises:
        LakehouseError: Two metrics would have one name.
    """
    form, length_us, told = FORMS[table.name], seconds * 1_000_000, False
    by = (*(() if form.name else ("metric",)), "cluster", *form.labels, "window")
    for column in figures(table):
        named: dict[str, str] = {}
        for row in read((*by, column.name), column.name):
            metric = form.name or row["metric"]
            family = f"{form.level}:{_NO_NAME.sub('_', metric)}:{_figure(column.name)}"
            if family not in named:
                about = f"{metric}: {column.comment}".translate(_IN_HELP)
                yield f"# TYPE {family} gauge\n"
                yield f"# HELP {family} {about}\n"
            if named.setdefault(family, metric) != metric:
                raise LakehouseError(
                    f"{metric} and {named[family]} would have the same name in Prometheus, "
                    f"{family}: export them one by one, with --metric"
                )
            value = _value(row[column.name], column.name)
            if value is not None:
                at = (micros(row["window"]) + length_us) // 1_000_000
                yield f"{family}{_labels(row, form)} {value} {at}\n"
            told = True
    if told:
        yield "# EOF\n"


def figures(table: Table) -> list[tables.Column]:
    """The columns of a table that hold a number."""
    return [one for one in table.columns if one.type in _FIGURES]


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
    there = [one for one in form.labels if row[one] is not None]
    told = [("cluster", row["cluster"]), *((one, row[one]) for one in there)]
    if form.optional:
        told.append((SUBJECT, ",".join(there)))
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in told) + "}"


def _escaped(value: Any) -> str:
    return str(value).translate(_ESCAPES).replace("\0", _NUL)
