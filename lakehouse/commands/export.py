"""``jmxlake export``: a table of gold as Parquet, CSV or OpenMetrics."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lakehouse import tables
from lakehouse.commands.common import LAKE, OPTIONS_FILE, tell
from lakehouse.errors import LakehouseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakehouse.export.selection import Selection
    from lakehouse.maintain.place import Place, Row
    from lakehouse.periods import Period

_HOUR: Final = 3600
_TABLES: Final = {table.name: table for table in tables.GOLD}


@click.command(short_help="A table of gold as Parquet, CSV or OpenMetrics.")
@LAKE
@click.argument("table", type=click.Choice(sorted(_TABLES)))
@click.option(
    "--format", "form", required=True, type=click.Choice(["parquet", "csv", "openmetrics"]),
    help="What to write; openmetrics is a backfill for Prometheus.",
)  # fmt: skip
@click.option("--from", "start", metavar="INSTANT", help="Windows from then on, ISO 8601, UTC.")
@click.option("--to", "end", metavar="INSTANT", help="Windows that start before then.")
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME",
    help="Rows of this metric; may be given several times.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path),
    help="Write it here, whole or not at all; by default to standard output.",
)  # fmt: skip
@OPTIONS_FILE
@click.option("--gold", metavar="PATH", help="Folder or URL of gold, if not LAKE/gold.")
def export(  # noqa: PLR0913, PLR0917 - a click command
    lake: str, table: str, form: str, start: str | None, end: str | None,
    metrics: Sequence[str], out: Path | None, options_file: Path | None, gold: str | None,
) -> None:  # fmt: skip
    """Write TABLE of LAKE's gold to a file that other tools read; needs no Spark.

    A table has a row an hour; the one named with _windows has the agents' windows.

    Ends with 1 where it failed, or where there are no such rows: then nothing is written.
    """
    if form == "parquet" and out is None:
        raise click.UsageError("--format parquet needs --out FILE")
    from lakehouse.export.selection import Selection
    from lakehouse.maintain import place

    wanted = _TABLES[table]
    _check(wanted, form, metrics, dated=start is not None or end is not None)
    chosen = Selection(wanted, _period(start, end), tuple(metrics))
    count, noun = _write(form, place.at(lake, options_file, gold), chosen, out)
    if out is not None:
        tell(f"{count:,} {noun} in {out}")


def _check(table: tables.Table, form: str, metrics: Sequence[str], *, dated: bool) -> None:
    """What was asked for makes sense of that table.

    Raises:
        click.UsageError: It does not.
    """
    from lakehouse.export import openmetrics

    if form == "openmetrics" and table.name not in openmetrics.FORMS:
        told = ", ".join(sorted(openmetrics.FORMS))
        raise click.UsageError(
            f"{table.name} has no form in OpenMetrics; {told} have. Take parquet or csv"
        )
    for option, given, column in (
        ("--from and --to", dated, "window"),
        ("--metric", bool(metrics), "metric"),
    ):
        if given and column not in table.column_names:
            raise click.UsageError(f"{table.name} has no column {column}: leave out {option}")
    for one in metrics:
        if not re.fullmatch(tables.METRIC_NAME, one):
            raise click.UsageError(f"--metric {one!r} is no name of a metric")


def _period(start: str | None, end: str | None) -> Period | None:
    from lakehouse import periods

    if (start is None) != (end is None):
        raise click.UsageError("--from and --to go together")
    return None if start is None or end is None else periods.span(start, end)


def _write(form: str, place: Place, chosen: Selection, out: Path | None) -> tuple[int, str]:
    from lakehouse.export import files, openmetrics
    from lakehouse.maintain.place import rows

    where, delta = place.url(chosen.table), place.open(chosen.table)
    there = [field.name for field in delta.schema().fields]
    nothing = f"{where}: there are no such rows; nothing was written"
    if form == "parquet" and out is not None:
        with files.whole(out) as beside:
            count = files.write_parquet(delta, chosen.sql(there), beside, where)
            if not count:
                raise LakehouseError(nothing)
        return count, "rows"

    def read(columns: tuple[str, ...], figure: str) -> Iterator[Row]:
        if figure not in there:  # it came with a later version, and nothing was rolled up since
            return iter(())
        return rows(delta, chosen.sql(columns, present=figure), where)

    if form == "csv":
        lines = files.comma_separated(there, rows(delta, chosen.sql(there), where))
    else:
        lines = openmetrics.lines(chosen.table, _seconds(place, chosen.table), read)
    return files.write(lines, out, nothing), "lines"


def _seconds(place: Place, table: tables.Table) -> int:
    """Length of a table's windows: an hour, or what the newest rollup says.

    Raises:
        LakehouseError: Nothing was rolled up.
    """
    from lakehouse.maintain.place import ASKED, rows

    if table not in tables.WINDOWS.values():
        return _HOUR
    where = place.url(tables.PROGRESS)
    sql = f"SELECT window_seconds FROM {ASKED} ORDER BY at DESC LIMIT 1"
    for row in rows(place.open(tables.PROGRESS), sql, where):
        return int(row["window_seconds"])
    raise LakehouseError(f"{where}: nothing is rolled up there; run jmxlake rollup first")
