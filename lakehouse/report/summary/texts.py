"""Texts of words.yaml, filled in with figures and names.

A template has ``{name}``, ``{name!b}`` for a figure that stands out, ``{n:topic}`` for a number
with its noun, ``{n:was/were}`` for a word that depends on a number, and ``[parts]`` that are left
out if one of their values is empty.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeVar, cast

from lakehouse.core import display
from lakehouse.report import resources
from lakehouse.report.figures import Name, value_at
from lakehouse.report.summary.model import Strong, Text

Value = str | float | Name | Text | None
"""A value of a template; None and empty values leave out their part."""

T = TypeVar("T")

_FILE: Final = "summary/words.yaml"
_PARTS: Final = re.compile(r"\[([^\]]*)\]")
_FIELD: Final = re.compile(r"\{(\w+)(!b)?(?::([^}]*))?\}")
_LISTED: Final = 2


class _Piece(NamedTuple):
    """Words of a template, or the name of a value.

    Attributes:
        literal: The words.
        name: The value's name; empty of words.
        is_strong: Whether the value stands out.
        spec: A noun, or words for one and for other numbers.
    """

    literal: str
    name: str = ""
    is_strong: bool = False
    spec: str = ""


@functools.cache
def words(path: str) -> str:
    """Return a text of words.yaml as it is; empty where there is none.

    Args:
        path: Its keys, with dots between them.
    """
    return str(value_at(resources.declared(_FILE), path) or "")


def text(path: str, /, **values: Value) -> Text:
    """Return a text of words.yaml, filled in.

    Args:
        path: Its keys, with dots between them.
        values: Values by the names in its braces.
    """
    parts: list[str | Name | Strong] = []
    for is_optional, pieces in _parsed(words(path)):
        if is_optional and not all(_is_given(values[one.name]) for one in pieces if one.name):
            continue
        for one in pieces:
            parts += _value(values[one.name], one) if one.name else (one.literal,)
    return tuple(_merged(parts))


def line(path: str, /, **values: Value) -> str:
    """Return the same as plain text; names are short and have no invisible characters."""
    return plain(text(path, **values))


def plain(content: Text) -> str:
    """Return a text without marks."""
    return "".join(part if isinstance(part, str) else part.text for part in content)


def capital(content: Text) -> Text:
    """Return a sentence with a capital letter, unless it starts with a name."""
    first, *rest = content
    return (first[:1].upper() + first[1:], *rest) if isinstance(first, str) else content


def joined(*texts: Text, between: str = "") -> Text:
    """Return texts that are not empty as one, with plain spaces."""
    parts: list[str | Name | Strong] = []
    for one in filter(None, texts):
        parts += [between, *one] if parts and between else one
    return tuple(_merged(parts))


def listed(items: Sequence[Value], limit: int = 3, last: str = "list.and") -> Text:
    """Return ``a``, ``a and b``, ``a, b and c`` or ``a, b, c and 4 more``.

    Args:
        items: Names or texts.
        limit: Number of items that are written out.
        last: The text between the last two.
    """
    shown = [_parts(item) for item in items[:limit]]
    if more := len(items) - limit if len(items) > limit else 0:
        first = joined(*map(tuple, shown), between=", ")
        return text("list.more", first=first, count=more)
    if len(shown) < _LISTED:
        return joined(*map(tuple, shown))
    first = joined(*map(tuple, shown[:-1]), between=", ")
    return text(last, first=first, last=tuple(shown[-1]))


def _is_given(value: Value) -> bool:
    return value == 0 or bool(value)


@functools.cache
def _parsed(template: str) -> tuple[tuple[bool, tuple[_Piece, ...]], ...]:
    """Return the parts of a template, whether each is optional, and its pieces."""
    parts = _PARTS.split(template)  # every second part is in brackets
    return tuple((place % 2 == 1, tuple(_pieces(part))) for place, part in enumerate(parts))


def _pieces(part: str) -> Iterator[_Piece]:
    reached = 0
    for field in _FIELD.finditer(part):
        yield _Piece(part[reached : field.start()])
        name, strong, spec = field.groups()
        yield _Piece("", name, bool(strong), spec or "")
        reached = field.end()
    yield _Piece(part[reached:])


def _value(value: Value, piece: _Piece) -> Iterable[str | Name | Strong]:
    if piece.spec and isinstance(value, int):
        one, _, other = piece.spec.partition("/")
        chosen = (one if value == 1 else other) if other else display.plural(value, one)
        parts: list[str | Name | Strong] = [chosen]
    else:
        parts = _parts(value)
    if not piece.is_strong:
        return parts
    return [Strong(part) if isinstance(part, str) else part for part in parts]


def _parts(value: Value) -> list[str | Name | Strong]:
    if isinstance(value, tuple):
        return list(value)
    if value is None:
        return []
    return [f"{value:,}" if isinstance(value, int | float) else value]


def _merged(parts: Iterable[str | Name | Strong]) -> Iterator[str | Name | Strong]:
    """Yield the parts, neighbouring words as one."""
    for is_words, group in groupby(parts, key=lambda part: isinstance(part, str)):
        if not is_words:
            yield from group
        elif together := "".join(map(str, group)):
            yield together


def spaced(value: T) -> T:
    """Return a value with plain spaces in all its texts. Names stay as they are."""
    changed: Any = value
    if isinstance(value, str):
        changed = display.untied(value)
    elif isinstance(value, tuple):
        parts = map(spaced, value)
        changed = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return cast("T", changed)
