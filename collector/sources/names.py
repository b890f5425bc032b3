"""Object names as text, and the series they stand for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote as url_decode

from collector.samples import Series

if TYPE_CHECKING:
    from collector.catalogue import Metric

_PROPERTY: Final = re.compile(r'([^,=]+)=("(?:\\.|[^"\\])*"|[^,]*)')
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_COLUMNS: Final = frozenset({"topic", "user", "client_id", "group"})


def keys_of(name: str) -> dict[str, str]:
    """The key properties of an object name, their values unquoted as ObjectName.unquote does."""
    _, _, properties = name.partition(":")
    return {key: _unquote(value) for key, value in _PROPERTY.findall(properties)}


def series_of(metric: Metric, pattern: str, name: str) -> Series | None:
    """The series that a bean stands for, or None if the pattern means other beans.

    A pattern that ends in ``,*`` finds beans without any label too (a broker's own, beside its
    clients') and beans with keys that the catalogue does not know: neither is of this metric.
    """
    fixed = keys_of(pattern).keys() - metric.labels.keys()
    labels = {key: value for key, value in keys_of(name).items() if key not in fixed}
    if not labels.keys() <= metric.labels.keys() or bool(labels) != bool(metric.labels):
        return None
    columns: dict[str, str] = {}
    partition: int | None = None
    further: list[tuple[str, str]] = []
    for key, raw in labels.items():
        value = url_decode(raw) if key in metric.url_encoded else raw
        column = metric.labels[key]
        if column == "partition":
            partition = int(value)
        elif column in _COLUMNS:
            columns[column] = value
        else:
            further.append((column, value))
    return Series(metric.name, partition=partition, labels=tuple(sorted(further)), **columns)


def _unquote(value: str) -> str:
    if not value.startswith('"'):
        return value
    return _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], value[1:-1])
