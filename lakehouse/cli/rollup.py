"""``jmxlake rollup``, ``jmxlake verify`` and ``jmxlake upgrade``.

``rollup --every`` repeats passes in one process and one Spark session.
"""

import datetime as dt
import json
import secrets
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

import click

from lakehouse.cli import options
from lakehouse.cli.options import LakeOptions, log, turns
from lakehouse.cli.phases import Phase, phase
from lakehouse.core import display
from lakehouse.core.objective import Objective
from lakehouse.core.periods import window_seconds
from lakehouse.core.spark_session import stop_retries
from lakehouse.engines.engine import Engine
from lakehouse.errors import LakehouseError, is_of_spark, spark_failed
from lakehouse.rollup import progress
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import Done, Outcome, rollup as run_rollup
from lakehouse.rollup.upgrade import upgrade as convert
from lakehouse.rollup.verify import verify as compare

WINDOW: Final = click.option(
    "--window", type=window_seconds, metavar="LENGTH",
    help="Window length of the agents, such as 5m or 30s.",
)  # fmt: skip
TIDY: Final = click.option(
    "--tidy", type=click.Choice(["daily", "now", "never"]), default="daily", show_default=True,
    help="Compaction of gold after the rollup, including deletion of obsolete files.",
)  # fmt: skip
_TAKE_OVER: Final = "Take over the lease of another rollup. Use only if that process is dead."


@click.command
@options.lake_options()
@WINDOW
@click.option(
    "--since", type=options.date, metavar="DATE",
    help="Recompute every hour from DATE (UTC) for which bronze is complete.",
)  # fmt: skip
@TIDY
@click.option(
    "--rows", type=click.IntRange(1), metavar="NUMBER",
    help="Maximum bronze rows per batch. Default: based on available memory.",
)  # fmt: skip
@click.option("--take-over", is_flag=True, help=_TAKE_OVER)
@click.option(
    "--accept-lost", is_flag=True,
    help="Continue without deleted data files of bronze. Their hours remain unknown.",
)  # fmt: skip
@click.option(
    "--every", type=options.length, metavar="LENGTH",
    help="Roll up every LENGTH in one process until SIGTERM. The running batch completes first.",
)  # fmt: skip
@options.ENGINE
@options.AS_JSON
def rollup(  # noqa: PLR0913 - a click command
    lake: LakeOptions, window: int | None, since: dt.date | None, tidy: str, rows: int | None,
    every: int | None, *, take_over: bool, accept_lost: bool, engine: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Update gold tables from bronze.

    You can interrupt it at any time; the next rollup continues. It exits with 1 if it failed, and
    with 3 if another rollup of LAKE is running. With --every it logs failures and tries again.
    """
    objectives, wanted = (
        lake.objectives(),
        Wanted(since, tidy, take_over, rows, accept_lost=accept_lost),
    )
    if every is not None:
        if since or take_over or accept_lost or tidy == "now":
            single = "--since, --take-over, --accept-lost or --tidy now"
            raise click.UsageError(f"--every cannot be combined with {single}")
        service = RollupService(partial(lake.rollup_engine, engine), objectives, wanted, window)
        stop = options.stop_signals()
        threading.Thread(target=stop_retries_after, args=(stop,), daemon=True).start()
        service.serve(every, stop, as_json=as_json)
        return
    outcome = roll_up(lake.rollup_engine(engine), objectives, wanted, window)
    if as_json:
        click.echo(json.dumps(outcome_json(outcome)))
    else:
        click.echo("\n".join(outcome_lines(outcome)))


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


_LONGEST_WAIT_SECONDS: Final = 600
_PAST_SECONDS: Final = 75
"""Delay of a pass after a multiple of the interval, which is the end of a window. An agent with
default settings delivers the window within this time, even with tiered storage
(docs/maintenance.md)."""

_ENGINE_SECONDS: Final = 3600
"""Age at which an engine is replaced. Its copies of files and results of checks belong mostly to
hours that it does not read again. The Spark session stays."""


class _StoppedError(Exception):
    """SIGTERM arrived before the last batch."""


class _Pass(NamedTuple):
    """The result of a pass.

    Attributes:
        day: Start date (UTC).
        outcome: Outcome of its rollup.
        until: End of the newest sample in gold. None: gold has no sample of the last two days.
    """

    day: dt.date
    outcome: Outcome
    until: dt.datetime | None


class RollupService:
    """Repeated passes in one process and one Spark session, until SIGTERM.

    Args:
        new_engine: Creates an engine; its argument prints a line.
        objectives: Objectives of gold/sli.
        wanted: Options of the passes.
        window: Length of gold's windows, as for ``rollup``.
        clock: Returns the current time (UTC).
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
        # With a new ID, a pass would wait for the lease of an earlier pass that lost the store.
        self._wanted = replace(wanted, lease=uuid.uuid4().hex)
        self._clock = clock
        self._report: Callable[[str], None] = log
        self._engine: Engine | None = None
        self._since = clock()
        self._last: _Pass | None = None

    def serve(self, every_seconds: int, stop: threading.Event, *, as_json: bool) -> None:
        """Roll up at each turn until ``stop`` is set, with backoff after failures."""
        failures = skipped = 0
        most = max(1, _LONGEST_WAIT_SECONDS // every_seconds)
        for _ in turns(every_seconds, stop, past_seconds=_PAST_SECONDS):
            if skipped:
                skipped -= 1
                continue
            try:
                fields, failures = self._pass(stop), 0
            except _StoppedError:
                log("rollup: stopped after a batch. The next rollup continues")
                return
            except Exception as error:
                if not (isinstance(error, LakehouseError) or is_of_spark(error)):
                    raise
                failures += 1
                waits = min(2 ** (failures - 1), most)
                skipped = waits - 1
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
            **outcome_json(done.outcome),
        }

    def _still(self, engine: Engine, day: dt.date) -> _Pass | None:
        """Return the last pass if it found no new data and no table has changed since.

        The first pass of a day always runs, because it compacts gold.
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
            self._engine = None  # removes its files before the next engine downloads its own
            self._engine, self._since = self._new_engine(self._report), now
            self._report = lambda _: None  # later engines are not reported
        return self._engine

    def _added(self, outcome: Outcome) -> str:
        """Return the result of a pass, such as ``3 new commits, 1 hour rolled up``."""
        text = next(outcome_lines(outcome))
        if self._last is None or not outcome.hours:
            return text
        new = outcome.versions.runs - self._last.outcome.versions.runs
        return display.untied(f"{display.plural(new, 'new commit')}, {text}")

    def _failed(self, error: Exception, wait_seconds: int | None) -> dict[str, Any]:
        self._engine = None
        line = spark_failed(error) if is_of_spark(error) else " ".join(str(error).split())
        after = "stopped"
        if wait_seconds is not None:
            after = f"next attempt in {display.untied(display.length(wait_seconds * 1_000_000))}"
        log(f"rollup: {line}; {after}")
        return {"at": self._clock().isoformat(timespec="seconds"), "error": line}


def _reach(until: dt.datetime | None, now: dt.datetime) -> str:
    """Return the age of gold as text."""
    if until is None:
        return "gold has no sample of the last two days"
    behind = display.length(round((now - until).total_seconds()) * 1_000_000)
    return display.untied(f"gold reaches {until:%H:%M:%S} UTC, {behind} ago")


def stop_retries_after(stop: threading.Event) -> None:
    """End the wait for a lost Connect server when the rollup stops."""
    stop.wait()
    stop_retries()


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome of a rollup as fields of ``--json``."""
    fields = outcome._asdict()
    versions, costs = fields.pop("versions"), fields.pop("costs")
    return {**fields, **versions._asdict(), **costs._asdict()}


def outcome_lines(outcome: Outcome) -> Iterator[str]:
    """Yield the outcome of a rollup in lines."""
    hours = display.untied(display.plural(outcome.hours, "hour"))
    yield f"{hours} rolled up" if outcome.hours else "no new data"
    if outcome.late_rows:
        yield f"{outcome.late_rows} rows arrived too late and are in gold/rejected"
    if outcome.left:
        yield (
            f"{outcome.left} hours were not recomputed: bronze is incomplete, or gold lacks their "
            "5-minute rows"
        )


@click.command
@options.lake_options()
@click.option(
    "--windows", type=click.IntRange(1), default=24, show_default=True,
    help="Number of cluster-hours to recompute.",
)  # fmt: skip
@click.option("--seed", type=int, help="Random seed for the choice of hours. Default: random.")
@options.ENGINE
@options.AS_JSON
def verify(
    lake: LakeOptions, windows: int, seed: int | None, *, engine: str | None, as_json: bool
) -> None:
    """Recompute some hours and compare them with gold.

    It recomputes every row of these hours from bronze and expects byte-identical rows. It exits
    with 0 if all rows are equal, with 1 if some differ or it failed, and with 3 if a rollup is
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
@options.lake_options()
@click.option("--take-over", is_flag=True, help=_TAKE_OVER)
@options.ENGINE
@options.AS_JSON
def upgrade(lake: LakeOptions, *, take_over: bool, engine: str | None, as_json: bool) -> None:
    """Convert gold tables that an older version wrote.

    All figures stay the same, including published SLO results and hours that bronze no longer has.
    Stop rollups of the older version first. You can interrupt the command and run it again. It does
    not change gold of this version.
    """
    number = convert(lake.rollup_engine(engine), log, take_over=take_over)
    if as_json:
        click.echo(json.dumps({"tables": number}))
    else:
        click.echo(f"{display.plural(number, 'gold table')} converted")
