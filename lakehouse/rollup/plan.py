"""What a rollup is to do: which hours, in which batches, and which must stay as they are."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from lakehouse.errors import LogExpiredError
from lakehouse.rollup import aside, changes, held, progress as progresses
from lakehouse.rollup.batches import Batch, Size, batches
from lakehouse.rollup.changes import Touched
from lakehouse.units import Pair, Versions

if TYPE_CHECKING:
    from collections.abc import Set

    from lakehouse.rollup.bronze_log import State
    from lakehouse.rollup.engine import Engine
    from lakehouse.rollup.progress import Progress


class Terms(NamedTuple):
    """How a rollup is planned.

    Attributes:
        window_seconds: Length of gold's finest windows.
        since: A date (UTC) from which on all is wanted.
        size: How much is done at once.
        horizon: The date from which on gold keeps the finest rows.
    """

    window_seconds: int
    since: dt.date | None
    size: Size
    horizon: dt.date


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done.

    Attributes:
        how: How that is known, as in gold/progress.
        batches: What is recomputed, in this order.
        late: Hours for which something came, and which are not recomputed any more.
        misdated: Hours of rows that are in another date's partition.
        left: Hours that were asked for, and which are not recomputed any more.
        before: Versions of bronze after which what came is new; None where all is.
        now: Versions of bronze that are read.
        resumed: How many hours a rollup that was cut short has done.
        summary: All that in one line.
    """

    how: str
    batches: tuple[Batch, ...]
    late: frozenset[Pair]
    misdated: frozenset[Pair]
    left: frozenset[Pair]
    before: Versions | None
    now: Versions
    resumed: int
    summary: str


def made(engine: Engine, row: Progress | None, state: State, terms: Terms) -> Plan:
    """The plan of a rollup.

    Args:
        engine: The engine; gold's tables are there.
        row: The row of progress that stands.
        state: Bronze as it is to be rolled up.
        terms: How it is planned.
    """
    now, newest, _ = state
    how, fresh, why = _news(engine, row, state)
    wanted = dict(fresh.runs)
    if terms.since is not None and row is not None:
        how = f"{progresses.SINCE} {terms.since}"
        wanted |= changes.everything(engine, now, terms.since).runs
    old = {one.hour for one in wanted if one.hour < newest.committed - held.LEAST_KEPT}
    barred = held.held(engine, now, old, terms.horizon, terms.window_seconds)
    open_ = wanted.keys() - barred
    todo = _not_done_yet(engine, row, now, how, open_)
    counts = wanted if how == progresses.WHOLE else changes.counts(engine, now, todo)
    found = batches(counts, todo, barred, terms.size, now, terms.window_seconds)
    left, resumed = frozenset(barred & wanted.keys()), len(open_) - len(todo)
    summary = f"{how}: {len(todo)} hours in {len(found)} batches{why}"
    summary += f", {resumed} done before" * bool(resumed)
    summary += f", {len(left)} left as they are: {aside.TOO_LATE}" * bool(left)
    return Plan(
        how, tuple(found), frozenset(barred & fresh.runs.keys() if row else ()), fresh.misdated,
        left, row.versions if row and not why else None, now, resumed, summary,
    )  # fmt: skip


def _news(engine: Engine, row: Progress | None, state: State) -> tuple[str, Touched, str]:
    """How it is known, what is new, and why it is not the change feed that says so."""
    now, newest, logs = state
    if row is None:
        return progresses.WHOLE, changes.everything(engine, now, None), ""
    if any(new < old for new, old in zip(now, row.versions, strict=True)):
        return progresses.RECOVERED, Touched({}), ", for bronze is another"
    last = row.committed or row.at - dt.timedelta(days=1)
    ripe = changes.come_true(engine, last, newest.committed)
    try:
        found = changes.touched(engine, row.versions, now, logs, ripe)
        how, why = progresses.FEED, ""
    except LogExpiredError as error:
        how, why = progresses.RECOVERED, f", for {error}"
        found = changes.recovered(engine, min(last, row.at), now, ripe)
    return how, found, why


def _not_done_yet(
    engine: Engine, row: Progress | None, now: Versions, how: str, todo: Set[Pair]
) -> frozenset[Pair]:
    """What a rollup that was cut short has left, and what came for the rest since."""
    left = frozenset(todo)
    for batch in progresses.noted(engine, row, how):
        try:
            since = changes.touched(engine, batch.versions, now).runs
        except LogExpiredError:
            continue
        left -= batch.pairs - since.keys()
    return left
