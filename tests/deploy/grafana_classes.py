"""Check dashboards with Grafana's own classes; run by the Python of deploy/tools.txt.

The classes are generated from Grafana's schema of one release. Each argument is a dashboard. The
output has one line per key that the schema does not have, and per value of another type.
"""

import enum
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

OF_EXPORTS = {"definition"}
"""Grafana's exports have it in a variable; the schema only has it from version 2 on."""


def lost(told: Any, kept: Any, at: str) -> Iterator[str]:
    """Yield the keys of a file that the classes do not write again."""
    if isinstance(told, dict) and isinstance(kept, dict):
        for key, value in told.items():
            if key in kept:
                yield from lost(value, kept[key], f"{at}.{key}")
            elif value is not None and key not in OF_EXPORTS:
                yield f"{at}.{key}: not in the schema"
    elif isinstance(told, list) and isinstance(kept, list) and len(told) == len(kept):
        for number, pair in enumerate(zip(told, kept, strict=True)):
            yield from lost(*pair, f"{at}[{number}]")
    elif told != kept:
        yield f"{at}: {told!r} became {kept!r}"


def wrong(value: Any, hint: Any, at: str) -> Iterator[str]:
    """Yield the values of an object that do not have their declared type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(value, dict) and hasattr(hint, "from_json"):
        value = hint.from_json(value)
    if origin in (Union, types.UnionType):
        tried = [list(wrong(value, one, at)) for one in arguments]
        if all(tried):
            yield from max(tried, key=lambda found: len(found[0].partition(":")[0]))
    elif origin is list and isinstance(value, list):
        for number, one in enumerate(value):
            yield from wrong(one, arguments[0], f"{at}[{number}]")
    elif not _is(value, hint):
        yield f"{at}: {value!r} is not {getattr(hint, '__name__', hint)}"
    elif hasattr(type(value), "to_json"):
        for name, one in get_type_hints(type(value)).items():
            yield from wrong(getattr(value, name), one, f"{at}.{name}")


def _is(value: Any, hint: Any) -> bool:
    origin = get_origin(hint) or hint
    if origin in (Any, object):
        return True
    if origin is Literal:
        return value in get_args(hint)
    if issubclass(origin, enum.Enum):
        return value in {one.value for one in origin}
    if origin is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if origin is int and isinstance(value, bool):
        return False
    return isinstance(value, origin)


register_default_plugins()
for file in sys.argv[1:]:
    board = json.loads(Path(file).read_text("utf-8"))
    read = Dashboard.from_json(board)
    written = json.loads(json.dumps(read, cls=JSONEncoder))
    for problem in (*lost(board, written, Path(file).stem), *wrong(read, Dashboard, "dashboard")):
        sys.stdout.write(f"{problem}\n")
