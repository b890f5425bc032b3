"""Reference of the agent's configuration, generated from its settings classes."""

from __future__ import annotations

import json
import types
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec

from collector.config.loader import PREFIX
from collector.config.schema import Config, FamilySettings
from collector.settings import Duration, Section, Size
from docs.tools.layout import code, page, prose, table
from lakehouse.tables.typed_settings import meanings, summary

if TYPE_CHECKING:
    from collections.abc import Iterator

REFERENCE: Final = Path(__file__).parents[2] / "deploy" / "agent.yaml"

_INTRODUCTION: Final = """\
The configuration is one YAML file, by default `/etc/jmxlake/agent.yaml`. The agent rejects an
unknown key and suggests the nearest known key. *Required* keys have no default. All sections except
`source`, `lake` and `spool` are optional. Durations are whole numbers with a unit: `500ms`, `10s`,
`5m`, `1h`. So are sizes: `512MiB`, `1GiB` (`B`, `KiB`). A duration is at most 24h, a timeout 100ms
to 10m. Paths are on the agent's host.

An environment variable can set every key and overrides the file. Its name is `JMXLAKE_AGENT__` and
the key's full name in capitals, with two underscores for each point. [The agent](../agent.md)
explains the settings."""

_NAMES: Final = {
    int: "whole number", str: "text", bool: "`true` or `false`", Path: "path",
    Duration: "duration", Size: "size",
}  # fmt: skip


def text() -> str:
    """Return the page."""
    sections = [_section(name, section) for name, section in sections_of(Config)]
    shipped = f"```yaml\n{REFERENCE.read_text('utf-8')}```"
    return page(
        "Configuration of the agent", _INTRODUCTION, *sections,
        "## Reference file", "`jmxlake-agent config` prints this file.", shipped,
    )  # fmt: skip


def sections_of(section: type[Section], name: str = "") -> Iterator[tuple[str, type[Section]]]:
    """Yield a section and its subsections with their full names; the top level has none."""
    yield name, section
    for field in msgspec.structs.fields(section):
        inner, below = _section_in(field.type), f"{name}.{field.name}".lstrip(".")
        if inner is not None:
            yield from sections_of(inner, f"{below}.NAME" if inner is FamilySettings else below)


def _section(name: str, section: type[Section]) -> str:
    head = f"## `{name}`" if name else "## Top level"
    means = meanings(section)
    rows = [
        (code(field.name), _type(field.type), _default(field), prose(means[field.name]))
        for field in msgspec.structs.fields(section)
    ]
    parts = [head, prose(summary(section)), table(("Key", "Type", "Default", "Meaning"), rows)]
    if name and "NAME" not in name:
        full = f"{name}.{msgspec.structs.fields(section)[0].name}"
        variable = PREFIX + full.replace(".", "__").upper()
        parts.append(f"Environment variables: {code(f'{variable}=...')} and similar.")
    return "\n\n".join(parts)


def _section_in(type_: Any) -> type[Section] | None:
    """Return the section that a key, or each value of a key, contains."""
    plain = _plain(type_)
    for part in (plain, *get_args(plain)):
        if isinstance(part, type) and issubclass(part, Section):
            return part
    return None


def _plain(type_: Any) -> Any:
    """Return the type without its annotations."""
    return get_args(type_)[0] if get_origin(type_) is Annotated else type_


def _type(type_: Any) -> str:
    type_ = _plain(type_)
    if get_origin(type_) in (Union, types.UnionType):
        return " or ".join(_type(part) for part in get_args(type_) if part is not types.NoneType)
    if get_origin(type_) is Literal:
        return ", ".join(map(code, get_args(type_)))
    if get_origin(type_) is tuple:
        return "list of text"
    if get_origin(type_) is dict:
        return "a section for each name"
    return "a section" if _section_in(type_) else _NAMES[type_]


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "*required*"
    made = field.default
    if made is msgspec.NODEFAULT:
        made = field.default_factory()
    return _shown(made)


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Duration | Size):
        return code(value.text)
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, tuple):
        return code(json.dumps(value))
    if isinstance(value, Section):
        return "as below"
    return "none" if value in ({}, "") else code(str(value))
