"""Definitions of the shipped catalogue's metrics, for lakes of agents that did not write theirs."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Final

from collector.catalogue import load
from lakehouse import tables

FILE: Final = Path(tables.__file__).with_name("metric_definitions.csv")


def text() -> str:
    """A table in CSV: with the metadata log and without it, where metrics have other names."""
    loaded = load()
    rows = {tuple(row[1:3]): row[1:-1] for row in loaded.definitions()}
    rows |= {tuple(row[1:3]): row[1:-1] for row in loaded.preferring("metadata_log").definitions()}
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    table.writerow(tables.METRIC_DEFINITIONS.column_names[1:-2])
    for metric, family, roles, *others in (rows[key] for key in sorted(rows)):
        table.writerow((metric, family, " ".join(roles), *others))
    return file.getvalue()


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
