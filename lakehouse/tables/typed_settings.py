"""Settings files with declared types: conversion with msgspec, errors, and JSON Schemas.

The schemas are for completion and checks in editors and CI. Types and limits come from the declared
types of the settings, descriptions from their docstrings. A schema accepts every file that its
loader accepts. It does not have the checks between keys.
"""

import difflib
import functools
import inspect as docstrings
import json
import re
import types
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from operator import getitem, or_
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import inspect

_T = TypeVar("_T")
_UNKNOWN: Final = re.compile(r"unknown field `(.+)`")
_EXPECTED: Final = "expected"
_INDEX: Final = re.compile(r"\[\d+\]")
_PARTS: Final = re.compile(r"[^.\[\]]+")
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

    def converted(content: Any) -> _T:
        return msgspec.convert(content, kind, dec_hook=dec_hook)

    try:
        return converted(content)
    except msgspec.ValidationError as error:
        wrong = explained(error, kind)
        key = _named(wrong.key, content, converted, str(error))
        raise WrongSettingError(key, wrong.problem) from None
    except UnicodeEncodeError:
        raise WrongSettingError("", "a lone surrogate where a known word is expected") from None


def explained(error: msgspec.ValidationError, kind: Any) -> WrongSettingError:
    """Return the error with the key as in the file, the nearest known key, or the choices.

    Args:
        error: Error of msgspec.
        kind: The type that the content was converted to.
    """
    text, _, place = str(error).partition(" - at ")
    key = place.strip("`").removeprefix("$").replace("[...]", ".*").strip(".")
    of = _type_info(kind)
    if unknown := _UNKNOWN.search(text):
        return _unknown(of, key, unknown[1])
    if missing := _MISSING.search(text):
        return WrongSettingError(key, f"{missing[1]} is missing")
    if text.startswith(("Expected ", "Invalid ")) and (expected := _expected(of, key)):
        return WrongSettingError(key, f"expected {expected}")
    return WrongSettingError(key, text)


def _named(key: str, content: Any, convert: Callable[[Any], object], error: str) -> str:
    """Return a key with the name in a mapping that msgspec omits, such as ``log`` in ``log.cap``.

    Args:
        key: The key, such as ``*.cap``.
        content: The content.
        convert: Converts the content.
        error: Its error.
    """
    head, star, tail = key.partition("*")
    place = [int(part) if part.isdecimal() else part for part in _PARTS.findall(head)]
    entries = functools.reduce(getitem, place, content) if star else {}
    for name, value in entries.items():
        try:
            convert(_with(content, place, {name: value}))
        except msgspec.ValidationError as other:
            if str(other) == error:
                return f"{head}{name}{tail}"
    return key


def _with(content: Any, place: list[Any], value: Any) -> Any:
    """Return a copy of the content with another value at a place."""
    if not place:
        return value
    first, *rest = place
    copy = content.copy()
    copy[first] = _with(content[first], rest, value)
    return copy


@functools.cache
def _type_info(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _unknown(of: inspect.Type, key: str, name: str) -> WrongSettingError:
    near = difflib.get_close_matches(name, sorted(_fields(of, key)), n=1)
    elsewhere = [f"{path}{name}" for path, one in _structs(of).items() if name in _names(one)]
    meant = [*elsewhere, *near]
    hint = f"; did you mean {meant[0]!r}?" if meant else ""
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


def _structs(of: inspect.Type) -> dict[str, inspect.StructType]:
    """Return every struct of a type once, by the prefix of its keys; the shortest prefix counts."""
    found: dict[str, inspect.StructType] = {}
    left = [("", of)]
    for path, declared in left:
        for one in _alternatives(declared):
            if not isinstance(one, inspect.StructType):
                left += [(f"{path}*.", below) for below in _inner(one, "")]
            elif all(known.cls is not one.cls for known in found.values()):
                found[path] = one
                left += [(f"{path}{field.encode_name}.", field.type) for field in one.fields]
    return found


Schema = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_FILES: Final = "https://raw.githubusercontent.com/jmxlake/jmxlake"
_OR_ONE: Final = "x-or-one"
OR_ONE: Final[Schema] = {_OR_ONE: True}
"""``extra_json_schema`` of a list whose only value may be written without a list."""
_UNIONS: Final = (types.UnionType, Union)


def schema_address(name: str) -> str:
    """Return the address of a schema.

    It is the committed file at the tag of the installed release. It does not depend on the place of
    the installation, so an editor on another machine can load it.
    """
    return f"{_FILES}/v{version('jmxlake')}/deploy/schemas/{name}.schema.json"


def schema_comment(name: str) -> str:
    """Return the comment that names the schema of a YAML file for editors."""
    return f"# yaml-language-server: $schema={schema_address(name)}\n"


def schema_document(
    name: str, title: str, root: Schema, definitions: Mapping[str, Schema]
) -> Schema:
    """Return a complete schema."""
    head = {"$schema": DIALECT, "$id": schema_address(name), "title": title}
    return {**head, **root, "$defs": dict(definitions)}


def schema_text(schema: Schema) -> str:
    """Return a schema as JSON."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def type_schema(
    kind: Any, hook: Callable[[type], Schema] | None = None
) -> tuple[Schema, dict[str, Schema]]:
    """Return the schema of a type, and the schemas of its structs by their names.

    Args:
        kind: The type.
        hook: Returns the schema of a type that msgspec does not support.
    """
    (root,), definitions = msgspec.json.schema_components(
        (_documented(kind),), schema_hook=hook, ref_template="#/$defs/{name}"
    )
    for one in definitions.values():
        del one["title"]  # the name of a class
    return _finished(root), _finished(definitions)


def or_null(schema: Schema) -> Schema:
    """Return a schema that also accepts a key without a value."""
    return {"anyOf": [schema, {"type": "null"}]}


def meanings(struct: type) -> dict[str, str]:
    """Return the meaning of each key of a struct, from its and its bases' docstrings."""
    found: dict[str, str] = {}
    for kind in (*struct.__bases__, struct):
        _, _, attributes = docstrings.cleandoc(kind.__doc__ or "").partition("Attributes:\n")
        entries = re.split(r"(?m)^    (?=\w+: )", attributes)
        pairs = (entry.partition(": ") for entry in entries if entry.strip())
        found |= {name: _prose(meaning) for name, _, meaning in pairs}
    return found


def summary(struct: type) -> str:
    """Return the first line of a struct's docstring."""
    return _prose(docstrings.cleandoc(struct.__doc__ or "").partition("\n")[0])


def _prose(docstring: str) -> str:
    return " ".join(docstring.split()).replace("``", "`")


def _documented(kind: Any) -> Any:
    """Return a type with a documented copy of each struct."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _documented_struct(kind)
    origin = get_origin(kind)
    inner = [one if one is Ellipsis else _documented(one) for one in get_args(kind)]
    if origin is Annotated:
        return Annotated[(inner[0], *kind.__metadata__)]
    if origin in _UNIONS:
        return functools.reduce(or_, inner)
    return origin[tuple(inner)] if origin in (dict, list, tuple) else kind


@functools.lru_cache
def _documented_struct(struct: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Return a copy of a struct with descriptions, and with defaults as they are written.

    msgspec has no hook for defaults that JSON does not have, such as a duration.
    """
    means, fields = meanings(struct), []
    for field in msgspec.structs.fields(struct):
        extra: Schema = {"description": means[field.name]} if field.name in means else {}
        if isinstance(field.default, int | float | str) and field.default != "":
            extra["default"] = getattr(field.default, "text", field.default)
        kind: Any = Annotated[_documented(field.type), msgspec.Meta(extra_json_schema=extra)]
        absent = msgspec.field(name=field.encode_name, default_factory=types.NoneType)
        present = msgspec.field(name=field.encode_name)
        fields.append((field.name, kind, present if field.required else absent))
    return msgspec.defstruct(
        struct.__name__, fields, kw_only=True, module=struct.__module__,
        namespace={"__doc__": summary(struct)},
        forbid_unknown_fields=struct.__struct_config__.forbid_unknown_fields,
    )  # fmt: skip


def _finished(value: Any) -> Any:
    r"""Return a schema with patterns of JavaScript, and with ``OR_ONE`` as a choice.

    A pattern ends with ``\Z`` in Python and with ``$`` in JavaScript.
    """
    if isinstance(value, list):
        return [*map(_finished, value)]
    if not isinstance(value, dict):
        return value
    found = {key: _finished(one) for key, one in value.items()}
    if isinstance(pattern := found.get("pattern"), str):
        found["pattern"] = re.sub(r"\\Z$", "$", pattern)
    if found.pop(_OR_ONE, False):
        means = {"description": found.pop("description", "")}
        return {**means, "anyOf": [found, found["items"]]}
    return found
