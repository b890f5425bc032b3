"""JSON Schemas of settings files, for completion and checks in editors and CI.

Types and limits come from the declared types of the settings, descriptions from their docstrings.
A schema accepts every file that its loader accepts. It does not have the checks between keys.
"""

import inspect
import json
import re
import types
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from importlib.metadata import version
from operator import or_
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec

Schema = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_FILES: Final = "https://raw.githubusercontent.com/jmxlake/jmxlake"
_OR_ONE: Final = "x-or-one"
OR_ONE: Final[Schema] = {_OR_ONE: True}
"""``extra_json_schema`` of a list whose only value may be written without a list."""
_UNIONS: Final = (types.UnionType, Union)


def address(name: str) -> str:
    """Return the address of a schema.

    It is the committed file at the tag of the installed release. It does not depend on the place of
    the installation, so an editor on another machine can load it.
    """
    return f"{_FILES}/v{version('jmxlake')}/deploy/schemas/{name}.schema.json"


def first_line(name: str) -> str:
    """Return the comment that names the schema of a YAML file for editors."""
    return f"# yaml-language-server: $schema={address(name)}\n"


def document(name: str, title: str, root: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Return a complete schema."""
    head = {"$schema": DIALECT, "$id": address(name), "title": title}
    return {**head, **root, "$defs": dict(definitions)}


def text(schema: Schema) -> str:
    """Return a schema as JSON."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def of_type(
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
        _, _, attributes = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")
        entries = re.split(r"(?m)^    (?=\w+: )", attributes)
        pairs = (entry.partition(": ") for entry in entries if entry.strip())
        found |= {name: _prose(meaning) for name, _, meaning in pairs}
    return found


def summary(struct: type) -> str:
    """Return the first line of a struct's docstring."""
    return _prose(inspect.cleandoc(struct.__doc__ or "").partition("\n")[0])


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
        return reduce(or_, inner)
    return origin[tuple(inner)] if origin in (dict, list, tuple) else kind


@lru_cache
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
