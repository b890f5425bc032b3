"""JSON Schemas of the files of maintenance and corrections."""

from collections.abc import Mapping, Sequence
from typing import Final

from lakehouse.slo.report_calendar import LISTS, REQUIRED, REQUIRED_OF_CORRECTIONS
from lakehouse.tables.typed_settings import Schema

_INSTANT: Final[Schema] = {
    "type": "string",
    "pattern": "^\\d{4}-?\\d{2}-?\\d{2}[T ].*([Zz]|[+-]\\d{2}(:?\\d{2}){0,2})$",
}
_SCALAR: Final[Schema] = {"type": ["string", "number", "boolean"]}
_PATTERNS: Final[Schema] = {"type": "array", "items": _SCALAR, "minItems": 1}
_MEANINGS: Final[Mapping[str, str]] = {
    "start": "First instant, with a UTC offset.",
    "end": "First instant after it, with a UTC offset.",
    "reason": "Reason, which the report shows.",
    "approved_by": "Person who approved the correction.",
    "ticket": "Record of the approval.",
    "clusters": "Patterns of clusters. Default: all.",
    "topics": "Patterns of topic names.",
    "users": "Patterns of users.",
    "clients": "Patterns of client IDs.",
    "groups": "Patterns of group names.",
    "sources": "Patterns of sources, such as `broker-*`.",
    "objectives": "Patterns of objective names. Default: all.",
}


def maintenance() -> Schema:
    """Return the schema of a file of planned maintenance."""
    return _file("maintenance", REQUIRED, tuple(LISTS))


def corrections() -> Schema:
    """Return the schema of a file of corrections."""
    return _file("corrections", REQUIRED_OF_CORRECTIONS, (*LISTS, "objectives"))


def _file(key: str, required: Sequence[str], lists: Sequence[str]) -> Schema:
    """Return the schema of a file whose only key has a list of items."""
    kinds = dict.fromkeys(required, _SCALAR) | dict.fromkeys(lists, _PATTERNS)
    kinds |= {"start": _INSTANT, "end": _INSTANT}
    keys = {name: {**kind, "description": _MEANINGS[name]} for name, kind in kinds.items()}
    item = {
        "type": "object", "properties": keys, "required": [*required],
        "additionalProperties": False,
    }  # fmt: skip
    return {
        "type": "object", "properties": {key: {"type": "array", "items": item}},
        "required": [key], "additionalProperties": False,
    }  # fmt: skip
