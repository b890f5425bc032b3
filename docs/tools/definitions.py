"""Definitions of the shipped metrics, for lakes whose agents did not write definitions."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.catalogue import load
from lakehouse import tables

if TYPE_CHECKING:
    from collector.catalogue.entries import Metric

FILE: Final = Path(tables.__file__).with_name("metric_definitions.csv")


_LEVELS: Final = {
    "group": {"group"}, "partition": {"partition"}, "topic": {"topic"},
    "client": {"user", "client_id"},
}  # fmt: skip
"""Subject types by the columns of bronze that only they have, the finest first."""


def text() -> str:
    """Return a CSV table with the names of every kind of source.

    The metadata log and a cluster source have other names. ``level`` is the subject type of the
    metric, and of an objective on it.
    """
    rows, levels = {}, {}
    for catalogue in (load(), *map(load().preferring, ("metadata_log", "partitions"))):
        rows |= {tuple(row[1:3]): row[1:-1] for row in catalogue.definitions()}
        levels |= {name: _level(metric) for name, metric in catalogue.metrics.items()}
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    table.writerow((*tables.METRIC_DEFINITIONS.column_names[1:-2], "level"))
    for metric, family, roles, *others in (rows[key] for key in sorted(rows)):
        table.writerow((metric, family, " ".join(roles), *others, levels[metric]))
    return file.getvalue()


def _level(metric: Metric) -> str:
    """Return the subject type from the label columns, or from the name of an Admin API metric."""
    columns, (_, named, *_) = set(metric.labels.values()), metric.name.split(".")
    own = (level for level, any_of in _LEVELS.items() if any_of & columns)
    return next(own, named if named in _LEVELS else "source")


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
