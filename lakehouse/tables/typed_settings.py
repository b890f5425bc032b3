"""Conversion of the content of a settings file to declared types, with msgspec."""

import difflib
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

_T = TypeVar("_T")
_UNKNOWN: Final = re.compile(r"unknown field `(.+)`")
_EXPECTED: Final = "expected"
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


def wording(expected: str) -> dict[str, str]:
    """Return ``extra`` of a type's ``msgspec.Meta`` with the words for the expected value.

    Args:
        expected: A noun phrase, such as ``a number from 1 to 65535``.
    """
    return {_EXPECTED: expected}


def convert(content: Any, kind: type[_T], dec_hook: Callable[[type, Any], Any] | None = None) -> _T:
    """Return the content of a file as a declared type.

    Args:
        content: Result of a strict reader.
        kind: The type, usually a msgspec.Struct that forbids unknown fields.
        dec_hook: Converts values of types that msgspec does not support.

    Raises:
        WrongSettingError: A setting is wrong.
    """
    try:
        return msgspec.convert(content, kind, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise explained(error, kind) from None
    except UnicodeEncodeError:
        raise WrongSettingError("", "a lone surrogate where a known word is expected") from None


def explained(error: msgspec.ValidationError, kind: Any) -> WrongSettingError:
    """Return the error with the key as in the file, the nearest known key, or the choices.

    Args:
        error: Error of msgspec.
        kind: The type that the content was converted to.
    """
    text, _, place = str(error).partition(" - at ")
    key = place.strip("`").removeprefix("$").strip(".").replace("[...]", ".*")
    of = _type_info(kind)
    if unknown := _UNKNOWN.search(text):
        return _unknown(of, key, unknown[1])
    if missing := _MISSING.search(text):
        return WrongSettingError(key, f"{missing[1]} is missing")
    if text.startswith(("Expected ", "Invalid ")) and (expected := _expected(of, key)):
        return WrongSettingError(key, f"expected {expected}")
    return WrongSettingError(key, text)


@functools.cache
def _type_info(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _unknown(of: inspect.Type, key: str, name: str) -> WrongSettingError:
    known = {field for one in _structs(of) for field in _names(one)}
    near = [
        one
        for names in (_fields(of, key), known)
        for one in difflib.get_close_matches(name, sorted(names), n=1)
    ]
    hint = f"; did you mean {near[0]!r}?" if near else ""
    if name in known:
        hint = " here: it belongs to another section"
    return WrongSettingError(f"{key}.{name}" if key else name, f"unknown key{hint}")


def _fields(of: inspect.Type, key: str) -> Iterator[str]:
    for declared in _at(of, key):
        for one in _alternatives(declared):
            if isinstance(one, inspect.StructType):
                yield from _names(one)


def _names(of: inspect.StructType) -> Iterator[str]:
    return (field.encode_name for field in of.fields)


def _expected(of: inspect.Type, key: str) -> str | None:
    """Return the words of the key's type, or its choices. None: it has neither."""
    for declared in _at(of, key):
        if isinstance(declared, inspect.Metadata) and _EXPECTED in (declared.extra or {}):
            return str((declared.extra or {})[_EXPECTED])
        for one in _alternatives(declared):
            if isinstance(one, inspect.LiteralType):
                return f"one of {', '.join(map(str, one.values))}"
    return None


def _at(of: inspect.Type, key: str) -> list[inspect.Type]:
    """Return the types that a key can have, as they are declared."""
    found = [of]
    for part in _INDEX.sub(".*", key).split(".") if key else ():
        alternatives = [one for declared in found for one in _alternatives(declared)]
        found = [below for one in alternatives for below in _inner(one, part)]
    return [one for declared in found for one in (declared, *_parts(declared))]


def _alternatives(of: inspect.Type) -> Iterator[inspect.Type]:
    """Yield the plain types of a declared one."""
    for one in _parts(of):
        yield one.type if isinstance(one, inspect.Metadata) else one


def _parts(of: inspect.Type) -> tuple[inspect.Type, ...]:
    plain = of.type if isinstance(of, inspect.Metadata) else of
    return plain.types if isinstance(plain, inspect.UnionType) else (of,)


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
