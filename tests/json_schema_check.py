"""The part of JSON Schema that the schemas of report.json and of settings files use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,), "array": (list,), "string": (str,), "null": (type(None),),
    "boolean": (bool,), "integer": (int,), "number": (int, float),
}  # fmt: skip
_KNOWN: Final = {
    "$ref", "$defs", "$schema", "title", "description", "format", "type", "enum", "anyOf",
    "properties", "required", "additionalProperties", "items", "prefixItems", "minItems",
    "maxItems", "minimum", "maximum", "pattern", "$id", "allOf", "oneOf", "const", "if", "then",
    "default", "propertyNames", "minLength", "maxLength", "exclusiveMinimum", "exclusiveMaximum",
}  # fmt: skip


def wrong(value: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the place and the keyword of each violation.

    Raises:
        ValueError: The schema has a keyword that is not checked here.
    """
    return _wrong(value, schema, schema["$defs"], path)


def _wrong(value: Any, schema: dict[str, Any], defs: dict[str, Any], path: str) -> Iterator[str]:
    if unknown := schema.keys() - _KNOWN:
        raise ValueError(f"{path}: {unknown}")
    if "$ref" in schema:
        yield from _wrong(value, defs[schema["$ref"].removeprefix("#/$defs/")], defs, path)
    yield from _of_choices(value, schema, defs, path)
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: enum"
    if "const" in schema and value != schema["const"]:
        yield f"{path}: const"
    if "type" in schema and not _has_type(value, schema["type"]):
        yield f"{path}: type"
    elif isinstance(value, dict):
        yield from _of_object(value, schema, defs, path)
    elif isinstance(value, list):
        yield from _of_list(value, schema, defs, path)
    elif isinstance(value, str):
        yield from _of_text(value, schema, path)
    elif isinstance(value, int | float) and not _is_in_range(value, schema):
        yield f"{path}: range"


def _of_choices(
    value: Any, schema: dict[str, Any], defs: dict[str, Any], path: str
) -> Iterator[str]:
    def fits(one: dict[str, Any]) -> bool:
        return not [*_wrong(value, one, defs, path)]

    if "anyOf" in schema and not any(map(fits, schema["anyOf"])):
        yield f"{path}: anyOf"
    if "oneOf" in schema and sum(map(fits, schema["oneOf"])) != 1:
        yield f"{path}: oneOf"
    for one in schema.get("allOf", ()):
        yield from _wrong(value, one, defs, path)
    if "if" in schema and fits(schema["if"]):
        yield from _wrong(value, schema["then"], defs, path)


def _has_type(value: Any, kinds: str | list[str]) -> bool:
    listed = [kinds] if isinstance(kinds, str) else kinds
    return any(
        isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
        for kind in listed
    )


def _of_object(
    value: dict[str, Any], schema: dict[str, Any], defs: dict[str, Any], path: str
) -> Iterator[str]:
    known = schema.get("properties", {})
    lacking = (key for key in schema.get("required", ()) if key not in value)
    yield from (f"{path}.{key}: required".lstrip(".") for key in lacking)
    for key, one in value.items():
        place = f"{path}.{key}".lstrip(".")
        yield from _wrong(key, schema.get("propertyNames", {}), defs, place)
        below = known.get(key, schema.get("additionalProperties", {}))
        if below is False:
            yield f"{place}: unknown"
        else:
            yield from _wrong(one, below, defs, place)


def _of_list(
    value: list[Any], schema: dict[str, Any], defs: dict[str, Any], path: str
) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield f"{path}: length"
    first = schema.get("prefixItems", [])
    every = [*first, *[schema.get("items") or {}] * len(value)]
    for place, one in enumerate(value):
        yield from _wrong(one, every[place], defs, f"{path}[{place}]")


def _of_text(value: str, schema: dict[str, Any], path: str) -> Iterator[str]:
    if not re.search(schema.get("pattern", ""), value):
        yield f"{path}: pattern"
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        yield f"{path}: length"


def _is_in_range(value: float, schema: dict[str, Any]) -> bool:
    return (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
        and value > schema.get("exclusiveMinimum", float("-inf"))
        and value < schema.get("exclusiveMaximum", float("inf"))
    )
