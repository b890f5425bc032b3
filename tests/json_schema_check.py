"""The part of JSON Schema that report.schema.json is made of."""

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
    "maxItems", "minimum", "maximum", "pattern",
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
    if "anyOf" in schema and all([*_wrong(value, one, defs, path)] for one in schema["anyOf"]):
        yield f"{path}: anyOf"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: enum"
    if (kind := schema.get("type")) is not None:
        is_flag = isinstance(value, bool) and kind != "boolean"
        if is_flag or not isinstance(value, _TYPES[kind]):
            yield f"{path}: type"
            return
    yield from _within(value, schema, defs, path)


def _within(value: Any, schema: dict[str, Any], defs: dict[str, Any], path: str) -> Iterator[str]:
    if isinstance(value, dict):
        known = schema.get("properties", {})
        lacking = (key for key in schema.get("required", ()) if key not in value)
        yield from (f"{path}.{key}: required".lstrip(".") for key in lacking)
        for key, one in value.items():
            below = known.get(key, schema.get("additionalProperties", {}))
            yield from _wrong(one, below or {}, defs, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        first = schema.get("prefixItems", [])
        every = [*first, *[schema.get("items") or {}] * len(value)]
        for place, one in enumerate(value):
            yield from _wrong(one, every[place], defs, f"{path}[{place}]")
    elif isinstance(value, str):
        if not re.search(schema.get("pattern", ""), value):
            yield f"{path}: pattern"
    elif isinstance(value, int | float) and not (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
    ):
        yield f"{path}: range"
