"""What several commands of ``jmxlake`` have in common: their options, and opening a lake."""

from __future__ import annotations

import hashlib
import re
import sys
from contextlib import contextmanager
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from lakehouse.errors import LakehouseError, LeaseHeldError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse.periods import Period
    from lakehouse.rollup.engine import Engine

F = TypeVar("F", bound="Callable[..., Any] | click.Command")

LAKE: Final = click.argument("lake", metavar="LAKE")
GOLD: Final = click.option(
    "--gold", metavar="CATALOG.SCHEMA", help="Where gold is, if not below LAKE."
)
GOLD_OR_NONE: Final = click.option(
    "--gold", metavar="PATH",
    help="Folder or URL of gold, if not LAKE/gold; 'none' where it cannot be read from here.",
)  # fmt: skip
OPTIONS_FILE: Final = click.option(
    "--options-file", type=click.Path(dir_okay=False, path_type=Path),
    help="YAML with storage options of delta-rs, the same as the agents'.",
)  # fmt: skip
OBJECTIVES: Final = click.option(
    "--objectives",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of OpenSLO files; by default those that jmxlake ships.",
)
AS_JSON: Final = click.option("--json", "as_json", is_flag=True, help="Tell the outcome as JSON.")

ENGINE: Final = click.option(
    "--engine", type=click.Choice(["spark", "local"]),
    help="By what to compute: Spark, or delta-rs and DuckDB in this process, for a LAKE that is a "
    "path. By default Spark, if it is installed.",
)  # fmt: skip

_HELD: Final = 3


def options(*several: Callable[[F], F]) -> Callable[[F], F]:
    """Options in a row, as one."""

    def all_of_them(command: F) -> F:
        for one in reversed(several):
            command = one(command)
        return command

    return all_of_them


PERIOD: Final = options(
    click.option("--week", metavar="YYYY-Www", help="An ISO week, such as 2026-W47."),
    click.option(
        "--from", "start", metavar="INSTANT", help="Start, ISO 8601; UTC if it does not say."
    ),
    click.option("--to", "end", metavar="INSTANT", help="End, ISO 8601; UTC if it does not say."),
)


def opened(lake: str, gold: str | None, options_file: Path | None) -> Engine:
    """What reads the gold of a lake."""
    from lakehouse import lake as lakes
    from lakehouse.opened import engine_of

    return engine_of(lakes.at(lake, gold), _storage(options_file), tell)


def rolling(lake: str, gold: str | None, options_file: Path | None, wished: str | None) -> Engine:
    """What rolls a lake up, and reads its gold then."""
    from lakehouse import lake as lakes
    from lakehouse.opened import engine_of

    place, storage = lakes.at(lake, gold), _storage(options_file)
    if (wished or ("spark" if util.find_spec("pyspark") else "local")) == "spark":
        return engine_of(place, storage, tell, by_spark=True)
    from lakehouse.rollup.local_engine import LocalEngine

    tell("without Spark" + ", which is not installed" * (wished is None))
    return LocalEngine(place, storage)


def period_asked(
    week: str | None, start: str | None, end: str | None, time_zone: str | None = None
) -> Callable[[Engine], Period]:
    """The period that was asked for; a wrong one fails before anything starts."""
    from lakehouse import periods, zones

    zone = zones.named(time_zone or zones.UTC_NAME)
    if week is not None and (start or end):
        raise click.UsageError("give --week, or --from and --to, not both")
    if (start is None) != (end is None):
        raise click.UsageError("--from and --to go together")
    if week is not None:
        asked = periods.week(week, zone)
    elif start is not None and end is not None:
        asked = periods.span(start, end, zone)
    else:
        from lakehouse import sla
        from lakehouse.report.facts import last_week

        return lambda engine: last_week(engine, sla.now_us(), zone)
    return lambda _: asked


def _storage(options_file: Path | None) -> dict[str, str]:
    if options_file is None:
        return {}
    from lakehouse.maintain.place import options as storage_options

    return storage_options(options_file)


@contextmanager
def unless_held() -> Iterator[None]:
    """End with 3 where another rollup, or who publishes, is at work."""
    try:
        yield
    except LeaseHeldError as error:
        click.echo(f"jmxlake: {error}", err=True)
        sys.exit(_HELD)


def tell(what: str) -> None:
    """A line of progress, on standard error."""
    click.echo(f"jmxlake: {what}", err=True)


def written(path: Path, content: bytes) -> None:
    """Write a file, its folders too; ``-`` is standard output.

    Raises:
        LakehouseError: It cannot be written.
    """
    if str(path) == "-":
        click.echo(content, nl=False)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise LakehouseError(
            f"{path}: {error.strerror}; choose a file that can be written"
        ) from error


def file_stem(cluster: str) -> str:
    """A file's name that no cluster can choose to lead elsewhere, and no two share."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", cluster).strip("-")[:40]
    digest = hashlib.sha256(cluster.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{plain}-{digest}" if plain else digest
