"""Other metrics: no other section shows them; own catalogues come first."""

from typing import Final

from lakehouse.core import display
from lakehouse.report import figures
from lakehouse.report.evidence import Rows
from lakehouse.report.facts.other_metrics import COLUMNS, Metric
from lakehouse.report.figures import Facts, Row
from lakehouse.report.tables.contents import joined, of
from lakehouse.report.tables.section import Part, plain, section
from lakehouse.report.tables.table_spec import Cell, Column, Content, TableSpec


def _quantity(key: str, *, is_peak: bool = False) -> Content:
    def cell(row: Row) -> Cell:
        value = row.get(key)
        if value is None and row.get("kind") in {"gauge", "counter"}:
            return Cell()
        return Cell((display.quantity(value, str(row.get("unit") or "")),), order=value)

    return of(cell, f"worst.{key}")._replace(is_peak=is_peak)


def _subject(row: Row) -> Cell:
    return Cell(
        joined([figures.name(row[key]) for key in COLUMNS.values() if row.get(key) is not None])
    )


def _metric(row: Row) -> Cell:
    return Cell(figures.single(row.get("metric")), title=display.line(row.get("description") or ""))


METRICS: Final = TableSpec(
    rows=Rows(Metric, "own_metrics.metrics"),
    caption="Each metric, with the subject of its greatest value",
    noun="metric",
    columns=(
        Column("Metric", of(_metric, "metric", "description", is_figure=False)),
        Column(
            "Subject", of(_subject, *(f"worst.{key}" for key in COLUMNS.values()), is_figure=False)
        ),
        Column("Mean", _quantity("mean")),
        Column("Max", _quantity("max", is_peak=True)),
        Column("Increase", _quantity("increase")),
    ),
    file="own_metrics",
)


def _others(facts: Facts) -> Part:
    content = facts.get("own_metrics") or {}
    metrics, absent = content.get("metrics") or (), content.get("absent") or ()
    rows = [{**row, **row["worst"][0]} for row in metrics if row.get("worst")]
    own = sum(bool(row.get("own")) for row in metrics)
    said = [display.plural(len(metrics) + (content.get("omitted") or 0), "metric")]
    said += [f"{own} of your own catalogue"] * bool(own)
    if absent:
        names = ", ".join(display.line(name) for name in absent)
        said.append(f"not collected: {names}")
    return Part(plain("; ".join(said)), (METRICS.listing(facts, rows),))


SECTION: Final = section("own-metrics", "Other metrics", _others)
