"""Keys of a record in report.json, so that declarations that name keys fail at import."""

import functools
from collections.abc import Iterable, Iterator
from typing import Any, Final, get_args, get_origin

from lakehouse.report.facts import fields
from lakehouse.report.owners import LABELS

_OPEN: Final = (dict, Any)
"""Types of fields whose own keys no record declares."""


@functools.cache
def keys(record: type) -> dict[str, Any]:
    """Return the JSON keys of a record, each with the record of its value; None: it has none."""
    found: dict[str, Any] = dict.fromkeys(LABELS)
    for name, (kind, _) in fields.fields_of(record).items():
        if kind is fields.Bounds:
            found |= dict.fromkeys(fields.keys(name))
        else:
            found[name] = _inner(kind)
    return found


def check(record: type, paths: Iterable[str]) -> None:
    """Check that dotted paths are keys of a record or of the records within it.

    Raises:
        TypeError: One is not; with its name and the record's.
    """
    for path in paths:
        first, _, rest = path.partition(".")
        if first not in keys(record):
            raise TypeError(f"{record.__name__} does not have the key {first!r}")
        if rest and (inner := keys(record)[first]) is not Any:
            if inner is None:
                raise TypeError(f"{record.__name__}.{first} does not have keys: {path!r}")
            check(inner, [rest])


def record_at(record: Any, path: str) -> Any:
    """Return the record of the rows at a dotted path within a record.

    Raises:
        KeyError: There is no such key.
    """
    for key in path.split("."):
        record = keys(record)[key]
    return record


def metrics(record: type) -> Iterator[str]:
    """Yield the metrics of gold that the fields of a record are figures of."""
    for _, means in fields.fields_of(record).values():
        if means.of is not None:
            yield from (means.of.metric, *getattr(means.of, "more", ()))


def _inner(kind: Any) -> Any:
    """Return the record of a value or of the rows of a list; ``Any``: its keys are open."""
    if kind in _OPEN or get_origin(kind) is dict:
        return Any
    found = map(_inner, get_args(kind))
    return fields.nested(kind) or next((one for one in found if one), None)
