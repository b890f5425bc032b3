"""``jmxlake sample``."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import click

from lakehouse.commands.common import tell


@click.command(short_help="Write a lake that is made up, for a first look without Kafka.")
@click.argument("lake", metavar="LAKE", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--weeks", type=click.IntRange(1, 8), default=3, show_default=True,
    help="How many whole ISO weeks; the days since then come on top.",
)  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True, help="Another one, other times.")
@click.option(
    "--until", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE",
    help="End at the start of DATE (UTC), which is not in the future; by default now.",
)  # fmt: skip
def sample(lake: Path, weeks: int, seed: int, until: dt.datetime | None) -> None:
    """Write weeks of a small Kafka cluster that is made up to the folder LAKE.

    Brokers fail and are restarted, clients are throttled, uploads wait, a group reads too late. The
    folder may not hold a lake. Go on with jmxlake weekly LAKE, and with any other command.
    """
    from lakehouse.sample import bronze
    from lakehouse.sample.script import sampled

    now = dt.datetime.now(dt.UTC)
    end = now if until is None else until.replace(tzinfo=dt.UTC)
    if end > now:
        raise click.UsageError(f"--until {end:%Y-%m-%d} is in the future")
    runs = bronze.write(lake, sampled(end, weeks, seed))
    tell(f"{lake}: {runs:,} runs; go on with: jmxlake weekly {lake} --html report.html")
