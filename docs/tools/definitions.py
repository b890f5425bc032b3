"""Definitions of the shipped catalogue's metrics, for lakes of agents that did not write theirs."""

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
"""Subjects by the columns of bronze that only they have, the finest first."""


def text() -> str:
    """A table in CSV, also where the metadata log or a whole cluster is read: names differ there.

    ``level`` is of which subject the metric is: what an objective on it can be of.
    """
    rows, levels = {}, {}
    for catalogue in (load(), *map(load().preferring, ("metadata_log", "partitions"))):
        rows |= {tuple(row[1:3]): row[1:-1] for row in catalogue.definitions()}
        levels |= {name: _level(one) for name, one in catalogue.metrics.items()}
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    table.writerow((*tables.METRIC_DEFINITIONS.column_names[1:-2], "level"))
    for metric, family, roles, *others in (rows[key] for key in sorted(rows)):
        table.writerow((metric, family, " ".join(roles), *others, levels[metric]))
    return file.getvalue()


def _level(metric: Metric) -> str:
    """By the columns of its labels; what Admin answers is called after its subject."""
    columns, (_, named, *_) = set(metric.labels.values()), metric.name.split(".")
    own = (level for level, any_of in _LEVELS.items() if any_of & columns)
    return next(own, named if named in _LEVELS else "source")


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
