"""Definitions of the shipped metrics, for lakes whose agents did not write definitions."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collector.catalogue import load
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from collector.catalogue import Catalogue
    from collector.catalogue.entries import Metric

FILE: Final = Path(tables.__file__).with_name("metric_definitions.csv")
TRAITS: Final = Path(tables.__file__).with_name("metric_traits.csv")


_LEVELS: Final = {
    "group": {"group"}, "partition": {"partition"}, "topic": {"topic"},
    "client": {"user", "client_id"},
}  # fmt: skip
"""Subject types by the columns of bronze that only they have, the finest first."""


def text() -> str:
    """Return the definitions as CSV.

    ``level`` is the subject type of objectives on the metric, ``via`` how its family is read, and
    ``since`` the first Kafka version that has it.
    """
    rows: dict[tuple[str, str], tuple[Any, ...]] = {}
    for catalogue in _catalogues():
        ways = {one.name: one.via for one in catalogue.families}
        for _, metric, family, roles, *others, meaning in catalogue.definitions():
            entry = catalogue.metrics[metric]
            more = (_level(entry), ways[family], entry.first or "", " ".join(meaning.split()))
            rows[metric, family] = (metric, family, " ".join(roles), *others, *more)
    columns = tables.METRIC_DEFINITIONS.column_names[1:-2]
    head = (*columns, "level", "via", "since", "description")
    return _csv(head, (rows[key] for key in sorted(rows)))


def traits() -> str:
    """Return the traits as CSV."""
    rows = {row[1:] for catalogue in _catalogues() for row in catalogue.traits()}
    return _csv(tables.METRIC_TRAITS.column_names[1:-1], sorted(rows))


def _catalogues() -> Iterator[Catalogue]:
    """Yield the catalogues of agents: the metadata log or a whole cluster changes names."""
    yield load()
    yield from map(load().preferring, ("metadata_log", "partitions"))


def _csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    table.writerow(columns)
    table.writerows(rows)
    return file.getvalue()


def _level(metric: Metric) -> str:
    """Return the subject type from the label columns, or from the name of an Admin API metric."""
    columns, (_, named, *_) = set(metric.labels.values()), metric.name.split(".")
    own = (level for level, any_of in _LEVELS.items() if any_of & columns)
    return next(own, named if named in _LEVELS else "source")


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
    TRAITS.write_text(traits(), "utf-8")
