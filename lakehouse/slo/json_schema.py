"""JSON Schemas of the files of objectives, maintenance and corrections.

The schema of objectives follows from the shape in ``openslo/schema.yaml``.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final, get_args

from lakehouse.core.objective import Level
from lakehouse.slo.openslo import schema
from lakehouse.slo.openslo.slo_to_objectives import TYPE
from lakehouse.slo.report_calendar import LISTS, REQUIRED, REQUIRED_OF_CORRECTIONS
from lakehouse.tables.typed_settings import Schema, or_null

_TEXT: Final[Schema] = {"type": ["string", "number", "boolean"]}
"""YAML has types where OpenSLO has texts."""

_SCALARS: Final[Mapping[str, Schema]] = {
    "anything": {},
    "text": _TEXT,
    "description": {**_TEXT, "maxLength": 1050},
    "name": {"type": ["string", "integer"], "pattern": f"^{schema.DNS_LABEL.pattern}$"},
    "duration": {"type": "string", "pattern": f"^{schema.DURATION.pattern}$"},
    "slice": {
        "anyOf": [
            {"type": "integer", "minimum": 1},
            {"type": "string", "pattern": f"^{schema.DURATION.pattern}$"},
        ]
    },
    "boolean": {"type": "boolean"},
    "number": {"type": "number"},
    "level": {"enum": [*get_args(Level)]},
    "metric": {"type": "string", "pattern": f"^{schema.METRIC.pattern}$"},
    "local time": {
        "type": "string", "pattern": "^\\d{4}-\\d{1,2}-\\d{1,2} \\d{1,2}:\\d{1,2}:\\d{1,2}$",
    },
    "time zone": {"type": "string"},
    "labels": {
        "type": "object",
        "propertyNames": {"pattern": f"^{schema.LABEL}$"},
        "additionalProperties": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
    },
    "annotations": {
        "type": "object",
        "propertyNames": {"pattern": f"^(.{{1,253}}/)?{schema.LABEL}$"},
        "additionalProperties": _TEXT,
    },
}  # fmt: skip
"""Schemas of the scalars of schema.py, and of its maps of names."""


def objectives() -> tuple[Schema, dict[str, Schema]]:
    """Return the schema of a document of a file, and the schemas of its parts by their names."""
    shapes = schema.shapes()
    parts = {name: _of(shape) for name, shape in shapes["types"].items()}
    _add_own_source(parts)
    parts["object"] = _object(shapes["kinds"])
    several = {"type": "array", "items": _part("object")}
    return {"anyOf": [_part("object"), several]}, {_name(key): one for key, one in parts.items()}


def _object(kinds: Mapping[str, Any]) -> Schema:
    """Return the schema of an object of any kind."""
    specs: list[Schema] = [
        {
            "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
            "then": {
                "properties": {"spec": _of(shape)},
                "required": [] if kind == schema.WITHOUT_SPEC else ["spec"],
            },
        }
        for kind, shape in kinds.items()
    ]
    keys = {
        "apiVersion": {"const": schema.API}, "kind": {"enum": [*kinds]},
        "metadata": _part("metadata"), "spec": {},
    }  # fmt: skip
    return {
        "type": "object", "properties": keys, "required": ["apiVersion", "kind", "metadata"],
        "additionalProperties": False, "allOf": specs,
    }  # fmt: skip


def _add_own_source(parts: Mapping[str, Schema]) -> None:
    """Add the spec of a metricSource of type jmxlake, which schema.yaml leaves to each type."""
    parts["source"]["properties"]["metricSource"] |= {
        "if": {"properties": {"type": {"const": TYPE}}, "required": ["type"]},
        "then": {"properties": {"spec": _part(f"{TYPE} source")}},
    }


def _of(shape: Any) -> Schema:
    """Return the schema of a shape of schema.yaml."""
    if isinstance(shape, dict):
        return _map(shape)
    if isinstance(shape, list):
        return _list(*shape)
    if shape in schema.shapes()["types"]:
        return _part(shape)
    if shape in _SCALARS:
        return dict(_SCALARS[shape])
    return _range(shape) if shape[0] in "[(" else {"enum": shape.split(" | ")}


def _map(shape: Mapping[str, Any]) -> Schema:
    keys = {key: one for key, one in shape.items() if key not in {"one of", "or reference", "*"}}
    found: Schema = {
        "type": "object",
        "properties": {
            key.rstrip("!"): _of(one) if key.endswith("!") else or_null(_of(one))
            for key, one in keys.items()
        },
        "required": [key[:-1] for key in keys if key.endswith("!")],
        "additionalProperties": _of(shape["*"]) if "*" in shape else False,
    }
    for group in shape.get("one of", ()):
        found.setdefault("allOf", []).append({"oneOf": [{"required": [key]} for key in group]})
    if reference := shape.get("or reference"):
        return {"anyOf": [_map({f"{reference}!": "name"}), found]}
    return found


def _list(item: Any, least: int, most: float) -> Schema:
    limit = {"maxItems": int(most)} if isfinite(most) else {}
    return {"type": "array", "items": _of(item), "minItems": least, **limit}


def _range(shape: str) -> Schema:
    low, high = map(float, shape[1:-1].split(", "))
    least = "minimum" if shape[0] == "[" else "exclusiveMinimum"
    most = "maximum" if shape[-1] == "]" else "exclusiveMaximum"
    return {"type": "number", least: low} | ({most: high} if isfinite(high) else {})


def _part(name: str) -> Schema:
    return {"$ref": f"#/$defs/{_name(name)}"}


def _name(part: str) -> str:
    return part.replace(" ", "_")


_INSTANT: Final[Schema] = {
    "type": "string",
    "pattern": "^\\d{4}-?\\d{2}-?\\d{2}[T ].*([Zz]|[+-]\\d{2}(:?\\d{2}){0,2})$",
}
_PATTERNS: Final[Schema] = {"type": "array", "items": _TEXT, "minItems": 1}
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
    kinds = dict.fromkeys(required, _TEXT) | dict.fromkeys(lists, _PATTERNS)
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
