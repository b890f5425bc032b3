"""Rows as CSV (RFC 4180): texts are quoted, so that nothing and an empty text stay two things."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lakehouse.maintain.place import Row


def lines(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """A header and a line for each row; nothing at all where there are no rows."""
    for number, row in enumerate(rows):
        if number == 0:
            yield ",".join(map(_text, columns)) + "\n"
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
            return _text(value)
    return _text(json.dumps(dict(value), ensure_ascii=False, default=_when))


def _when(value: dt.date) -> str:
    if isinstance(value, dt.datetime):
        return f"{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat()}Z"
    return value.isoformat()


def _text(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'
