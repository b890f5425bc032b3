"""``jmxlake sample``, ``jmxlake completion`` and ``jmxlake systemd-unit``."""

import datetime as dt
import sysconfig
from pathlib import Path
from typing import Final

import click
from click.shell_completion import shell_complete

from lakehouse.cli.options import FOLDER, log

_EARLIEST: Final = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
_UNITS: Final = {
    "maintain": "jmxlake-maintain.service",
    "rollup": "jmxlake-rollup.service",
    "weekly": "jmxlake-weekly.service",
    "weekly-timer": "jmxlake-weekly.timer",
}


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell completion script.

    For bash: jmxlake completion bash > /etc/bash_completion.d/jmxlake
    """
    program = context.find_root().command
    shell_complete(program, {}, "jmxlake", "_JMXLAKE_COMPLETE", f"{shell}_source")


@click.command("systemd-unit")
@click.argument("name", type=click.Choice(list(_UNITS)), default="maintain", metavar="[NAME]")
def systemd_unit(name: str) -> None:
    """Print a systemd unit for maintain, rollup or weekly.

    NAME is maintain (default), rollup, weekly, or weekly-timer for the timer of weekly.
    """
    checkout = Path(__file__).parents[2] / "deploy"
    installed = Path(sysconfig.get_path("data")) / "share" / "jmxlake"
    folder = checkout if checkout.is_dir() else installed
    click.echo((folder / "systemd" / _UNITS[name]).read_text("utf-8"), nl=False)


@click.command
@click.argument("lake", metavar="LAKE", type=FOLDER)
@click.option(
    "--weeks", type=click.IntRange(1, 12), default=9, show_default=True,
    help="Number of whole ISO weeks. Days of the current week are added.",
)  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True, help="Random seed.")
@click.option(
    "--until", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE",
    help="End date (UTC), exclusive, not in the future. Default: now.",
)  # fmt: skip
def sample(lake: Path, weeks: int, seed: int, until: dt.datetime | None) -> None:
    """Write a sample lake of an invented Kafka cluster.

    Brokers fail and restart, clients are throttled, uploads lag, and a group loses records. Agents
    scrape all families in the last three weeks, and before that only the families of the
    objectives. LAKE is a folder without a lake. The command also writes LAKE-owners.yaml and
    LAKE-maintenance.yaml. Continue with jmxlake weekly LAKE, or any other command.
    """
    # The other commands must work without DuckDB and pyarrow.
    from lakehouse.sample import bronze, files
    from lakehouse.sample.values import sampled

    now = dt.datetime.now(dt.UTC)
    end = now if until is None else until.replace(tzinfo=dt.UTC)
    if end > now:
        raise click.UsageError(f"--until {end:%Y-%m-%d} is in the future")
    if end < _EARLIEST:
        raise click.UsageError(f"--until {end:%Y-%m-%d} is before {_EARLIEST:%Y}")
    beside = files.beside(lake)
    spans = sampled(end, weeks, seed)
    bronze.check_free(lake)
    files.check_free(beside)
    runs = bronze.write(lake, spans)
    files.write(beside, [incident for span in spans for incident in span.incidents])
    log(
        f"{lake}: {runs:,} runs. Continue with: jmxlake weekly {lake} --owners {beside.owners} "
        f"--maintenance {beside.maintenance} --html report.html"
    )
