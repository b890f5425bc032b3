"""Rows as files: CSV and Parquet; a file is there whole or not at all."""

from __future__ import annotations

import datetime as dt
import json
import sys
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from lakehouse.errors import LakehouseError
from lakehouse.export.selection import quoted
from lakehouse.maintain.place import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from deltalake import DeltaTable

    from lakehouse.maintain.place import Row

# Without Arrow's own schema in it, any reader goes by Parquet's types.
_OPTIONS: Final = "('format.compression' 'zstd(9)', 'format.skip_arrow_metadata' 'true')"


@contextmanager
def whole(file: Path) -> Iterator[Path]:
    """A new file beside, which takes the file's place when all is well, and else is removed.

    Raises:
        LakehouseError: It cannot be written.
    """
    beside = file.with_name(f".{file.name}.{uuid.uuid4().hex}.parquet")
    try:
        yield beside
        beside.replace(file)
    except OSError as error:
        raise LakehouseError(
            f"{file}: {error.strerror}; choose a file that can be written (--out)"
        ) from error
    finally:
        beside.unlink(missing_ok=True)


def write(lines: Iterable[str], file: Path | None, nothing: str) -> int:
    """Write text, to standard output where there is no file.

    Args:
        lines: What to write.
        file: Where to.
        nothing: What to say where there are no lines; no file is made then.

    Returns:
        How many lines these are.

    Raises:
        LakehouseError: It cannot be written, or there are no lines.
    """
    if file is None:
        return _put(lines, sys.stdout.buffer, nothing)
    with whole(file) as beside, beside.open("xb") as stream:
        return _put(lines, stream, nothing)


def _put(lines: Iterable[str], stream: BinaryIO, nothing: str) -> int:
    count = 0
    for line in lines:
        stream.write(line.encode())
        count += 1
    if not count:
        raise LakehouseError(nothing)
    stream.flush()
    return count


def write_parquet(delta: DeltaTable, sql: str, file: Path, where: str) -> int:
    """Write the rows of a query as one Parquet file, by delta-rs's own engine as it reads them.

    Args:
        delta: What is asked.
        sql: As ``place.rows`` takes it.
        file: To be made; its name ends with ``.parquet``. Without rows it is not.
        where: Where the table lies, for errors.

    Returns:
        How many rows these are.

    Raises:
        MaintenanceError: The table could not be read, or the file not be written.
    """
    # As a URL: in a path the engine would take some characters for a pattern.
    target = quoted(file.resolve().as_uri())
    copy = f"COPY ({sql}) TO {target} STORED AS PARQUET OPTIONS {_OPTIONS}"
    (row,) = rows(delta, copy, where)
    return int(row["count"])


def comma_separated(columns: Sequence[str], told: Iterable[Row]) -> Iterator[str]:
    """A header and a line for each row, as RFC 4180 has it; without rows nothing at all.

    Texts are quoted, so that nothing and an empty text stay two things.
    """
    for number, row in enumerate(told):
        if number == 0:
            yield ",".join(map(_in_quotes, columns)) + "\n"
        yield ",".join(_cell(row[one]) for one in columns) + "\n"


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case dt.date():
            return _when(value)
        case str():
            return _in_quotes(value)
    return _in_quotes(json.dumps(dict(value), ensure_ascii=False, default=_when))


def _when(value: dt.date) -> str:
    if isinstance(value, dt.datetime):
        return f"{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat()}Z"
    return value.isoformat()


def _in_quotes(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'
