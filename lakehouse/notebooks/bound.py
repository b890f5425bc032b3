"""SQL with values in the place of its markers.

``spark.sql`` binds markers itself, but not where Delta's parser stands before Spark's: delta-spark
4.4 on Spark 4.2 drops the values (github.com/delta-io/delta/issues/7640). So it is done here, alike
on every engine.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Final

from lakehouse.periods import micros

if TYPE_CHECKING:
    from collections.abc import Mapping

Value = str | dt.datetime

_PART: Final = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|(?<![:\w]):([a-z_]\w*)""", re.DOTALL
)
_PLAIN: Final = re.compile(r"[\w .()`-]*", re.ASCII)


def bound(statement: str, values: Mapping[str, Value]) -> str:
    """The statement with a literal for each marker, such as ``:week``.

    Markers within quotes and comments are text, and one without a value stays: Spark names it.

    Args:
        statement: SQL.
        values: By name; none of them can end its literal, whatever it holds.
    """

    def part(found: re.Match[str]) -> str:
        name = found[1]
        return literal(values[name]) if name in values else found[0]

    return _PART.sub(part, statement)


def literal(value: Value) -> str:
    """A value as an expression of SQL: what is not plainly harmless is spelt in hexadecimal."""
    if isinstance(value, dt.datetime):
        return f"timestamp_micros({micros(value)})"
    if _PLAIN.fullmatch(value):
        return f"'{value}'"
    return f"CAST(X'{value.encode('utf-8', 'surrogatepass').hex()}' AS STRING)"
