"""The rows of CSV files, cell by cell, against the rows of the JSON of the same run."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import csv_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_KEYS: Final = {
    "objective": ("name", "objective"), "start": ("from", "start"), "end": ("to", "end"),
    "event": ("number", "event"), "cause": ("cause.kind",), "source": ("source",),
}  # fmt: skip
"""Columns whose keys in JSON have another name."""
_COMMON: Final = 3
_MOST: Final = 1_000
"""Rows of a file whose cells are compared; of every file the number of rows is."""

csv.field_size_limit(10**6)


def compared(folder: Path, facts: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield each row of each file, as file and number, and what contradicts the facts."""
    anywhere = {_text(value) for value in _values(facts)}
    for file in csv_files.FILES:
        path = folder / f"{file.name}.csv"
        with path.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        for number, row in enumerate(rows):
            if any(row[key] != str(facts[key]) for key in ("from", "to")):
                yield f"{file.name}.csv row {number}", ["another period"]
        if isinstance(file.rows, str) and not file.needs:
            found = list(_at(facts, file.rows))
            if len(found) != len(rows):
                yield f"{file.name}.csv", [f"{len(rows)} rows, {len(found)} in JSON"]
                continue
        else:
            found = [anywhere] * len(rows)
        pairs = list(zip(rows, found, strict=True))
        for number, (row, own) in enumerate(pairs[:_MOST]):
            yield f"{file.name}.csv row {number}", list(_wrong(row, own))


def _wrong(row: dict[str, str], own: dict[str, Any] | set[str]) -> Iterator[str]:
    for column, cell in list(row.items())[_COMMON:]:
        if isinstance(own, set):
            if cell and cell not in own and _unquoted(cell) not in own:
                yield f"{column}: {cell!r} is nowhere in the JSON"
            continue
        named = _named(own, column)
        values = [_text(value) for one in named or [own, ""] for value in (one, *_values(one))]
        if cell not in values and _unquoted(cell) not in values:
            yield f"{column}: {cell!r} is {values[:2]} in the JSON"


def _named(row: Mapping[str, Any], column: str) -> list[Any]:
    """Return the values of a column's key, also of a record in the row: ``cause_kind``."""
    found = [row[key] for key in _KEYS.get(column, (column,)) if key in row]
    for key, inner in row.items():
        rest = column.removeprefix(f"{key}_")
        if isinstance(inner, dict) and rest != column and rest in inner:
            found.append(inner[rest])
    return found


def _at(facts: Mapping[str, Any], path: str) -> Iterator[dict[str, Any]]:
    first, _, rest = path.partition(".")
    yield from _rows(facts.get(first) or (), rest.split(".") if rest else [], {})


def _rows(node: Any, path: list[str], above: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows at a path; a row within a row has the values of that, too."""
    if isinstance(node, list):
        for one in node:
            yield from _rows(one, path, above)
    elif path:
        rest = {**above, **_plain(node)} if isinstance(node, dict) else above
        yield from _rows((node or {}).get(path[0]) or (), path[1:], rest)
    elif isinstance(node, dict):
        yield {**above, **node}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without the lists of rows in it."""
    return {
        key: value
        for key, value in row.items()
        if not (isinstance(value, list) and value and isinstance(value[0], dict | list))
    }


def _values(node: Any) -> Iterator[Any]:
    """Yield the values below a node, and its lists and records of plain values."""
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else None
    if inner is None:
        yield node
        return
    if not any(isinstance(one, dict | list) for one in inner):
        yield node
    for one in inner:
        yield from _values(one)
    if isinstance(node, dict):  # a column may name the list that its row is of
        yield from node


def _text(value: Any) -> str:
    """Return a value as a file of CSV has it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, dict):
        return csv_files.text(" ".join(f"{name}={count}" for name, count in value.items()))
    if isinstance(value, list):
        return csv_files.text(" ".join(map(str, value)))
    return repr(value) if isinstance(value, int | float) else csv_files.text(value)


def _unquoted(cell: str) -> str:
    return cell.removeprefix("'")
