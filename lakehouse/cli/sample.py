"""``jmxlake sample``."""

import datetime as dt
from pathlib import Path
from typing import Final

import click

from lakehouse.cli.options import FOLDER, log
from lakehouse.sample import bronze
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

    Brokers fail and restart, clients are throttled, uploads are late, a group reads too late. The
    folder must not hold a lake. Continue with jmxlake weekly LAKE, or any other command.
    """
    now = dt.datetime.now(dt.UTC)
    end = now if until is None else until.replace(tzinfo=dt.UTC)
    if end > now:
        raise click.UsageError(f"--until {end:%Y-%m-%d} is in the future")
    if end < _EARLIEST:
        raise click.UsageError(f"--until {end:%Y-%m-%d}: write a date from {_EARLIEST:%Y} on")
    runs = bronze.write(lake, sampled(end, weeks, seed))
    log(f"{lake}: {runs:,} runs; continue with: jmxlake weekly {lake} --html report.html")
