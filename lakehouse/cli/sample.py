"""``jmxlake sample``."""

import datetime as dt
from pathlib import Path
from typing import Final

import click

from lakehouse.cli.options import FOLDER, log
from lakehouse.sample import bronze, files
from lakehouse.sample.values import sampled

_EARLIEST: Final = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)


@click.command
@click.argument("lake", metavar="LAKE", type=FOLDER)
@click.option(
    "--weeks", type=click.IntRange(1, 12), default=9, show_default=True,
    help="Number of whole ISO weeks; the days since then are added.",
)  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed, other times.")
@click.option(
    "--until", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE",
    help="End at the start of DATE (UTC), not in the future; by default now.",
)  # fmt: skip
def sample(lake: Path, weeks: int, seed: int, until: dt.datetime | None) -> None:
    """Write weeks of a small invented Kafka cluster to the folder LAKE.

    Brokers fail and restart, clients are throttled, uploads fall behind, a group loses records.
    Agents read everything in the last three weeks, and before what the objectives need. The files
    LAKE-owners.yaml and LAKE-maintenance.yaml are written next to it. The folder must not hold a
    lake. Continue with jmxlake weekly LAKE, or any other command.
    """
    now = dt.datetime.now(dt.UTC)
    end = now if until is None else until.replace(tzinfo=dt.UTC)
    if end > now:
        raise click.UsageError(f"--until {end:%Y-%m-%d} is in the future")
    if end < _EARLIEST:
        raise click.UsageError(f"--until {end:%Y-%m-%d}: write a date from {_EARLIEST:%Y} on")
    beside = files.beside(lake)
    spans = sampled(end, weeks, seed)
    bronze.check_free(lake)
    files.check_free(beside)
    runs = bronze.write(lake, spans)
    files.write(beside, [one for span in spans for one in span.incidents])
    log(
        f"{lake}: {runs:,} runs; continue with: jmxlake weekly {lake} --owners {beside.owners} "
        f"--maintenance {beside.maintenance} --html report.html"
    )
