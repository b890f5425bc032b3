"""Options and helpers that several commands of ``jmxlake`` share."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import reduce, wraps
from importlib import util
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import click

from lakehouse.core import periods
from lakehouse.core.subjects import FLOOR_PERCENT, percentage
from lakehouse.errors import LakehouseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lakehouse.core.objective import Objective
    from lakehouse.engines.engine import Engine

    Command = Callable[..., Any]

FILE: Final = click.Path(dir_okay=False, path_type=Path)
FILE_OR_STDOUT: Final = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
FOLDER: Final = click.Path(file_okay=False, path_type=Path)

LAKE: Final = click.argument("lake", metavar="LAKE")
GOLD_OR_NONE: Final = click.option(
    "--gold", metavar="PATH",
    help="Folder or URL of gold. Default: LAKE/gold. Use 'none' if gold is not readable from here.",
)  # fmt: skip
OPTIONS_FILE: Final = click.option(
    "--options-file", type=FILE,
    help="File with delta-rs storage options (YAML), as for the agents.",
)  # fmt: skip
CLUSTER: Final = click.option(
    "--cluster", help="Cluster ID. Required if the lake has several clusters."
)
OWNERS: Final = click.option(
    "--owners", "owners_file", type=FILE,
    help="File that maps topics, clients and groups to teams (YAML). See docs/weekly.md#owners.",
)  # fmt: skip
TEAM: Final = click.option("--team", help="Limit the report to this team.")
AS_JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
ENGINE: Final = click.option(
    "--engine", type=click.Choice(["spark", "local"]),
    help="Compute with Spark, or in this process with delta-rs and DuckDB (path lakes only). "
    "Default: spark if gold is in a catalog or the environment configures Spark, otherwise local.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LakeOptions:
    """The lake that the options of ``lake_options`` specify.

    Attributes:
        root: LAKE.
        gold: ``--gold``.
        objectives_folder: ``--objectives``.
        options_file: ``--options-file``.
        gold_root: ``--gold-root``.
    """

    root: str
    gold: str | None
    objectives_folder: Path | None
    options_file: Path | None
    gold_root: str | None = None

    def objectives(self) -> tuple[Objective, ...]:
        """Return the objectives of the folder. Default: the shipped objectives."""
        from lakehouse.slo.openslo import objective_files

        return objective_files.load(self.objectives_folder or objective_files.SHIPPED)

    def engine(
        self, *, by_spark: bool = False, report: Callable[[str], None] | None = None
    ) -> Engine:
        """Return the engine that reads gold.

        Args:
            by_spark: Return the Spark engine that rolls up.
            report: Prints a line.
        """
        from lakehouse.core import lake as lakes
        from lakehouse.engines.choice import engine_of

        if self.gold_root and not self.gold:
            raise click.UsageError("--gold-root requires --gold, because it is for a catalog")
        location = lakes.at(self.root, self.gold, self.gold_root)
        return engine_of(location, self._storage(), report or log, by_spark=by_spark)

    def rollup_engine(
        self, name: str | None, report: Callable[[str], None] | None = None
    ) -> Engine:
        """Return the engine that rolls up.

        The default for a path is the local engine, which is faster than Spark on one machine. But
        if the environment configures Spark, it might be a cluster.

        Args:
            name: The value of ``--engine``.
            report: Prints a line.
        """
        from lakehouse.core import lake as lakes, spark_session

        if name != "local":
            chosen = spark_session.is_named() and util.find_spec("pyspark") is not None
            return self.engine(by_spark=name == "spark" or chosen, report=report)
        location, storage = lakes.at(self.root, self.gold), self._storage()
        from lakehouse.engines.local_engine import LocalEngine

        return LocalEngine(location, storage)

    def _storage(self) -> dict[str, str]:
        if self.options_file is None:
            return {}
        from lakehouse.core.delta_rs import storage_options

        return storage_options(self.options_file)


def combined(*several: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return several options as one decorator."""
    return lambda command: reduce(lambda made, option: option(made), reversed(several), command)


def lake_options(metavar: str = "LAKE") -> Callable[[Command], Command]:
    """Return a decorator that adds LAKE and its options as ``lake``, a ``LakeOptions``."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**given: Any) -> Any:
            own = {field.name: given.pop(field.name) for field in fields(LakeOptions)}
            return command(lake=LakeOptions(**own), **given)

        return combined(
            click.argument("root", metavar=metavar),
            click.option(
                "--gold", metavar="CATALOG.SCHEMA",
                help="Schema of gold. Default: LAKE/gold. CATALOG.SCHEMA_windows and "
                "CATALOG.SCHEMA_state contain its other tables.",
            ),
            click.option(
                "--gold-root", metavar="URL",
                help="Location (URL) for gold as external tables. Default: chosen by the catalog.",
            ),
            click.option(
                "--objectives", "objectives_folder",
                type=click.Path(exists=True, file_okay=False, path_type=Path),
                help="Folder of OpenSLO files. Default: the shipped objectives.",
            ),
            OPTIONS_FILE,
        )(run)  # fmt: skip

    return decorate


def _label(text: str) -> tuple[str, str]:
    """Return key and value of a label; an empty value means any."""
    key, _, value = text.partition("=")
    return key, value


LABELS: Final = click.option(
    "--label", "labels", type=_label, multiple=True, metavar="KEY[=VALUE]",
    help="Limit to objectives with this label. Repeatable.",
)  # fmt: skip


def date(text: str) -> dt.date:
    """Return the date of an option.

    Raises:
        click.BadParameter: The text is not a date between 1970 and 9998.
    """
    try:
        found = dt.date.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a date such as 2026-11-16") from error
    if not periods.FIRST.date() <= found <= periods.LAST.date():
        years = f"{periods.FIRST.year} and {periods.LAST.year}"
        raise click.BadParameter(f"{text!r} is not a date between {years}")
    return found


def length(text: str) -> int:
    """Return the duration of an option in seconds.

    Raises:
        click.BadParameter: The text is not a duration.
    """
    found = periods.seconds(text)
    if found is None:
        problem = f"{text[:40]!r} is not a duration up to {periods.LONGEST}"
        raise click.BadParameter(f"{problem}. Use a number and a unit: 30s, 1m, 2h or 400d")
    return found


def _percent(text: str) -> float:
    """Return a percentage; unlike ``click.FloatRange``, reject ``nan``."""
    found = percentage(text)
    if found is None:
        raise click.BadParameter(f"{text[:40]!r} is not a number from 0 to 100")
    return found


def between(start: str | None, end: str | None, zone: dt.tzinfo = dt.UTC) -> periods.Period | None:
    """Return the period of ``--from`` and ``--to``; None if both are missing.

    Raises:
        click.UsageError: One of them is missing.
    """
    if (start is None) != (end is None):
        raise click.UsageError("use --from and --to together")
    return None if start is None or end is None else periods.span(start, end, zone)


MIN_COVERAGE: Final = click.option(
    "--min-coverage", type=_percent, metavar="PERCENT",
    help="Minimum coverage of a good result, in percent of the expected time. Default: "
    f"{FLOOR_PERCENT:g}.",
)  # fmt: skip


@contextmanager
def kept_in(errors: list[str]) -> Iterator[None]:
    """Add the text of an error to a list, so that the next step still runs."""
    try:
        yield
    except LakehouseError as error:
        errors.append(str(error))


def stop_signals() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set.

    Another thread sets it, because this thread can hold the event's lock when the signal arrives.
    Only the main thread receives signals, so elsewhere, such as in a notebook, it remains unset.
    """
    stop, signals = threading.Event(), SimpleQueue[None]()

    def wait() -> None:
        signals.get()
        stop.set()

    threading.Thread(target=wait, daemon=True, name="signals").start()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: signals.put(None))
    return stop


def turns(
    every_seconds: float, stop: threading.Event, past_seconds: float | None = None
) -> Iterator[None]:
    """Yield at each turn of a command with ``--every``, until ``stop`` is set.

    The first turn is immediate. A turn during the previous turn is skipped.

    Args:
        every_seconds: Interval of the turns.
        stop: Event that ends the turns.
        past_seconds: Delay after each multiple of the interval since 1970. None: the turns follow
            the first one on the monotonic clock.
    """
    first = time.monotonic()
    while not stop.is_set():
        yield
        past = time.monotonic() - first if past_seconds is None else time.time() - past_seconds
        stop.wait(every_seconds - past % every_seconds)


def log(message: str) -> None:
    """Print a line to standard error."""
    click.echo(f"jmxlake: {message}", err=True)


def write_file(path: Path, content: bytes) -> None:
    """Write a file and create its folders; ``-`` is standard output.

    Raises:
        LakehouseError: The file cannot be written.
    """
    if str(path) == "-":
        click.echo(content, nl=False)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        problem = f"{path}: {error.strerror}. Choose a writable file"
        raise LakehouseError(problem) from error


def named(template: str, facts: Mapping[str, Any]) -> str:
    """Return a path or URL with the week and the cluster of a report.

    Args:
        template: A text with ``{week}`` and ``{cluster}``, both optional. If the period is not a
            week, ``{week}`` is its start date.
        facts: The report data.
    """
    week = facts["week"]["iso"] if facts.get("week") else str(facts["from"])[:10]
    safe = {"{week}": re.sub("[^0-9A-Za-z-]", "", week), "{cluster}": file_stem(facts["cluster"])}
    return re.sub(r"\{(week|cluster)\}", lambda found: safe[found[0]], template)


def file_stem(cluster: str) -> str:
    """Return a unique file name for a cluster; a hostile ID cannot select another folder."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", cluster).strip("-")[:40]
    digest = hashlib.sha256(cluster.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{plain}-{digest}" if plain else digest
