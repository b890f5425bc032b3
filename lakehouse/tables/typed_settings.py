"""Conversion of what a file of settings holds into declared types, by msgspec."""

import difflib
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

_T = TypeVar("_T")
_UNKNOWN: Final = re.compile(r"unknown field `(.+)`")
_INDEX: Final = re.compile(r"\[\d+\]")
_MISSING: Final = re.compile(r"missing required field `(.+)`")


class WrongSettingError(Exception):
    """A setting of another type, unknown or missing.

    Attributes:
        key: The setting, such as ``mail.port``; empty: the whole content.
        problem: The problem. It quotes keys and no values.
    """

    def __init__(self, key: str, problem: str) -> None:
        self.key, self.problem = key, problem
        super().__init__(f"{key}: {problem}" if key else problem)


def convert(content: Any, kind: type[_T], dec_hook: Callable[[type, Any], Any] | None = None) -> _T:
    """Return the content of a file as a declared type.

    Args:
        content: What a strict reader returned.
        kind: The type, as a rule a msgspec.Struct that forbids unknown fields.
        dec_hook: Makes values of types that msgspec does not know.

    Raises:
        WrongSettingError: A setting is wrong.
    """
    try:
        return msgspec.convert(content, kind, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise explained(error, kind) from None


def explained(error: msgspec.ValidationError, kind: Any) -> WrongSettingError:
    """Return the error with the key as in the file, the nearest known key, or the choices.

    Args:
        error: What msgspec raised.
        kind: The type that the content was converted to.
    """
    text, _, place = str(error).partition(" - at ")
    key = place.strip("`").removeprefix("$").strip(".").replace("[...]", ".*")
    of = inspect.type_info(kind)
    if unknown := _UNKNOWN.search(text):
        name, here = unknown[1], set(_fields(of, key))
        known = {field for one in _structs(of) for field in _names(one)}
        near = difflib.get_close_matches(name, sorted(here), n=1) or (
            difflib.get_close_matches(name, sorted(known), n=1)
        )
        hint = f"; did you mean {near[0]!r}?" if near else ""
        if name in known:
            hint = " here: it belongs to another section"
        return WrongSettingError(f"{key}.{name}" if key else name, f"unknown key{hint}")
    if missing := _MISSING.search(text):
        return WrongSettingError(key, f"{missing[1]} is missing")
    if text.startswith("Invalid enum value") and (choices := _choices(of, key)):
        return WrongSettingError(key, f"expected one of {', '.join(choices)}")
    return WrongSettingError(key, text)


def _fields(of: inspect.Type, key: str) -> Iterator[str]:
    for one in _at(of, key):
        if isinstance(one, inspect.StructType):
            yield from _names(one)


def _names(of: inspect.StructType) -> Iterator[str]:
    return (field.encode_name for field in of.fields)


def _choices(of: inspect.Type, key: str) -> list[str]:
    return [
        str(value)
        for one in _at(of, key)
        if isinstance(one, inspect.LiteralType)
        for value in one.values
    ]


def _at(of: inspect.Type, key: str) -> list[inspect.Type]:
    """Return the types that a key can have."""
    found = [*_alternatives(of)]
    for part in _INDEX.sub(".*", key).split(".") if key else ():
        inner = [below for one in found for below in _inner(one, part)]
        found = [one for below in inner for one in _alternatives(below)]
    return found


def _alternatives(of: inspect.Type) -> Iterator[inspect.Type]:
    for one in of.types if isinstance(of, inspect.UnionType) else (of,):
        yield one.type if isinstance(one, inspect.Metadata) else one


def _inner(of: inspect.Type, part: str) -> Iterator[inspect.Type]:
    if isinstance(of, inspect.StructType):
        yield from (field.type for field in of.fields if field.encode_name == part)
    elif isinstance(of, inspect.ListType | inspect.VarTupleType | inspect.SetType):
        yield of.item_type
    elif isinstance(of, inspect.DictType):
        yield of.value_type


def _structs(of: inspect.Type) -> list[inspect.StructType]:
    """Return every struct of a type, each once."""
    found: dict[type, inspect.StructType] = {}
    left = [of]
    while left:
        for one in _alternatives(left.pop()):
            if isinstance(one, inspect.StructType):
                if one.cls not in found:
                    found[one.cls] = one
                    left += [field.type for field in one.fields]
            else:
                left += _inner(one, "")
    return list(found.values())
