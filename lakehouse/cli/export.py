"""``jmxlake export``: gold tables as files in other formats."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from lakehouse import tables
from lakehouse.cli.options import FILE, LAKE, OPTIONS_FILE, between, log
from lakehouse.core.delta_rs import Location, check_counts, locate, newest_progress, query
from lakehouse.core.periods import Period
from lakehouse.errors import LakehouseError
from lakehouse.ops import export as exports

_TABLES: Final = {table.name: table for table in tables.GOLD}


@click.command
@LAKE
@click.argument("table", type=click.Choice(sorted(_TABLES)), metavar="TABLE")
@click.option(
    "--format", "form", required=True, type=click.Choice(["parquet", "csv", "openmetrics"]),
    help="Output format. openmetrics is for a Prometheus backfill.",
)  # fmt: skip
@click.option("--from", "start", metavar="TIME", help="Start of the first window (ISO 8601, UTC).")
@click.option("--to", "end", metavar="TIME", help="End (ISO 8601, UTC), exclusive.")
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME",
    help="Limit to this metric. Repeatable.",
)  # fmt: skip
@click.option("--out", type=FILE, help="Output file, replaced atomically. Default: stdout.")
@OPTIONS_FILE
@click.option("--gold", metavar="PATH", help="Folder or URL of gold. Default: LAKE/gold.")
def export(  # noqa: PLR0913, PLR0917 - a click command
    lake: str, table: str, form: str, start: str | None, end: str | None,
    metrics: Sequence[str], out: Path | None, options_file: Path | None, gold: str | None,
) -> None:  # fmt: skip
    """Export a gold table as Parquet, CSV or OpenMetrics.

    It does not require Spark. TABLE is a name such as topics (one row per hour) or topics_windows
    (one row per window of the agents). A wrong name lists all tables. It exits with 1, without a
    file, if it failed or found no rows.
    """
    if form == "parquet" and out is None:
        raise click.UsageError("--format parquet requires --out FILE")
    wanted = _TABLES[table]
    _check(wanted, form, metrics, dated=start is not None or end is not None)
    rows = between(start, end), metrics
    count, noun = _write(form, locate(lake, options_file, gold), wanted, rows, out)
    if out is not None:
        log(f"{count:,} {noun} in {out}")


def _check(table: tables.Table, form: str, metrics: Sequence[str], *, dated: bool) -> None:
    """Check that the options apply to the table.

    Raises:
        click.UsageError: An option does not apply.
    """
    if form == "openmetrics" and table.name not in exports.OPENMETRICS:
        names = ", ".join(sorted(exports.OPENMETRICS))
        raise click.UsageError(
            f"--format openmetrics supports {names}. Export {table.name} as parquet or csv"
        )
    if dated and not exports.start_of(table):
        raise click.UsageError(f"{table.name} has no time column. Omit --from and --to")
    if metrics and "metric" not in table.column_names:
        raise click.UsageError(f"{table.name} has no column metric. Omit --metric")
    for name in metrics:
        if not re.fullmatch(tables.METRIC_NAME, name):
            raise click.UsageError(f"--metric {name!r} is not a metric name")


def _write(
    form: str, location: Location, table: tables.Table,
    rows: tuple[Period | None, Sequence[str]], out: Path | None,
) -> tuple[int, str]:  # fmt: skip
    url, delta = location.url(table), location.open(table)
    check_counts(delta, rows[0])
    sql = partial(exports.selected, table, *rows)
    present = [one.name for one in table.declared(field.name for field in delta.schema().fields)]
    nothing = f"{url}: no such rows. The export wrote no file"
    if form == "parquet" and out is not None:
        return exports.write_parquet(delta, sql(present), out, nothing), "rows"

    def read(columns: tuple[str, ...], figure: str) -> Iterator[dict[str, Any]]:
        if figure not in present:  # a column that the next rollup adds
            return iter(())
        return query(delta, sql(columns, figure))

    if form == "csv":
        lines = exports.csv_lines(present, query(delta, sql(present)))
    else:
        lines = exports.openmetrics_lines(table, _seconds(location, table), read)
    return exports.write_lines(lines, out, nothing), "lines"


def _seconds(location: Location, table: tables.Table) -> int:
    """Return the window length of a table (seconds).

    Raises:
        LakehouseError: The lake was never rolled up.
    """
    if table not in tables.WINDOWS.values():
        return 3600
    if newest := newest_progress(location, "window_seconds"):
        return int(newest["window_seconds"])
    url = location.url(tables.PROGRESS)
    raise LakehouseError(f"{url}: no rollup. Run jmxlake rollup first")
