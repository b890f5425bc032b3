"""In how many places a column of the report is declared: its record should be the only one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import lakehouse.report
from lakehouse.report import csv_files
from lakehouse.report.facts import fields
from lakehouse.report.facts.report_record import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def places() -> dict[str, int]:
    """Return the number of places that declare each field of the facts' records, by its name.

    A place is the record that has the field, a key of the same name in a YAML file of the report
    under a heading of columns, or a column of CSV with a meaning of its own. The reference pages
    are made of the records.
    """
    named = [*_yaml_columns(), *_told_again()]
    return {
        place: 1 + named.count(place) + named.count(key)
        for record in _records(Report, set())
        for key in fields.fields_of(record)
        for place in (f"{record.__name__}.{key}",)
    }


def _told_again() -> Iterator[str]:
    """Yield the fields with a meaning that a column of CSV gives another one."""
    for file in csv_files.FILES:
        if not isinstance(file.rows, str):
            continue
        record = fields.record_at(Report, file.rows)
        own = fields.fields_of(record)
        for column in set(file.own) - set(fields.columns(record)):
            if column.path in own and own[column.path].means.text:
                yield f"{record.__name__}.{column.path}"


def _records(record: Callable[..., Any], seen: set[Any]) -> Iterator[Callable[..., Any]]:
    if record in seen:
        return
    seen.add(record)
    yield record
    for field in fields.fields_of(record).values():
        for inner in _inner(field.kind):
            yield from _records(inner, seen)


def _inner(kind: Any) -> Iterator[Callable[..., Any]]:
    if (found := fields.nested(kind)) is not None:
        yield found
    for one in getattr(kind, "__args__", ()):
        yield from _inner(one)


def _yaml_columns() -> Iterator[str]:
    """Yield the keys below ``columns`` or ``fields`` in the YAML files of the report."""
    for file in Path(lakehouse.report.__file__).parent.rglob("*.yaml"):
        yield from _below(yaml.safe_load(file.read_text(encoding="utf-8")), is_columns=False)


def _below(node: Any, *, is_columns: bool) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if is_columns:
                yield str(key)
            yield from _below(value, is_columns=str(key) in {"columns", "fields"})
    elif isinstance(node, list):
        for one in node:
            if is_columns and isinstance(one, str):
                yield one
            yield from _below(one, is_columns=is_columns)
