"""Selected rows of a gold table as Parquet, CSV or OpenMetrics, in an atomic file."""

import datetime as dt
import json
import math
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.core.delta_rs import TABLE, query
from lakehouse.core.periods import Period, micros
from lakehouse.errors import LakehouseError
from lakehouse.tables.table import identifier, standard_text, texts

# Without Arrow's schema, readers use the Parquet types.
_OPTIONS: Final = "('format.compression' 'zstd(9)', 'format.skip_arrow_metadata' 'true')"

Read = Callable[[tuple[str, ...], str], Iterable[Mapping[str, Any]]]
"""Returns the rows with a figure; its arguments are the columns in sort order and the figure."""

# Prometheus ignores an empty label, and cannot read NUL.
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"', "\0": "\u2400"})
_IN_HELP: Final = str.maketrans({"\\": "\\\\", "\n": "\\n"})
SUBJECT: Final = "subject"
"""Label with the label names of a series, including empty labels, for optional labels."""

_FORMS: Final = {
    tables.TOPICS.name: ("topic", ""),
    tables.PARTITIONS.name: ("partition", ""),
    tables.CLIENTS.name: ("client", ""),
    tables.GROUPS.name: ("group", ""),
    tables.SOURCES.name: ("source", ""),
    tables.LABELLED.name: ("series", ""),
    tables.COVERAGE.name: ("source", "jmxlake_coverage"),
    tables.SLI.name: ("objective", "jmxlake_sli"),
    tables.CONSUMER_LAG.name: ("group", "kafka_consumer_lag"),
    tables.LOST_OFFSETS.name: ("group", "kafka_group_non_consumed"),
}
OPENMETRICS: Final = _FORMS | {tables.WINDOWS[name].name: form for name, form in _FORMS.items()}
"""Tables that can be exported as OpenMetrics. Each has the subject type of its series, and the name
of the metric if it has no column ``metric``. Rows of the other tables are not samples."""


def selected(
    table: tables.Table, period: Period | None, metrics: Sequence[str], columns: Sequence[str],
    present: str | None = None,
) -> str:  # fmt: skip
    """Return the query for rows of a gold table, sorted by key columns with timestamps last.

    Args:
        table: The table.
        period: Period of the window starts. None: all windows.
        metrics: Names of metrics. Empty: all metrics.
        columns: Names of the selected columns.
        present: A column that must not be null.
    """
    types = {column.name: column.type for column in table.columns}
    keys = [name for name in columns if types.get(name) in {"string", "int", "timestamp"}]
    keys.sort(key=lambda name: types[name] == "timestamp")
    conditions = []
    if metrics:
        conditions.append(f"metric IN {texts(metrics)}")
    if period is not None:
        for operator, at in ((">=", period.start), ("<", period.end)):
            # With a constant of the column's type, statistics exclude files.
            instant = f"arrow_cast({micros(at)}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
            conditions.append(f"{identifier(start_of(table))} {operator} {instant}")
    if present is not None:
        conditions.append(f"{identifier(present)} IS NOT NULL")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    names, order = (", ".join(map(identifier, several)) for several in (columns, keys))
    return f"SELECT {names} FROM {TABLE}{where} ORDER BY {order}"


def start_of(table: tables.Table) -> str:
    """Return the time column of a table; empty for tables without time."""
    return table.start or ("period_start" if table is tables.SLA else "")


@contextmanager
def _replaced(file: Path) -> Iterator[Path]:
    """Yield a temporary file that replaces the file at the end; delete it after an error.

    Raises:
        LakehouseError: The file cannot be written.
    """
    part = file.with_name(f".{file.name}.{uuid.uuid4().hex}.parquet")
    try:
        yield part
        part.replace(file)
    except OSError as error:
        raise LakehouseError(f"{file}: {error.strerror}. Choose a writable file (--out)") from error
    finally:
        part.unlink(missing_ok=True)


def write_lines(lines: Iterable[str], file: Path | None, nothing: str) -> int:
    """Write lines to a file, or to standard output.

    Args:
        lines: The lines.
        file: The file. None: standard output.
        nothing: Error message for an empty result, which creates no file.

    Returns:
        Number of lines.

    Raises:
        LakehouseError: The file cannot be written, or the result is empty.
    """
    if file is None:
        return _write(lines, sys.stdout.buffer, nothing)
    with _replaced(file) as part, part.open("xb") as stream:
        return _write(lines, stream, nothing)


def _write(lines: Iterable[str], stream: BinaryIO, nothing: str) -> int:
    count = 0
    for line in lines:
        stream.write(line.encode())
        count += 1
    if not count:
        raise LakehouseError(nothing)
    stream.flush()
    return count


def write_parquet(delta: DeltaTable, sql: str, file: Path, nothing: str) -> int:
    """Write the rows of a query as one Parquet file, with the query engine of delta-rs.

    Args:
        delta: The table.
        sql: The query, as for ``delta_rs.query``.
        file: The file.
        nothing: Error message for an empty result, which creates no file.

    Returns:
        Number of rows.

    Raises:
        LakehouseError: The table or the file is inaccessible, or the result is empty.
    """
    with _replaced(file) as part:
        # A URL, because the engine would interpret some characters of a path as a pattern.
        target = standard_text(part.resolve().as_uri())
        copy = f"COPY ({sql}) TO {target} STORED AS PARQUET OPTIONS {_OPTIONS}"
        (row,) = query(delta, copy)
        if not row["count"]:
            raise LakehouseError(nothing)
    return int(row["count"])


def csv_lines(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a header and a line for each row, as in RFC 4180; nothing without rows.

    Text is quoted, so that null differs from empty text.
    """
    for number, row in enumerate(rows):
        if number == 0:
            yield ",".join(map(_quoted, columns)) + "\n"
        yield ",".join(_cell(row[name]) for name in columns) + "\n"


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case dt.date():
            return _iso(value)
        case str():
            return _quoted(value)
    pairs = isinstance(value, list) and all(isinstance(item, tuple) for item in value)
    content = dict(value) if pairs else value
    return _quoted(json.dumps(content, ensure_ascii=False, default=_iso))


def _iso(value: dt.date) -> str:
    if isinstance(value, dt.datetime):
        return f"{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat()}Z"
    return value.isoformat()


def _quoted(text: str) -> str:
    """Return a quoted text for CSV."""
    return '"' + text.replace('"', '""') + '"'


def openmetrics_lines(table: tables.Table, seconds: int, read: Read) -> Iterator[str]:
    """Yield the lines of a table as OpenMetrics; nothing without samples.

    A metric family is a figure of a metric for a subject type. Its name follows the convention of
    recording rules: ``topic:kafka_partition_under_min_isr:affected_seconds``. The colons mark a
    computed value. The timestamp of a sample is the end of its window. A figure that is null in
    gold has no sample; it does not become zero.

    Args:
        table: One of ``OPENMETRICS``.
        seconds: Length of its windows.
        read: Called once per figure, because the samples of a family must be adjacent.

    Raises:
        LakehouseError: Two metrics would have the same name.
    """
    (level, name), length_us, empty = OPENMETRICS[table.name], seconds * 1_000_000, True
    labels = [key for key in table.keys if key not in {"cluster", "metric"}]
    is_optional = any(column.nullable for column in table.columns if column.name in labels)
    by = (*([] if name else ["metric"]), "cluster", *labels, table.start)
    for column in table.measures:
        metrics: dict[str, str] = {}
        figure = re.sub("_us$", "_seconds", column.name)
        for row in read((*by, column.name), column.name):
            metric = name or row["metric"]
            family = f"{level}:{re.sub('[^a-zA-Z0-9_]', '_', metric)}:{figure}"
            if family not in metrics:
                comment = column.comment
                if figure != column.name:
                    comment = comment.replace("microseconds", "seconds")
                about = f"{metric}: {comment}".translate(_IN_HELP)
                yield f"# TYPE {family} gauge\n"
                yield f"# HELP {family} {about}\n"
            if metrics.setdefault(family, metric) != metric:
                raise LakehouseError(
                    f"{metric} and {metrics[family]} have the same Prometheus name {family}. "
                    "Export them separately with --metric"
                )
            value = _value(row[column.name], column.name)
            if value is not None:
                at = (micros(row[table.start]) + length_us) // 1_000_000
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
