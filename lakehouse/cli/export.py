"""``jmxlake export``: gold as files of other formats."""

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
@click.argument("table", type=click.Choice(sorted(_TABLES)))
@click.option(
    "--format", "form", required=True, type=click.Choice(["parquet", "csv", "openmetrics"]),
    help="Format of the file; openmetrics is a backfill for Prometheus.",
)  # fmt: skip
@click.option("--from", "start", metavar="INSTANT", help="First window, ISO 8601, UTC.")
@click.option("--to", "end", metavar="INSTANT", help="End; windows that start later are left out.")
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME",
    help="Only rows of this metric; may be given several times.",
)  # fmt: skip
@click.option(
    "--out", type=FILE, help="Write this file, completely or not at all; by default stdout."
)
@OPTIONS_FILE
@click.option("--gold", metavar="PATH", help="Folder or URL of gold, if not LAKE/gold.")
def export(  # noqa: PLR0913, PLR0917 - a click command
    lake: str, table: str, form: str, start: str | None, end: str | None,
    metrics: Sequence[str], out: Path | None, options_file: Path | None, gold: str | None,
) -> None:  # fmt: skip
    """Write TABLE of LAKE's gold to a file for other tools; needs no Spark.

    A table has a row an hour; the one named with _windows has the agents' windows.

    Exits with 1 if it failed, or if there are no such rows; then nothing is written.
    """
    if form == "parquet" and out is None:
        raise click.UsageError("--format parquet needs --out FILE")
    wanted = _TABLES[table]
    _check(wanted, form, metrics, dated=start is not None or end is not None)
    rows = between(start, end), metrics
    count, noun = _write(form, locate(lake, options_file, gold), wanted, rows, out)
    if out is not None:
        log(f"{count:,} {noun} in {out}")


def _check(table: tables.Table, form: str, metrics: Sequence[str], *, dated: bool) -> None:
    """Check that the options fit the table.

    Raises:
        click.UsageError: They do not.
    """
    if form == "openmetrics" and table.name not in exports.OPENMETRICS:
        names = ", ".join(sorted(exports.OPENMETRICS))
        what = f"{table.name} has no OpenMetrics format; {names} have. Use parquet or csv"
        raise click.UsageError(what)
    if dated and not exports.start_of(table):
        raise click.UsageError(f"rows of {table.name} are not of a time: leave out --from and --to")
    if metrics and "metric" not in table.column_names:
        raise click.UsageError(f"{table.name} has no column metric: leave out --metric")
    for name in metrics:
        if not re.fullmatch(tables.METRIC_NAME, name):
            raise click.UsageError(f"--metric {name!r} is not the name of a metric")


def _write(
    form: str, location: Location, table: tables.Table,
    rows: tuple[Period | None, Sequence[str]], out: Path | None,
) -> tuple[int, str]:  # fmt: skip
    url, delta = location.url(table), location.open(table)
    check_counts(delta, rows[0])
    sql = partial(exports.selected, table, *rows)
    present = [one.name for one in table.declared(field.name for field in delta.schema().fields)]
    nothing = f"{url}: there are no such rows; nothing was written"
    if form == "parquet" and out is not None:
        return exports.write_parquet(delta, sql(present), out, nothing), "rows"

    def read(columns: tuple[str, ...], figure: str) -> Iterator[dict[str, Any]]:
        if figure not in present:  # a column of a later version, before its first rollup
            return iter(())
        return query(delta, sql(columns, figure))

    if form == "csv":
        lines = exports.csv_lines(present, query(delta, sql(present)))
    else:
        lines = exports.openmetrics_lines(table, _seconds(location, table), read)
    return exports.write_lines(lines, out, nothing), "lines"


def _seconds(location: Location, table: tables.Table) -> int:
    """Seconds of a table's windows: an hour, or those of the newest rollup.

    Raises:
        LakehouseError: Nothing was rolled up.
    """
    if table not in tables.WINDOWS.values():
        return 3600
    if newest := newest_progress(location, "window_seconds"):
        return int(newest["window_seconds"])
    url = location.url(tables.PROGRESS)
    raise LakehouseError(f"{url}: nothing is rolled up there; run jmxlake rollup first")
