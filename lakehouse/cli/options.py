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
from lakehouse.core.observed_share import FLOOR_PERCENT
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
    help="Folder or URL of gold, if not LAKE/gold; 'none' if it cannot be read from here.",
)  # fmt: skip
OPTIONS_FILE: Final = click.option(
    "--options-file", type=FILE, help="YAML with storage options of delta-rs, as the agents have."
)
CLUSTER: Final = click.option("--cluster", help="Id of the cluster, if the lake has several.")
OWNERS: Final = click.option(
    "--owners", "owners_file", type=FILE,
    help="YAML of teams and their topics, groups and clients; see docs/report-owners.md.",
)  # fmt: skip
TEAM: Final = click.option("--team", help="Limit the report to this team.")
AS_JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
ENGINE: Final = click.option(
    "--engine", type=click.Choice(["spark", "local"]),
    help="Compute with Spark, or with delta-rs and DuckDB in this process (LAKE is a path then). "
    "By default Spark for gold in a catalog or where the environment names a Spark.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LakeOptions:
    """A lake by the options of a command; see ``lake_options``.

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
        """The objectives of the folder, by default those that jmxlake ships."""
        from lakehouse.slo.openslo import objective_files

        return objective_files.load(self.objectives_folder or objective_files.SHIPPED)

    def engine(self, *, by_spark: bool = False, say: Callable[[str], None] | None = None) -> Engine:
        """The engine that reads gold, or with ``by_spark`` rolls up; ``say`` prints a line."""
        from lakehouse.core import lake as lakes
        from lakehouse.engines.choice import engine_of

        if self.gold_root and not self.gold:
            raise click.UsageError("--gold-root is of gold in a catalog: give --gold, too")
        location = lakes.at(self.root, self.gold, self.gold_root)
        return engine_of(location, self._storage(), say or log, by_spark=by_spark)

    def rollup_engine(self, name: str | None, say: Callable[[str], None] | None = None) -> Engine:
        """The engine that rolls up; ``name`` as in ``--engine``, ``say`` prints a line.

        On a path it is this process by default: on one machine Spark takes longer for the same
        rows. A Spark that the environment names may be a cluster.
        """
        from lakehouse.core import lake as lakes, spark_session

        if name != "local":
            chosen = spark_session.is_named() and util.find_spec("pyspark") is not None
            return self.engine(by_spark=name == "spark" or chosen, say=say)
        location, storage = lakes.at(self.root, self.gold), self._storage()
        from lakehouse.engines.local_engine import LocalEngine

        return LocalEngine(location, storage)

    def _storage(self) -> dict[str, str]:
        if self.options_file is None:
            return {}
        from lakehouse.core.delta_rs import storage_options

        return storage_options(self.options_file)


def combined(*several: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator."""
    return lambda command: reduce(lambda made, option: option(made), reversed(several), command)


def lake_options(metavar: str = "LAKE") -> Callable[[Command], Command]:
    """Adds LAKE and its options; the command takes them as ``lake``, a ``LakeOptions``."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**given: Any) -> Any:
            own = {one.name: given.pop(one.name) for one in fields(LakeOptions)}
            return command(lake=LakeOptions(**own), **given)

        return combined(
            click.argument("root", metavar=metavar),
            click.option(
                "--gold", metavar="CATALOG.SCHEMA",
                help="Schema of gold, if it is not below LAKE. CATALOG.SCHEMA_windows and "
                "CATALOG.SCHEMA_state have its other tables.",
            ),
            click.option(
                "--gold-root", metavar="URL",
                help="Where a rollup makes gold's tables, as external ones; by default the catalog "
                "decides.",
            ),
            click.option(
                "--objectives", "objectives_folder",
                type=click.Path(exists=True, file_okay=False, path_type=Path),
                help="Folder of OpenSLO files; by default those that jmxlake ships.",
            ),
            OPTIONS_FILE,
        )(run)  # fmt: skip

    return decorate


def _label(text: str) -> tuple[str, str]:
    """Key and value of a label; an empty value means any."""
    key, _, value = text.partition("=")
    return key, value


LABELS: Final = click.option(
    "--label", "labels", type=_label, multiple=True, metavar="KEY[=VALUE]",
    help="Only objectives with this label; may be given several times.",
)  # fmt: skip


def date(text: str) -> dt.date:
    """An option's date.

    Raises:
        click.BadParameter: It is not a date between 1970 and 9998.
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
    """Seconds of an option's length of time.

    Raises:
        click.BadParameter: It is not a length of time.
    """
    found = periods.seconds(text)
    if found is None:
        what = f"{text[:40]!r} is not a length of time up to {periods.LONGEST}"
        raise click.BadParameter(f"{what}: write 30s, 1m, 2h or 400d")
    return found


def _percent(text: str) -> float:
    """A share; ``nan`` is one for a click.FloatRange, and no figure is below it."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 100:
        raise click.BadParameter(f"{text[:40]!r} is not a number from 0 to 100")
    return found


def between(start: str | None, end: str | None, zone: dt.tzinfo = dt.UTC) -> periods.Period | None:
    """The period of ``--from`` and ``--to``; None where neither is given.

    Raises:
        click.UsageError: Only one is given.
    """
    if (start is None) != (end is None):
        raise click.UsageError("--from and --to go together")
    return None if start is None or end is None else periods.span(start, end, zone)


MIN_COVERAGE: Final = click.option(
    "--min-coverage", type=_percent, metavar="PERCENT",
    help="Observed share of the expected time below which nothing good is stated. Default: "
    f"{FLOOR_PERCENT:g}.",
)  # fmt: skip


@contextmanager
def kept_in(errors: list[str]) -> Iterator[None]:
    """Keep an error's text in a list, so that the next step is still tried."""
    try:
        yield
    except LakehouseError as error:
        errors.append(str(error))


def stop_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set.

    Another thread sets it: at the instant of the signal this one may hold the event's lock. In a
    thread that Python hands no signals, such as a notebook's, nothing sets it.
    """
    stop, asked = threading.Event(), SimpleQueue[None]()

    def wait() -> None:
        asked.get()
        stop.set()

    threading.Thread(target=wait, daemon=True, name="signals").start()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: asked.put(None))
    return stop


def turns(
    every_seconds: float, stop: threading.Event, past_seconds: float | None = None
) -> Iterator[None]:
    """Turns of a command with ``--every``, until ``stop`` is set.

    The first comes at once. Turns that pass while one is still running are left out.

    Args:
        every_seconds: From turn to turn.
        stop: Ends them.
        past_seconds: How long after whole multiples of the interval since 1970 they come; None:
            they are counted from the first, and a clock that is set changes nothing.
    """
    first = time.monotonic()
    while not stop.is_set():
        yield
        past = time.monotonic() - first if past_seconds is None else time.time() - past_seconds
        stop.wait(every_seconds - past % every_seconds)


def log(what: str) -> None:
    """Print a line to standard error."""
    click.echo(f"jmxlake: {what}", err=True)


def write_file(path: Path, content: bytes) -> None:
    """Write a file and create its folders; ``-`` is standard output.

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
        what = f"{path}: {error.strerror}; choose a file that can be written"
        raise LakehouseError(what) from error


def named(template: str, facts: Mapping[str, Any]) -> str:
    """A path or an address with the week and the file name of a report's cluster filled in.

    Args:
        template: May have ``{week}``, which is a date where the period is no week, and
            ``{cluster}``.
        facts: The report.
    """
    week = facts["week"]["iso"] if facts.get("week") else str(facts["from"])[:10]
    safe = {"{week}": re.sub("[^0-9A-Za-z-]", "", week), "{cluster}": file_stem(facts["cluster"])}
    return re.sub(r"\{(week|cluster)\}", lambda found: safe[found[0]], template)


def file_stem(cluster: str) -> str:
    """A unique file name for a cluster; a hostile id cannot lead to another folder."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", cluster).strip("-")[:40]
    digest = hashlib.sha256(cluster.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{plain}-{digest}" if plain else digest
