"""``jmxlake rollup``, ``jmxlake verify`` and ``jmxlake register``."""

import datetime as dt
import json
import secrets
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

import click

from lakehouse.cli import options
from lakehouse.cli.options import LAKE, LakeOptions, log, stop_signals, turns
from lakehouse.cli.phases import Phase, phase
from lakehouse.core import display
from lakehouse.core.display import plural, untied
from lakehouse.core.lake import at
from lakehouse.core.objective import Objective
from lakehouse.core.periods import window_seconds
from lakehouse.core.spark_session import stop_retries
from lakehouse.engines.choice import start_spark
from lakehouse.engines.engine import Engine
from lakehouse.errors import LakehouseError, is_of_spark, spark_failed
from lakehouse.rollup import progress
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import Done, Outcome, rollup as run_rollup
from lakehouse.rollup.verify import verify as compare

WINDOW: Final = click.option(
    "--window", type=window_seconds, metavar="LENGTH",
    help="Window of the agents, such as 5m or 30s.",
)  # fmt: skip
TIDY: Final = click.option(
    "--tidy", type=click.Choice(["daily", "now", "never"]), default="daily", show_default=True,
    help="Compact gold and delete its old files after the rollup.",
)  # fmt: skip


@click.command
@options.lake_options()
@WINDOW
@click.option(
    "--since", type=options.date, metavar="DATE",
    help="Recompute all hours from DATE (UTC) on that bronze holds completely.",
)  # fmt: skip
@TIDY
@click.option(
    "--rows", type=click.IntRange(1), metavar="NUMBER",
    help="Rows of bronze/runs to compute at once; by default what fits the engine's memory.",
)  # fmt: skip
@click.option(
    "--take-over", is_flag=True,
    help="Take the lease even if another rollup holds it (only if that process is dead).",
)  # fmt: skip
@click.option(
    "--accept-lost", is_flag=True,
    help="Go on without data files of bronze that are gone; their hours stay unknown.",
)  # fmt: skip
@click.option(
    "--every", type=options.length, metavar="LENGTH",
    help="Roll up every LENGTH in one process until SIGTERM, which lets the running batch end.",
)  # fmt: skip
@options.ENGINE
@options.AS_JSON
def rollup(  # noqa: PLR0913 - a click command
    lake: LakeOptions, window: int | None, since: dt.date | None, tidy: str, rows: int | None,
    every: int | None, *, take_over: bool, accept_lost: bool, engine: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Bring gold up to date with what the agents have delivered to LAKE.

    It can be killed at any instant, and the next rollup continues. Exits with 1 if it failed, with
    3 if another rollup of this lake is running. With --every it logs a failure and tries again.
    """
    objectives, wanted = (
        lake.objectives(),
        Wanted(since, tidy, take_over, rows, accept_lost=accept_lost),
    )
    if every is not None:
        if since or take_over or accept_lost or tidy == "now":
            once = "--since, --take-over, --accept-lost or --tidy now"
            raise click.UsageError(f"--every repeats a rollup: run {once} once, without it")
        live = Live(lambda say: lake.rollup_engine(engine, say), objectives, wanted, window)
        stop = stop_signals()
        threading.Thread(target=_stop_retries_after, args=(stop,), daemon=True).start()
        live.serve(every, stop, as_json=as_json)
        return
    outcome = roll_up(lake.rollup_engine(engine), objectives, wanted, window)
    if as_json:
        click.echo(json.dumps(_as_json(outcome)))
    else:
        click.echo("\n".join(outcome_lines(outcome)))


def _stop_retries_after(stop: threading.Event) -> None:
    """End the wait for a lost Connect server when the rollup stops."""
    stop.wait()
    stop_retries()


def _as_json(outcome: Outcome) -> dict[str, Any]:
    fields = outcome._asdict()
    versions, costs = fields.pop("versions"), fields.pop("costs")
    return {**fields, **versions._asdict(), **costs._asdict()}


_LONGEST_WAIT_SECONDS: Final = 600
_PAST_SECONDS: Final = 75
"""When turns come after multiples of their interval, where windows end: by then an agent with its
defaults has delivered a window, with tiered storage, too (docs/fleet.md)."""

_ENGINE_SECONDS: Final = 3600
"""Age at which an engine is replaced. It keeps copies of a bucket's files and what it has checked,
most of them of hours that are not read again. The Spark session stays."""


class _StoppedError(Exception):
    """SIGTERM came, and batches are left."""


class _Pass(NamedTuple):
    """The result of a pass.

    Attributes:
        day: When it began (UTC).
        outcome: Of its rollup.
        until: The end of the newest reading in gold; None: of two days it has none.
    """

    day: dt.date
    outcome: Outcome
    until: dt.datetime | None


class Live:
    """``rollup --every``: passes of one process, on one Spark session.

    Args:
        new_engine: Makes an engine; its argument prints a line.
        objectives: The objectives of gold/sli.
        wanted: Options of each pass.
        window: Length of gold's windows, as for ``rollup``.
        clock: Gives the instant, UTC.
    """

    def __init__(
        self,
        new_engine: Callable[[Callable[[str], None]], Engine],
        objectives: tuple[Objective, ...],
        wanted: Wanted,
        window: int | None,
        clock: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        self._new_engine, self._objectives, self._window = new_engine, objectives, window
        # With an id of its own a pass would wait for the lease of one before that lost the store.
        self._wanted = replace(wanted, lease=uuid.uuid4().hex)
        self._clock = clock
        self._say: Callable[[str], None] = log
        self._engine: Engine | None = None
        self._since = clock()
        self._last: _Pass | None = None

    def serve(self, every_seconds: int, stop: threading.Event, *, as_json: bool) -> None:
        """Roll up at each turn until ``stop`` is set; after failures at ever fewer turns."""
        failures = left_out = 0
        most = max(1, _LONGEST_WAIT_SECONDS // every_seconds)
        for _ in turns(every_seconds, stop, past_seconds=_PAST_SECONDS):
            if left_out:
                left_out -= 1
                continue
            try:
                fields, failures = self._pass(stop), 0
            except _StoppedError:
                log("rollup: stopped after a batch; the next rollup continues")
                return
            except Exception as error:
                if not (isinstance(error, LakehouseError) or is_of_spark(error)):
                    raise
                failures += 1
                waits = min(2 ** (failures - 1), most)
                left_out = waits - 1
                fields = self._failed(error, None if stop.is_set() else waits * every_seconds)
            if as_json:
                click.echo(json.dumps(fields))

    def _pass(self, stop: threading.Event) -> dict[str, Any]:
        began = self._clock()
        engine = self._engine_at(began)
        with phase("rollup") as shown:
            done = self._still(engine, began.date()) or self._rolled_up(engine, stop, shown)
            now, until = self._clock(), done.until
            shown.result = f"{self._added(done.outcome)}, {_reach(until, now)}"
        self._last = done
        behind = None if until is None else (now - until).total_seconds()
        return {
            "at": now.isoformat(timespec="seconds"),
            "seconds": round((now - began).total_seconds(), 3),
            "until": None if until is None else until.isoformat(timespec="seconds"),
            "behind_seconds": behind,
            **_as_json(done.outcome),
        }

    def _still(self, engine: Engine, day: dt.date) -> _Pass | None:
        """The last pass again, if it found nothing new and no table has changed since.

        Gold is tidied once a day, so the first pass of a day looks at everything.
        """
        is_unchanged, last = engine.is_unchanged(), self._last
        if last is None or last.outcome.how or last.day != day:
            return None
        return last if is_unchanged else None

    def _rolled_up(self, engine: Engine, stop: threading.Event, shown: Phase) -> _Pass:
        day = self._clock().date()

        def watch(done: Done) -> None:
            shown.watch(done)
            if stop.is_set() and done.hours < done.of_hours:
                raise _StoppedError

        outcome = run_rollup(
            engine, self._objectives, self._wanted, window_seconds=self._window,
            progress=shown.step, watch=watch,
        )  # fmt: skip
        return _Pass(day, outcome, progress.until(engine, self._clock()))

    def _engine_at(self, now: dt.datetime) -> Engine:
        if self._engine is None or abs((now - self._since).total_seconds()) > _ENGINE_SECONDS:
            self._engine = None  # its files are removed before those of the next are fetched
            self._engine, self._since = self._new_engine(self._say), now
            self._say = lambda _: None  # the next engine is no news
        return self._engine

    def _added(self, outcome: Outcome) -> str:
        """What a pass added, such as ``3 new commits, 1 hour rolled up``."""
        text = next(outcome_lines(outcome))
        if self._last is None or not outcome.hours:
            return text
        new = outcome.versions.runs - self._last.outcome.versions.runs
        return untied(f"{plural(new, 'new commit')}, {text}")

    def _failed(self, error: Exception, wait_seconds: int | None) -> dict[str, Any]:
        self._engine = None
        line = spark_failed(error) if is_of_spark(error) else " ".join(str(error).split())
        after = "stopped"
        if wait_seconds is not None:
            after = f"next attempt in {untied(display.length(wait_seconds * 1_000_000))}"
        log(f"rollup: {line}; {after}")
        return {"at": self._clock().isoformat(timespec="seconds"), "error": line}


def _reach(until: dt.datetime | None, now: dt.datetime) -> str:
    """How late gold is, in words."""
    if until is None:
        return "gold has no reading of the last two days"
    behind = display.length(round((now - until).total_seconds()) * 1_000_000)
    return untied(f"gold reaches {until:%H:%M:%S} UTC, {behind} ago")


def roll_up(
    engine: Engine, objectives: tuple[Objective, ...], wanted: Wanted, window: int | None
) -> Outcome:
    """Roll up and show the progress."""
    with phase("rollup") as shown:
        outcome = run_rollup(
            engine, objectives, wanted, window_seconds=window, progress=shown.step,
            watch=shown.watch,
        )  # fmt: skip
        shown.result = next(outcome_lines(outcome))
    return outcome


def outcome_lines(outcome: Outcome) -> Iterator[str]:
    """Outcome of a rollup, in lines."""
    hours = untied(plural(outcome.hours, "hour"))
    yield f"{hours} rolled up" if outcome.hours else "nothing new"
    if outcome.late_rows:
        yield f"{outcome.late_rows} rows came too late and are in gold/rejected"
    if outcome.left:
        yield (
            f"{outcome.left} hours were not recomputed: bronze does not hold them completely, or "
            "gold lacks their finest rows"
        )


@click.command
@options.lake_options()
@click.option(
    "--windows", type=click.IntRange(1), default=24, show_default=True,
    help="Number of hours of clusters to recompute.",
)  # fmt: skip
@click.option("--seed", type=int, help="Choose the same hours again; by default others each time.")
@options.ENGINE
@options.AS_JSON
def verify(
    lake: LakeOptions, windows: int, seed: int | None, *, engine: str | None, as_json: bool
) -> None:
    """Recompute some hours from bronze and compare every row of gold, to the bit.

    Exits with 0 if all rows are equal, with 1 if some differ or it failed, with 3 if a rollup is
    running or was interrupted.
    """
    objectives = lake.objectives()
    chosen = secrets.randbelow(10**9) if seed is None else seed
    result = compare(lake.rollup_engine(engine), objectives, windows, chosen, log)
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=1, default=str))
    else:
        for difference in result.differences:
            click.echo(f"{difference.table} {difference.kind}: {difference.row}")
        click.echo(
            f"{result.rows} rows of {result.hours} hours compared, {len(result.differences)} "
            f"differ (seed {chosen})"
        )
    if result.differences:
        sys.exit(1)


@click.command
@LAKE
@click.option(
    "--bronze", metavar="CATALOG.SCHEMA", required=True,
    help="Schema of the tables' names; it must exist.",
)  # fmt: skip
def register(lake: str, bronze: str) -> None:
    """Register the agents' tables of LAKE as external tables of a catalog.

    Existing names stay. Nothing is written to LAKE.
    """
    location, spark = at(lake), start_spark(log)
    from lakehouse.ops.register import register as register_tables  # it imports Spark

    for name in register_tables(spark, location.root, bronze):
        click.echo(name)
